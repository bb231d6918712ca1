#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Long work shows a bar on a terminal, removes it at the end, and shows nothing where it is short.
# The work is made long by a reader of its results that does not read until the bar has come.
. "${0%/*}/lib.sh"

seq 1 1000 >numbers.txt
expect 0 "$WEFT" data verify numbers.txt
[ ! -s last.err ] || fail "short work says something on stderr"

python3 - "$WEFT" <<'PYTHON' || fail "there is no bar on a terminal"
import os, pty, subprocess, sys

terminal, stderr = pty.openpty()
results, stdout = os.pipe()
os.set_blocking(stdout, False)
filled = 0
try:
    while True:
        filled += os.write(stdout, b"." * 4096)
except BlockingIOError:
    pass
os.set_blocking(stdout, True)
env = dict(os.environ, TERM="xterm")
work = subprocess.Popen([sys.argv[1], "data", "verify", "numbers.txt"], stdout=stdout, stderr=stderr, env=env)
os.close(stdout)
os.close(stderr)
said = b""
while b"%" not in said:
    said += os.read(terminal, 4096)
assert b"\r\x1b[Kweft data verify: reading" in said, said
found = b""
while True:
    part = os.read(results, 65536)
    if not part:
        break
    found += part
assert found[filled:] == b"1 file, 1000 records, 0 findings\n", found[filled:]
assert work.wait() == 0
try:
    while True:
        part = os.read(terminal, 4096)
        if not part:
            break
        said += part
except OSError:
    pass  # the terminal has no writer any more
assert said.endswith(b"\r\x1b[K"), said
PYTHON
