#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs with tables over soft RDMA devices end with the digest of one process, rows and all; so does
# one whose trainers come over different paths. WEFT_LONG: over iWARP, too, more lanes, pservers and
# trainers, other models and modes, and a device that goes on the way.
long=${WEFT_LONG-}
. "${0%/*}/../programs/lib.sh"
needs_training
[ -e /sys/class/infiniband/rxe0 ] || {
	echo "SKIPPED: this machine has no rxe0" >&2
	exit 77
}

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
both="over verbs: RDMA at both ends"

# in_one_process MODEL TRAINERS OPTIONS: sets $alone.
in_one_process() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train "$1" --sequential --num_gradient_servers="$2" $3
	alone=$(digest_of last.out)
	[ -n "$alone" ] || fail "no digest of the sequential run of $1"
}

# job ADDRESS MODEL TRAINERS PSERVERS SPARSE_PORTS OPTIONS: all of it over verbs.
job() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=verbs --listen="$1" --port="$port" \
		--stats_period=60s --pservers="$4" --trainers="$3" --ports_num_for_sparse="$5" -- \
		train "$2" $6
	[ "$(digest_of last.out)" = "$alone" ] || fail "$2 at $1: another digest than $alone"
	pairs=$((2 * $3 * $4 * ($5 + 1)))
	[ "$(grep -c "$both" last.err)" -eq "$pairs" ] ||
		fail "$2 at $1: not each of $pairs ends says that it runs over verbs"
	grep -q 'lane 1.* verbs_sent_bytes [1-9][0-9]*' last.err || fail "$1: no bytes over verbs"
}

addresses="10.9.0.1"
[ -z "$long" ] || [ ! -e /sys/class/infiniband/siw0 ] || addresses="$addresses 10.8.0.1"

strikes="--num_passes=1 --batch_size=900 --slice_bytes=64 --no-baseline"
in_one_process ctr 2 "$strikes"
for address in $addresses; do
	job "$address" ctr 2 1 1 "$strikes"
done

# One trainer over verbs and one over TCP, in one job.
start pserver "$WEFT" pserver --listen=10.9.0.1 --port="$port" --ports_num_for_sparse=1 --once \
	--num_gradient_servers=2
# shellcheck disable=SC2034 # looked at below, by name
pserver=$last_pid
for id in 0 1; do
	# shellcheck disable=SC2086
	start trainer_$id "$WEFT" train ctr --pservers=10.9.0.1:"$port" --ports_num_for_sparse=1 \
		--num_gradient_servers=2 --trainer_id=$id \
		--transport="$([ $id = 0 ] && echo verbs || echo tcp)" $strikes
	eval "trainer_$id=$last_pid"
done
for who in trainer_0 trainer_1 pserver; do
	eval "ends \"\$$who\" 60 $who"
	[ "$code" -eq 0 ] || fail "$who of a mixed job: exit code $code"
done
[ "$(grep -c "$both" trainer_0.err)" -eq 2 ] || fail "trainer 0 is not at both lanes over verbs"
[ "$(grep -c 'over tcp: --transport=tcp' trainer_1.err)" -eq 2 ] || fail "trainer 1 is not over TCP"
[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "mixed: another digest than $alone"
[ -n "$long" ] || exit 0

head -n 300 "$data/moby-dick.txt" >text
words="--vocabulary=300 --hidden=24 --embedding=6 --num_passes=1 --slice_bytes=256 --no-baseline"
words="$words --data=$work/text"
in_one_process ngram 3 "$words"
for address in $addresses; do
	job "$address" ngram 3 2 2 "$words"
done
aged="$strikes --admit_count=2 --evict_age=2 --sparse_optimizer=ftrl --sparse_rest=bf16"
in_one_process ctr 2 "$aged"
for address in $addresses; do
	job "$address" ctr 2 1 3 "$aged"
done
# Without the barrier there is no digest to hold it against: it ends.
for mode in async bounded; do
	expect 0 "$WEFT" launch --local --transport=verbs --listen=10.9.0.1 --port="$port" \
		--trainers=2 --ports_num_for_sparse=2 -- train ctr --sparse_mode=$mode \
		--num_passes=1 --batch_size=900 --slice_bytes=64 --no-baseline
	says last.err "$both"
done
