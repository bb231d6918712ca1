#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trainer killed with -9: every other process ends with 69 and names it.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
start_job 2 3 linear --num_passes=1000000
wait_for trainer_0.out "pass 2 "
eval "kill -9 \$trainer_1"
for name in trainer_0 trainer_2 pserver_0 pserver_1; do
	eval "pid=\$$name"
	ends "$pid" 20 "$name"
	[ "$code" -eq 69 ] || fail "$name: exit code $code, not 69"
	tail -n 1 "$name.err" | grep -q 'trainer 1' || fail "$name does not name trainer 1 in its last line"
done
