#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job: weft demo linear ends with PASS, beside the closed form's known figures; settings of
# another job in the environment do not matter.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 0 env PADDLE_INIT_NUM_PASSES=1 PADDLE_INIT_PSERVERS=192.0.2.1 "$WEFT" demo linear --port="$port"
[ "$(tail -n 1 last.out)" = PASS ] || fail "the last line is not PASS"
grep -Eq '^ *closed form +22\.78[0-9]* +32\.80[0-9]*$' last.out || fail "other closed-form figures"
grep -Eq '^ *sequential +[0-9a-f]{16} +equal$' last.out || fail "no digests"
