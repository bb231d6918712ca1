#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# When one process of a launched job fails, the others are stopped; the last line names the process
# that failed first and the reason, and launch ends with its exit code.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
none_left() {
	for pid in $(sed -n 's/^[a-z]* [0-9]* | pid \([0-9]*\):.*/\1/p' "$1"); do
		! alive "$pid" || fail "process $pid is left over"
	done
}

# All trainers find bad data, and never connect to the pservers.
echo "no numbers here" >bad.csv
expect 65 "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" \
	-- train linear --data="$PWD/bad.csv"
tail -n 1 last.err | grep -Eq '^weft launch: trainer [01] ended with exit code 65 \(bad data\): .*bad\.csv' ||
	fail "the last line is not the first cause"
none_left last.err

# The process that starts launch may make it ignore SIGCHLD, as some daemons do.
start deaf env --ignore-signal=CHLD "$WEFT" launch --local --port="$port" \
	-- train linear --num_passes=1
ends "$last_pid" 60 launch
[ "$code" -eq 0 ] || fail "exit code $code of a launch that ignores SIGCHLD"

for victim in "trainer 1" "pserver 0"; do
	start job "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" \
		-- train linear --num_passes=1000000
	job=$last_pid
	wait_for job.out "pass 2 "
	kill -9 "$(sed -n "s/^$victim | pid \([0-9]*\):.*/\1/p" job.err)"
	ends "$job" 30 launch
	[ "$code" -eq 137 ] || fail "exit code $code, not 137, after kill -9 of $victim"
	tail -n 1 job.err | grep -Eq "^weft launch: $victim \(pid [0-9]*\) was killed by signal 9" ||
		fail "the last line is not the first cause"
	none_left job.err
done
