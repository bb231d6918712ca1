#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process that SIGTERM, SIGINT or SIGHUP stops notifies all members of its job at once, on dense
# and sparse lanes, and each names that process and the signal as the first cause. A trainer then
# dies of the signal; a pserver ends with 75, or with 0 if it had no job.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 100 "$data/moby-dick.txt" >text
host=$(uname -n)
endless="--num_passes=1000000"
words="--vocabulary=100 --hidden=8 --embedding=4 --data=$work/text --batch_size=50 --ports_num_for_sparse=1"

# pserver NAME PORT TRAINERS: one dense and one sparse lane; its number in $pserver.
pserver() {
	start "$1" "$WEFT" pserver --port="$2" --ports_num_for_sparse=1 --num_gradient_servers="$3" --once
	pserver=$last_pid
}

# trainer NAME ID TRAINERS PSERVERS OPTIONS: its number in $trainer.
trainer() {
	# shellcheck disable=SC2086
	start "$1" "$WEFT" train ngram $words $endless --trainer_id="$2" --num_gradient_servers="$3" \
		--pservers="$4" $5
	trainer=$last_pid
}

# told NAME PID WHO: the process ends with 69, names WHO, and reports no lost connection.
told() {
	ends "$2" 20 "$1"
	[ "$code" -eq 69 ] || fail "$1: exit code $code, not 69"
	tail -n 1 "$1.err" | grep -qF "$3" || fail "$1: '$3' is not in its last line"
	says_not "$1.err" "lost"
}

# stop VICTIM NUMBER OPTIONS: in a job of two pservers and two trainers.
stop() {
	victim=$1
	number=$2
	both="127.0.0.1:$port,127.0.0.1:$((port + 2))"
	pserver pserver_0 "$port" 2
	pserver_0=$pserver
	pserver pserver_1 $((port + 2)) 2
	pserver_1=$pserver
	trainer trainer_0 0 2 "$both" "$3"
	trainer_0=$trainer
	trainer trainer_1 1 2 "$both" "$3"
	trainer_1=$trainer
	wait_for trainer_0.out "pass 1 "
	eval "pid=\$$victim"
	kill "-$number" "$pid"
	ends "$pid" 20 "$victim"
	wanted=$((128 + number))
	who="trainer ${victim#trainer_} (host $host, pid $pid)"
	case $victim in
	pserver_*)
		wanted=75
		who="pserver ${victim#pserver_} (host $host, pid $pid, port $((port + ${victim#pserver_} * 2)))"
		;;
	esac
	[ "$code" -eq "$wanted" ] || fail "$victim after signal $number ($3): exit code $code, not $wanted"
	cause="$who was stopped by SIG$(kill -l "$number")"
	tail -n 1 "$victim.err" | grep -qF "$cause" || fail "$victim: its last line is not '$cause'"
	for name in pserver_0 pserver_1 trainer_0 trainer_1; do
		eval "pid=\$$name"
		[ "$name" = "$victim" ] || told "$name" "$pid" "$cause"
	done
}

stop trainer_1 15 --transport=tcp
stop trainer_0 2 --transport=shm
stop trainer_1 2 "--transport=tcp --progress=caller"
stop pserver_1 15 --transport=tcp
stop pserver_0 2 --transport=shm
# Ignored here, as nohup has it, SIGHUP is ignored there, too.
mask=$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$$/status")
if [ $((0x$mask & 1)) -eq 0 ]; then
	stop trainer_0 1 --transport=shm
	stop pserver_0 1 --transport=tcp
fi

