#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft doctor on this machine, with limits as in a container, and what weft pserver and weft train
# say of it when they start.
. "${0%/*}/lib.sh"

port=$(free_ports)

# doctor CODE [options]: the JSON in doctor.json; its own exit code has to be the same, or 1 if 0 is
# asked for, because this machine may have findings of its own.
doctor() {
	wanted=$1
	shift
	code=0
	"$WEFT" doctor --json --port="$port" "$@" >doctor.json 2>doctor.err || code=$?
	[ ! -s doctor.err ] || fail "it wrote on stderr"
	case $wanted:$code in
	"$code:$code" | 0:1) ;;
	*) fail "exit code $code, not $wanted, of doctor $*: $(cat doctor.json)" ;;
	esac
	says doctor.json "\"exit_code\": $code"
}

# is CHECK LEVEL TEXT
is() {
	grep -F -e "{\"check\": \"$1\", \"level\": \"$2\"" doctor.json | grep -qF -e "$3" ||
		fail "$1 does not say as $2: $3: $(grep -F "\"$1\"" doctor.json)"
}

doctor 0
for check in kernel clock cpus memory memlock file_size descriptors calls loopback congestion ports; do
	grep -qF "\"check\": \"$check\"" doctor.json || fail "$check says nothing"
done
is calls ok "memfd_create, mbind and sockets work"
is ports ok "1 port from $port on is free on 127.0.0.1"
if [ ! -e /sys/class/infiniband ]; then
	is rdma_devices note "there is no RDMA device"
	doctor 69 --transport=verbs
	is rdma_devices fails "there is no RDMA device"
	expect 69 "$WEFT" doctor --no-all --port="$port" --transport=verbs
	says last.out "something that was asked for cannot work"
	says_not last.out "ok       "
fi

# What was asked for and cannot work.
doctor 69 --tcp_congestion=nosuch
is congestion fails "tcp_congestion=nosuch is not there"
echo short >secret
chmod 400 secret
doctor 69 --secret_file=secret
is secret fails "secret"
start pserver "$WEFT" pserver --port="$port"
wait_for pserver.err "listens on"
doctor 69
is ports fails "$port"
kill -9 "$last_pid"
ends "$last_pid" 30 pserver
doctor 1 --listen=0.0.0.0
is secret finding "there is no secret"

# A container: small limits, and no rights.
limited() {
	(ulimit -f 2048; ulimit -n 70; ulimit -l 64; doctor "$@")
}
limited 1 --trainers=8 --memory=8M
is file_size finding "may have 1.0 MiB, and a process needs 8.0 MiB"
is descriptors finding "8 trainers on 1 lane need 88"
if unshare -rn true 2>/dev/null; then
	code=0
	unshare -rn "$WEFT" doctor --json --port="$port" --memory=8M >doctor.json || code=$?
	[ "$code" -eq 69 ] || fail "exit code $code in a network without lo"
	is loopback fails "lo is down"
	is rights note "is in a user namespace"
	is interfaces note "no interface but lo is up"
	unshare -rn sh -c 'ip link set lo up mtu 1500 && exec "$0" doctor --json --port="$1"' \
		"$WEFT" "$port" >doctor.json || code=$?
	is loopback finding "the MTU of lo is 1500"
fi

# At the start of a job: what matters, one line each.
(ulimit -f 2048; exec "$WEFT" pserver --port=0 --transport=shm) >small.out 2>small.err &
last_pid=$!
started="$started $last_pid"
wait_for small.err "listens on"
says small.err "weft pserver: file_size: a file may have 1.0 MiB, and a process needs 64.0 MiB"
[ "$(grep -c '^weft pserver: [a-z_]*: ' small.err)" -eq 1 ] || fail "more than what matters"
kill -9 "$last_pid"
if "$WEFT" train --help >/dev/null 2>&1; then
	code=0
	(ulimit -f 2048; exec "$WEFT" train linear --connect_timeout=1s --pservers=127.0.0.1:"$port" \
		--transport=shm) >train.out 2>train.err || code=$?
	says train.err "weft train: file_size: a file may have 1.0 MiB"
	(ulimit -f 2048; exec "$WEFT" train linear --sequential --num_passes=1) >train.out 2>train.err
	says_not train.err "file_size"
fi

expect 64 "$WEFT" doctor --transport=nosuch
expect 64 "$WEFT" doctor --verbs=nosuch=1
