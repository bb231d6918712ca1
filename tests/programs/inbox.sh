#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --inbox_bytes: with room for one slice of each trainer a job has the bits of a sequential run over
# shared memory, TCP and a bad network; with less it is refused, and the message says how much it
# needs.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
least=$((2 * 4096))
job="--trainers=2 --pservers=2 --port=$port"
train="train mlp --num_passes=1 --slice_bytes=4096"
# shellcheck disable=SC2086
expect 0 "$WEFT" $train --sequential --num_gradient_servers=2
alone=$(digest_of last.out)
for transport in shm tcp 'fault(seed=3,cut=0.2%,refuse=5%)+auto'; do
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local $job --inbox_bytes=$least --transport="$transport" \
		--stats_period=60s -- $train
	[ "$(digest_of last.out)" = "$alone" ] || fail "another digest over $transport"
	says last.err "an inbox of $least bytes has room for 1 of "
	grep -Eq 'stats of the job.* slices_announced [1-9][0-9]* slices_held [1-9]' last.err ||
		fail "nothing is announced over $transport"
done

# shellcheck disable=SC2086
expect 64 "$WEFT" launch --local $job --inbox_bytes=$((least - 1)) -- $train
says last.err "--inbox_bytes=$((least - 1)) has no room for one slice of each of 2 trainers; give $least or more"
expect 64 "$WEFT" pserver --num_gradient_servers=2 --inbox_bytes=64
says last.err "--inbox_bytes=64 has no room" "give trainers x --slice_bytes or more, or 0"
