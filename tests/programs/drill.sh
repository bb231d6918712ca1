#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft drill prints a row for each fault, ends with 0 only if each ended with the digest of the
# undisturbed run, and leaves neither processes nor its temporary folder behind. The check kills a
# trainer; "more": a damaged snapshot, a full disk, a link that is cut, data that changes.
more=${1-}
source=$(cd "${0%/*}/../.." && pwd)
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
mkdir tmp
export TMPDIR="$work/tmp"

# no_process: none of the processes that the logs in a folder name is left.
no_process() {
	for pid in $(cat "$1"/*/log | sed -n 's/^[a-z]* [0-9]* | pid \([0-9]*\): weft .*/\1/p'); do
		! alive "$pid" || fail "process $pid is left"
	done
}

if [ -z "$more" ]; then
	# A restart by launch.
	expect 0 "$WEFT" drill --port="$port" --faults=trainer --limit=150s --dir=drill
	grep -q '^trainer  *[0-9.]* s  *[0-9.]* s  *[0-9]*  nothing  *same$' last.out ||
		fail "no row of the trainer"
	[ "$(tail -n 1 last.out)" = "1 of 1 faults ended with the digest of the undisturbed run" ] ||
		fail "the last line is another"
	[ "$(wc -l <last.out)" -eq 4 ] || fail "not four lines"
	says drill/trainer/log "weft launch: trainer 1 is started again (1 of 1)"
	[ "$(grep -c "^[a-z]* [0-9]* | pid [0-9]*: weft" drill/trainer/log)" -eq 5 ] ||
		fail "not four processes and one more"
	[ "$(grep -c "the job goes on from the snapshot of step" drill/trainer/log)" -eq 1 ] ||
		fail "the job did not go back once"
	no_process drill
	[ -z "$(ls -A tmp)" ] || fail "something is left in TMPDIR"

	# A job that is not started again does not recover. A folder of an earlier drill is not touched.
	expect 1 "$WEFT" drill --port="$port" --faults=trainer --restarts=0 --limit=150s
	grep -q "^trainer  *[0-9.]* s  FAILED: no recovery: weft launch: trainer 1 .* was killed" last.out ||
		fail "the row of a job that was not started again"
	says last.out "0 of 1 faults ended"
	[ -z "$(ls -A tmp)" ] || fail "the temporary folder is left"
	expect 64 "$WEFT" drill --port="$port" --faults=trainer --num_passes=40 --dir=drill
	says last.err "drill/undisturbed-40: cannot be made; give another --dir"

	# Ctrl-C in the middle of a run.
	start stopped "$WEFT" drill --port="$port" --num_passes=1000000 --dir=stopped
	wait_for stopped/undisturbed-1000000/log " I snapshot of step "
	kill -INT "$last_pid"
	ends "$last_pid" 60 drill
	[ "$code" -eq 130 ] || fail "exit code $code after SIGINT"
	says stopped.err "weft drill: stopped by Interrupt"
	no_process stopped

	expect 64 "$WEFT" drill --faults=earthquake
	says last.err "there is no fault 'earthquake'"
	expect 64 "$WEFT" drill --faults=stop,stop
	says last.err "stop is given twice"
	expect 64 "$WEFT" drill --faults=
	expect 64 "$WEFT" drill --trainers=1
	exit 0
fi

# A restart by hand with a damaged snapshot, and none at all. How many snapshots the disk
# costs depends on how many are tried before it takes bytes again.
expect 0 "$WEFT" drill --port="$port" --faults=corrupt,disk --limit=150s --dir=drill
for row in 'corrupt  *[0-9.]* s  *[0-9.]* s  *[0-9]*  1 snapshot  *same$' \
	'disk  *[0-9.]* s  *[0-9.]* s  *0  [0-9]* snapshots*  *same$'; do
	grep -q "^$row" last.out || fail "no row '$row'"
done
[ "$(tail -n 1 last.out)" = "2 of 2 faults ended with the digest of the undisturbed run" ] ||
	fail "the last line is another"
[ "$(wc -l <last.out)" -eq 5 ] || fail "not five lines"
[ "$(grep -c "the job goes on from the snapshot of step" drill/corrupt/log)" -eq 1 ] ||
	fail "corrupt: the job did not go back once"
says drill/corrupt/log "cannot be used, and the one before it is"
says drill/disk/log "File too large"
no_process drill
[ -z "$(ls -A tmp)" ] || fail "something is left in TMPDIR"

# A link that is cut needs a right, without which the fault is skipped by name.
expect 0 "$WEFT" drill --port="$port" --faults=link --limit=150s --dir=link
if unshare --net true 2>/dev/null; then
	grep -q "^link  *[0-9.]* s  *[0-9.]* s  *0  nothing  *same$" last.out || fail "no row of the link"
	says last.out "1 of 1 faults ended"
	says link/link/log "here over tcp"
else
	grep -q "^link  *-  skipped: no network namespace can be made, which needs root" last.out ||
		fail "the link is not skipped"
	says last.out "0 of 0 faults ended with the digest of the undisturbed run; others were skipped"
fi

# A job that ends with other parameters: its data changes when the undisturbed run has read it.
mkdir data
cp "${WEFT_DATA_DIR:-$source/data}/digits.csv" data/
sed 1d data/digits.csv >others
WEFT_DATA_DIR="$work/data" start changed "$WEFT" drill --port="$port" --faults=stop --num_passes=100 \
	--limit=150s --dir=changed
wait_for changed/undisturbed-100/log " I pass 0 batch 1 cost"
mv others data/digits.csv
ends "$last_pid" 400 drill
[ "$code" -eq 1 ] || fail "exit code $code after other parameters"
grep -q "^stop .*  nothing  *[0-9a-f]\{16\} and not [0-9a-f]\{16\}$" changed.out ||
	fail "the row of a job with other parameters"
