#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft demo words, the README's second example, with one pass of its two, ends with PASS.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 0 "$WEFT" demo words --num_passes=1 --port="$port"
[ "$(tail -n 1 last.out)" = PASS ] || fail "the last line is not PASS"
says last.out "1 dense and 1 sparse port" "nearest whale:" "bigram, interpolated       125.71"
grep -Eq '^ *sequential +[0-9a-f]{16} +equal$' last.out || fail "no digests"
