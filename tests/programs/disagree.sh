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
expect 0 "$WEFT" train mlp "$at" --num_passes=1 --num_gradient_servers=2 --trainer_id=1 \
	--slice_bytes=256
ends "$first" 60 "trainer 0"
[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
ends "$pserver" 60 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
