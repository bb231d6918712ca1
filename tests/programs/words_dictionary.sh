#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ngram with a dictionary: the numbers of words come from a file, so that trainers may have data of
# their own, and a job ends with the bits of one process. A file that is not a dictionary is
# refused.
. "${0%/*}/lib.sh"
needs_training

data=${WEFT_DATA_DIR:-${0%/*}/../../data}
port=$(free_ports)
mkdir text
head -n 3000 "$data/moby-dick.txt" >all.txt
split -d -a 5 -n l/4 all.txt text/part-
cat text/part-00000 text/part-00001 >own-0
gzip -c text/part-00002 >own-1
cp text/part-00003 test.txt
expect 0 "$WEFT" data words own-0 own-1 --vocabulary=401
mv last.out words
[ "$(wc -l <words)" -eq 400 ] || fail "weft data words prints $(wc -l <words) words"
options="--num_passes=1 --hidden=16 --embedding=8 --dictionary=$work/words"

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

alone 2 --data='own-{trainer}' --data_split=mine
says last.err "the baseline is left out: trainers have files of their own"
as_alone --data="$work/own-{trainer}" --data_split=mine
mine=$told
alone 2 --data='own-{trainer}' --data_split=mine --test_list=test.txt
as_alone --data="$work/own-{trainer}" --data_split=mine --test_list="$work/test.txt"
[ "$told" != "$mine" ] || fail "all words are trained on, and the end is the same"
alone 2 --data=text --data_split=files
as_alone --data="$work/text" --data_split=files
grep -q "are counted" last.err && fail "words that have numbers are counted"
alone 2 --data=text
as_alone --data="$work/text"

# The numbers are those that would be counted.
expect 0 "$WEFT" train ngram --sequential --num_passes=1 --data=own-0,own-1 --test_list=test.txt \
	--vocabulary=401
counted=$(cat last.out)
expect 0 "$WEFT" train ngram --sequential --num_passes=1 --data=own-0,own-1 --test_list=test.txt \
	--dictionary=words
[ "$(cat last.out)" = "$counted" ] || fail "words of a dictionary end with other lines than counted ones"

# In windows.
alone 2 --data='own-{trainer}' --data_split=mine --test_list=test.txt --data_window=2KiB
says last.err "own-1: how many words each file has is counted in a first pass" \
	"data of trainer 1, its own" "read in windows of 2048 bytes"
as_alone --data="$work/own-{trainer}" --data_split=mine --test_list="$work/test.txt" \
	--data_window=2KiB
alone 2 --data=text --data_split=files --data_window=2KiB
as_alone --data="$work/text" --data_split=files --data_window=2KiB

# Words in another order are other numbers.
sed '1!G;h;$!d' words >other
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2 --ports_num_for_sparse=1
pserver=$last_pid
job="--pservers=127.0.0.1:$port --ports_num_for_sparse=1 --num_gradient_servers=2 --data_split=mine"
# shellcheck disable=SC2086
start first "$WEFT" train ngram $options $job --trainer_id=0 --data=own-0
first=$last_pid
wait_for pserver.err "trainer 0"
# shellcheck disable=SC2086
expect 64 "$WEFT" train ngram $options $job --trainer_id=1 --data=own-1 --dictionary="$work/other"
says last.err " words="
ends "$first" 20 "trainer 0"
[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
ends "$pserver" 20 pserver

# refused CODE TEXT options: the run is refused before it connects
refused() {
	wanted_code=$1 text=$2
	shift 2
	expect "$wanted_code" "$WEFT" train "$@" --trainer_id=0 --pservers=127.0.0.1:1 \
		--ports_num_for_sparse=1
	says last.err "$text"
}
refused 64 "data_split=mine: the model ngram numbers the words of its text, which have to be the same" \
	ngram --data=own-0 --data_split=mine
says last.err "or a dictionary, a file that has the numbers"
refused 64 "dictionary=words: is for the model ngram" ctr --dictionary=words
: >empty
refused 65 "empty: is empty; a dictionary has a word in each line" ngram --dictionary=empty
{ cat words && head -n 1 words; } >twice
refused 65 "twice: line 401, column 1: \"$(head -n 1 words)\" is in line 1, too" ngram --dictionary=twice
printf 'the\nWhale\n' >large
refused 65 "large: line 2, column 1: \"Whale\" is no word" ngram --dictionary=large
gzip -c words | head -c 300 >cut.gz
refused 65 "cut.gz: " ngram --dictionary=cut.gz
for missing in nowhere words/nowhere; do
	refused 65 "$missing: cannot be opened" ngram --dictionary=$missing
	says last.err " (--dictionary)"
done
refused 65 "trainer 0: nowhere: " ngram --dictionary=nowhere --num_gradient_servers=2
refused 65 "text: is not a regular file" ngram --dictionary=text

# A save has a digest of its words, because with others its rows would mean other words.
go() { # go CODE options: alone, with few words
	wanted_code=$1
	shift
	expect "$wanted_code" "$WEFT" train ngram --sequential --num_passes=2 --hidden=16 --embedding=8 --data=own-0 \
		--test_list=test.txt "$@"
}
go 0 --num_passes=1 --save_dir=kept --dictionary=words
has="^settings words=401,[0-9a-f]\{16\} "
grep -q "$has" kept/pass-00000/manifest || fail "no words in $(cat kept/pass-00000/manifest)"
go 64 --save_dir=kept --start_pass=1 --dictionary=other
says last.err "kept/pass-00000: was saved with words=401," "and this run has words=401,"
go 64 --init_model_path=kept/pass-00000 --dictionary=other
says last.err "kept/pass-00000: was saved with words=401," "and this run has words=401,"
head -n 300 words >fewer
go 64 --save_dir=kept --start_pass=1 --dictionary=fewer
says last.err "was saved with words=401," "and this run has words=301,"
expect 64 "$WEFT" launch --local --port="$port" --pservers=1 --ports_num_for_sparse=1 --trainers=2 -- train ngram \
	--num_passes=2 --hidden=16 --embedding=8 --data=own-0 --save_dir=kept --start_pass=1 --dictionary="$work/other"
says last.err "was saved with words=401,"
# Counted words are the same if the text is the same.
go 0 --save_dir=kept --start_pass=1 --dictionary=words
says_not last.err "the settings differ"
went_on=$(cat last.out)
go 0 --init_model_path=kept/pass-00000 --dictionary=words
# A save of an older weft has no digest of words. Its last line is a checksum of the others.
python3 - kept/pass-00000/manifest <<'PY'
import re, sys


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


text = open(sys.argv[1], "rb").read()
head = text[: text.rindex(b"crc32c ")]
assert text == head + b"crc32c %08x\n" % crc32c(head)
head = re.sub(rb"settings words=\S+ ", b"settings ", head)
open(sys.argv[1], "wb").write(head + b"crc32c %08x\n" % crc32c(head))
PY
grep -q "$has" kept/pass-00000/manifest && fail "the words are still there"
go 0 --save_dir=kept --start_pass=1 --dictionary=words
says_not last.err "the settings differ"
[ "$(cat last.out)" = "$went_on" ] || fail "an older save goes on to other lines"
