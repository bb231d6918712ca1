#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Asynchronous jobs go on from snapshots, too, which are vectors of versions: each trainer after its
# own step. What cannot have such a snapshot is refused with the reason.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
passes=300

# kill_life N NAME: kills that process of the job's N-th life, when that has a snapshot of its own.
kill_life() {
	wait_for job.err " in epoch $1: "
	kill -9 "$(sed -n "s/^$2 | pid \([0-9]*\):.*/\1/p" job.err | tail -n 1)"
}

# go_on MODE options: a job of that mode, two of whose lives are cut short.
go_on() {
	mode=$1
	shift
	start job "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" --ports_num=2 \
		--snapshot_dir="$mode" --snapshot_steps=7 --restarts=2 -- \
		train mlp --num_passes=$passes --dense_mode="$mode" "$@"
	job=$last_pid
	kill_life 1 "pserver 1"
	kill_life 2 "trainer 0"
	ends "$job" 120 launch
	[ "$code" -eq 0 ] || fail "exit code $code after two restarts ($mode)"
	[ "$(grep -c 'the job goes on from the snapshot of step' job.err)" -eq 2 ] ||
		fail "not every life went on from a snapshot ($mode)"
	[ "$(sed -n 's/^pass \([0-9]*\) .*/\1/p' job.out | tail -n 1)" -eq $((passes - 1)) ] ||
		fail "the last pass is another one ($mode)"
	expect 0 "$WEFT" ckpt verify "$mode"
	expect 0 "$WEFT" ckpt show "$mode"
	says last.out "kind vector"
	[ "$(grep -c '^position [01] [0-9a-f]* step [1-9][0-9]* made [1-9][0-9]*$' last.out)" -eq 2 ] ||
		fail "not a step of each trainer ($mode)"
}

go_on async
go_on bounded --staleness=2
# Values and state of a vector are read as those of any snapshot.
expect 0 "$WEFT" export async -o async.safetensors

# refused TEXT options: the job ends with that reason.
refused() {
	text=$1
	shift
	expect 64 "$WEFT" launch --local --pservers=1 --trainers=1 --port="$port" \
		--snapshot_dir=refused --snapshot_steps=7 "$@"
	says last.err "--snapshot_dir is not possible with this job: $text"
}
refused "tensor fc1_b is applied as its pushes arrive, and tensor" \
	-- train mlp --tensor_modes='*_b=async'
refused "tables are applied as their pushes arrive" \
	--ports_num_for_sparse=1 -- train ngram --sparse_mode=async
refused "tensor" --ports_num_for_sparse=1 -- train ngram --dense_mode=async
says last.err "is applied as its pushes arrive, beside tables"
