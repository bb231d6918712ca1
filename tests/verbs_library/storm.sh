#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: storm.sh [FIRST COUNT [OFTEN]]
# Jobs of real processes over RDMA devices of every kind that are late and lose things, half of which
# break, by seed: each ends with the digest of one process, over RDMA or over TCP, and leaves nothing
# behind. WEFT_SEED repeats one seed; WEFT_LONG runs 500. OFTEN: they break so many times as often.
# What breaks is waited for, so most of those in the check do not.
. "${0%/*}/lib.sh"

count=${2:-7}
[ -z "$long" ] || count=500
first=${1:-2}
often=${3:-1}
if [ -n "${WEFT_SEED-}" ]; then
	first=$WEFT_SEED
	count=1
fi

port=$(free_ports)
job_address=$address
job_host=$other_host
tensors="--num_passes=8 --slice_bytes=64 --seed=5"
layers="--num_passes=1 --slice_bytes=256 --seed=5"
rows="--num_passes=1 --batch_size=900 --slice_bytes=64 --no-baseline"
in_one_process linear 2 2 "$tensors"
alone_tensors=$alone
in_one_process mlp 3 1 "$layers"
alone_layers=$alone
in_one_process ctr 2 1 "$rows"
alone_rows=$alone

# start_one_of PSERVERS TRAINERS OPTIONS_OF_BOTH MODEL OPTIONS: a job, and the names of its processes.
start_one_of() {
	job_pserver="--reconnect_timeout=15s $3"
	# shellcheck disable=SC2086
	start_job "$1" "$2" "$4" $3 $5
	names="trainer_0 trainer_1 pserver_0"
	[ "$1" -eq 1 ] || names="$names pserver_1"
	[ "$2" -eq 2 ] || names="$names trainer_2"
}

# run_seed SEED
run_seed() {
	set -- "$1" kind mlx5 irdma bnxt cxgb4 rxe anyorder
	eval "kind=\$$(($1 % 7 + 2))"
	be "$kind" "$1"
	breaks=$(($1 / 7 % 2))
	unset WEFT_FAKE_RDMA_BREAKS
	[ $breaks -eq 0 ] || export WEFT_FAKE_RDMA_BREAKS="$often"
	what="seed $1 ($kind; WEFT_SEED=$1 repeats it)"
	case $(($1 % 5)) in
	0)
		alone=$alone_rows
		start_one_of 1 2 --ports_num_for_sparse=1 ctr "$rows"
		;;
	1)
		alone=$alone_layers
		start_one_of 1 3 --ports_num=2 mlp "$layers"
		;;
	*)
		alone=$alone_tensors
		start_one_of 2 2 "" linear "$tensors"
		;;
	esac
	for name in $names; do
		eval "pid=\$$name"
		ends "$pid" 90 "$what: $name"
		[ "$code" -eq 0 ] || fail "$what: $name: exit code $code"
	done
	[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "$what: another digest than $alone"
	[ $breaks -eq 1 ] || says trainer_0.err "$both"
	books_are_closed "$(echo "$names" | wc -w)" "$what"
	cat "$books"/* >>all_books
	started="" # all of them have ended
}

seed=$first
while [ "$seed" -lt $((first + count)) ]; do
	run_seed "$seed"
	seed=$((seed + 1))
done
# What the seeds have done, in words: a run in which nothing happened has shown nothing.
awk '{ for (i = 1; i < NF; i++) if ($i ~ /^[a-z_]+$/ && $(i + 1) ~ /^[0-9]+$/) sum[$i] += $(i + 1) }
	END { for (name in sum) printf "%s %d ", name, sum[name]; print "" }' all_books
echo "$count jobs: 0 wrong digests, 0 hangs, 0 left over"
