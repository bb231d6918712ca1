#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One signal to weft launch, or its sudden death, stops the whole job and leaves no process and no
# port behind.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
run_job() {
	start "$1" "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" \
		-- train linear --num_passes=1000000
	job=$last_pid
	wait_for "$1.out" "pass 2 "
	children=$(sed -n 's/^[a-z]* [0-9]* | pid \([0-9]*\):.*/\1/p' "$1.err")
	[ "$(echo "$children" | wc -w)" -eq 4 ] || fail "not four processes: $children"
}

all_gone() {
	for pid in $children; do
		! alive "$pid" || return 1
	done
}

# Whether a signal is ignored here, and so by every process started from here (SIGHUP under nohup).
ignored() {
	mask=$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$$/status")
	[ $(((0x$mask >> ($1 - 1)) & 1)) -eq 1 ]
}

signals="2 15"
if ignored 1; then
	echo "SIGHUP is ignored here, as nohup has it: weft launch ignores it too" >&2
else
	signals="1 $signals"
fi
for number in $signals; do
	signal=$(kill -l $number)
	run_job "by_$signal"
	kill -$number "$job"
	ends "$job" 30 launch
	[ "$code" -eq $((128 + number)) ] || fail "exit code $code after SIG$signal"
	all_gone || fail "a process is left after SIG$signal"
	tail -n 1 "by_$signal.err" | grep -q 'all processes have ended' || fail "it does not say so"
done

run_job killed
kill -9 "$job"
ends "$job" 30 launch
until_true 30 all_gone || fail "a process outlives the launcher"

# The ports are free again.
expect 0 "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" -- train linear --num_passes=1
for file in *; do
	case $file in
	*.out | *.err) ;;
	*) fail "a file is left: $file" ;;
	esac
done
