#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft demo strikes: tables on sparse ports beside dense parameters ends with PASS.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 0 "$WEFT" demo strikes --port="$port"
[ "$(tail -n 1 last.out)" = PASS ] || fail "the last line is not PASS"
says last.out "1 dense and 1 sparse port"
grep -Eq '^ *sequential +[0-9a-f]{16} +equal$' last.out || fail "no digests"
grep -Eq '^ *logistic regression +0\.7[0-9]+ ' last.out || fail "no baseline"
