#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft pserver --on_trainer_death=drop: a job that loses a trainer goes on with the others; whoever
# comes in its place is refused; with fewer than --min_trainers the job ends, everywhere. weft launch
# lets such a job go on, and ends with 0 if the others do. "more": over shared memory, too, and with
# weft launch, of which launch_joins.sh has a part.
more=${1-}
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

again=
for transport in $([ -z "$more" ] && echo tcp || echo shm); do
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
if [ -z "$more" ]; then
	ends "$again" 60 "the trainer in place of the one that was dropped"
	[ "$code" -ne 0 ] || fail "a trainer took the place of one that was dropped"
	says again.err "was dropped from this job"

	lose_one 3 1 tcp
	all_end 69
	says pserver_0.err "2 of 3 trainers are left, and --min_trainers is 3"

	port=$((port + 4))
	expect 64 "$WEFT" launch --local --port="$port" --trainers=2 --on_trainer_death=drop \
		--min_trainers=3 -- train mlp
	says last.err "--min_trainers=3: the job has 2 trainers (num_gradient_servers)"
	exit 0
fi

# kill_launched TRAINER: the newest process of this trainer of weft launch
kill_launched() {
	kill -KILL "$(sed -n "s/^trainer $1 | pid \([0-9]*\):.*/\1/p" launched.err | tail -n 1)"
}

# launch_drop MIN_TRAINERS [options]: weft launch, trainer 2 of which is killed in the middle.
launch_drop() {
	least=$1
	shift
	start launched "$WEFT" launch --local --port="$port" --pservers=2 --trainers=3 \
		--on_trainer_death=drop --min_trainers="$least" --reconnect_timeout=1s "$@" \
		-- train mlp --num_passes=1000 --batch_size=64
	wait_for launched.out "pass 1 "
	kill_launched 2
	ends "$last_pid" 60 "weft launch"
}

port=$((port + 4))
launch_drop 2
[ "$code" -eq 0 ] || fail "weft launch ended with $code after it had dropped a trainer"
grep -q "^pass 999 .* digest " launched.out || fail "launch: the last pass is missing"
says launched.err "was killed by signal 9 (Killed); its last line: " "; 2 trainers are left" \
	"trainer 2 is dropped from step" "and 2 of 3 trainers go on" \
	"weft launch: the job has ended well without trainer 2, which had died or failed"
says_not launched.err "started again"

launch_drop 3
[ "$code" -eq 137 ] || fail "weft launch ended with $code, and one trainer too few was left"
tail -n 1 launched.err | grep -q "^weft launch: trainer 2 (pid [0-9]*) was killed by signal 9" ||
	fail "the last line does not say who ended the job"
