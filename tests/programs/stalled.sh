#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver, and then a trainer, is stopped (SIGSTOP) in the middle of a job, for several times
# peer_timeout: the processes that wait name it, and after SIGCONT the job ends with the bits of the
# sequential run, dense over TCP and with tables over shared memory, and the other way round as
# "more". With a stall_timeout the job ends, and names the process that was stopped.
more=${1-}
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)

# job TRANSPORT MODEL OPTIONS...: a pserver and two trainers.
job() {
	transport=$1
	shift
	start pserver "$WEFT" pserver --port="$port" --ports_num=1 --ports_num_for_sparse=1 --once \
		--num_gradient_servers=2 --transport="$transport" --peer_timeout=500ms $pserver_more
	pserver=$last_pid
	for i in 0 1; do
		start "trainer_$i" "$WEFT" train "$@" --trainer_id="$i" --num_gradient_servers=2 \
			--pservers="127.0.0.1:$port" --ports_num=1 --ports_num_for_sparse=1 \
			--transport="$transport" --peer_timeout=500ms
		eval "trainer_$i=$last_pid"
	done
}

# stop PID: all its threads stand still.
stop() {
	kill -STOP "$1" 2>/dev/null || true # it may have ended
	while alive "$1" && grep -hs '^State:' "/proc/$1/task/"*/status | grep -qv '(stopped)'; do
		: # the signal reaches one thread after the other
	done
}

is_over() {
	ended "$trainer_0" || ended "$trainer_1"
}

named_or_over() {
	has "$1" "pid $2) has not taken a turn for" || is_over
}

# names FILE PID: waits until the file names the process; false: the job was over before.
names() {
	until_true 60 named_or_over "$1" "$2" || fail "pid $2 was not named in $1"
	! is_over
}

# is_held MODEL TRANSPORT PASSES: a job in which the pserver and then trainer 1 stood still; false: it
# was over before that.
is_held() {
	job "$2" "$1" --num_passes="$3"
	wait_for trainer_0.out "pass 1 "
	stop "$pserver"
	names trainer_0.err "$pserver" && names trainer_1.err "$pserver" || return 1
	stop "$trainer_1" # before the job goes on: it may be quick
	kill -CONT "$pserver"
	names pserver.err "$trainer_1" && names trainer_0.err "$trainer_1" || return 1
	kill -CONT "$trainer_1"
}

# goes_on MODEL PASSES TRANSPORT: runs that many passes, or more, until there is time to stop a
# process.
goes_on() {
	passes=$2
	until is_held "$1" "$3" "$passes"; do
		# A process has left in the last pass, or after it.
		has trainer_0.out "pass $((passes - 2)) " || fail "$1 over $3: a trainer has ended in the middle"
		for name in trainer_0 trainer_1 pserver; do
			eval "pid=\$$name"
			kill -9 "$pid" 2>/dev/null || true
			ends "$pid" 20 "$name"
		done
		passes=$((passes * 4))
	done
	expect 0 "$WEFT" train "$1" --sequential --num_gradient_servers=2 --num_passes="$passes"
	alone=$(digest_of last.out)
	for name in trainer_0 trainer_1 pserver; do
		eval "pid=\$$name"
		ends "$pid" 120 "$name"
		[ "$code" -eq 0 ] || fail "$1 over $3: $name: exit code $code"
	done
	[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "$1 over $3: another digest than $alone"
	for name in trainer_0 trainer_1 pserver; do
		says_not "$name.err" "lost"
	done
}

pserver_more=""
if [ -n "$more" ]; then
	goes_on mlp 200 shm
	goes_on ctr 20 tcp
	exit 0
fi
goes_on mlp 200 tcp
goes_on ctr 20 shm

# Until stall_timeout: of the trainers, of the pserver.
job shm mlp --num_passes=1000000 --stall_timeout=2s
wait_for trainer_0.out "pass 1 "
stop "$pserver"
for i in 0 1; do
	eval "pid=\$trainer_$i"
	ends "$pid" 20 "trainer_$i"
	[ "$code" -ne 0 ] || fail "trainer_$i ends as if nothing had happened"
	says "trainer_$i.err" ", pid $pserver) has not taken a turn for 2 s"
done
kill -9 "$pserver"
ends "$pserver" 20 pserver
pserver_more=--stall_timeout=2s
job tcp mlp --num_passes=1000000
wait_for trainer_0.out "pass 1 "
stop "$trainer_1"
ends "$trainer_0" 20 trainer_0
[ "$code" -ne 0 ] || fail "trainer_0 ends as if nothing had happened"
says trainer_0.err "trainer 1 (" "pid $trainer_1) has not taken a turn for 2.0 s in step"
ends "$pserver" 20 pserver
[ "$code" -ne 0 ] || fail "the pserver ends as if nothing had happened"
says pserver.err "trainer 1 (" "pid $trainer_1) has not taken a turn for 2.0 s in step"
