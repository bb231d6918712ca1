#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Members that disagree are told what differs, with both values, and end with 64; who agrees trains on.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
at="--pservers=127.0.0.1:$port"
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
pserver=$last_pid
wait_for pserver.err "pserver listens on"

expect 64 "$WEFT" train linear "$at" --num_gradient_servers=3
says last.err "num_gradient_servers 3" "2"
expect 64 "$WEFT" train linear "$at" --num_gradient_servers=2 --ports_num=2
says last.err "ports_num"

start first "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --slice_bytes=256
first=$last_pid
until_true 60 grep -qi 'trainer 1' first.err pserver.err || fail "nobody says that trainer 1 is missing"
expect 64 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=512
says last.err "slice_bytes"
expect 64 "$WEFT" train linear "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=256
expect 64 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=256 --learning_rate=0.125
# What lanes do not know, and the bits depend on. Data is compared by what is in it, not by its name.
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
