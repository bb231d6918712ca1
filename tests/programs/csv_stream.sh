#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables of numbers that are larger than the window: a job and one process that plays its trainers
# end with the same bits, for each split of the rows and each transport; trainers that learn other
# columns are refused; and options that need all rows in memory say so.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
# 2,000 rows of three features of different ranges; the class follows from two of them.
awk 'BEGIN {
	state = 20240
	print "length;width;price;kind"
	for (row = 0; row < 2000; row++) {
		for (i = 0; i < 3; i++) {
			state = state * 16807 % 2147483647
			x[i] = state % 1000
		}
		print x[0] / 1000 ";" x[1] / 10 ";" 40 + x[2] * 3 ";" int(x[0] / 400 + x[2] / 600) % 3
	}
}' >all.csv
head -n 1 all.csv >head
mkdir parts
{ cat head && sed -n '2,301p' all.csv; } >parts/part-00000
{ cat head && sed -n '302,1000p' all.csv; } | gzip >parts/part-00001.gz
{ cat head && sed -n '1001,1400p' all.csv; } >parts/part-00002
{ cat head && sed -n '1401,1410p' all.csv; } >parts/part-00003
{ cat head && sed -n '1411,2001p' all.csv | head -c -1; } >parts/part-00004
cp head parts/part-00005

# alone MODEL options: one process that plays three trainers; its lines in $told
alone() {
	model=$1
	shift
	expect 0 "$WEFT" train "$model" --sequential --num_gradient_servers=3 --num_passes=2 \
		--batch_size=16 --format=csv "$@"
	told=$(cat last.out)
}
# as_alone options: a job of three trainers ends as `alone` did
as_alone() {
	expect 0 "$WEFT" launch --local --port="$port" --pservers=2 --ports_num=2 --trainers=3 -- \
		train "$model" --num_passes=2 --batch_size=16 --format=csv "$@"
	[ "$(cat last.out)" = "$told" ] || fail "a job with $* ends with other lines than '$told'"
}
windows() {
	says last.err "read in windows of $1 bytes"
}

# Rows that all share: scaled by the ranges of all rows, which a first pass finds.
alone mlp --data=all.csv --hidden=8 --scale=range
whole=$told
alone mlp --data=all.csv --hidden=8 --scale=range --data_window=4KiB
windows 4096
says last.err "all.csv: the ranges of columns or the classes of all rows are looked for in a first"
[ "$told" != "$whole" ] || fail "windows do not change the order of rows"
as_alone --data="$work/all.csv" --hidden=8 --scale=range --data_window=4KiB --transport=tcp
as_alone --data="$work/all.csv" --hidden=8 --scale=range --data_window=4KiB --transport=shm
as_alone --data="$work/all.csv" --hidden=8 --scale=range --data_window=4KiB --progress=caller
alone linear --data='parts/part-*' --target=price --scale=range --data_window=4KiB \
	--learning_rate=0.01
windows 4096
says last.err "2000 rows in 6 files"
as_alone --data="$work/parts/part-*" --target=price --scale=range --data_window=4KiB \
	--learning_rate=0.01 --transport=tcp
alone linear --data=parts --target=width --data_window=4KiB --learning_rate=1e-8
says_not last.err "first pass"

# Whole files, and a set of each trainer's own with a separate test set.
for model in mlp linear; do
	if [ "$model" = mlp ]; then set -- --hidden=8; else set -- --target=price; fi
	alone "$model" --data=parts --data_split=files --data_window=1KiB --learning_rate=1e-7 "$@"
	says last.err "data of trainer 0: 310 rows in 2 files" "data of trainer 1: 1290 rows in 2"
	says last.err "data of trainer 2: 400 rows in 2"
	windows 1024
	as_alone --data="$work/parts" --data_split=files --data_window=1KiB --learning_rate=1e-7 "$@"
	as_alone --data="$work/parts" --data_split=files --data_window=1KiB --learning_rate=1e-7 "$@" \
		--transport=tcp
done
# Scaled by the ranges of all files, those of others included, whatever fits in memory.
for window in 1KiB 0; do
	alone linear --data=parts --data_split=files --data_window=$window --target=price \
		--scale=range --learning_rate=0.01
	says last.err "the ranges of columns or the classes of all rows are looked for in a first"
	as_alone --data="$work/parts" --data_split=files --data_window=$window --target=price \
		--scale=range --learning_rate=0.01
