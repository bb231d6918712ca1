#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job whose two lanes go over two pairs of RDMA devices loses one of them on the way: it goes on
# over the rail that is left, and ends with the digest of one process.
long=${WEFT_LONG-}
. "${0%/*}/../programs/lib.sh"
needs_training
[ -e /sys/class/infiniband/rxe4 ] || {
	echo "SKIPPED: this machine has no rxe4" >&2
	exit 77
}

port=$(free_ports)
settings="--num_passes=600 --slice_bytes=64 --seed=5"
# shellcheck disable=SC2086
expect 0 "$WEFT" train linear --sequential $settings
alone=$(digest_of last.out)
[ -n "$alone" ] || fail "no digest of the sequential run"

# sent DEVICE: packets
sent() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}

# job LOSS...: one that loses its second rail, by that command, on the way.
job() {
	# Who has no group in common with the pserver cannot share its memory.
	start pserver "$WEFT" pserver --listen=10.9.0.1 --port="$port" --ports_num=2 --once \
		--verbs=device=rxe2+rxe4
	pserver=$last_pid
	first=$(sent rxe1)
	second=$(sent rxe3)
	# shellcheck disable=SC2086
	start trainer setpriv --reuid=65534 --regid=65534 --clear-groups "$WEFT" train linear \
		--pservers=10.9.0.1:"$port" --ports_num=2 --verbs=device=rxe1+rxe3 $settings
	trainer=$last_pid
	wait_for trainer.out "pass 20 "
	[ "$(sent rxe1)" -gt "$((first + 20))" ] || fail "nothing went over rxe1"
	[ "$(sent rxe3)" -gt "$((second + 20))" ] || fail "nothing went over rxe3"
	"$@"
	alive "$trainer" || fail "the job was over before: $*"
	ends "$trainer" 90 trainer
	[ "$code" -eq 0 ] || fail "trainer: exit code $code"
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "pserver: exit code $code"
	[ "$(digest_of trainer.out)" = "$alone" ] || fail "another digest than $alone"
	says trainer.err "over verbs: RDMA at both ends, rail 10.9.4.1"
	# Who had something under way notices, and says it.
	grep -qF "rail 10.9.4.1 broke, and is left out for" trainer.err ||
		grep -q "rail 10\.9\.4\.1 (rxe4 port 1) is down, and left out" pserver.err ||
		fail "nobody says that the rail is left out"
	[ "$(grep -c 'over verbs: RDMA at both ends, rail 10.9.2.1' trainer.err)" -eq 2 ] ||
		fail "the lane did not come back over the rail that was left"
	says_not trainer.err " over tcp: "
}

job rdma link delete rxe4
rdma link add rxe4 type rxe netdev e4
[ -n "$long" ] || exit 0

trap 'clean_up; sh "$GUEST_DEVICES" again 3' EXIT
job ip link set e3 down
