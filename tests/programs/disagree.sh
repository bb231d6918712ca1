#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Members that disagree end with 64 and a message with both values of what differs. The others go on
# if a member that agrees comes in time; otherwise all end, and name the one that was refused, or
# that had begun to connect and is gone.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
at="--pservers=127.0.0.1:$port"
# The time in all for a member to come back with the right settings.
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2 --reconnect_timeout=100s
pserver=$last_pid
wait_for pserver.err "pserver listens on"

expect 64 "$WEFT" train linear "$at" --num_gradient_servers=3
says last.err "num_gradient_servers 3" "2"
expect 64 "$WEFT" train linear "$at" --num_gradient_servers=2 --ports_num=2
says last.err "ports_num"

start first "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --slice_bytes=256
first=$last_pid
until_true 60 grep -qi 'trainer 1' first.err pserver.err || fail "no log says that trainer 1 is missing"
expect 64 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=512
says last.err "slice_bytes"
expect 64 "$WEFT" train linear "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=256
expect 64 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=256 --learning_rate=0.125
# Settings that lanes do not know, but on which the bits depend. Data is compared by content, not by
# name.
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
cp "$data/digits.csv" same.csv
sed '7s/,5,/,6,/' same.csv >other.csv
cmp -s same.csv other.csv && fail "line 7 of the digits has no ,5,"
differs() { # THIS OTHER option...: trainer 1 is refused, for it has THIS and trainer 0 has OTHER
	this=$1 other=$2
	shift 2
	expect 64 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
		--slice_bytes=256 "$@"
	grep -qE "has $this[0-9a-f]*, trainer 0 on .* has $other[0-9a-f]*: give every trainer the same" last.err ||
		fail "last.err does not say $this and $other"
}
differs seed=2 seed=1 --seed=2
differs batch_size=16 batch_size=32 --batch_size=16
differs num_passes=2 num_passes=1 --num_passes=2
differs start_pass=1 start_pass=0 --num_passes=2 --start_pass=1 --save_dir=none
differs validate=true validate=false --validate
differs data=1797, data=1797, --data=other.csv
expect 0 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=256 --data=same.csv
ends "$first" 60 "trainer 0"
[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
ends "$pserver" 60 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"

# No member comes back right: all learn at once which one was refused and why, and end with that
# within seconds.
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
pserver=$last_pid
start first "$WEFT" train mlp "$at" --num_gradient_servers=2
first=$last_pid
wait_for pserver.err "trainer 0"
expect 64 "$WEFT" train mlp "$at" --num_gradient_servers=2 --trainer_id=1 --learning_rate=0.125
says last.err "has learning_rate=0.125, trainer 0 on" "has learning_rate=0.05"
wait_for first.err "the job waits for trainer 1, refused: trainer 1 on"
ends "$first" 20 "trainer 0"
[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
says first.err "weft train: trainer 1 did not join within 3.0 s; refused: trainer 1 on" \
	"has learning_rate=0.125, trainer 0 on" "has learning_rate=0.05"
ends "$pserver" 20 pserver
[ "$code" -eq 64 ] || fail "pserver: exit code $code"
says pserver.err "has learning_rate=0.125, trainer 0 on" "has learning_rate=0.05"

# Killed after it has reached its first lane and before its last one, while both wait for it.
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
pserver=$last_pid
for id in 0 1; do
	start "half$id" "$WEFT" train mlp --pservers="127.0.0.1:$port,127.0.0.1:$((port + 1))" \
		--num_gradient_servers=2 --trainer_id="$id"
	eval "half$id=\$last_pid"
	wait_for pserver.err "trainer $id (host"
done
# shellcheck disable=SC2154
kill -9 "$half1"
# shellcheck disable=SC2154
ends "$half0" 20 "trainer 0"
[ "$code" -eq 69 ] || fail "trainer 0: exit code $code"
says half0.err "weft train: trainer 1 (host" "was lost in step"
ends "$pserver" 20 pserver
[ "$code" -eq 69 ] || fail "pserver: exit code $code"

# Tables have a description of their own, which sparse lanes compare; a trainer that dense lanes
# have admitted ends the job there.
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2 --ports_num_for_sparse=1
pserver=$last_pid
start first "$WEFT" train ctr "$at" --num_gradient_servers=2 --ports_num_for_sparse=1
first=$last_pid
until_true 60 grep -q "lane 1: trainer 0" pserver.err || fail "trainer 0 did not come to the sparse lane"
expect 64 "$WEFT" train ctr "$at" --num_gradient_servers=2 --ports_num_for_sparse=1 --trainer_id=1 \
	--sparse_l1=0.25 --admit_count=3
says last.err "has wide=l1=0.25,admit_count=3, trainer 0 on" "has wide=none of these: declare the same tables"
ends "$first" 20 "trainer 0"
[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
says first.err "has wide=l1=0.25,"
ends "$pserver" 20 pserver
