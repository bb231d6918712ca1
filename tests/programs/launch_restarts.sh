#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With --restarts a process that is killed is started again, the others stay, the job goes on from
# its newest snapshot, and ends with the digest of a run that nobody disturbed. With
# --on_trainer_death=end all processes are started again. Two pservers write to one directory.
. "${0%/*}/lib.sh"
needs_training

passes=300
port=$(free_ports)
"$WEFT" train mlp --sequential --num_gradient_servers=2 --num_passes=$passes >alone.out 2>alone.err ||
	fail "the sequential run"
digest=$(sed -n 's/^pass .* digest //p' alone.out | tail -n 1)

# victim NAME: the newest process of that name.
victim() {
	sed -n "s/^$1 | pid \([0-9]*\):.*/\1/p" job.err | tail -n 1
}

# kill_life N NAME: kills that process of the job's N-th life, when that has a snapshot of its own.
kill_life() {
	wait_for job.err " in epoch $1: "
	kill -9 "$(victim "$2")"
}

start job "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" --ports_num=2 \
	--snapshot_dir=snapshots --snapshot_steps=7 --restarts=3 -- train mlp --num_passes=$passes
job=$last_pid
kill_life 1 "pserver 0"
kill_life 2 "pserver 1"
kill_life 3 "trainer 1"
ends "$job" 120 launch
[ "$code" -eq 0 ] || fail "exit code $code after three restarts"
[ "$(sed -n 's/^pass .* digest //p' job.out | tail -n 1)" = "$digest" ] || fail "another digest"
says job.err "weft launch: pserver 0 is started again (1 of 3)" \
	"weft launch: pserver 1 is started again (2 of 3)" \
	"weft launch: trainer 1 is started again (3 of 3)" "pserver 1 has come to the registrar" \
	"weft launch: pserver 0 (pid"
says_not job.err "the job is started again"
# starts NAME COUNT: that process was started so often.
starts() {
	[ "$(grep -c "^$1 | pid [0-9]*: weft" job.err)" -eq "$2" ] || fail "$1: not $2 starts"
}
starts "pserver 0" 2
starts "pserver 1" 2
starts "trainer 0" 1
starts "trainer 1" 2
[ "$(grep -c 'the job goes on from the snapshot of step' job.err)" -eq 3 ] ||
	fail "not three lives that went on from a snapshot"
expect 0 "$WEFT" ckpt verify snapshots
[ "$(grep -c '^dense-[0-3] .* ok$' last.out)" -eq 4 ] || fail "not four parts"

# One restart, of all, is not enough for two deaths; the exit code is that of the last one.
start job "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" \
	--snapshot_dir=others --snapshot_steps=7 --restarts=1 --on_trainer_death=end -- train mlp --num_passes=1000000
job=$last_pid
kill_life 1 "trainer 0"
kill_life 2 "pserver 1"
ends "$job" 60 launch
[ "$code" -eq 137 ] || fail "exit code $code, not 137"
says job.err "weft launch: the job is started again (1 of 1)"
starts "trainer 1" 2
tail -n 1 job.err | grep -Eq "^weft launch: pserver 1 \(pid [0-9]*\) was killed by signal 9" ||
	fail "the last line is not the last cause"

# Work that is done is not done again, although its pserver has been killed.
cat >kill_pserver <<'END'
pid=""
while [ -z "$pid" ]; do
	pid=$(sed -n 's/^pserver 0 | pid \([0-9]*\):.*/\1/p' job.err)
done
kill -9 "$pid"
END
start job "$WEFT" launch --local --port="$port" --restarts=3 -- sh kill_pserver
ends "$last_pid" 60 launch
[ "$code" -eq 0 ] || fail "exit code $code after the work was done"
says job.err "weft launch: pserver 0 (pid" \
	"all trainers have ended with 0, so the job is done, and is not started again"
says_not job.err "is started again ("

# What would fail again is not tried again, and what would begin anew is refused.
echo "no numbers here" >bad.csv
expect 65 "$WEFT" launch --local --port="$port" --restarts=3 -- train linear --data="$PWD/bad.csv"
says_not last.err "started again"
expect 64 "$WEFT" launch --local --port="$port" --restarts=3 --snapshot_dir=others --resume=never \
	-- train mlp
says last.err "--restarts goes on from snapshots, and --resume=never does not"
# Without --resume the snapshots of the job that did not end are in the way, and stay.
expect 64 "$WEFT" launch --local --port="$port" --restarts=3 --snapshot_dir=others -- train mlp
says last.err "others has snapshots of a job that did not end"
says_not last.err "started again"