done
# One trainer that has all files trains on the rows that it would have of a shared set.
expect 0 "$WEFT" train linear --sequential --num_passes=2 --batch_size=16 --format=csv --data=parts \
	--scale=range --target=price --learning_rate=0.01
told=$(cat last.out)
expect 0 "$WEFT" train linear --sequential --num_passes=2 --batch_size=16 --format=csv --data=parts \
	--scale=range --target=price --learning_rate=0.01 --data_split=files
[ "$(cat last.out)" = "$told" ] || fail "one trainer with all files ends with other lines than '$told'"
for i in 0 1 2; do
	{ cat head && sed -n "$((i * 500 + 2)),$((i * 500 + 400 + i * 9))p" all.csv; } >own$i
done
{ cat head && sed -n '1602,2001p' all.csv; } >test.csv
alone mlp --data='own{trainer}' --data_split=mine --test_list=test.csv --data_window=2KiB \
	--learning_rate=1e-6 --hidden=8
says last.err "data of trainer 2, its own: 417 rows in 1 file," "test data of trainer 0, its own: 400"
as_alone --data="$work/own{trainer}" --data_split=mine --test_list="$work/test.csv" \
	--data_window=2KiB --learning_rate=1e-6 --hidden=8 --transport=shm

# The models' own tables, which the same reader reads as larger ones.
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
for model in mlp linear; do
	if [ "$model" = mlp ]; then table=digits; else table=housing; fi
	expect 0 "$WEFT" train "$model" --sequential --num_gradient_servers=3 --num_passes=2 \
		--batch_size=16 --data_window=4KiB --data="$data/$table.csv"
	windows 4096
	told=$(cat last.out)
	expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --trainers=3 -- train "$model" \
		--num_passes=2 --batch_size=16 --data_window=4KiB --data="$data/$table.csv"
	[ "$(cat last.out)" = "$told" ] || fail "a job of $model in windows ends with other lines"
done

# Housing in two files.
head -n 300 "$data/housing.csv" >house-0
{ head -n 1 "$data/housing.csv" && tail -n +301 "$data/housing.csv"; } >house-1
expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 --num_passes=2 \
	--data='house-*' --data_split=files
told=$(cat last.out)
expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --trainers=2 -- train linear \
	--num_passes=2 --data="$work/house-*" --data_split=files
[ "$(cat last.out)" = "$told" ] || fail "a job of linear with a file each ends with other lines"

# differs TEXT OPTIONS...: trainer 1, which has them, is refused
differs() {
	text=$1
	shift
	start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
	pserver=$last_pid
	common="--format=csv --data=all.csv --data_window=4KiB --batch_size=16 --num_passes=1
		--num_gradient_servers=2 --pservers=127.0.0.1:$port"
	# shellcheck disable=SC2086
	start first "$WEFT" train linear $common
	first=$last_pid
	wait_for pserver.err "trainer 0"
	# shellcheck disable=SC2086
	expect 64 "$WEFT" train linear $common --trainer_id=1 "$@"
	says last.err "$text"
	ends "$first" 20 "trainer 0"
	[ "$code" -eq 64 ] || fail "trainer 0: exit code $code"
	ends "$pserver" 20 pserver
}
# The text that they read is the same.
differs "has target=" --target=width
differs "has scale=range" --scale=range

bad() { # bad CODE TEXT options
	wanted_code=$1 text=$2
	shift 2
	expect "$wanted_code" "$WEFT" train linear --sequential --format=csv --data_window=4KiB "$@"
	says last.err "$text"
}
bad 64 "closed_form: needs all rows in memory" --data=all.csv --closed_form=true
bad 64 "batch_size=0: all rows of a trainer are a batch" --data=all.csv
sed 's/^length.*/&/; s/;[0-9]*$/;0/' all.csv >constant.csv
bad 65 "constant.csv: line 2, column 4: \"0\" is the same in every row" --data=constant.csv \
	--target=price --scale=range --batch_size=16
{ cat all.csv && echo "1;2;x;0"; } >bad.csv
bad 65 "bad.csv: line 2002, column 3: \"x\" is not a decimal number" --data=bad.csv --scale=range \
	--batch_size=16
