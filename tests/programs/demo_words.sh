#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft demo words, the README's second example, with one pass of its two, ends with PASS. It reads the
# first third of the text; with WEFT_LONG all of it.
long=${WEFT_LONG-} # lib.sh forgets what the user has set
. "${0%/*}/lib.sh"
needs_training

source=${WEFT_DATA_DIR:-${0%/*}/../../data}
lines=7000
bigram=116.70
if [ -n "$long" ]; then
	lines=$(wc -l <"$source/moby-dick.txt")
	bigram=125.71
fi
mkdir data
head -n "$lines" "$source/moby-dick.txt" >data/moby-dick.txt
export WEFT_DATA_DIR="$PWD/data"
port=$(free_ports)
expect 0 "$WEFT" demo words --num_passes=1 --port="$port"
[ "$(tail -n 1 last.out)" = PASS ] || fail "the last line is not PASS"
says last.out "1 dense and 1 sparse port" "nearest whale:" "bigram, interpolated       $bigram"
grep -Eq '^ *sequential +[0-9a-f]{16} +equal$' last.out || fail "no digests"
