#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job that has dropped a trainer and was stopped then goes on from its snapshot with all of its
# trainers: the one that was dropped begins with the pass in which the job is. What follows is the same
# each time. With --restarts this is what becomes of such a job that loses a pserver.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)

# begin DIR NUM_PASSES [options]: a job of three trainers whose pservers drop one that dies.
begin() {
	dir=$1
	passes=$2
	shift 2
	start job "$WEFT" launch --local --pservers=2 --trainers=3 --port="$port" --on_trainer_death=drop \
		--reconnect_timeout=1s --snapshot_dir="$dir" --snapshot_steps=20 --resume=auto "$@" \
		-- train mlp --batch_size=64 --num_passes="$passes"
	job=$last_pid
}

# kill_last NAME: kills the newest process of that name.
kill_last() {
	kill -KILL "$(sed -n "s/^$1 | pid \([0-9]*\):.*/\1/p" job.err | tail -n 1)"
}

# drop_one: trainer 2 dies, and the others go on until a snapshot has been made without it.
drop_one() {
	wait_for job.err " I snapshot of step "
	kill_last "trainer 2"
	wait_for job.err "trainer 2 is dropped from step"
	before=$(grep -c " I snapshot of step " job.err)
	until_true 60 more_snapshots
}

more_snapshots() {
	[ "$(grep -c " I snapshot of step " job.err)" -gt $((before + 2)) ]
}

begin snapshots 1000000
drop_one
kill -TERM "$job"
ends "$job" 60 "weft launch"
[ "$code" -eq 143 ] || fail "exit code $code after SIGTERM"
# A folder without a manifest is one of a snapshot that was interrupted.
newest=$(for one in snapshots/epoch-*/manifest; do echo "$one"; done | tail -n 1)
pass=$(sed -n 's/^pass //p' "$newest")

digests=
for run in 1 2; do
	cp -r snapshots "copy-$run"
	begin "copy-$run" $((pass + 30))
	ends "$job" 60 "weft launch"
	[ "$code" -eq 0 ] || fail "exit code $code after the job went on"
	says job.err "the job goes on from the snapshot of step"
	grep -Eq "trainer 2: goes on in pass [0-9]* after batch 0, step" job.err ||
		fail "the trainer that was dropped does not begin with the pass"
	says_not job.err "is dropped"
	digests="$digests $(sed -n 's/^pass .* digest //p' job.out | tail -n 1)"
done
# shellcheck disable=SC2086
set -- $digests
[ $# -eq 2 ] && [ "$1" = "$2" ] || fail "digests$digests"

begin others $((pass + 1000)) --restarts=2 # one for the trainer, which is to join again
drop_one
kill_last "pserver 1"
ends "$job" 120 "weft launch"
[ "$code" -eq 0 ] || fail "exit code $code after a pserver was killed"
says job.err "weft launch: the job is started again (2 of 2)" "the job goes on from the snapshot of step"
[ "$(grep -c "^trainer 2 | pid " job.err)" -eq 3 ] || fail "trainer 2: not three starts"
