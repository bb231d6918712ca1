#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft env shows which variables count, and why the others do not; weft train and weft pserver use
# them as shown.
. "${0%/*}/lib.sh"

# shown VARIABLE=value...: what weft env prints with these alone
shown() {
	expect 0 env -i "$@" "$WEFT" env
	[ ! -s last.err ] || fail "a line on stderr"
}
# row SETTING VALUE FROM REST: the output has this line
row() {
	tr -s ' ' <last.out >squeezed.out
	says squeezed.out "$1 $2 $3 $4"
}

shown HOME=/
says last.out "as a trainer:" "no variable of weft or of a launcher is set"
[ "$(wc -l <last.out)" -eq 2 ] || fail "other lines"

shown SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=5 "SLURM_JOB_NODELIST=n[1-3]" \
	OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 WEFT_TRAINER_ID=2 PADDLE_INIT_TRAINER_ID=7 \
	WEFT_SLICE_BYTS=64 WEFT_LOG_DIR=x WEFT_PORT= PADDLE_INIT_QQQQQQQQQ=1 PADDLE_PORTT=1 PADDLE_JOB_NAME=x
row trainer_id 2 WEFT_TRAINER_ID used
row trainer_id 7 PADDLE_INIT_TRAINER_ID "ignored: WEFT_TRAINER_ID is set"
row trainer_id 3 "OMPI_COMM_WORLD_RANK (Open MPI)" "ignored: WEFT_TRAINER_ID is set"
row num_gradient_servers 4 "OMPI_COMM_WORLD_SIZE (Open MPI)" used
row num_gradient_servers 5 "SLURM_NTASKS (Slurm)" "ignored: another variable above counts"
row pservers n1 "SLURM_JOB_NODELIST (Slurm)" used
says last.out "WEFT_SLICE_BYTS: weft does not know this variable; did you mean WEFT_SLICE_BYTES?" \
	"PADDLE_INIT_QQQQQQQQQ: weft does not know" "PADDLE_PORTT: weft does not know"
says_not last.out "WEFT_LOG_DIR:"
says_not last.out "PADDLE_JOB_NAME"
says_not last.out "WEFT_PORT"

shown "$(printf 'PADDLE_X\033[31m\nfoo')=1" "$(printf 'WEFT_X\ny')=1"
says last.out "PADDLE_X?[31m?foo: weft does not know this variable" "WEFT_X?y: weft does not know"

shown "PADDLE_PSERVERS=$(printf 'a\033[31m\nb')" WEFT_CONFIG=job.conf \
	PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4
row pservers "a?[31m?b" "PADDLE_PSERVERS (PaddlePaddle's job)" used
row pservers "10.0.0.1,10.0.0.2,10.0.0.3,10..." "PADDLE_PSERVER_IPS" ""
says last.out "it would not start: weft train: WEFT_CONFIG=job.conf: No such file"

# torchrun sets three variables; two of them are not its word.
shown RANK=1 WORLD_SIZE=2
row trainer_id 1 "RANK (torchrun)" "ignored: it counts only where RANK, WORLD_SIZE and MASTER_ADDR"
row num_gradient_servers 2 "WORLD_SIZE (torchrun)" "ignored: it counts only where RANK,"
shown RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1
row trainer_id 1 "RANK (torchrun)" used

# A file's settings, what is refused, and the nearest names.
printf 'pservers = 10.0.0.9\ntrainer_id = 3\n[pserver]\nslot_count = 4\n' >own.conf
shown WEFT_CONFIG=own.conf WEFT_PORT=99999999 WEFT_TRAINER_ID=1 OMPI_COMM_WORLD_RANK=2 \
	OMPI_COMM_WORLD_SIZE=4 SLURM_STEP_ID=0 SLURM_PROCID=1 "SLURM_JOB_NODELIST=n[1-3]" \
	PADDLE_PORTT=1 PADDLE_QQQQQQQ=1 PADDLE_INIT_USE_MKLDNN=1
row port 99999999 WEFT_PORT "refused: must be a whole number"
row pservers 10.0.0.9 own.conf:1 used
row pservers n1 "SLURM_JOB_NODELIST (Slurm)" "ignored: own.conf:1 sets it"
row trainer_id 1 WEFT_TRAINER_ID used
row trainer_id 3 own.conf:2 "ignored: WEFT_TRAINER_ID is set"
says last.out "it would not start: weft train: WEFT_PORT=99999999 in the environment" \
	"PADDLE_PORTT: weft does not know this variable; did you mean PADDLE_PORT?"
grep -q "^PADDLE_QQQQQQQ: weft does not know this variable$" last.out || fail "a far name is near"
says_not last.out "USE_MKLDNN"
expect 0 env -i WEFT_CONFIG=own.conf "$WEFT" env --role=pserver
says last.out "it would not start: weft pserver: own.conf:1: unknown option pservers"

