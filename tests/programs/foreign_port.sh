#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The port of another kind of server, which answers only after a line: the trainer names it, also
# when it gives up. For a port that sends nothing the message differs, because it may be a busy
# pserver's.
. "${0%/*}/lib.sh"
needs_training
command -v python3 >/dev/null || {
	echo "SKIPPED: python3 is not there" >&2
	exit 77
}

port=$(free_ports)
start http python3 -u -m http.server --bind 127.0.0.1 "$port"
until_true 60 grep -q 'Serving HTTP' http.out || fail "the HTTP server has not started"
expect 69 "$WEFT" train linear --pservers=127.0.0.1:"$port" --connect_timeout=3s
says last.err "trainer 0 waits, 2 s of at most 3 s" "this is the port of an HTTP server, not of a weft pserver"
grep 'did not answer within 3.0 s' last.err | grep -qF 'the port of an HTTP server' ||
	fail "the end does not name the HTTP server"

port=$((port + 1))
start silent python3 -u -c '
import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("it listens")
time.sleep(600)' "$port"
until_true 60 grep -q 'it listens' silent.out || fail "the silent server has not started"
expect 69 "$WEFT" train linear --pservers=127.0.0.1:"$port" --connect_timeout=3s
says last.err "trainer 0 waits, 2 s of at most 3 s: pserver 0 lane 0 (127.0.0.1:$port) has not answered yet: it may be busy"
says_not last.err "HTTP"
