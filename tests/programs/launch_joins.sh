#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch --on_trainer_death=drop --restarts=N: a trainer that is killed is started again and
# joins the others, twice in a row, trainer 0 as well; when no start is left the job goes on without
# it. "more": a program of the user's gets WEFT_JOIN; on several hosts the agent starts it again.
more=${1-}
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
passes=1500

# launch OPTION... -- PROGRAM...: three trainers
launch() {
	start launched "$WEFT" launch --port="$port" --pservers=2 --trainers=3 --restarts=2 \
		--on_trainer_death=drop --min_trainers=2 --reconnect_timeout=1s "$@"
	launcher=$last_pid
	wait_for launched.out "pass 1 "
}

# signal_trainer SIGNAL TRAINER: to its newest process
signal_trainer() {
	kill "-$1" "$(sed -n "s/^trainer $2 | pid \([0-9]*\)[: ].*/\1/p" launched.err | tail -n 1)"
}

# rejoins TRAINER NUMBER OTHER: it is killed, started again as the NUMBER-th start, and joins. Another
# one stands still until the step is named, so that the job does not end before; then it has to go
# on, because the step may come after the end of a pass, for which all wait.
rejoins() {
	signal_trainer STOP "$3"
	signal_trainer KILL "$1"
	wait_for launched.err "trainer $1 is started again and is to join ($2 of 2)"
	wait_for launched.err "trainer $1 joins in step"
	signal_trainer CONT "$3"
	wait_for launched.err "trainer $1: goes on in pass"
	says launched.err "trainer $1 is dropped from step"
}

# ends_well NAME
ends_well() {
	ends "$launcher" 120 "weft launch"
	[ "$code" -eq 0 ] || fail "$1: weft launch ended with $code"
	grep -q "^pass $((passes - 1)) .* digest " launched.out || fail "$1: the last pass is missing"
}

if [ -z "$more" ]; then
	launch --local --transport=tcp -- train mlp --num_passes=$passes --batch_size=64
	rejoins 2 1 1
	[ "$(grep -c "and 3 of 3 trainers go on" launched.err)" -eq 1 ] ||
		fail "trainer 2 is not one of three again"
	rejoins 0 2 1
	signal_trainer KILL 1
	wait_for launched.err "trainer 1 is dropped from step"
	ends_well local
	says launched.err "; 2 trainers are left" \
		"weft launch: the job has ended well without trainer 1, which had died or failed"
	says_not launched.err "(3 of"
	exit 0
fi

# An agent on another host; a script stands in for ssh, as in launch_hosts.sh.
cat >ssh.sh <<'END'
#!/bin/sh
shift
cd "${0%/*}" && setsid sh -c "$*" | cat
END
chmod +x ssh.sh
launch --hosts=127.0.0.1,127.0.0.2 --ssh="$work/ssh.sh" --remote_weft="$WEFT" \
	-- train mlp --num_passes=$passes --batch_size=64
rejoins 1 1 2
grep -q "^trainer 1 | pid [0-9]* on 127.0.0.2: .* --join$" launched.err || fail "no --join on the host"
ends_well hosts
port=$((port + 4))

# A program of the user's, over shared memory.
cat >program.sh <<'END'
#!/bin/sh
echo "WEFT_JOIN is ${WEFT_JOIN:-not set}" >&2
exec "$WEFT_UNDER_TEST" train mlp --num_passes="$WEFT_TEST_PASSES" --batch_size=64
END
chmod +x program.sh
WEFT_UNDER_TEST=$WEFT
WEFT_TEST_PASSES=$passes
export WEFT_UNDER_TEST WEFT_TEST_PASSES
launch --local --transport=shm -- ./program.sh
says_not launched.err "WEFT_JOIN is 1"
rejoins 0 1 2
says launched.err "trainer 0 | WEFT_JOIN is 1"
ends_well program
says_not launched.err "ended well without"
