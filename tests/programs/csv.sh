#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables of numbers with a header, as users have them: any width, separator and target, in one file or
# several, packed or not. They end with the digests of the same numbers in other files, and a job ends
# with those of one process.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}

# alone DIGEST-OF: one process that plays two trainers; its digest in $alone, its lines in $told
alone() {
	model=$1
	shift
	expect 0 "$WEFT" train "$model" --sequential --num_gradient_servers=2 --num_passes=3 "$@"
	alone=$(digest_of last.out)
	told=$(cat last.out)
}
# as_alone options: a job of two trainers ends as `alone` did
as_alone() {
	expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --ports_num=1 --trainers=2 -- \
		train "$model" --num_passes=3 "$@"
	[ "$(cat last.out)" = "$told" ] || fail "a job with $* ends with other lines than '$told'"
}

# Boston housing as any other table: scaled as its own reader does it.
alone linear
own=$alone
alone linear --format=csv --data="$data/housing.csv" --scale=range --target=medv
[ "$alone" = "$own" ] || fail "housing.csv as a table ends with $alone, by its own reader with $own"
alone linear --format=csv --data="$data/housing.csv" --scale=range
[ "$alone" = "$own" ] || fail "the target is the last column, but ends with $alone, not $own"

# In five parts with other separators, quotes and line ends, the target in front.
mkdir parts
awk -F, -v OFS=';' 'NR == 1 { $0 = "\"medv\";crim;zn;indus;chas;nox;rm;age;dis;rad;tax;ptratio;b;lstat"; head = $0; next }
	(NR - 2) % 110 == 0 { part++; print head > ("parts/p-0000" part - 1 "-of-00005") }
	{ last = $14; line = last
	  for (i = 1; i < 14; i++) line = line OFS (NR % 7 == 0 ? "\"" $i "\"" : $i)
	  print line (part == 2 ? "\r" : "") > ("parts/p-0000" part - 1 "-of-00005") }' \
	"$data/housing.csv"
gzip parts/p-00003-of-00005
# One of them has a byte order mark, as Excel writes it, and the others have none.
{ printf '\357\273\277'; cat parts/p-00001-of-00005; } >marked
mv marked parts/p-00001-of-00005
alone linear --format=csv --data=parts --scale=range --target=medv
[ "$alone" = "$own" ] || fail "five parts end with $alone, one file with $own"
as_alone --format=csv --data="$work/parts" --scale=range --target=medv

# With unscaled features, shared by files.
alone linear --format=csv --data=parts --target=medv --data_split=files --learning_rate=1e-8 \
	--optimizer=sgd
as_alone --format=csv --data="$work/parts" --target=medv --data_split=files --learning_rate=1e-8 \
	--optimizer=sgd

# Classes, with a separate test set that has only some of them.
awk -F, 'BEGIN { line = "p0"; for (i = 1; i < 64; i++) line = line "\tp" i; print line "\tdigit" }
	{ gsub(",", "\t"); print }' "$data/digits.csv" >digits.tsv
head -n 1000 digits.tsv >train.tsv
{ head -n 1 digits.tsv; sed -n '1001,$p' digits.tsv | awk -F'\t' '$65 < 9'; } >test.tsv
alone mlp --format=csv --data=train.tsv --test_list=test.tsv --learning_rate=0.002
as_alone --format=csv --data="$work/train.tsv" --test_list="$work/test.tsv" --learning_rate=0.002

# Refused by option, or by file, line and column.
bad() { # bad CODE TEXT options
	wanted_code=$1 text=$2
	shift 2
	expect "$wanted_code" "$WEFT" train "$@"
	says last.err "$text"
}
bad 64 "format=csv: weft comes with no such file" linear --sequential --format=csv
bad 64 "target=medv: is for format=csv" linear --sequential --target=medv
bad 64 "scale=range: is for format=csv" ctr --sequential --scale=range
bad 64 "with scale=range scales its columns" linear --sequential --format=csv --data=parts \
	--scale=range --data_split=mine
bad 64 "test_list=parts: the model linear with scale=range scales its columns" linear --sequential \
	--format=csv --data=parts --scale=range --test_list=parts
