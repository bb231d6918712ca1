#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models with tables end with the same bits for any number of sparse and dense lanes and pservers,
# and over any transport, as in one process: parameters and rows. Trainers run out of data at
# different steps. "more": with more numbers of lanes and pservers, paths and optimizers.
more=${1-}
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 300 "$data/moby-dick.txt" >text
words="--vocabulary=300 --hidden=24 --embedding=6 --num_passes=2 --slice_bytes=256 --data=$work/text"
strikes="--num_passes=1 --batch_size=900 --slice_bytes=64"

# job MODEL TRAINERS PSERVERS PORTS SPARSE_PORTS TRANSPORT OPTIONS: ends with the digest $alone.
job() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport="$6" --port="$port" --pservers="$3" \
		--ports_num="$4" --ports_num_for_sparse="$5" --trainers="$2" -- train "$1" $7
	[ "$(digest_of last.out)" = "$alone" ] ||
		fail "$1 with $2 trainers, $3 pservers, $4 + $5 lanes, $6: another digest than $alone"
	told=$(grep -v '^pass ' last.out)
	[ "$told" = "$alone_told" ] || fail "$1: other figures than in one process"
}

# in_one_process MODEL TRAINERS OPTIONS
in_one_process() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train "$1" --sequential --num_gradient_servers="$2" $3
	alone=$(digest_of last.out)
	alone_told=$(grep -v '^pass ' last.out)
	[ -n "$alone" ] || fail "no digest of the sequential run"
}

in_one_process ngram 3 "$words"
says last.out "perplexity" "unigram" "bigram" "nearest he:"
job ngram 3 3 2 3 tcp "$words"
job ngram 3 2 1 1 shm "$words"
if [ -n "$more" ]; then
	job ngram 3 1 1 1 tcp "$words"
	job ngram 3 2 1 2 auto "$words --trainer_count=1"
fi

in_one_process ctr 2 "$strikes"
says last.out "auc" "logistic regression"
[ -z "$more" ] || job ctr 2 1 1 1 tcp "$strikes"
job ctr 2 2 1 3 auto "$strikes"
in_one_process ctr 2 "$strikes --admit_count=2 --evict_age=2 --sparse_optimizer=ftrl"
job ctr 2 2 1 2 auto "$strikes --admit_count=2 --evict_age=2 --sparse_optimizer=ftrl"

# Rates that end at 0 before the data does.
ends="$strikes --learning_rate_schedule=caffe_poly --learning_rate_decay_a=4000"
in_one_process ctr 2 "$ends --learning_rate_decay_b=1"
job ctr 2 1 1 2 auto "$ends --learning_rate_decay_b=1"

# Rows are evicted by their score in the same step everywhere, and the log says at the end how many.
scored="$strikes --batch_size=300 --evict_score=1.5 --evict_fade=0.9 --evict_fade_steps=5"
in_one_process ctr 2 "$scored"
says last.err "evicted" "(age 0 score" "cap 0) refused 0"
job ctr 2 2 1 2 auto "$scored"
says last.err "evicted" "(age 0 score" "cap 0) refused 0"
# Which rows are evicted at a cap depends on the lanes, so no bits are compared; the log counts
# refused and evicted rows.
capped="--num_passes=1 --no-baseline --table_memory=75KiB"
# shellcheck disable=SC2086
expect 0 "$WEFT" train ctr --sequential $capped
says last.err "evicted 0 (age 0 score 0 cap 0) refused"
# shellcheck disable=SC2086
expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --ports_num=1 \
	--ports_num_for_sparse=1 --trainers=2 -- train ctr $capped --batch_size=8 --evict_at_cap
says last.err "(age 0 score 0 cap"
says last.out "auc"

# Paths that refuse, delay, cut, split and stall at points that WEFT_SEED decides.
faults="seed=${WEFT_SEED:-1},delay=5%:2ms,split=30%,short=20%,stall=1%:5ms,refuse=5%"
settings="--num_passes=1 --batch_size=300 --slice_bytes=64 --no-baseline --sparse_rest=bf16"
in_one_process ctr 2 "$settings"
job ctr 2 2 1 2 "fault($faults,cut=0.2%)+auto" "$settings --transport=fault($faults)+auto"
[ -z "$more" ] ||
	job ctr 2 2 1 2 "fault($faults,cut=0.2%)+tcp" "$settings --transport=fault($faults)+tcp"

