#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data in several files: shared by rows, by files, and a trainer's own; in memory and read in
# windows; with a separate test set. A job and one process that plays its trainers end with the same
# bits. Data that is missing, short or different is refused by name.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
criteo_rows 1500 >all.tsv
mkdir parts
sed -n '1,150p' all.tsv >parts/part-00000
sed -n '151,500p' all.tsv | gzip >parts/part-00001.gz
sed -n '501,503p' all.tsv >parts/part-00002
sed -n '504,1200p' all.tsv >parts/part-00003
sed -n '1201,1500p' all.tsv | head -c -1 >parts/part-00004 # without its last line feed

ctr="--format=criteo --num_passes=2 --batch_size=16 --baseline=false"
# alone DIGEST-OF: one process that plays two trainers; its digest in $alone, its lines in $told
alone() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train ctr --sequential --num_gradient_servers=2 $ctr "$@"
	alone=$(digest_of last.out)
	told=$(cat last.out)
}
# as_alone options: a job of two trainers ends as `alone` did
as_alone() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --ports_num=1 \
		--ports_num_for_sparse=1 --trainers=2 -- train ctr $ctr "$@"
	[ "$(cat last.out)" = "$told" ] || fail "a job with $* ends with other lines than '$told'"
}

# The same rows are the same set, in one file or in five, if they are in memory.
alone --data=all.tsv
whole=$alone
alone --data=parts
[ "$alone" = "$whole" ] || fail "five files end with $alone, one with $whole"
as_alone --train_list="$work/parts"

# In windows of 10 or so rows, the longest lines have 300 bytes.
alone --data='parts/part-*' --data_window=4KiB
says last.err "1500 rows in 5 files" "read in windows of 4096 bytes" \
	" of 300 test rows"
[ "$alone" != "$whole" ] || fail "windows do not change the order of rows"
as_alone --data="$work/parts/part-*" --data_window=4KiB
windows=$alone
alone --data='parts/part-*' --data_window=8KiB
[ "$alone" != "$windows" ] || fail "windows of twice the size do not change the order of rows"

# Whole files: trainer 0 has 0, 2 and 4.
alone --data=parts --data_split=files --data_window=16KiB
says last.err "data of trainer 0: 453 rows in 3 files" "data of trainer 1: 1047 rows in 2 files"
as_alone --data="$work/parts" --data_split=files --data_window=16KiB
alone --data=parts --data_split=files
as_alone --data="$work/parts" --data_split=files

# If the file that was cut is still beside its parts there is a warning, however the set is read.
mkdir cut
cat all.tsv >cut/train.txt
split -d -a 5 -n l/3 all.tsv cut/train.txt-
beside="cut/train.txt: is in the set beside cut/train.txt-00000: if that is a part of it"
places="cut/train.txt: has no number at the end of its name, as cut/train.txt-00000 has: the 4 files"
alone --data=cut
says last.err "$beside" "'cut/train.txt-*' names the parts alone"
says_not last.err "has no number"
alone --data=cut --data_split=files
says last.err "$beside" "$places"
[ "$(grep -cF "$places" last.err)" = 1 ] || fail "each trainer warns"
expect 0 "$WEFT" data ls cut --trainers=2
says last.err "$beside" "$places"
expect 0 "$WEFT" data ls cut
says last.err "$beside"
expect 0 "$WEFT" data ls 'cut/train.txt-*' all.tsv
[ ! -s last.err ] || fail "a file of another name is no whole of these parts"
alone --data='cut/train.txt-*' --data_split=files
says_not last.err "cut/train.txt: "

# A set of each trainer's own, and a separate test set.
mkdir own0 own1
sed -n '1,400p' all.tsv >own0/train
sed -n '401,1300p' all.tsv | gzip >own1/train
sed -n '1301,1500p' all.tsv >test
alone --data='own{trainer}' --data_split=mine --test_list=test --data_window=32KiB
says last.err "data of trainer 1, its own: 900 rows in 1 file," "test data of trainer 0, its own: 200 rows"
as_alone --data="$work/own{trainer}" --data_split=mine --test_list="$work/test" --data_window=32KiB
alone --data='own{trainer}' --data_split=mine
as_alone --data="$work/own{trainer}" --data_split=mine

# differs TEXT SPLIT DATA OTHER [OPTION]: trainer 1 is refused, because trainer 0 has DATA and
# OPTION, and trainer 1 OTHER; an option about windows is for both
job="--num_gradient_servers=2 --ports_num_for_sparse=1 --pservers=127.0.0.1:$port"
differs() {
	start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2 \
		--ports_num_for_sparse=1
	pserver=$last_pid
	case ${5-} in --data_window=*) window=$5 ;; *) window= ;; esac
	# shellcheck disable=SC2086
	start first "$WEFT" train ctr $ctr $job --data_split="$2" --data="$3" ${5:+"$5"}
	first=$last_pid
	wait_for pserver.err "trainer 0"
	# shellcheck disable=SC2086
	expect 64 "$WEFT" train ctr $ctr $job --trainer_id=1 --data_split="$2" --data="$4" $window
	says last.err "$1"
	ends "$first" 20 "trainer 0"
	[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
	ends "$pserver" 20 pserver
}
# A file for each trainer is not data that they share.
differs "--data_split=mine" rows own0/train own1/train
says last.err "has data=900," "has data=400,"
says first.err "--data_split=mine"
# For rows in memory it is not known which file differs.
for end in first last; do says_not $end.err "the first file here"; done
mkdir both
cp own0/train both/a
cp own1/train both/b
cp -r both fewer
sed -i '$d' fewer/a
differs "has data_files=2," files both fewer
says last.err "the first file here that differs is a of $(wc -c <fewer/a) bytes"
says first.err "the first file here that differs is a of $(wc -c <both/a) bytes"

