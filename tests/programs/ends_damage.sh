#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Saves in the middle of a pass that cannot be written, or are damaged. On a full disk saves fail,
# and the exit code shows it, but the training goes on, and an older save stays. A damaged save is
# refused with 65, its file and the reason, before anything is trained; the folder stays as it is.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 100 "$data/moby-dick.txt" >text
mlp="mlp --slice_bytes=256 --learning_rate=0.01 --seed=5 --optimizer=adam --batch_size=128"
words="ngram --vocabulary=100 --hidden=8 --embedding=4 --data=$work/text --batch_size=50 --seed=5"
words="$words --baseline=false"

alone() {
	"$WEFT" train "$@" --sequential --num_gradient_servers=2
}
job() {
	"$WEFT" launch --local --port="$port" --trainers=2 --ports_num_for_sparse=1 -- train "$@"
}
# sums FOLDER: checksums of all files, hidden ones too, except the lock.
sums() {
	(cd "$1" && find . -type f ! -name .weft-lock -exec cksum {} + | sort)
}

# ---- a full disk: a limit on the size of files stands for it; fc1_w has 10 KiB ----
# shellcheck disable=SC2086
expect 0 alone $mlp --num_passes=3
whole=$(digest_of last.out)
# shellcheck disable=SC2086
expect 75 alone $mlp --num_passes=3 --save_dir=full --time_limit=1us
[ "$(sed -n 's/^batch //p' full/pass-00000/manifest)" = 1 ] || fail "no save after batch 1"
before=$(sums full)
expect 74 sh -c "ulimit -f 8; exec '$WEFT' train $mlp --sequential --num_gradient_servers=2 \
	--num_passes=3 --save_dir=full --saving_period_by_batches=2 --saving_period=9 --start_batch=1"
# A pass has 6 batches, and is not saved at its end.
for pass in 0 1 2; do
	for batch in 2 4; do
		says last.err "W pass $pass after batch $batch is not saved, training goes on: full/.pass-0000$pass.tmp-1/fc1_w:"
	done
done
says last.err "training has finished, but 6 of its saves failed; the first is that of pass 0: full/"
[ "$(digest_of last.out)" = "$whole" ] || fail "a full disk: another digest"
[ "$(sums full)" = "$before" ] || fail "a full disk: the folder has $(ls -AR full)"
# shellcheck disable=SC2086
expect 0 alone $mlp --num_passes=3 --save_dir=full --start_batch=1
[ "$(digest_of last.out)" = "$whole" ] || fail "after a full disk: another digest"

# ---- damage ----
# refused FILE REASON: a run that continues in the folder "hurt" after $batch batches, in each of
# $ways, is refused.
ways=alone
refused() {
	before=$(sums hurt)
	for way in $ways; do
		# shellcheck disable=SC2086
		expect 65 "$way" $options --num_passes=2 --save_dir=hurt --start_batch="$batch"
		says last.err "hurt/pass-00000/$1: $2"
		says_not last.out "pass 0"
		[ "$(sums hurt)" = "$before" ] || fail "$1: the refused save is changed: $(ls -AR hurt)"
	done
}
# hurts FILE REASON COMMAND...: what the command does to a save after one batch is refused.
hurts() {
	file=$1
	reason=$2
	shift 2
	rm -rf hurt
	cp -r "$model-1" hurt
	(cd hurt/pass-00000 && "$@")
	batch=1
	refused "$file" "$reason"
}
shorten() {
	head -c "$2" "$1" >../short
	mv ../short "$1"
}
for model in mlp words; do
	eval "options=\$$model"
	for batch in 1 2; do
		[ "$batch" = 1 ] || cp -r "$model-1" "$model-2"
		# shellcheck disable=SC2086
		expect 75 alone $options --num_passes=2 --save_dir="$model-$batch" \
			--start_batch=$((batch - 1)) --time_limit=1us
	done
	hurts manifest "cannot be opened: No such file" rm manifest
	hurts fc1_w "has 40 bytes; must have" shorten fc1_w 40
	hurts fc2_w.state0 "cannot be opened: No such file" rm fc2_w.state0
	hurts manifest "its last line" shorten manifest 40
	# Only another number, and the whole manifest of another batch; each run asks for that
	# batch.
	hurts manifest "its last line must be" sed -i 's/^batch 1$/batch 2/' manifest
	batch=2
	refused manifest "its last line must be"
	rm -rf hurt
	cp -r "$model-1" hurt
	cp "$model-2/pass-00000/manifest" hurt/pass-00000
	refused fc1_b "checksum"
done
ways="alone job"
hurts manifest "its last line" shorten manifest 40
hurts proj.rows "has 300 bytes; must have" shorten proj.rows 300
hurts proj.rows "cannot be opened: No such file" rm proj.rows
