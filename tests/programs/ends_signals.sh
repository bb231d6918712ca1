#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGTERM while a save is being written. With --save_on_term the first one lets that save end, and
# the run saves once more after its next batch. A second one ends the process at once: what it was
# writing never gets its name. A run goes on from what the folder then has, and ends with the digest
# of an undisturbed run.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 100 "$data/moby-dick.txt" >text
mlp="mlp --slice_bytes=4096 --hidden=800 --learning_rate=0.01 --seed=5 --optimizer=adam"
mlp="$mlp --learning_rate_schedule=warmup --learning_rate_decay_a=7000"
words="ngram --vocabulary=100 --hidden=8 --embedding=4 --data=$work/text --batch_size=50 --baseline=false"

alone() {
	"$WEFT" train "$@" --sequential --num_gradient_servers=2
}

# state_of PID: T if its first thread, which saves, is stopped; Z if it has ended. Starts no process,
# so that `hold` looks often.
state_of() {
	line="gone) Z "
	[ ! -r "/proc/$1/stat" ] || read -r line <"/proc/$1/stat" || line="gone) Z "
	line=${line##*) }
	state=${line%% *}
}

# hold PID FOLDER: stops the process when it has written a part of a save, so that the folder has a
# draft while the process is stopped. False: it ended before.
hold() {
	while state_of "$1" && [ "$state" != Z ]; do
		for draft in "$2"/.pass-*.tmp-*/.draft; do
			[ -e "$draft" ] || continue
			kill -STOP "$1"
			until [ "$state" = T ] || [ "$state" = Z ]; do
				state_of "$1"
			done
			[ "$state" = Z ] || [ ! -e "$draft" ] || return 0
			kill -CONT "$1"
		done
	done
	return 1
}

# goes_on FOLDER OPTIONS...: runs from its newest save to the end of the pass after it.
goes_on() {
	folder=$1
	shift
	pass=$(find "$folder" -name 'pass-*' | sed 's/.*pass-0*\([0-9]\)/\1/' | sort -n | tail -n 1)
	[ -n "$pass" ] || fail "$folder: nothing is saved"
	at=$(sed -n 's/^batch //p' "$folder/$(printf 'pass-%05d' "$pass")/manifest")
	from="--start_pass=$pass --start_batch=$at"
	[ -n "$at" ] || from="--start_pass=$((pass + 1))"
	# shellcheck disable=SC2086
	expect 0 alone "$@" --num_passes=$((pass + 2))
	whole=$(digest_of last.out)
	# shellcheck disable=SC2086
	expect 0 alone "$@" --num_passes=$((pass + 2)) --save_dir="$folder" --saving_period=1000000 $from
	[ "$(digest_of last.out)" = "$whole" ] || fail "$folder, from pass $pass batch $at: another digest"
	says_not last.err "the settings differ"
	[ -z "$(find "$folder" -name '.pass*')" ] || fail "$folder: $(find "$folder" -name '.pass*') is left"
}

# ---- the first SIGTERM, while a save by batches is half written and an older one is there ----
# The folder "killed" has what a kill at that moment would leave.
# shellcheck disable=SC2086
for model in mlp words; do
	eval "options=\$$model"
	if [ "$model" = mlp ]; then
		start one "$WEFT" train $options --sequential --num_gradient_servers=2 --num_passes=1000000 \
			--save_dir=one --saving_period_by_batches=1 --save_on_term --term_grace=20m
		all=$last_pid
		saver=$all
		until_true 60 test -e one/pass-00000 || fail "nothing is saved"
	else
		start one "$WEFT" launch --local --port="$port" --trainers=2 --ports_num_for_sparse=1 \
			--save_on_term --term_grace=20m -- train $options --num_passes=1000000 \
			--save_dir=one --saving_period_by_batches=1
		all=$last_pid
		until_true 60 test -e one/pass-00000 || fail "nothing is saved"
		saver=$(sed -n 's/.*trainer 0 | pid \([0-9]*\).*/\1/p' one.err)
	fi
	hold "$saver" one || fail "$model: it has ended by itself"
	cp -r one killed
	others=$(sed -n 's/.* | pid \([0-9]*\).*/\1/p' one.err)
	kill -TERM "$saver" $others "$all"
	kill -CONT "$saver"
	ends "$all" 120 "$model: the run"
	[ "$code" -eq 143 ] || fail "$model, SIGTERM within a save: exit code $code"
	says one.err "stopped by SIGTERM: saved in pass"
	said=$(sed -n 's/.*stopped by SIGTERM: saved in pass \([0-9]*\) after batch \([0-9]*\);.*/\1 \2/p' one.err |
		head -n 1)
	[ -z "$(find one -name '.pass*')" ] || fail "$model: left: $(find one -name '.pass*')"
	name=$(printf 'one/pass-%05d' "${said% *}")
	at=$(sed -n 's/^batch //p' "$name/manifest")
	[ "${at:-${said#* }}" = "${said#* }" ] || fail "$model: said $said, saved after batch $at"
	expect 0 "$WEFT" export "$name" -o "$model.safetensors"
	goes_on one $options
	goes_on killed $options
	rm -rf one killed
done

# ---- a second SIGTERM, later than its echo, while the save of the first one is half written ----
# shellcheck disable=SC2086
expect 0 alone $mlp --num_passes=1 --save_dir=begun
tries=0
held=false
until $held; do
	tries=$((tries + 1))
	[ "$tries" -le 100 ] || fail "100 runs have ended before they could be stopped within their save"
	rm -rf late
	cp -r begun late
	# shellcheck disable=SC2086
	start late "$WEFT" train $mlp --sequential --num_gradient_servers=2 --num_passes=1000000 \
		--saving_period=1000000 --save_dir=late --start_pass=1 --save_on_term --term_grace=20m
	late=$last_pid
	wait_for late.out "pass 1 "
	kill -TERM "$late"
	if hold "$late" late; then
		held=true
	else
		ends "$late" 20 "a run that has saved"
	fi
done
sleep 1.1 # the same signal within a second counts once; longer is as good
kill -TERM "$late"
kill -CONT "$late"
ends "$late" 20 "a run with two SIGTERM"
[ "$code" -eq 143 ] || fail "a second SIGTERM: exit code $code"
says_not late.err "saved in pass"
[ "$(ls late)" = pass-00000 ] || fail "a second SIGTERM leaves: $(ls late)"
[ -n "$(find late -name '.pass*')" ] || fail "it has ended its save all the same"
# shellcheck disable=SC2086
goes_on late $mlp