# Before the job is complete: trainer 2 does not run yet.
for victim in trainer_1 pserver_0; do
	pserver pserver_0 "$port" 3
	pserver_0=$pserver
	for id in 0 1; do
		trainer "trainer_$id" "$id" 3 "127.0.0.1:$port" ""
		eval "trainer_$id=$trainer"
		wait_for "trainer_$id.err" "reached pserver 0 lane 0"
		wait_for "trainer_$id.err" "reached pserver 0 sparse lane 0"
	done
	eval "pid=\$$victim"
	kill -15 "$pid"
	ends "$pid" 20 "$victim"
	case $victim in
	trainer_1)
		[ "$code" -eq 143 ] || fail "trainer 1 while the job comes together: exit code $code"
		told pserver_0 "$pserver_0" "trainer 1 (host $host, pid $pid) was stopped by SIGTERM"
		told trainer_0 "$trainer_0" "trainer 1 (host $host, pid $pid) was stopped by SIGTERM"
		;;
	pserver_0)
		[ "$code" -eq 75 ] || fail "the pserver while the job comes together: exit code $code"
		told trainer_0 "$trainer_0" "pserver 0 (host $host, pid $pid, port $port) was stopped by SIGTERM"
		told trainer_1 "$trainer_1" "pserver 0 (host $host, pid $pid, port $port) was stopped by SIGTERM"
		;;
	esac
done

# There is no other member to notify.
trainer lonely 0 1 "127.0.0.1:$port" ""
wait_for lonely.err "trainer 0 waits, 2 s"
kill -2 "$trainer"
ends "$trainer" 10 "a trainer without a pserver"
[ "$code" -eq 130 ] || fail "a trainer without a pserver: exit code $code, not 130"

# A pserver without a job: before the first, and after one.
for number in 2 15; do
	start idle "$WEFT" pserver --port="$port"
	idle=$last_pid
	wait_for idle.err "pserver listens on"
	if [ "$number" -eq 15 ]; then
		expect 0 "$WEFT" train linear --num_passes=1 --pservers="127.0.0.1:$port"
		wait_for idle.err "the job is over"
	fi
	kill "-$number" "$idle"
	ends "$idle" 10 "an idle pserver"
	[ "$code" -eq 0 ] || fail "an idle pserver: exit code $code, not 0, after signal $number"
done

# A second signal ends a trainer at once, without its last line. Both are pending when it continues,
# so that it has no time to leave in good order between them; the system decides which one comes
# first.
pserver pserver_0 "$port" 1
trainer trainer_0 0 1 "127.0.0.1:$port" ""
wait_for trainer_0.out "pass 1 "
kill -STOP "$trainer"
kill -15 "$trainer"
kill -2 "$trainer"
kill -CONT "$trainer"
ends "$trainer" 10 "a trainer that is stopped twice"
[ "$code" -eq 130 ] || [ "$code" -eq 143 ] || fail "a trainer that is stopped twice: exit code $code"
says_not trainer_0.err "was stopped by"
ends "$pserver" 20 pserver_0
pserver pserver_0 "$port" 1
trainer trainer_0 0 1 "127.0.0.1:$port" ""
wait_for trainer_0.out "pass 1 "
kill -15 "$pserver"
kill -2 "$pserver"
ends "$pserver" 10 "a pserver that is stopped twice"
[ "$code" -eq 130 ] || [ "$code" -eq 143 ] || fail "a pserver that is stopped twice: exit code $code"
ends "$trainer" 20 trainer_0

# Under weft launch the process that was stopped is the cause, and not those that ended because of
# it.
for victim in "trainer 1" "pserver 0"; do
	start job "$WEFT" launch --local --pservers=2 --trainers=2 --port="$port" -- train linear $endless
	job=$last_pid
	wait_for job.out "pass 2 "
	kill -15 "$(sed -n "s/^$victim | pid \([0-9]*\):.*/\1/p" job.err)"
	ends "$job" 30 launch
	case $victim in
	trainer*)
		[ "$code" -eq 143 ] || fail "launch: exit code $code, not 143, after SIGTERM of $victim"
		how="killed by signal 15"
		;;
	*)
		[ "$code" -eq 75 ] || fail "launch: exit code $code, not 75, after SIGTERM of $victim"
		how="ended with exit code 75"
		;;
	esac
	tail -n 1 job.err | grep -q "^weft launch: $victim .*$how.* was stopped by SIGTERM" ||
		fail "the last line is not the first cause"
done
