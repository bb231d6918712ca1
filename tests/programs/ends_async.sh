#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In modes in which no trainer waits for another, SIGTERM or the time limit makes each trainer end
# its pass early. The save counts the batches of the trainer that had done the fewest. It is whole,
# tables included, and a run goes on from it.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 600 "$data/birdstrikes.csv" >strikes
mlp="mlp --slice_bytes=256 --learning_rate=0.01 --seed=5 --batch_size=8"
ctr="ctr --data=$work/strikes --batch_size=8 --seed=5 --baseline=false"

job() {
	"$WEFT" launch --local --port="$port" --trainers=3 --ports_num_for_sparse=1 "$@"
}
# saved FOLDER: sets $pass to the pass that it has, and $batch to the batches of it, or "" if it is
# whole.
saved() {
	pass=$(find "$1" -name 'pass-*' | sed 's/.*pass-0*\([0-9]\)/\1/' | sort -n | tail -n 1)
	[ -n "$pass" ] || fail "$1: nothing is saved"
	batch=$(sed -n 's/^batch //p' "$1/$(printf 'pass-%05d' "$pass")/manifest")
}
# continue_from FOLDER options: goes on there, for a pass.
continue_from() {
	from=$1
	shift
	saved "$from"
	if [ -n "$batch" ]; then
		says "$from/$(printf 'pass-%05d' "$pass")/manifest" "batch=least"
		expect 0 job -- train "$@" --save_dir="$from" --start_pass="$pass" --start_batch="$batch" \
			--num_passes=$((pass + 1))
		says last.out "pass $pass cost"
	else
		expect 0 job -- train "$@" --save_dir="$from" --start_pass=$((pass + 1)) \
			--num_passes=$((pass + 2))
	fi
	says_not last.err "the settings differ"
}

for mode in async local tables; do
	case $mode in
	async) options="$mlp --dense_mode=async" ;;
	local) options="$mlp --dense_mode=local --local_steps=4 --optimizer=sgd" ;;
	tables) options="$ctr --dense_mode=async --sparse_mode=async" ;;
	esac
	# The limit has passed when the first batch is done, on each trainer.
	# shellcheck disable=SC2086
	expect 75 job -- train $options --num_passes=9 --save_dir="limit_$mode" --time_limit=1us
	says last.err "time_limit is over: saved in pass 0 after batch 1; continue with --start_pass=0 --start_batch=1"
	says_not last.out "pass 0"
	saved "limit_$mode"
	[ "$pass.$batch" = 0.1 ] || fail "$mode: saved after pass $pass, batch $batch"
	# shellcheck disable=SC2086
	continue_from "limit_$mode" $options
	# SIGTERM for all processes of the job.
	# shellcheck disable=SC2086
	start "$mode" "$WEFT" launch --local --port="$port" --trainers=3 --ports_num_for_sparse=1 \
		--save_on_term --term_grace=20m -- train $options --num_passes=1000000 \
		--saving_period=1000000 --save_dir="term_$mode"
	all=$last_pid
	wait_for "$mode.out" "pass 1 "
	# shellcheck disable=SC2046
	kill -TERM $(sed -n 's/.* | pid \([0-9]*\).*/\1/p' "$mode.err") "$all"
	ends "$all" 60 "the launcher"
	[ "$code" -eq 143 ] || fail "$mode, SIGTERM for all: exit code $code"
	# A trainer that says so was stopped by the signal itself, or by another trainer that was
	# faster.
	says "$mode.err" "stopped by SIGTERM" ": saved in pass"
	# shellcheck disable=SC2086
	continue_from "term_$mode" $options
done

# One trainer alone ends its pass early: the others end theirs, and all of it is saved.
cat >limit.sh <<SH
#!/bin/sh
[ "\$WEFT_TRAINER_ID" != 1 ] || limit=--time_limit=1us
exec "$WEFT" train $mlp --dense_mode=async --num_passes=9 --save_dir=$work/one \$limit
SH
chmod +x limit.sh
got=0
job -- ./limit.sh >last.out 2>last.err || got=$?
[ "$got" -ne 0 ] || fail "a trainer out of time does not end the job"
says last.err "another trainer is stopped by SIGTERM, or out of time: saved in pass 0 after batch 1;"
# shellcheck disable=SC2086
continue_from one $mlp --dense_mode=async
