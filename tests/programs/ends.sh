#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Saves in the middle of a pass, and what continues from them: by batches, by the time limit, and by
# a SIGTERM that all processes of a job get at once. The digests are those of an uninterrupted run.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 100 "$data/moby-dick.txt" >text
mlp="mlp --slice_bytes=256 --learning_rate=0.01 --seed=5 --learning_rate_schedule=warmup"
mlp="$mlp --learning_rate_decay_a=7000 --optimizer=adam"
words="ngram --vocabulary=100 --hidden=8 --embedding=4 --data=$work/text --batch_size=50 --baseline=false"

# alone MODEL...: one process plays two trainers in turn; job MODEL...: two trainers with one
# pserver.
alone() {
	"$WEFT" train "$@" --sequential --num_gradient_servers=2
}
job() {
	"$WEFT" launch --local --port="$port" --trainers=2 --ports_num_for_sparse=1 -- train "$@"
}
# batch_of FOLDER: how far its save has come; "" if the pass is complete.
batch_of() {
	sed -n 's/^batch //p' "$1/manifest"
}

for model in mlp words; do
	eval "options=\$$model"
	# shellcheck disable=SC2086
	expect 0 alone $options --num_passes=2 --save_dir="whole_$model"
	whole=$(digest_of last.out)
	# shellcheck disable=SC2086
	for way in alone job; do
		expect 75 "$way" $options --num_passes=2 --save_dir="$way" --time_limit=1us
		says last.err "time_limit is over: saved in pass 0 after batch 1;" \
			"--start_pass=0 --start_batch=1"
		[ "$(batch_of "$way/pass-00000")" = 1 ] || fail "$model $way: saved elsewhere"
		cp -r "$way" "${way}_$model"
		rm -rf "$way"
	done
	# Tables may have rows that the other trainer has pulled since, with their initial values.
	[ "$model" = words ] || cmp "alone_$model/pass-00000/manifest" "job_$model/pass-00000/manifest" ||
		fail "$model: the two ways save differently"
	# Each continues what the other began.
	# shellcheck disable=SC2086
	expect 0 alone $options --num_passes=2 --save_dir="job_$model" --start_batch=1
	[ "$(digest_of last.out)" = "$whole" ] || fail "$model: sequential, continued: another digest"
	# shellcheck disable=SC2086
	expect 0 job $options --num_passes=2 --save_dir="alone_$model" --start_batch=1
	[ "$(digest_of last.out)" = "$whole" ] || fail "$model: job, continued: another digest"
	for pass in 0 1; do
		[ "$model" = words ] || cmp "whole_$model/pass-0000$pass/manifest" "alone_$model/pass-0000$pass/manifest" ||
			fail "$model: pass $pass is not what an uninterrupted run saves"
	done
done

# By batches: the last save in a pass stays until the pass ends, and does not count as its end.
# shellcheck disable=SC2086
expect 75 job $mlp --num_passes=1000000 --save_dir=by --saving_period_by_batches=2 --saving_period=9 --time_limit=50ms
# shellcheck disable=SC2086
expect 64 alone $mlp --num_passes=9 --save_dir=alone_mlp --start_pass=0 --start_batch=1
says last.err "was saved after 0 batches of its pass (0: all); continue with start_pass=1 start_batch=0"
rm -rf job_mlp
# shellcheck disable=SC2086
expect 75 alone $mlp --num_passes=9 --save_dir=job_mlp --time_limit=1us
# shellcheck disable=SC2086
expect 64 alone $mlp --num_passes=9 --save_dir=job_mlp --start_pass=1
says last.err "was saved after 1 batches" "start_pass=0 start_batch=1"

# The baseline after a whole run neither saves nor stops.
head -n 300 "$data/birdstrikes.csv" >strikes
baseline="ctr --data=$work/strikes --num_passes=1 --batch_size=50 --saving_period_by_batches=1 --seed=5"
# shellcheck disable=SC2086
expect 0 alone $baseline --save_dir=baseline --save_on_term --time_limit=10m
says last.out "logistic regression"
# shellcheck disable=SC2086
expect 75 alone $baseline --save_dir=began --time_limit=1us
# shellcheck disable=SC2086
expect 0 alone $baseline --save_dir=began --start_batch=1
says last.out "logistic regression"

