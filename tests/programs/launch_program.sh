#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch runs a user's program as the trainers of a job: variables give it the addresses of the
# pservers, its number, and the settings of its session; its arguments are its own.
. "${0%/*}/lib.sh"

port=$(free_ports)
cat >trainer.sh <<'SH'
#!/bin/sh
echo "arguments $# <$1> <$2>"
env | grep -E '^(WEFT|PADDLE_INIT|PYTHON)[A-Z_]*=' >environment-"$WEFT_RANK"
printf 'step\nclose\n' |
	"$TRAINER" "$WEFT_PSERVERS" "$WEFT_TRAINER_ID" "$WEFT_NUM_GRADIENT_SERVERS" 1
echo "variables $PADDLE_INIT_TRAINER_ID $PADDLE_INIT_NUM_GRADIENT_SERVERS" >&2
SH
chmod +x trainer.sh
cat >job.conf <<'CONF'
[train]
peer_timeout = 7s
connect_timeout = 50s
CONF
env WEFT_PSERVERS=192.0.2.1 WEFT_TRAINER_ID=9 WEFT_STEP_TIMEOUT=200 "$WEFT" launch --local --pservers=2 --trainers=2 \
	--port="$port" --config=job.conf --connect_timeout=60 --transport=tcp --log_dir=logs \
	-- ./trainer.sh "two words" --port=1 >job.out 2>job.err || fail "exit code $?"
[ "$(head -n 1 job.out)" = "arguments 2 <two words> <--port=1>" ] || fail "other arguments"
[ "$(grep -c . job.out)" -eq 4 ] || fail "not the lines of trainer 0 alone on stdout"
says job.err "trainer 1 | arguments 2 <two words> <--port=1>" "trainer 1 | variables 1 2" \
	"WEFT_PSERVERS is not used" "2 trainers" \
	"env WEFT_ROLE=trainer WEFT_RANK=1 " "WEFT_TRAINER_ID=1 WEFT_NUM_GRADIENT_SERVERS=2 "
says logs/trainer-0.log "arguments 2"
where=127.0.0.1:$port,127.0.0.1:$((port + 1))
for prefix in WEFT PADDLE_INIT; do
	for number in 0 1; do
		says environment-$number "${prefix}_PSERVERS=$where" "${prefix}_TRAINER_ID=$number" \
			"${prefix}_NUM_GRADIENT_SERVERS=2" "${prefix}_PORT=$port" \
			"${prefix}_PORTS_NUM=1" "${prefix}_PORTS_NUM_FOR_SPARSE=0"
	done
done
# Arguments win over the environment, the environment wins over the file, and nothing else is set.
says environment-0 WEFT_ROLE=trainer WEFT_RANK=0 WEFT_CONNECT_TIMEOUT=60s WEFT_PEER_TIMEOUT=7s \
	WEFT_STEP_TIMEOUT=200 WEFT_TRANSPORT=tcp PYTHONUNBUFFERED=1
says_not environment-0 WEFT_SLICE_BYTES

# A program that is found in PATH; launch ends with its code, whose meaning is the program's own.
# The system's list of processes names a pserver by its number.
start job "$WEFT" launch --local --pservers=2 --port="$port" \
	-- sh -c 'until [ -e go ]; do sleep 0.05; done; echo why >&2; exit 65'
job=$last_pid
wait_for job.err "pserver 1 | pid "
pserver=$(sed -n 's/^pserver 1 | pid \([0-9]*\):.*/\1/p' job.err)
until_true 30 has "/proc/$pserver/comm" "pserver 1" || fail "comm: $(cat "/proc/$pserver/comm")"
: >go
ends "$job" 30 "weft launch"
[ "$code" -eq 65 ] || fail "exit code $code, not 65"
[ "$(tail -n 1 job.err)" = "weft launch: trainer 0 ended with exit code 65: why" ] ||
	fail "the last line is not the first cause"

# What it printed to stdout is no cause, but printed.
expect 3 "$WEFT" launch --local --port="$port" -- sh -c 'echo words; exit 3'
[ "$(tail -n 1 last.err)" = "weft launch: trainer 0 ended with exit code 3: it printed nothing to stderr" ] ||
	fail "the last line calls stdout nothing"

# Impossible options are refused before anything is started.
: >plain.txt
refuses() {
	text=$1
	shift
	expect 64 "$WEFT" launch --local --port="$port" "$@"
	says last.err "$text"
	says_not last.err " | pid "
}
refuses "'no_such_program' is no program in PATH" -- no_such_program
refuses "./no_such_program: No such file" -- ./no_such_program
refuses "./plain.txt: this file cannot be executed" -- ./plain.txt
refuses "$PWD: this file cannot be executed" -- "$PWD"
refuses "is missing after --" --
refuses "is missing after --" -- ""
refuses "did you mean --slice_bytes" --slice_byts=64 -- sh
refuses "--slice_bytes=3" --slice_bytes=3 -- sh
refuses "dense_rounding=stochastic" --dense_rounding=stochastic -- sh
refuses "--num_passes=3" --num_passes=3 -- sh
printf '[train]\nnum_passes = 3\n' >job.conf
refuses "job.conf:2" --config=job.conf -- sh
printf '[train]\npservers = 192.0.2.1\n' >job.conf
refuses "job.conf:2: pservers: launch gives this to pservers and trainers itself" --config=job.conf -- sh
