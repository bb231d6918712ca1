#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a trainer prints if something else is where it expects a pserver: a server that accepts and
# never answers, an HTTP server, the pserver of another job. The first line about the wait names it,
# long before the time to connect is over.
. "${0%/*}/lib.sh"
needs_training
if ! command -v python3 >/dev/null 2>&1; then
	echo "SKIPPED: python3 is not there" >&2
	exit 77
fi

# Prints its port. "silent": it accepts; "http": it answers each request as a web server does.
cat >server.py <<'PY'
import socket
import sys

server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = []
while True:
    connection, _ = server.accept()
    kept.append(connection)
    if sys.argv[1] == "http":
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        connection.close()
PY

# named KIND TEXT: the first line about the wait has the text, and then a signal ends the trainer.
named() {
	start "$1" python3 server.py "$1"
	server=$last_pid
	until_true 60 test -s "$1.out" || fail "the server does not listen"
	start "beside_$1" "$WEFT" train linear --pservers=127.0.0.1:"$(cat "$1.out")" --connect_timeout=300s
	trainer=$last_pid
	wait_for "beside_$1.err" "trainer 0 waits, "
	grep -m 1 "trainer 0 waits, " "beside_$1.err" >first.err
	says first.err "s of at most 300 s: pserver 0 lane 0 (127.0.0.1:$(cat "$1.out")) " "$2"
	kill -TERM "$trainer"
	ends "$trainer" 30 trainer
	[ "$code" -eq 143 ] || fail "exit code $code after SIGTERM"
	kill -9 "$server"
}
named silent "has not answered yet: it may be busy, a firewall may be in the way, or the port may be another server's"
named http "this is the port of an HTTP server, not of a weft pserver; it answered \"HTTP/1.1 400"

# A list that has the pserver of another job: the newcomer is refused, and that job is not
# disturbed.
port=$(free_ports)
start ours "$WEFT" pserver --port="$port" --num_gradient_servers=2
start theirs "$WEFT" pserver --port=$((port + 1)) --once --num_gradient_servers=2
theirs=$last_pid
wait_for ours.err "pserver listens on"
wait_for theirs.err "pserver listens on"
at="--pservers=127.0.0.1:$((port + 1)) --num_gradient_servers=2 --num_passes=2"
# shellcheck disable=SC2086
start first "$WEFT" train linear $at --trainer_id=0
first=$last_pid
wait_for first.err "trainer 0: reached pserver 0 lane 0"
expect 64 "$WEFT" train linear --pservers=127.0.0.1:"$port",127.0.0.1:$((port + 1)) \
	--num_gradient_servers=2
says last.err "refused by pserver 1 lane 0 (127.0.0.1:$((port + 1)))" \
	"this pserver has another job, with trainer 0 (host "
# shellcheck disable=SC2086
expect 0 "$WEFT" train linear $at --trainer_id=1
ends "$first" 60 "trainer 0 of the other job"
[ "$code" -eq 0 ] || fail "the other job: exit code $code"
ends "$theirs" 60 "the pserver of the other job"
[ "$code" -eq 0 ] || fail "the pserver of the other job: exit code $code"
