#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trainer_id out of range, or used by two living processes, is refused, and the job goes on.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 64 "$WEFT" train linear --trainer_id=2 --num_gradient_servers=2 --pservers=127.0.0.1:"$port"
says last.err "trainer_id" "num_gradient_servers"

start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
pserver=$last_pid
start first "$WEFT" train linear --num_passes=2 --pservers=127.0.0.1:"$port" \
	--num_gradient_servers=2 --trainer_id=0
first=$last_pid
# A trainer that waits for trainer 1 has been admitted.
until_true 60 grep -qi 'trainer 1' first.err pserver.err || fail "no log says that trainer 1 is missing"
expect 64 "$WEFT" train linear --num_passes=2 --pservers=127.0.0.1:"$port" \
	--num_gradient_servers=2 --trainer_id=0
says last.err "trainer_id 0 is used by two"
# Another job, which finds the pserver in use: its trainer ids are right.
expect 64 "$WEFT" train mlp --num_passes=2 --pservers=127.0.0.1:"$port" --num_gradient_servers=2
says last.err "this pserver has another job, with trainer 0 (host" "another pserver or port"
says_not last.err "trainer_id"
expect 0 "$WEFT" train linear --num_passes=2 --pservers=127.0.0.1:"$port" \
	--num_gradient_servers=2 --trainer_id=1
ends "$first" 60 "trainer 0"
[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
ends "$pserver" 60 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
