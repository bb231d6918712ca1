#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job with more lanes than slices works, has the same bits, and logs it.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 --num_passes=3
alone=$(digest_of last.out)
expect 0 "$WEFT" launch --local --pservers=2 --ports_num=4 --trainers=2 --port="$port" \
	-- train linear --num_passes=3
[ "$(digest_of last.out)" = "$alone" ] || fail "another digest"
grep -Eqi 'lanes.*slice|slice.*lanes' last.err || fail "no line about lanes without a slice"