shown TRAINING_ROLE=PSERVER PADDLE_TRAINERS=2 PADDLE_PORT=30236 PADDLE_TRAINER_ID=1
says last.out "as a pserver:"
row role pserver "TRAINING_ROLE (PaddlePaddle's job)" used
row num_gradient_servers 2 "PADDLE_TRAINERS (PaddlePaddle's job)" used
row trainer_id 1 "PADDLE_TRAINER_ID (PaddlePaddle's job)" "ignored: this process is no trainer"
# The pod's own address, and the number of pservers beside their list.
shown TRAINING_ROLE=PSERVER PADDLE_CURRENT_IP=127.0.0.3 PADDLE_PSERVERS_NUM=2
row listen 127.0.0.3 "PADDLE_CURRENT_IP (PaddlePaddle's job)" used
row pserver_count 2 "PADDLE_PSERVERS_NUM (PaddlePaddle's job)" "ignored: it says how many there are"
shown PADDLE_PSERVERS_NUM=3 PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2
row pserver_count 3 "PADDLE_PSERVERS_NUM (PaddlePaddle's job)" used
says last.out "it would not start: weft train: PADDLE_PSERVERS_NUM=3 does not fit"
shown PADDLE_PSERVERS_NUM=3 PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2 WEFT_PSERVERS=10.0.0.9
row pserver_count 3 "PADDLE_PSERVERS_NUM (PaddlePaddle's job)" "ignored: WEFT_PSERVERS is set"
says_not last.out "it would not start"
# Values of launchers that contradict each other, in the words of the command.
shown RANK=7 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500
says last.out "it would not start: weft train: trainer_id=7: must be less than num_gradient_servers=4"
shown PADDLE_TRAINER_ID=5 PADDLE_TRAINERS_NUM=2
says last.out "it would not start: weft train: trainer_id=5: must be less than num_gradient_servers=2"
shown JOB_COMPLETION_INDEX=1
says last.out "it would not start: weft train: trainer_id=1: must be less than num_gradient_servers=1"
shown PADDLE_TRAINER_ID=5 PADDLE_TRAINERS_NUM=2 WEFT_SEQUENTIAL=1
says_not last.out "it would not start"
shown PADDLE_TRAINER_ID=5 PADDLE_TRAINERS_NUM=2 WEFT_TRAINER_ID=1
says_not last.out "it would not start"
shown TRAINING_ROLE=PSERVER PADDLE_TRAINER_ID=5 PADDLE_TRAINERS_NUM=2
says_not last.out "it would not start"
shown TRAINING_ROLE=PSERVER PADDLE_PORT=65535 WEFT_PORTS_NUM=4
says last.out "it would not start: weft pserver: --port=65535 with 4 lanes goes past port 65535"
shown TRAINING_ROLE=PSERVER PADDLE_TRAINERS=999999
says last.out "it would not start: weft pserver: PADDLE_TRAINERS=999999 in the environment"
port=$(free_ports)
start own env PADDLE_CURRENT_IP=127.0.0.3 "$WEFT" pserver --port="$port"
own=$last_pid
wait_for own.err "pserver listens on 127.0.0.3"
start nic env PADDLE_CURRENT_IP=192.0.2.1 "$WEFT" pserver --port="$port" --nics=lo
nic=$last_pid
wait_for nic.err "pserver listens on 127.0.0.1"
expect 69 env PADDLE_CURRENT_IP=192.0.2.1 "$WEFT" pserver --port="$port"
says last.err "the address is that of PADDLE_CURRENT_IP=192.0.2.1, and --listen=ADDR gives another"
expect 69 env PADDLE_CURRENT_IP=192.0.2.1 "$WEFT" pserver --port="$port" --listen=127.0.0.1
says_not last.err PADDLE_CURRENT_IP
for pid in "$own" "$nic"; do
	kill -TERM "$pid"
	ends "$pid" 20 pserver
done
expect 0 env -i TRAINING_ROLE=PSERVER "$WEFT" env --role=trainer
says last.out "as a trainer:"
expect 64 "$WEFT" env --role=both
expect 64 "$WEFT" env x

# The values shown are those that count; a file, and everything that precedes it, wins.
expect 0 env PADDLE_TRAINERS=2 PADDLE_PORT=30236 PADDLE_INIT_PORT=7 OMPI_COMM_WORLD_SIZE=3 \
	OMPI_COMM_WORLD_RANK=1 "$WEFT" pserver --print_options
tr -s ' ' <last.out >squeezed.out
says squeezed.out "num_gradient_servers = 2 # PADDLE_TRAINERS" "port = 7 # PADDLE_INIT_PORT"
echo "port = 9" >job.conf
expect 0 env PADDLE_PORT=30236 "$WEFT" pserver --config=job.conf --print_options
says last.out "# job.conf:1"
expect 64 env PADDLE_TRAINERS=999999 "$WEFT" pserver --print_options
says last.err "PADDLE_TRAINERS=999999 in the environment (sets --num_gradient_servers)"
expect 0 env PADDLE_TRAINERS=999999 WEFT_PORT=8000 "$WEFT" pserver --num_gradient_servers=2 --print_options
needs_training
expect 0 env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 "$WEFT" train linear \
	--num_gradient_servers=2 --print_options
tr -s ' ' <last.out >squeezed.out
says squeezed.out "trainer_id = 1 # OMPI_COMM_WORLD_RANK" "num_gradient_servers = 2 # argument"
expect 0 env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 "$WEFT" train linear --sequential \
	--num_passes=1
says_not last.err OMPI
expect 64 env JOB_COMPLETION_INDEX=4 "$WEFT" train linear
says last.err "trainer_id=4 (JOB_COMPLETION_INDEX)" "less than num_gradient_servers=1"
expect 64 env RANK=7 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 "$WEFT" train linear
says last.err "weft train: trainer_id=7: must be less than num_gradient_servers=4"
expect 64 env PADDLE_PSERVERS_NUM=3 PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2 "$WEFT" train linear
says last.err "weft train: PADDLE_PSERVERS_NUM=3 does not fit"

# The path of a file is shown whole.
folder=$(printf '%0250d' 0)/$(printf '%0250d' 0)/$(printf '%0250d' 0)
mkdir -p "$folder"
printf 'pservers = 10.0.0.9\n' >"$folder/own.conf"
shown WEFT_CONFIG="$folder/own.conf" SLURM_STEP_ID=0 SLURM_PROCID=1 "SLURM_JOB_NODELIST=n[1-3]"
row pservers 10.0.0.9 "$folder/own.conf:1" used
row pservers n1 "SLURM_JOB_NODELIST (Slurm)" "ignored: $folder/own.conf:1 sets it"
