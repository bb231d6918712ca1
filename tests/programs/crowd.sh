#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 1,100 silent connections to the dense port and to the sparse one, renewed as they are closed, do
# not keep a trainer from joining, or from coming back when its connection is cut, even if the
# pserver has few descriptors.
. "${0%/*}/lib.sh"
needs_training
: "${STRANGER:?the uninvited guest}"

port=$(free_ports)
job="--num_passes=3 --batch_size=900 --slice_bytes=64 --num_gradient_servers=2"
# shellcheck disable=SC2086 # words
expect 0 "$WEFT" train ctr --sequential $job
alone=$(digest_of last.out)
[ -n "$alone" ] || fail "no digest of the sequential run"

# crowded FILES: one job among the crowds, its pserver with so many descriptors.
crowded() {
	start pserver sh -c 'ulimit -n "$0" && exec "$@"' "$1" "$WEFT" pserver --port="$port" \
		--ports_num_for_sparse=1 --num_gradient_servers=2 --once
	pserver=$last_pid
	wait_for pserver.err "pserver listens on"
	crowds=""
	for lane in 0 1; do
		start "crowd_$lane" "$STRANGER" $((port + lane)) crowd
		crowds="$crowds $last_pid"
	done
	wait_for crowd_0.out "all are here"
	wait_for crowd_1.out "all are here"
	for i in 0 1; do
		# shellcheck disable=SC2086
		start "trainer_$i" "$WEFT" train ctr $job --trainer_id=$i --pservers=127.0.0.1:"$port" \
			--ports_num_for_sparse=1 --transport="fault(cut@put:$((20 + 9 * i)))+tcp"
		eval "trainer_$i=$last_pid"
	done
	for name in trainer_0 trainer_1 pserver; do
		eval "pid=\$$name"
		ends "$pid" 120 "$name"
		[ "$code" -eq 0 ] || fail "$name ended with $code among $1 descriptors"
	done
	for i in 0 1; do
		says "trainer_$i.err" "regained pserver"
	done
	[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "another digest than $alone"
	wait_for crowd_0.out "no room"
	wait_for crowd_1.out "no room"
	for pid in $crowds; do
		kill "$pid" 2>/dev/null || true
	done
}
crowded 1024
crowded 100
