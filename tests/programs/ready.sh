#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver reports that it is ready: in a file that is whole, names the first lane and is removed
# at the end, and to the service manager, by systemd's protocol.
. "${0%/*}/lib.sh"

command -v python3 >/dev/null || {
	echo "SKIPPED: python3 is not there" >&2
	exit 77
}
port=$(free_ports)
cat >manager.py <<'PY'
import os, socket, sys
name = sys.argv[1]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("\0" + name[1:] if name[0] == "@" else name)
print("bound", flush=True)
while True:
    message = manager.recv(4096).decode()
    print(message.replace("\n", "|"), flush=True)
    if "STOPPING" in message:
        break
PY
for socket in "$PWD/manager" "@weft-test-$$"; do
	start manager python3 manager.py "$socket"
	manager=$last_pid
	wait_for manager.out bound
	start pserver env NOTIFY_SOCKET="$socket" "$WEFT" pserver --port="$port" --ready_file=ready
	pserver=$last_pid
	wait_for ready "127.0.0.1:$port"
	[ "$(cat ready)" = "127.0.0.1:$port" ] || fail "the file holds: $(cat ready)"
	wait_for manager.out "READY=1|STATUS=listens on 127.0.0.1:$port"
	kill -TERM "$pserver"
	ends "$pserver" 30 "weft pserver"
	[ "$code" -eq 0 ] || fail "exit code $code"
	ends "$manager" 30 "the manager"
	[ ! -e ready ] || fail "the file is left"
	[ ! -e ready.partial ] || fail "a partial file is left"
done

# A manager that reads nothing costs two seconds and a warning, and the pserver does not hang.
cat >deaf.py <<'PY'
import socket, sys, time
deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
deaf.bind(sys.argv[1])
full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
full.setblocking(False)
try:
    while True:
        full.sendto(b"x", sys.argv[1])
except BlockingIOError:
    print("full", flush=True)
time.sleep(600)
PY
start deaf python3 deaf.py "$PWD/deaf"
deaf=$last_pid
wait_for deaf.out full
start pserver env NOTIFY_SOCKET="$PWD/deaf" "$WEFT" pserver --port="$port"
wait_for pserver.err "cannot tell the service manager"
kill -TERM "$last_pid"
ends "$last_pid" 30 "weft pserver"
[ "$code" -eq 0 ] || fail "exit code $code"
kill "$deaf"

# If there is no manager there is a warning; if the file cannot be written the pserver does not
# start.
start pserver env NOTIFY_SOCKET=vsock:2:1 "$WEFT" pserver --port="$port"
wait_for pserver.err "NOTIFY_SOCKET=vsock:2:1: cannot tell the service manager"
kill -TERM "$last_pid"
ends "$last_pid" 30 "weft pserver"
expect 74 "$WEFT" pserver --port="$port" --ready_file=nowhere/ready
says last.err "--ready_file=nowhere/ready: nowhere/ready.partial cannot be written: No such file"
: >other
ln other ready.partial
expect 74 "$WEFT" pserver --port="$port" --ready_file=ready