says last.err "those to test on included; leave this out, or leave scale=range out"
bad 64 "leave this out, or give format=csv, which takes columns as they stand" linear --sequential \
	--data="$data/housing.csv" --test_list=parts
bad 64 "has test rows of its own; leave this out" mlp --sequential --format=idx --test_list=parts
bad 64 "must be strikes, libsvm or criteo" ctr --sequential --format=csv --data=parts
bad 65 "line 1: no column is named price; there are medv, crim, zn," linear --sequential --format=csv --data=parts --target=price
for model in linear mlp ctr; do # the format is not named
	bad 65 "; --format=" $model --sequential --data=parts/p-00000-of-00005
	says last.err "--format=csv"
done
bad 65 "classes are numbered from 0" mlp --sequential --format=csv --data=parts
mv parts/p-00001-of-00005 away
bad 65 "parts/p-00001-of-00005: is missing" linear --sequential --format=csv --data=parts
mv away parts/p-00001-of-00005
sed -i '1s/crim/crime/' parts/p-00002-of-00005
bad 65 'p-00002-of-00005: line 1, column 2: "crime" is not what the header must have' \
	linear --sequential --format=csv --data=parts
printf 'a\001,y\n1,2\n' >raw0 # no message has bytes of a file that cannot be printed
printf 'b\001,y\n1,2\n' >raw1
bad 65 '"b?" is not what the header must have there, which is "a?,y"' linear --sequential --format=csv --data=raw0,raw1
head -n 100 train.tsv >own0
{ head -n 1 train.tsv; tail -n 100 train.tsv | awk -F'\t' '$65 < 5'; } >own1
bad 65 "rows have 64 features and 5 classes; in the first set of the run they have 64 and 10" \
	mlp --sequential --num_gradient_servers=2 --format=csv --data='own{trainer}' --data_split=mine

# As many columns with the same names in another order are other features: in the test set, of
# another trainer in one process, and of another trainer in a job. The place of the target does not
# matter.
{ echo a,b,c,y; for i in 1 2 3 4 5 6 7 8 9; do echo "$i,$((i * 3 % 7)),$((i * i % 5)),$((i % 2))"; done; } >t0
awk -F, -v OFS=, '{ print $1, $3, $2, $4 }' t0 >t1
awk -F, -v OFS=, '{ print $4, $1, $2, $3 }' t0 >t2
mlp="mlp --num_passes=1 --format=csv --target=y"
# shellcheck disable=SC2086
{
	expect 0 "$WEFT" train $mlp --sequential --data=t0 --test_list=t2
	bad 65 't1: line 1, column 2: "c" is another name than that of column 2 of t0' \
		$mlp --sequential --data=t0 --test_list=t1
	bad 65 't1: line 1, column 2: "c" is another name than that of column 2 of t0' \
		$mlp --sequential --num_gradient_servers=2 --data='t{trainer}' --data_split=mine
}
sed '1s/p0\tp1/p1\tp0/' test.tsv >swapped.tsv
bad 65 'swapped.tsv: line 1, column 1: "p1" is another name than that of column 1 of train.tsv' \
	mlp --sequential --format=csv --data=train.tsv --test_list=swapped.tsv --data_window=16KiB

# differs SPLIT DATA OTHER: trainer 1 is refused with OTHER, because trainer 0 has DATA
job="--num_gradient_servers=2 --pservers=127.0.0.1:$port"
differs() {
	start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
	pserver=$last_pid
	# shellcheck disable=SC2086
	start first "$WEFT" train $mlp $job --data_split="$1" --data="$2"
	first=$last_pid
	wait_for pserver.err "trainer 0"
	# shellcheck disable=SC2086
	expect 64 "$WEFT" train $mlp $job --trainer_id=1 --data_split="$1" --data="$3"
	says last.err " has columns="
	ends "$first" 20 "trainer 0"
	[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
	ends "$pserver" 20 pserver
}
differs mine t0 t1
says last.err "the first column here that differs is c"
says first.err "the first column here that differs is b"
mkdir both
cp t0 both/t-00000
cp t1 both/t-00001
differs files both both