# Read in windows, by content: a byte of the third file, of a size that is the same; one of many; and
# more files than the other has.
cp -r parts changed
sed -i '2s/1/7/' changed/part-00002
cmp -s parts/part-00002 changed/part-00002 && fail "line 2 of part-00002 has no 1"
differs "the first file here that differs is part-00002 of" rows parts changed --data_window=8KiB
says first.err "the first file here that differs is part-00002 of $(wc -c <parts/part-00002) bytes"
mkdir many
for i in 10 11 12 13 14 15 16 17 18; do cp parts/part-00000 many/part-$i; done
cp -r many others
sed -i '9d' others/part-13
differs "the first file here that differs is among the 2 from part-12 on" rows many others \
	--data_window=8KiB
cp -r parts more
cp parts/part-00000 more/part-00005
differs "the first file here that differs is part-00005 of" rows parts more --data_window=8KiB
says first.err "the files here are the same up to part-00004, the last one"

# A trainer without --test_list would hold back a fifth of its own rows.
differs "has test_list=true" rows own0 own0 --test_list=test

# The message names the trainer, the file and the place.
one="--num_gradient_servers=2 --trainer_id=1 --pservers=127.0.0.1:$port --ports_num_for_sparse=1"
# shellcheck disable=SC2086
bad() { # bad CODE TEXT options: without anybody to connect to
	wanted_code=$1 text=$2
	shift 2
	expect "$wanted_code" "$WEFT" train ctr $ctr $one "$@"
	says last.err "$text"
}
printf 'parts/part-00000\nparts/part-00009\n' >train.list
bad 65 "trainer 1: train.list: line 2: parts/part-00009: " --data=train.list
for missing in absent all.tsv/absent 'absent/part-*' 'parts/absent-*' absent.list; do
	bad 65 "trainer 1: $missing: " --data="$missing"
	says last.err " (--data)"
	bad 65 "trainer 1: $missing: " --train_list="$missing"
	says last.err " (--train_list)"
	expect 65 "$WEFT" train ctr $ctr --sequential --data=all.tsv --test_list="$missing"
	says last.err "$missing: " " (--test_list)"
done
expect 65 "$WEFT" train ctr $ctr --sequential --data=all.tsv --test_list=train.list
says last.err "train.list: line 2: parts/part-00009: "
head -c 9000 own1/train >zcut.gz
bad 65 "trainer 1: zcut.gz: " --data=parts/part-00000,zcut.gz
bad 65 "trainer 1: zcut.gz: " --data=parts/part-00000,zcut.gz --data_window=4KiB
bad 65 "trainer 1: zcut.gz: " --data=parts/part-00000,zcut.gz --data_split=files
{ sed -n '1,20p' all.tsv && printf '1\t2\t3\n'; } >short
bad 65 "trainer 1: short: line 21: has 3 of 40 columns" --data=parts/part-00000,short
bad 64 "data_split=files: 1 files for 2 trainers" --data=all.tsv --data_split=files
bad 64 "{trainer} is for data_split=mine" --data='own{trainer}'
bad 64 "batch_size=0" --data=all.tsv --data_window=4KiB --batch_size=0
bad 64 "train_list=parts" --data=all.tsv --train_list=parts
bad 64 "data_window=1000" --data=all.tsv --data_window=1000
expect 64 "$WEFT" train ctr --sequential --num_gradient_servers=2 --data=own0 --data_split=mine
says last.err "{trainer} in data stands for the number of each"
expect 64 "$WEFT" train linear --sequential --test_list=parts
says last.err "test_list=parts: the model linear scales its columns by the ranges of all rows"

# Each file of a format with a header has one; a text is read as if it were one file.
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 5001 "$data/birdstrikes.csv" >strikes-a
{ head -n 1 "$data/birdstrikes.csv" && tail -n +5002 "$data/birdstrikes.csv"; } >strikes-b
expect 0 "$WEFT" train ctr --sequential --num_passes=1 --baseline=false
strikes=$(cat last.out)
expect 0 "$WEFT" train ctr --sequential --num_passes=1 --baseline=false --data=strikes-a,strikes-b
[ "$(cat last.out)" = "$strikes" ] || fail "two files of strikes end with other lines than one"
expect 0 "$WEFT" train ctr --sequential --num_passes=1 --data=strikes-a,strikes-b --data_window=64KiB
says last.err "10000 rows in 2 files" "the baseline is left out: the data is larger than memory"

# LIBSVM's lower class is 0 or -1 in all files of a set, in memory as in windows.
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 3 ? "-1 1:1 7:1" : "+1 2:1 9:1" }' >svm-0
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 3 ? "+1 1:1 7:1" : "0 2:1 9:1" }' >svm-1
expect 65 "$WEFT" train ctr --sequential --format=libsvm --data='svm-*'
says last.err 'svm-1: line 1, column 1: "0" is a third label: svm-0: line 2 has -1 as the lower one'
expect 65 "$WEFT" train ctr --sequential --format=libsvm --data='svm-*' --data_window=1KiB
says last.err "svm-1: line 1 has the label 0 for the lower class, but svm-0: line 2 has -1"
