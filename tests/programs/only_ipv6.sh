#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On a host whose only address is ::1 the commands of the README, and the benchmark, work without
# --listen or --pservers. The script runs itself again in a network namespace that is such a host;
# it is skipped if none can be made.
if [ "${WEFT_TEST_WITHIN-}" != only_ipv6 ]; then
	if ! unshare --net true 2>/dev/null; then
		echo "SKIPPED: no network namespaces here" >&2
		exit 77
	fi
	WEFT_TEST_WITHIN=only_ipv6 exec unshare --net sh "$0"
fi
. "${0%/*}/lib.sh"
needs_training

skip() {
	echo "SKIPPED: $*" >&2
	exit 77
}
command -v ip >/dev/null || skip "there is no ip (iproute2)"
ip link set lo up || skip "lo stays down"
ip -4 address flush dev lo
ip -6 address show dev lo | grep -q 'inet6 ::1/' || skip "there is no IPv6"

expect 0 "$WEFT" train linear --sequential --num_passes=2
alone=$(digest_of last.out)
expect 0 "$WEFT" demo
says last.out "on ::1, ports" PASS
expect 0 "$WEFT" launch --local --pservers=2 --ports_num=2 -- train linear --num_passes=2
says last.err "on ::1, ports 7164-7167" "--pservers=[::1]:7164,[::1]:7166"
[ "$(digest_of last.out)" = "$alone" ] || fail "launch: another digest"

# Pserver and trainer by hand, both without an address, and both with one.
for at in "" "[::1]"; do
	start pserver "$WEFT" pserver --once ${at:+--listen=$at}
	pserver=$last_pid
	wait_for pserver.err "pserver listens on ::1, ports 7164"
	says pserver.err "only this host can reach it"
	expect 0 "$WEFT" train linear --num_passes=2 ${at:+--pservers=$at}
	[ "$(digest_of last.out)" = "$alone" ] || fail "by hand: another digest"
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "pserver: exit code $code"
done

# An address that is given is never replaced.
expect 69 "$WEFT" pserver --listen=127.0.0.1
says last.err "127.0.0.1:7164: not an address of this host"

# The benchmark's own processes and raw sockets.
: "${RDMA_BENCH:?the program to test}"
if [ "$(nproc)" -ge 2 ]; then
	expect 0 "$RDMA_BENCH" self --quick --only=exchange_latency
	says last.out tcp shm
	start server "$RDMA_BENCH" lat -p 7300
	server=$last_pid
	wait_for server.err "waiting for a client"
	expect 0 "$RDMA_BENCH" lat --transport=shm -p 7300 --pairs=2 ::1
	ends "$server" 60 "the server"
	[ "$code" -eq 0 ] || fail "the benchmark's server: exit code $code"
fi
