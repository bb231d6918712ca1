#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft pserver --on_trainer_death=drop: a job that loses a trainer goes on with the others; whoever
# comes in its place is refused; with fewer than --min_trainers the job ends, everywhere.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
options="--num_passes=1000 --batch_size=64 --reconnect_timeout=1s"

# lose_one MIN_TRAINERS PSERVERS TRANSPORT: a job whose trainer 2 is killed in the middle
lose_one() {
	job_pserver="--on_trainer_death=drop --min_trainers=$1 --registrar=127.0.0.1:$port
		--reconnect_timeout=1s --transport=$3"
	# shellcheck disable=SC2086
	start_job "$2" 3 mlp $options --transport="$3"
	wait_for trainer_0.out "pass 1 "
	# shellcheck disable=SC2154
	kill -KILL "$trainer_2"
	ends "$trainer_2" 60 "trainer 2"
	[ "$code" -eq 137 ] || fail "trainer 2 ended with $code before it was killed"
}

# all_end CODE: so do both other trainers
all_end() {
	# shellcheck disable=SC2154
	for process in "$trainer_0" "$trainer_1"; do
		ends "$process" 60 "a trainer"
		[ "$code" -eq "$1" ] || fail "a trainer ended with $code, wanted $1"
	done
}

for transport in tcp shm; do
	lose_one 2 2 "$transport"
	wait_for pserver_0.err "trainer 2 is dropped from step"
	says pserver_0.err "and 2 of 3 trainers go on"
	if [ "$transport" = tcp ]; then # the job may have ended already: then nobody is there
		# shellcheck disable=SC2086
		start again "$WEFT" train mlp $options --transport=tcp --trainer_id=2 \
			--num_gradient_servers=3 --connect_timeout=20s \
			--pservers=127.0.0.1:"$port",127.0.0.1:$((port + 1))
		again=$last_pid
	fi
	all_end 0
	grep -q "^pass 999 .* digest " trainer_0.out || fail "$transport: the last pass is missing"
	# shellcheck disable=SC2154
	for process in "$pserver_0" "$pserver_1"; do
		ends "$process" 60 "a pserver"
		[ "$code" -eq 0 ] || fail "$transport: a pserver ended with $code"
	done
	port=$((port + 4))
done
ends "$again" 60 "the trainer in place of the one that was dropped"
[ "$code" -ne 0 ] || fail "a trainer took the place of one that was dropped"
says again.err "was dropped from this job"

lose_one 3 1 tcp
all_end 69
says pserver_0.err "2 of 3 trainers are left, and --min_trainers is 3"
