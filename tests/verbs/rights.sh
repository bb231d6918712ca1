#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A user who may not open a device's file, the commonest mistake with containers, is told so: by the
# pserver, by the trainer, and by the plan, which promises no such device.
. "${0%/*}/../programs/lib.sh"
needs_training
[ -e /sys/class/infiniband/rxe4 ] || {
	echo "SKIPPED: this machine has no rxe4" >&2
	exit 77
}

node=$(grep -lx rxe4 /sys/class/infiniband_verbs/uverbs*/ibdev)
node=${node%/ibdev}
node=/dev/infiniband/${node##*/}
before=$(stat -c %a "$node")
trap 'clean_up; chmod "$before" "$node"' EXIT
chmod 600 "$node"
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
why="rxe4: this user may not open $node (Permission denied)"

# shellcheck disable=SC2086 # words
expect 69 $as_nobody "$WEFT" pserver --listen=10.9.4.1 --port=0 --transport=verbs \
	--verbs=device=rxe4
says last.err "$why"

# Who connects.
start pserver "$WEFT" pserver --listen=10.9.0.1 --port=0 --transport=verbs
wait_for pserver.err "listens on"
port=$(sed -n 's/.* ports \([0-9]*\) to .*/\1/p' pserver.err)
# shellcheck disable=SC2086
expect 64 $as_nobody "$WEFT" train linear --pservers=10.9.0.1:"$port" --transport=verbs \
	--verbs=device=rxe4 --connect_timeout=3s
says last.err "$why"
[ "$(stat -c %a /dev/infiniband/rdma_cm)" = 666 ] || fail "the mode of rdma_cm"
chmod 600 /dev/infiniband/rdma_cm
trap 'clean_up; chmod "$before" "$node"; chmod 666 /dev/infiniband/rdma_cm' EXIT
# shellcheck disable=SC2086
expect 69 $as_nobody "$WEFT" train linear --pservers=10.9.0.1:"$port" --transport=verbs \
	--verbs=device=rxe3 --connect_timeout=3s
says last.err "rxe3: this user may not open /dev/infiniband/rdma_cm (Permission denied)"
chmod 666 /dev/infiniband/rdma_cm

# shellcheck disable=SC2086
expect 0 $as_nobody "$WEFT" topo --ports_num=8
says last.out "no lane can use it: $why"
says last.out "rxe3 port 1"
says_not last.out "rxe4 port 1"
# shellcheck disable=SC2086
expect 0 $as_nobody "$WEFT" topo --json
says last.out "\"closed\": \"$why"
chmod "$before" "$node"
# shellcheck disable=SC2086
expect 0 $as_nobody "$WEFT" topo --ports_num=8
says last.out "rxe4 port 1"