# A saved run goes on as if it had not stopped, and is exported, rows and all.
in_one_process ctr 2 "--num_passes=2 --no-baseline"
whole=$alone
in_one_process ctr 2 "--num_passes=1 --no-baseline --save_dir=saved"
in_one_process ctr 2 "--num_passes=2 --no-baseline --save_dir=saved --start_pass=1"
[ "$alone" = "$whole" ] || fail "a run that went on ended with $alone, not $whole"
expect 0 "$WEFT" export saved/pass-00001 -o rows.safetensors
says rows.safetensors deep.keys deep.values wide.keys fc1_w

# It goes on as if it had not stopped, also with other lanes and pservers than have saved, and if
# one process goes on with what a job has saved. Rows of the same kind are in the same files.
goes_on="--num_passes=2 --no-baseline --batch_size=900 --admit_count=2 --evict_age=9"
for variant in ${more:+adagrad adam} scored; do
	case $variant in
	scored) options="$goes_on --evict_score=1.5 --evict_fade=0.9 --evict_fade_steps=5" ;;
	*) options="$goes_on --sparse_optimizer=$variant" ;;
	esac
	in_one_process ctr 2 "$options --save_dir=alone_$variant"
	whole=$alone
	in_one_process ctr 2 "$options --num_passes=1"
	job ctr 2 2 1 1 tcp "$options --num_passes=1 --save_dir=$variant"
	for table in deep wide; do
		cmp "$variant/pass-00000/$table.rows" "alone_$variant/pass-00000/$table.rows" ||
			fail "$variant: $table of 2 pservers is saved in other bytes than that of one process"
	done
	in_one_process ctr 2 "$options --save_dir=$variant --start_pass=1"
	[ "$alone" = "$whole" ] || fail "$variant: one process went on to $alone, not $whole"
	job ctr 2 1 2 3 tcp "$options --save_dir=$variant --start_pass=1"
	job ctr 2 2 1 2 "fault($faults,cut=0.2%)+auto" \
		"$options --save_dir=$variant --start_pass=1 --transport=fault($faults)+auto"
done

# A run can begin with the values of a saved pass, also with another optimizer.
begins="--num_passes=1 --no-baseline --batch_size=900 --sparse_optimizer=momentum --momentum=0.5"
in_one_process ctr 2 "$begins"
plain=$alone
in_one_process ctr 2 "$begins --init_model_path=saved/pass-00001"
[ "$alone" != "$plain" ] || fail "init_model_path changed nothing"
job ctr 2 2 1 2 tcp "$begins --init_model_path=saved/pass-00001"

# Values that travel in 16 bits are rounded the same way, wherever the rows are.
in_one_process ngram 2 "$words --sparse_wire=bf16"
job ngram 2 2 1 2 auto "$words --sparse_wire=bf16"
job ngram 2 1 1 3 tcp "$words --sparse_wire=bf16"

# Asynchronous jobs are saved between passes, and go on over other lanes, but only in that mode,
# because their lanes count pushes where others count steps.
apart="--no-baseline --batch_size=900 --sparse_mode=async --save_dir=apart"
expect 0 "$WEFT" launch --local --port="$port" --pservers=2 --ports_num_for_sparse=2 --trainers=2 \
	-- train ctr $apart --num_passes=1
expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --ports_num_for_sparse=3 --trainers=2 \
	-- train ctr $apart --num_passes=2 --start_pass=1
grep -q "^pass 1 " last.out || fail "no second pass of an asynchronous job that went on"
[ -d apart/pass-00001 ] || fail "an asynchronous job did not save the pass with which it went on"
expect 65 "$WEFT" train ctr --sequential --num_gradient_servers=2 --no-baseline --batch_size=900 \
	--num_passes=2 --save_dir=apart --start_pass=1
says last.err "as in an asynchronous job" "init_model_path"

# Impossible options are refused, with what would be right.
expect 64 "$WEFT" train ctr --pservers=127.0.0.1:1 --num_passes=1
says last.err "ports_num_for_sparse=1"
expect 64 "$WEFT" train ctr --sequential --init_model_path=saved/pass-00000 --sparse_optimizer=ftrl
says last.err "state" "save_dir"
expect 64 "$WEFT" train ctr --sequential --evict_at_cap
says last.err "cap"
expect 64 "$WEFT" train ngram --sequential --evict_score=1
says last.err "vocabulary"
expect 64 "$WEFT" train ctr --sequential --format=libsvm
says last.err "--data=FILE"
