#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver, and then a trainer, is stopped (SIGSTOP) in the middle of a job, for several times
# peer_timeout: those who wait name it, and after SIGCONT the job ends with the bits of the sequential
# run, dense and with tables, over TCP and shared memory. With a stall_timeout it ends, and names who
# stood still.
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
	kill -STOP "$1"
	until ! grep -h '^State:' "/proc/$1/task/"*/status | grep -qv '(stopped)'; do
		: # the signal reaches one thread after the other
	done
}

# goes_on MODEL PASSES TRANSPORT
goes_on() {
	expect 0 "$WEFT" train "$1" --sequential --num_gradient_servers=2 --num_passes="$2"
	alone=$(digest_of last.out)
	job "$3" "$1" --num_passes="$2"
	wait_for trainer_0.out "pass 1 "
	stop "$pserver"
	for i in 0 1; do
		wait_for "trainer_$i.err" ", pid $pserver) has not taken a turn for"
	done
	stop "$trainer_1" # before the job goes on: it may be quick
	kill -CONT "$pserver"
	wait_for pserver.err "pid $trainer_1) has not taken a turn for"
	wait_for trainer_0.err ", pid $trainer_1) has not taken a turn for"
	kill -CONT "$trainer_1"
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
for transport in tcp shm; do
	goes_on mlp 600 "$transport" # a second and more, to stop somebody in
	goes_on ctr 60 "$transport"
done

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
