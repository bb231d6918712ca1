#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The original's settings are read from PADDLE_INIT_* and from options; options win; lines at the
# start show how each was understood, and where it came from.
. "${0%/*}/lib.sh"

port=$(free_ports)

# The environment of a job of the original, most of which is not for the pserver.
start all env PADDLE_INIT_USE_GPU=False PADDLE_INIT_TRAINER_COUNT=4 PADDLE_INIT_PORT="$port" \
	PADDLE_INIT_PORTS_NUM=2 PADDLE_INIT_PORTS_NUM_FOR_SPARSE=1 PADDLE_INIT_NUM_GRADIENT_SERVERS=3 \
	PADDLE_INIT_TRAINER_ID=1 PADDLE_INIT_PSERVERS=192.0.2.1,192.0.2.2 PADDLE_INIT_NUM_PASSES=5 \
	PADDLE_INIT_SOMETHING_ELSE=1 "$WEFT" pserver
pid=$last_pid
wait_for all.err "ports_num=2 (PADDLE_INIT_PORTS_NUM)"
says all.err "port=$port (PADDLE_INIT_PORT)" "127.0.0.1" \
	"num_gradient_servers=3 (PADDLE_INIT_NUM_GRADIENT_SERVERS)" \
	"ports_num_for_sparse=1 (PADDLE_INIT_PORTS_NUM_FOR_SPARSE)"
kill -TERM "$pid"
ends "$pid" 20 pserver
[ "$code" -eq 0 ] || fail "exit code $code after SIGTERM"

# An option wins over the environment; weft's own variable over the original's.
start wins env PADDLE_INIT_PORT=1 PADDLE_INIT_PORTS_NUM=7 WEFT_PORTS_NUM=2 "$WEFT" pserver \
	--port="$port" --use_gpu=False --small_messages=1 --sock_send_buf_size=41943040 \
	--comment=words --rdma_tcp=tcp --nics=lo
pid=$last_pid
wait_for wins.err "port=$port (argument)"
says wins.err "ports_num=2 (WEFT_PORTS_NUM)" "127.0.0.1" \
	"sock_send_buf_size=40MiB (argument) accepted, without effect"
kill -INT "$pid"
ends "$pid" 20 pserver
[ "$code" -eq 0 ] || fail "exit code $code after SIGINT"

# A GPU that the environment of all processes asks for concerns trainers only.
start gpu env PADDLE_INIT_USE_GPU=True "$WEFT" pserver --port=0
pid=$last_pid
wait_for gpu.err "use_gpu=true from the environment is ignored"
kill -TERM "$pid"
ends "$pid" 20 pserver
expect 64 env PADDLE_INIT_USE_GPU=True "$WEFT" train linear --sequential
says last.err "use_gpu"

# A bad value says which variable it came from.
expect 64 env PADDLE_INIT_PORTS_NUM=many "$WEFT" pserver
says last.err "PADDLE_INIT_PORTS_NUM=many"

# A name that no command knows, with the nearest one, in one line; and a role that is not the command's.
expect 64 env WEFT_PORTS_NUN=2 WEFT_NOSUCHTHING=1 PADDLE_TRAINER_IDS=0 TRAINING_ROLE=TRAINER \
	"$WEFT" pserver --ports_num=1 --job_name=-
says last.err "weft pserver: warning: weft does not know the variable WEFT_PORTS_NUN; did you mean WEFT_PORTS_NUM? (2 more: see weft env)" \
	"weft pserver: warning: TRAINING_ROLE=TRAINER is set, and this command starts a pserver"
[ "$(grep -c warning last.err)" -eq 2 ] || fail "not two warnings"
expect 0 env WEFT_TRAINER_IS=0 TRAINING_ROLE=PSERVER "$WEFT" train linear --sequential --num_passes=1
says last.err "weft train: warning: weft does not know the variable WEFT_TRAINER_IS; did you mean WEFT_TRAINER_ID?" \
	"weft train: warning: TRAINING_ROLE=PSERVER is set, and this command starts a trainer"
port=$(free_ports)
expect 0 env WEFT_TRAINER=2 WEFT_DATA_DIR= TRAINING_ROLE=TRAINER "$WEFT" launch --local --port="$port" -- \
	train linear --num_passes=1
says last.err "weft launch: warning: weft does not know the variable WEFT_TRAINER; did you mean"
[ "$(grep -c warning last.err)" -eq 1 ] || fail "the processes of a job repeat what weft launch has found"
# WEFT_LIBRARY and WEFT_PROGRAM are read by the Python binding, which starts a pserver.
expect 0 env WEFT_PORTS_NUM=1 TRAINING_ROLE=pserver WEFT_LIBRARY=lib WEFT_PROGRAM=weft \
	"$WEFT" pserver --print_options
says_not last.err warning

# Variables that a job script of the original may set do not break a job of weft launch.
port=$(free_ports)
PADDLE_INIT_LOCAL=1 WEFT_SEQUENTIAL=1 expect 0 "$WEFT" launch --local --trainers=2 --port="$port" \
	-- train linear --num_passes=1
[ "$(grep -c ' is here over ' last.err)" -eq 2 ] || fail "not two trainers came to the pserver"

# The name of a job is in the logs and command lines of its processes, and is printable.
port=$(free_ports)
WEFT_JOB_NAME=from.environment expect 0 "$WEFT" launch --local --trainers=2 --port="$port" \
	--job_name=night-7_b -- train linear --num_passes=1
[ "$(grep -c 'understood job_name=night-7_b (argument) name of the job' last.err)" -eq 3 ] ||
	fail "the name of the job is not in three logs"
for name in "a b" "-x" "$(printf 'a\033')" 0123456789012345678901234567890123456789012345678901234567890123; do
	expect 64 "$WEFT" pserver --job_name="$name"
	says last.err "job_name=" ": must be at most 63 letters"
	expect 64 "$WEFT" train linear --sequential --job_name="$name"
done
# A user's program gets it as a variable.
cat >name.sh <<'END'
#!/bin/sh
echo "name is $WEFT_JOB_NAME"
exec "$@"
END
chmod +x name.sh
expect 0 "$WEFT" launch --local --port="$port" --job_name=exp7 -- ./name.sh \
	"$WEFT" train linear --num_passes=1
says last.out "name is exp7"
expect 0 env WEFT_JOB_NAME=exp8 "$WEFT" launch --local --port="$port" -- ./name.sh \
	"$WEFT" train linear --num_passes=1
says last.out "name is exp8"
expect 0 env -i WEFT_JOB_NAME=x "$WEFT" env
says last.out "WEFT_JOB_NAME"
