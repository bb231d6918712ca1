#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft demo mlp ends with PASS.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 0 "$WEFT" demo mlp --port="$port"
[ "$(tail -n 1 last.out)" = PASS ] || fail "the last line is not PASS"
grep -Eq '^ *sequential +[0-9a-f]{16} +equal$' last.out || fail "no digests"
