#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernel's network emulation drops what soft RoCE sends, and soft RoCE sends it again.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

# Later tests use this link: it is whole again however this one ends.
restore() {
	tc qdisc del dev e1 root 2>/dev/null || true
}
trap restore EXIT
trap 'exit 143' TERM

tc qdisc add dev e1 root netem loss 3%
pingpong_between 18603 rxe1 rxe2 1 100
dropped=$(tc -s qdisc show dev e1 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
[ "$dropped" -gt 0 ] || fail "netem dropped nothing"
again=$(cat /sys/class/infiniband/rxe[12]/ports/1/hw_counters/completer_retry_err |
	awk '{sum += $1} END {print sum}')
[ "$again" -gt 0 ] || fail "nothing was sent again"
