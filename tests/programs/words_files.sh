#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ngram from whole files: the words of all trainers' files have the same numbers for each of them.
. "${0%/*}/lib.sh"
needs_training

data=${WEFT_DATA_DIR:-${0%/*}/../../data}
port=$(free_ports)
mkdir text other
head -n 1000 "$data/moby-dick.txt" >all.txt
split -d -a 5 -n l/4 all.txt text/part-
tail -n 300 "$data/moby-dick.txt" >test.txt
options="--num_passes=1 --vocabulary=500"

# alone TRAINERS options: one process in place of the trainers
alone() {
	trainers=$1
	shift
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train ngram --sequential --num_gradient_servers="$trainers" $options "$@"
	told=$(cat last.out)
}
# as_alone options: a job of two trainers ends as `alone` did
as_alone() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --ports_num=1 \
		--ports_num_for_sparse=1 --trainers=2 -- train ngram $options "$@"
	[ "$(cat last.out)" = "$told" ] || fail "a job with $* ends with other lines than '$told'"
}

alone 2 --data=text --data_split=files
says last.err "text/part-00000 and the other files: their words are counted in two first passes" \
	"the baseline is left out: trainers have files of their own"
as_alone --data=text --data_split=files
alone 2 --data=text --data_split=files --test_list=test.txt
says last.err "the baseline is left out: the test rows are in files of their own"
as_alone --data=text --data_split=files --test_list=test.txt
alone 2 --data=text --test_list=test.txt
as_alone --data=text --test_list=test.txt

# In windows of some 300 words; some rows begin in one window and end in the next.
alone 2 --data=text
whole=$told
alone 2 --data=text --data_window=2KiB
says last.err "text/part-00000 and the other files: their words are counted in two first passes" \
	"read in windows of 2048 bytes" "the baseline is left out: the data is larger than memory"
grep -q "digests of tables cover" last.err && fail "digests do not cover all words"
[ "$told" != "$whole" ] || fail "windows do not change the order of rows"
windows=$told
as_alone --data=text --data_window=2KiB
alone 2 --data=text --data_window=2KiB --progress=caller
[ "$told" = "$windows" ] || fail "a thread that reads ahead changes the end"
alone 2 --data=text --data_window=4KiB
[ "$told" != "$windows" ] || fail "windows of twice the size do not change the order of rows"
alone 2 --data=text --data_split=files --data_window=2KiB
as_alone --data=text --data_split=files --data_window=2KiB
alone 2 --data=text --test_list=test.txt --data_window=2KiB
as_alone --data=text --test_list=test.txt --data_window=2KiB

# One trainer has all files, the same set as the one shared by rows.
alone 1 --data=text --data_split=files --baseline=false
files=$told
alone 1 --data=text --baseline=false
[ "$files" = "$told" ] || fail "all files of one trainer end with other lines than their rows"

# Files of the same names and sizes with other words in them.
cp text/* other
sed 's/the/tho/g' text/part-00003 >other/part-00003
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2 --ports_num_for_sparse=1
pserver=$last_pid
job="--pservers=127.0.0.1:$port --ports_num_for_sparse=1 --num_gradient_servers=2 --data_split=files"
# shellcheck disable=SC2086
start first "$WEFT" train ngram $options $job --trainer_id=0 --data=text
first=$last_pid
wait_for pserver.err "trainer 0"
# shellcheck disable=SC2086
expect 64 "$WEFT" train ngram $options $job --trainer_id=1 --data=other
says last.err " words="
ends "$first" 20 "trainer 0"
[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
ends "$pserver" 20 pserver

# bad TEXT options
bad() {
	text=$1
	shift
	expect 64 "$WEFT" train ngram --trainer_id=0 --pservers=127.0.0.1:1 --ports_num_for_sparse=1 "$@"
	says last.err "$text"
}
bad "data_split=mine: the model ngram numbers the words of its text, which have to be the same" \
	--data=text --data_split=mine
bad "4 files for 5 trainers" --data=text --data_split=files --num_gradient_servers=5
printf 'one two\n' >short.txt
expect 65 "$WEFT" train ngram --sequential --data=text --test_list=short.txt
says last.err "short.txt: has 2 words; at least 50 are needed"
