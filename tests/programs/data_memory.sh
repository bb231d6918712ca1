#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 84 MiB of text train in the memory of a few windows of 2 MiB.
. "${0%/*}/lib.sh"
needs_training

# 8 keys of 1 + 300 in a row; what is learned says nothing.
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
for i in 1 2 3 4; do cat rows; done | gzip -1 >part
mkdir data
for i in 1 2 3 4 5 6 7 8 9 10; do
	ln part "data/part-$i.gz"
done

start run "$WEFT" train ctr --sequential --format=libsvm --data=data --data_window=2MiB \
	--num_passes=1 --embedding=0 --hidden= --batch_size=4096 --log_period=0
run=$last_pid
peak=0
while alive "$run"; do
	now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$run/status" 2>/dev/null) || now=
	peak=${now:-$peak}
	sleep 0.05
done
ends "$run" 60 "the run"
[ "$code" -eq 0 ] || fail "exit code $code"
says run.err "800000 rows in 10 files" "read in windows of 2097152 bytes"
bytes=$(sed -n 's/.* files, \([0-9]*\) bytes of text.*/\1/p' run.err)
[ "$bytes" -gt $((80 << 20)) ] || fail "only $bytes bytes of text"
echo "peak: $peak KiB"
[ "$peak" -gt 4096 ] || fail "the peak was not seen"
[ "$peak" -le $((64 * 1024)) ] || fail "$peak KiB, for $bytes bytes of text"