# Impossible combinations are refused at the start.
# shellcheck disable=SC2086
expect 64 alone $mlp --time_limit=1s
says last.err "time_limit: give trainer 0 a save_dir"
# shellcheck disable=SC2086
expect 64 "$WEFT" train $mlp --save_dir=x --saving_period_by_batches=7 --dense_mode=async
says last.err "saving_period_by_batches=7: trainers that do not wait for each other"
# shellcheck disable=SC2086
expect 64 alone $mlp --save_dir=x --start_batch=3 --init_model_path=alone_mlp/pass-00000
says last.err "start_batch=3: goes on from a save in save_dir"

# SIGTERM for all processes of a job at once, the launcher among them.
term() {
	save=$1
	shift
	# shellcheck disable=SC2086
	start all "$WEFT" launch --local --port="$port" --trainers=2 --pservers=2 --save_on_term \
		--term_grace=20s -- train $mlp --num_passes=1000000 --saving_period=1000000 --save_dir="$save" "$@"
	all=$last_pid
	wait_for all.out "pass 1 "
	children=$(sed -n 's/.* | pid \([0-9]*\).*/\1/p' all.err)
	[ "$(echo "$children" | wc -l)" -eq 4 ] || fail "not four processes: $children"
}
term all
# shellcheck disable=SC2086
kill -TERM $children "$all"
ends "$all" 30 "the launcher"
[ "$code" -eq 143 ] || fail "SIGTERM for all: exit code $code"
says all.err "weft train: stopped by SIGTERM: saved in pass"
pass=$(basename "$(find all -name 'pass-*')")
batch=$(batch_of "all/$pass")
number=$(echo "$pass" | sed 's/pass-0*\([0-9]\)/\1/')
start_pass="--start_pass=$number --start_batch=$batch"
[ -n "$batch" ] || start_pass="--start_pass=$((number + 1))"
# shellcheck disable=SC2086
expect 0 alone $mlp --num_passes=$((number + 2)) --save_dir=all $start_pass
continued=$(digest_of last.out)
# shellcheck disable=SC2086
expect 0 alone $mlp --num_passes=$((number + 2))
[ "$(digest_of last.out)" = "$continued" ] || fail "after SIGTERM: another digest"

# A second SIGTERM, later than an echo of the first, ends a process at once; so does the end of
# --term_grace.
# shellcheck disable=SC2086
start one "$WEFT" train $mlp --pservers="127.0.0.1:$port" --save_dir=one --save_on_term
one=$last_pid
wait_for one.err "understood"
kill -TERM "$one" # before the first step there is nothing to save
ends "$one" 20 "a trainer that has not begun"
[ "$code" -eq 143 ] || fail "SIGTERM before the first step: exit code $code"

# If a full disk, or a limit, prevents the save, the message says so, and the process ends.
# Its lines go through a pipe, so the limit does not apply to them: 60 of them would exceed it.
mkfifo lines
start read cat lines
start full sh -c "ulimit -f 8; exec '$WEFT' train $mlp --sequential --num_passes=1000000 --saving_period=1000000 \
	--save_dir=full --save_on_term >lines"
full=$last_pid
wait_for read.out "pass 1 "
kill -TERM "$full"
ends "$full" 20 "a run that cannot save"
[ "$code" -eq 143 ] || fail "SIGTERM with a full disk: exit code $code"
says full.err "is not saved, training ends: full/" "stopped by SIGTERM, and the run could not be saved"

# A pserver that is the only process to be stopped leaves the job --term_grace, and no more.
start pserver "$WEFT" pserver --port="$port" --num_gradient_servers=1 --save_on_term --term_grace=300ms
pserver=$last_pid
wait_for pserver.err "listens on"
# shellcheck disable=SC2086
start lone "$WEFT" train $mlp --pservers="127.0.0.1:$port" --num_passes=1000000
lone=$last_pid
wait_for lone.out "pass 1 "
kill -TERM "$pserver"
ends "$pserver" 20 "a pserver whose time is over"
[ "$code" -eq 75 ] || fail "a pserver whose time is over: exit code $code"
ends "$lone" 20 "its trainer"
[ "$code" -eq 69 ] || fail "a trainer whose pserver was stopped: exit code $code"
says lone.err "was stopped by SIGTERM"
