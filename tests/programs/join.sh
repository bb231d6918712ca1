#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft pserver --on_trainer_death=drop: a trainer that is killed and one that leaves at SIGTERM
# (--leave_on_term) are replaced by others (--join), while the job goes on and nobody else is started
# again. Without --join, or where pservers do not drop trainers, a process is refused by name. Over
# shared memory, and over TCP as "more".
more=${1-}
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
passes=1500 # long enough: trainer 0 stands still while others start
options="--num_passes=$passes --batch_size=64 --reconnect_timeout=1s --leave_on_term"

# train NAME TRAINER OPTION...: one more process; its id is last_pid
train() {
	name=$1
	id=$2
	shift 2
	# shellcheck disable=SC2086
	start "$name" "$WEFT" train mlp $options --trainer_id="$id" --num_gradient_servers=3 \
		--connect_timeout=60s --pservers=127.0.0.1:"$port",127.0.0.1:$((port + 1)) "$@"
}

for transport in $([ -z "$more" ] && echo shm || echo tcp); do
	# shellcheck disable=SC2034
	job_pserver="--on_trainer_death=drop --min_trainers=1 --registrar=127.0.0.1:$port
		--reconnect_timeout=1s --transport=$transport"
	# shellcheck disable=SC2086
	start_job 2 3 mlp $options --transport="$transport"
	wait_for trainer_0.out "pass 1 "

	# shellcheck disable=SC2154
	kill -TERM "$trainer_1"
	ends "$trainer_1" 60 "the trainer that leaves"
	[ "$code" -eq 143 ] || fail "$transport: the trainer that left ended with $code"
	says trainer_1.err "has left the job, which goes on"
	says pserver_0.err "and 2 of 3 trainers go on"
	says_not pserver_0.err "is dropped from step"

	# shellcheck disable=SC2154
	kill -STOP "$trainer_0"
	train stranger 1 --transport="$transport"
	ends "$last_pid" 60 "a trainer that does not ask to join"
	[ "$code" -ne 0 ] || fail "$transport: a trainer took a place without --join"
	says stranger.err "another process can take its place if it asks to join"

	train joiner_1 1 --join --transport="$transport"
	joiner_1=$last_pid
	wait_for pserver_0.err "trainer 1 joins in step"
	says pserver_0.err "and 3 of 3 trainers go on"
	# shellcheck disable=SC2154
	kill -CONT "$trainer_0"
	wait_for joiner_1.err "goes on in pass"

	# shellcheck disable=SC2154
	kill -STOP "$trainer_0"
	# shellcheck disable=SC2154
	kill -KILL "$trainer_2"
	train joiner_2 2 --join --transport="$transport"
	joiner_2=$last_pid
	wait_for pserver_0.err "trainer 2 joins in step"
	says pserver_0.err "trainer 2 is dropped from step"
	kill -CONT "$trainer_0"

	# shellcheck disable=SC2154
	for process in "$trainer_0" "$joiner_1" "$joiner_2" "$pserver_0" "$pserver_1"; do
		ends "$process" 120 "a process"
		[ "$code" -eq 0 ] || fail "$transport: a process ended with $code"
	done
	grep -q "^pass $((passes - 1)) .* digest " trainer_0.out ||
		fail "$transport: the last pass is missing"
	rm -f ./*.out ./*.err
	port=$((port + 4))
done

# Who asks to join where a trainer that is lost ends the job is told what is missing.
# shellcheck disable=SC2034
job_pserver=""
start plain "$WEFT" pserver --port="$port" --num_gradient_servers=1
wait_for plain.err "ports "
start asks "$WEFT" train mlp --join --num_passes=1 --pservers=127.0.0.1:"$port"
ends "$last_pid" 60 "a trainer that asks to join"
[ "$code" -ne 0 ] || fail "a trainer could ask to join at a pserver that drops nobody"
says asks.err "pservers need --on_trainer_death=drop"
