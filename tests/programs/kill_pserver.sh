#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver killed with -9: every other process ends with 69 and names it.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
start_job 2 2 linear --num_passes=1000000
wait_for trainer_0.out "pass 2 "
eval "kill -9 \$pserver_1"
lost="127.0.0.1:$((port + 1))"
for name in trainer_0 trainer_1 pserver_0; do
	eval "pid=\$$name"
	ends "$pid" 20 "$name"
	[ "$code" -eq 69 ] || fail "$name: exit code $code, not 69"
	tail -n 1 "$name.err" | grep -qF "$lost" || fail "$name does not name $lost in its last line"
done
