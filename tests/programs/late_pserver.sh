#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver that does not run yet: the trainer waits, and logs for which one and why; it trains when
# the pserver starts, and gives up at the deadline if none does.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
start trainer "$WEFT" train linear --num_passes=2 --pservers=127.0.0.1:"$port"
trainer=$last_pid
wait_for trainer.err "trainer 0 waits"
grep 'trainer 0 waits' trainer.err | grep -F "127.0.0.1:$port" | grep -q 'refused' ||
	fail "no reason for waiting"
start pserver "$WEFT" pserver --port="$port" --once
pserver=$last_pid
ends "$trainer" 60 trainer
[ "$code" -eq 0 ] || fail "trainer: exit code $code"
ends "$pserver" 60 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"

expect 69 "$WEFT" train linear --connect_timeout=1s --pservers=127.0.0.1:$((port + 1))
says last.err "127.0.0.1:$((port + 1))"
