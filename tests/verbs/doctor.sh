#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft doctor beside soft RDMA devices: it finds ports, GIDs, MTU and addresses, and names a port
# that is down, a small MTU, an address that is missing, a file that may not be opened, a driver
# that is not installed, and too little locked memory.
. "${0%/*}/../programs/lib.sh"
[ -e /sys/class/infiniband/rxe4 ] || {
	echo "SKIPPED: this machine has no rxe4" >&2
	exit 77
}

# doctor CODE [command before it...]: its JSON in doctor.json.
doctor() {
	wanted=$1
	shift
	code=0
	"$@" "$WEFT" doctor --json --transport=verbs >doctor.json || code=$?
	[ "$code" -eq "$wanted" ] || fail "exit code $code, not $wanted: $(cat doctor.json)"
}

# is CHECK LEVEL SUBJECT TEXT
is() {
	grep -F -e "{\"check\": \"$1\", \"level\": \"$2\", \"host\": \"\", \"subject\": \"$3\"" doctor.json |
		grep -qF -e "$4" || fail "$1 does not say of $3 as $2: $4: $(grep -F "\"$1\"" doctor.json)"
}

doctor 1 # this machine has no huge pages for shared memory
is rdma_libraries ok "" "can be loaded"
is rdma_devices ok rxe0 "may open its files"
is rdma_providers ok rxe0 "the driver rxe"
is rdma_links ok "rxe0 port 1" "is active"
is rdma_gids ok "rxe0 port 1" "GID 1 is RoCE v2, IPv4"
is rdma_mtus ok "rxe0 port 1" "packets of 4096 bytes; its interface e0 has MTU 4200"
is rdma_addresses ok 10.9.0.1 "leads to rxe0 port 1"
if [ -e /sys/class/infiniband/siw0 ]; then
	is rdma_providers ok siw0 "the driver siw"
	is rdma_gids note "siw0 port 1" "is not RoCE"
	is rdma_addresses ok 10.8.0.1 "leads to siw0 port 1"
fi

# ---- what an administrator breaks; each is restored ----
node=$(grep -lx rxe4 /sys/class/infiniband_verbs/uverbs*/ibdev)
node=${node%/ibdev}
node=/dev/infiniband/${node##*/}
restore() {
	ip link set e4 mtu 4200
	sh "$GUEST_DEVICES" again 3
	chmod 666 "$node"
}
trap 'restore; clean_up' EXIT
ip link set e4 mtu 1500
doctor 1
is rdma_mtus finding "rxe4 port 1" "packets of 1024 bytes, because its interface e4 has MTU 1500"
ip link set e4 mtu 4200
chmod 600 "$node"
doctor 1 setpriv --reuid=65534 --regid=65534 --clear-groups
is rdma_devices finding rxe4 "rxe4: this user may not open $node (Permission denied)"
is rdma_devices ok rxe3 "may open its files"
chmod 666 "$node"
doctor 69 setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'ulimit -l 64; exec "$@"' sh
is memlock fails "" "64 KiB of memory may be locked for RDMA"
ip link set e3 down
doctor 1
is rdma_links finding "rxe3 port 1" "rxe3 port 1 is DOWN"
restore
