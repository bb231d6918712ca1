#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch refuses mistakes before it starts anything.
. "${0%/*}/lib.sh"

expect 64 "$WEFT" launch --pservers=1 --trainers=1 -- train linear
says last.err "give --local for a job on this host, or --hosts=HOST,HOST or --hostfile=FILE"
expect 64 "$WEFT" launch --local
says last.err "-- train linear"
expect 64 "$WEFT" launch --local --
expect 64 "$WEFT" launch --local -- demo
says last.err "'demo' is no program in PATH" "train MODEL for a built-in model"
expect 64 "$WEFT" launch --local -- train --num_passes=1
says last.err "needs a model"
expect 64 "$WEFT" launch --local train linear
says last.err "unexpected 'train'"
expect 64 "$WEFT" launch --local --pservers=0 -- train linear
says last.err "--pservers=0"
expect 64 "$WEFT" launch --local --pservers=127.0.0.1 -- train linear
expect 64 "$WEFT" launch --local --trainers=100000 -- train linear

# Options of one of the two commands, and of none.
expect 64 "$WEFT" launch --local --slice_byts=256 -- train linear
says last.err "--slice_byts" "did you mean --slice_bytes"
expect 64 "$WEFT" launch --local --slot_cuont=4 -- train linear
says last.err "did you mean --slot_count"
expect 64 "$WEFT" launch --local --qqqqqqqqqqqq -- train linear
says last.err "--qqqqqqqqqqqq"
expect 64 "$WEFT" launch --local --slot_count=many -- train linear
says last.err "--slot_count=many"
expect 64 "$WEFT" launch --local -- train linear --num_pases=1
says last.err "did you mean --num_passes"
expect 64 "$WEFT" launch --local -- train linear --trainer_id=1
says last.err "--trainer_id=1 after --"
expect 64 "$WEFT" launch --local --trainer-id=0 -- train linear
says last.err "--trainer-id=0: launch numbers the trainers itself"
expect 64 "$WEFT" launch --local --trainer_id 0 -- sh
expect 64 "$WEFT" launch --local --trainers=2 --num_gradient_servers=3 -- train linear
says last.err "--num_gradient_servers=3" "--trainers=2"
expect 64 "$WEFT" launch --local --port=65535 --pservers=2 -- train linear
says last.err "65535"
# Launch sets these itself, and would override them.
expect 64 "$WEFT" launch --local -- train linear --sequential
says last.err "--sequential: the trainers of launch have pservers"
expect 64 "$WEFT" launch --local --sequential -- train linear
says last.err "--sequential: the trainers of launch have pservers"
expect 64 "$WEFT" launch --local -- train linear --local
says last.err "--local after the model: the trainers of launch have pservers"
expect 64 "$WEFT" launch --local --no-once -- train linear
says last.err "--no-once: the pservers of launch end with their job"
expect 64 "$WEFT" launch --local --once=false -- sh
# In a file, too, except in launch's own section or with launch's own value.
# in_file TEXT LINES: a file of --config that is refused
in_file() {
	printf '%s\n' "$2" >job.conf
	expect 64 "$WEFT" launch --local --config=job.conf -- train linear
	says last.err "job.conf:$1"
}
in_file "2: sequential: the trainers of launch have pservers" "[train]
sequential = true"
in_file "2: local: the trainers of launch have pservers" "[train]
local = true"
in_file "2: once: the pservers of launch end with their job" "[pserver]
once = false"
for line in "trainer_id = 1" "pservers = 192.0.2.1" "port = 7" "ports_num = 2" "num_gradient_servers = 2" \
	"ports_num_for_sparse = 1"; do
	in_file "2: ${line%% *}: launch gives this to pservers and trainers itself; leave it out" "[train]
$line"
done
for line in "listen = ::1" "port = 7" "ports_num = 2" "num_gradient_servers = 2"; do
	in_file "2: ${line%% *}: launch gives this to pservers and trainers itself; leave it out" "[pserver]
$line"
done
# All processes have one secret: that of launch, where it has one or makes one.
head -c 32 /dev/zero >secret
chmod 400 secret
for section in train pserver; do
	for job in --hosts=127.0.0.1 "--local --secret_file=secret"; do
		printf '[%s]\nsecret_file = other\n' "$section" >job.conf
		# shellcheck disable=SC2086
		expect 64 "$WEFT" launch $job --ssh=false --config=job.conf -- train linear
		says last.err "job.conf:2: secret_file: launch gives all processes of the job one secret; leave this out"
	done
done
printf '[train]\nsecret_file = other\n' >job.conf
expect 64 "$WEFT" launch --hosts=127.0.0.1 --ssh=false --config=job.conf -- sh
says last.err "job.conf:2: secret_file: launch gives"
expect 64 "$WEFT" launch --hosts=127.0.0.1 --ssh=false -- train linear --secret_file=other
says last.err "--secret_file after --: launch gives all processes of the job one secret"
expect 64 "$WEFT" launch --local --secret_file=secret -- train linear --secret_file=other
says last.err "--secret_file after --: launch gives all processes of the job one secret"
printf 'secret_file = secret\n' >job.conf
expect 0 "$WEFT" launch --local --config=job.conf --print_options -- train linear
expect 0 "$WEFT" launch --local --config=job.conf --secret_file=other --print_options -- train linear
printf '[pserver train]\nsecret_file = secret\n' >job.conf
expect 0 "$WEFT" launch --local --config=job.conf --print_options -- train linear
expect 0 "$WEFT" launch --local --config=job.conf --secret_file=secret --print_options -- train linear
says_not last.err "pserver with"
printf 'ports_num = 2\nnum_gradient_servers = 2\n[launch]\ntrainers = 2\n[pserver train]\nport = 7164\n' >job.conf
expect 0 "$WEFT" launch --local --config=job.conf --print_options -- train linear
cp last.out printed.conf
expect 0 "$WEFT" launch --local --config=printed.conf --print_options -- train linear
expect 0 "$WEFT" launch --local --config=job.conf --ports_num=3 --print_options -- train linear
printf '[launch]\ntrainers = 2\n[pserver train]\nnum_gradient_servers = 2\n' >job.conf
expect 0 "$WEFT" launch --local --config=job.conf --print_options -- train linear
expect 0 "$WEFT" launch --local --once --no-sequential --print_options -- train linear --no-local

# The agent is not started by hand.
expect 64 "$WEFT" _node </dev/null
says last.err "weft launch --hosts starts this on each host" "it is not meant to be started by hand"
: >empty
expect 64 "$WEFT" _node <empty
expect 64 "$WEFT" _node <&-
expect 0 sh -c ': | "$WEFT" _node' # a launcher that is gone
