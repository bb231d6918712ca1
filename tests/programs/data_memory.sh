#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 84 MiB of text train in the memory of a few windows of 2 MiB: a table of numbers, and as "more" rows
# of keys and running text.
more=${1-}
. "${0%/*}/lib.sh"
needs_training
if [ "${SANITIZER-none}" != none ]; then
	echo "SKIPPED: sanitizer $SANITIZER needs memory of its own" >&2
	exit 77
fi

# spread: four times the rows, packed, under the names of ten files
spread() {
	for i in 1 2 3 4; do cat rows; done | gzip -1 >part
	rm -rf data
	mkdir data
	for i in 1 2 3 4 5 6 7 8 9 10; do
		ln part "data/part-$i.gz"
	done
}

# stays_below MIB ROWS MODEL options: one pass over the ten files, read in windows of 2 MiB
stays_below() {
	limit=$1 rows=$2
	shift 2
	start run "$WEFT" train "$@" --sequential --data=data --data_window=2MiB --num_passes=1 \
		--hidden= --batch_size=4096 --log_period=0
	run=$last_pid
	peak=0
	while alive "$run"; do
		now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$run/status" 2>/dev/null) || now=
		peak=${now:-$peak}
		sleep 0.05
	done
	ends "$run" 60 "the run"
	[ "$code" -eq 0 ] || fail "exit code $code"
	says run.err "$rows rows in 10 files" "read in windows of 2097152 bytes"
	bytes=$(sed -n 's/.* files, \([0-9]*\) bytes of text.*/\1/p' run.err)
	[ "$bytes" -gt $((80 << 20)) ] || fail "only $bytes bytes of text"
	echo "peak of $1: $peak KiB"
	[ "$peak" -gt 4096 ] || fail "the peak was not seen"
	[ "$peak" -le $((limit * 1024)) ] || fail "$peak KiB, for $bytes bytes of text"
}

if [ -z "$more" ]; then
	# 16 features and one of 4 classes, scaled by the ranges that a first pass finds. Each file has the
	# header once: the copies of the rows come without it.
	awk 'BEGIN {
		state = 20240
		for (row = 0; row < 20000; row++) {
			line = row % 4
			for (i = 0; i < 16; i++) {
				state = state * 16807 % 2147483647
				line = line "," 100000 + state % 900000
			}
			print line
		}
	}' >rows
	spread
	{
		echo class,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p
		gzip -dc part
	} | gzip -1 >head
	mv head part
	for i in 1 2 3 4 5 6 7 8 9 10; do
		ln -f part "data/part-$i.gz"
	done
	stays_below 64 800000 mlp --format=csv --target=class --scale=range
	exit 0
fi

# 8 keys of 1 + 300 in a row; the figures mean nothing.
awk 'BEGIN {
	state = 20240
	for (row = 0; row < 20000; row++) {
		line = row % 2 == 0 ? "+1" : "-1"
		key = 1000000000
		for (i = 0; i < 8; i++) {
			state = state * 16807 % 2147483647
			key += 1 + state % 300
			line = line " " key ":1"
		}
		print line
	}
}' >rows
spread
stays_below 64 800000 ctr --format=libsvm --embedding=0

# Running text: two words in a line, and digits. Files end four rows before their words do.
awk 'BEGIN {
	state = 20240
	for (row = 0; row < 20000; row++) {
		state = state * 16807 % 2147483647
		printf "%c %c %0102d\n", 97 + state % 26, 97 + state % 7, row
	}
}' >rows
spread
stays_below 64 1599960 ngram --embedding=1 --vocabulary=20 --nearest=
