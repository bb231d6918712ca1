#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Saves in the middle of a pass of data that is read in windows, and of data of each trainer's own.
# A run of two passes is stopped after every batch, so at the borders of windows and passes, too,
# and continued there, by a job and by one process in turn. It ends with the bits of a run that was
# never stopped. Trainers have different numbers of batches. The check has rows in windows and data
# of each trainer's own, "more" the other splits and a window that holds all.
more=${1-}
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
warm="--learning_rate_schedule=warmup --learning_rate_decay_a=300" # counts the samples of all trainers
mlp="mlp --format=csv --hidden=4 --batch_size=16 --slice_bytes=64 --seed=5 --optimizer=adam"
mlp="$mlp --data_window=1KiB --learning_rate=0.01 $warm"
ctr="ctr --format=strikes --batch_size=20 --embedding=2 --hidden=4 --seed=5 --baseline=false $warm"

# rows COUNT SEED: of two features and a class that follows from them.
rows() {
	echo "length;width;kind"
	awk -v rows="$1" -v state="$2" 'BEGIN {
		for (row = 0; row < rows; row++) {
			for (i = 0; i < 2; i++) {
				state = state * 16807 % 2147483647
				x[i] = state % 1000
			}
			print x[0] / 1000 ";" x[1] / 1000 ";" int(x[0] / 400 + x[1] / 600) % 3
		}
	}'
}
rows 390 1 >all.csv
mkdir few many strikes
rows 40 2 >few/own-0 # trainer 0 is the first to have no more
rows 190 3 >few/own-1
rows 100 4 >few/own-2
rows 140 2 >many/part-0 # and the last
rows 40 3 >many/part-1
rows 90 4 >many/part-2
head -n 100 "$data/birdstrikes.csv" >strikes/own-0
{ head -n 1 strikes/own-0 && sed -n 500,530p "$data/birdstrikes.csv"; } >strikes/own-1
{ head -n 1 strikes/own-0 && sed -n 600,690p "$data/birdstrikes.csv"; } >strikes/own-2
tests="--test_list=$work/many/part-2"

alone() {
	"$WEFT" train "$@" --sequential --num_gradient_servers=3
}
job() {
	"$WEFT" launch --local --port="$port" --pservers=2 --trainers=3 --ports_num_for_sparse=1 -- \
		train "$@"
}

# chain NAME BORDERS options: at least BORDERS batches, after each of which a run stops.
chain() {
	name=$1
	wanted_borders=$2
	shift 2
	expect 0 alone "$@" --num_passes=2
	whole=$(digest_of last.out)
	pass=0
	batch=0
	borders=0
	way=alone
	while :; do
		code=0
		"$way" "$@" --num_passes=2 --save_dir="$name" --start_pass="$pass" --start_batch="$batch" \
			--time_limit=1us >last.out 2>last.err || code=$?
		[ "$code" -eq 75 ] || break
		says_not last.err "the settings differ"
		at=$(sed -n 's/.*--start_pass=\([0-9]*\) --start_batch=\([0-9]*\)$/\1 \2/p' last.err | head -n 1)
		[ "$at" != "$pass $batch" ] || fail "$name: $way stays at pass $pass batch $batch"
		pass=${at% *}
		batch=${at#* }
		borders=$((borders + 1))
		[ "$way" = alone ] && way=job || way=alone
	done
	[ "$code" -eq 0 ] || fail "$name: $way from pass $pass batch $batch: exit code $code"
	[ "$(digest_of last.out)" = "$whole" ] || fail "$name: another digest than without stops"
	[ "$borders" -ge "$wanted_borders" ] || fail "$name: stopped at $borders borders only"
}

# A window has 50 to 60 rows, which three trainers share: 17 or 18 rows of one trainer are two
# batches.
# shellcheck disable=SC2086
{
	if [ -n "$more" ]; then
		chain files 12 $mlp --data="$work/many" --data_split=files $tests
		chain mine 5 $mlp --data="$work/few/own-{trainer}" --data_split=mine $tests
		chain whole 5 $mlp --data="$work/few/own-{trainer}" --data_split=mine $tests \
			--data_window=1MiB
		exit 0
	fi
	chain rows 12 $mlp --data="$work/all.csv"
	chain tables 9 $ctr --data="$work/strikes/own-{trainer}" --data_split=mine --data_window=4KiB
}

# Both ways save the same.
# shellcheck disable=SC2086
for way in alone job; do
	expect 0 "$way" $mlp --data="$work/all.csv" --num_passes=1 --save_dir="$way" --saving_period=9 \
		--saving_period_by_batches=5
done
[ "$(sed -n 's/^batch //p' alone/pass-00000/manifest)" -ge 5 ] || fail "no save in the middle"
cmp alone/pass-00000/manifest job/pass-00000/manifest || fail "the two ways save differently"

# Other windows make other batches, which is logged. After the last batch there is nothing to begin
# with.
batch=$(sed -n 's/^batch //p' job/pass-00000/manifest)
# shellcheck disable=SC2086
expect 0 alone $mlp --data_window=2KiB --data="$work/all.csv" --num_passes=1 --save_dir=job \
	--start_batch="$batch"
says last.err "the settings differ" "data_window=2048"
for way in alone job; do
	# shellcheck disable=SC2086
	expect 64 "$way" $mlp --data_window=1MiB --batch_size=1000 --data="$work/all.csv" --num_passes=2 \
		--save_dir=alone --start_batch="$batch"
	says last.err "start_batch=$batch: no trainer has more batches in pass 0"
done
