#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A port that another program uses: exit code 69, a message with the address and a remedy, and no
# process left.
. "${0%/*}/lib.sh"

port=$(free_ports)
start holder "$WEFT" pserver --port=$((port + 1))
holder=$last_pid
wait_for holder.err "pserver listens on"

expect 69 "$WEFT" pserver --port=$((port + 1))
says last.err "127.0.0.1:$((port + 1))"
# One lane of several.
expect 69 "$WEFT" pserver --port="$port" --ports_num=2
says last.err "127.0.0.1:$((port + 1))"
expect 69 "$WEFT" launch --local --pservers=2 --trainers=1 --port="$port" -- train linear
says last.err "127.0.0.1:$((port + 1)) is in use" "--port"
says_not last.err "pserver 0 |"

kill -TERM "$holder"
ends "$holder" 20 pserver
[ "$code" -eq 0 ] || fail "exit code $code after SIGTERM"
