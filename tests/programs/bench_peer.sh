#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rdma_bench lat, bw and rate between two processes: over tcp and shm, or over the addresses of RDMA
# devices that $BENCH_RDMA lists (the suite verbs, in the guest). With short counts they work, each
# byte arrives, and mistakes are reported in one line. No speed is tested.
. "${0%/*}/lib.sh"

: "${RDMA_BENCH:?the program to test}"
port=$(free_ports)

# serve COMMAND ADDRESS [option...]: a server in the background; its number in $server.
serve() {
	bench=$1
	address=$2
	shift 2
	start server "$RDMA_BENCH" "$bench" --listen="$address" -p "$port" "$@"
	server=$last_pid
	wait_for server.err "waiting for a client"
}

# measure COMMAND ADDRESS TRANSPORT option...: the client's object in last.out, and both end well.
measure() {
	bench=$1
	address=$2
	over=$3
	shift 3
	serve "$bench" "$address"
	expect 0 "$RDMA_BENCH" "$bench" --transport="$over" --pairs=2 --json --verify \
		-p "$port" "$@" "$address"
	ends "$server" 60 "the server"
	[ "$code" -eq 0 ] || fail "the server of $bench $*: exit code $code"
	[ ! -s server.out ] || fail "the server wrote on stdout"
}

# check WHAT: of last.out, in Python: run, results.
check() {
	python3 - last.out "$over" "$1" <<'PYTHON' || fail "$bench over $over: the object is not as it should be"
import json, sys

def only_once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), "a key comes twice: %s" % keys
    return dict(pairs)

with open(sys.argv[1]) as file:
    run = json.load(file, object_pairs_hook=only_once)
results = run["results"]
for key in ("program", "date", "machine", "versions", "tcp_congestion", "server"):
    assert run[key], key
assert run["transport"] == sys.argv[2] and run["pairs"] == 2
assert run["verify"]["checked"] > 0 and run["verify"]["wrong"] == 0, run["verify"]
assert results
for r in results:
    assert r["transport"] == sys.argv[2] and r["limited_by"] and r["kept"] == 2, r
    assert r["value"] > 0 and r["limit"] > 0 and r["bytes"] > 0 and r["iterations"] > 0, r
    assert 0 < r["fraction_min"] <= r["fraction"] <= r["fraction_max"], r
    lat = r["name"].endswith("_latency")
    assert r["better"] == ("lower" if lat else "higher"), r
    for side in ("", "limit_"):
        p = [r[side + "p%s_us" % n] for n in ("50", "99", "999")]
        assert lat and 0 < p[0] <= p[1] <= p[2] or not lat and p == [None] * 3, r
seen = [(r["name"], r["mode"], r["bytes"]) for r in results]
assert len(set(seen)) == len(seen), seen
assert eval(sys.argv[3]), seen
PYTHON
}

# everything ADDRESS TRANSPORT: each command once, with checks of its own.
everything() {
	measure lat "$1" "$2" -n 40 -s 13
	check 'seen == [("put_latency", "to and fro", 13), ("send_latency", "to and fro", 13)]'
	measure bw "$1" "$2" -n 60 -s 20000
	check 'seen == [("put_bandwidth", "one way", 20000)]'
	measure bw "$1" "$2" -n 100 -b -s 4032 -t 3
	check 'seen == [("put_bandwidth", "both ways", 4032), ("send_bandwidth", "both ways", 4032)]'
	measure rate "$1" "$2" -n 150
	check 'seen == [("put_rate", "plain", 8), ("send_rate", "plain", 8), ("send_rate", "coalesced", 8)]'
}

if [ -n "${BENCH_RDMA-}" ]; then
	for address in $BENCH_RDMA; do
		everything "$address" verbs
	done
	# The client names its device, and a server that is asked for one that does not exist says
	# so.
	measure lat 10.9.0.1 verbs -n 20 -s 8 -d rxe0 -x 1 --op=put -F -R
	check 'seen == [("put_latency", "to and fro", 8)]'
	expect 64 "$RDMA_BENCH" lat -d mlx9_9 -p "$port" 10.9.0.1
	says last.err "mlx9_9" "rxe0"
	expect 64 "$RDMA_BENCH" lat -d rxe0 -x 200 -p "$port" 10.9.0.1
	says last.err "no such GID"
	serve lat 10.9.0.1 -d mlx9_9
	expect 64 "$RDMA_BENCH" lat --transport=verbs -p "$port" 10.9.0.1
	says last.err "the other side: -d mlx9_9"
	ends "$server" 60 "the server"
	[ "$code" -eq 64 ] || fail "a server without that device: exit code $code"
	exit 0
fi

for over in tcp shm; do
	everything 127.0.0.1 $over
done
measure bw 127.0.0.1 tcp -n 2 -a --op=put
check '[s[2] for s in seen] == [2 << i for i in range(23)]'

serve bw 127.0.0.1
expect 0 "$RDMA_BENCH" bw --transport=tcp -s64K -n20 --pairs=2 "127.0.0.1:$port"
says last.out "put_bandwidth" "64 KiB" "raw socket" "of pairs"
ends "$server" 60 "the server"

# Mistakes, one line each.
mistake() {
	wanted=$1
	text=$2
	shift 2
	expect "$wanted" "$RDMA_BENCH" "$@"
	says last.err "$text"
	[ "$(wc -l <last.err)" -eq 1 ] || fail "more than one line of: $*"
	[ ! -s last.out ] || fail "a refused run wrote on stdout: $*"
}
mistake 69 "nobody listens at 127.0.0.1:$port" lat --transport=tcp -p "$port" 127.0.0.1
mistake 64 "8MiB" bw -s 9M localhost
mistake 64 "4032 bytes at most" lat --op=send -s 4033 localhost
mistake 64 "multiples of 8" rate -s 12 localhost
mistake 64 "give either -a" lat -a -s 8 localhost
mistake 64 "is for bw" lat -b localhost
mistake 64 "-q" bw -q 2 localhost
mistake 64 "needs -d" lat -x 1 localhost
mistake 64 "no_such_thing" lat --tcp_congestion=no_such_thing localhost

# A port in use; a stranger, after whom the server goes on; a client of another version.
serve lat 127.0.0.1
mistake 69 "port $port is in use" lat --listen=127.0.0.1 -p "$port"
python3 - "$port" <<'PYTHON' || fail "the answer to another version is not one"
import socket, struct, sys
port = int(sys.argv[1])
with socket.create_connection(("127.0.0.1", port)) as s:
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    try:
        s.recv(1)
    except ConnectionResetError:
        pass
with socket.create_connection(("127.0.0.1", port)) as s:
    s.sendall(struct.pack("<IHHII", 0x42524657, 77, 1, 0, 0))
    head = s.recv(16, socket.MSG_WAITALL)
    magic, version, kind, length, _ = struct.unpack("<IHHII", head)
    assert magic == 0x42524657 and version != 77 and kind == 8, head
    assert b"version 77" in s.recv(length, socket.MSG_WAITALL)
PYTHON
ends "$server" 60 "the server"
[ "$code" -eq 64 ] || fail "a server that met another version: exit code $code"
says server.err "not rdma_bench" "still waiting" "version 77"

# A client that goes away in the middle.
serve bw 127.0.0.1
start client "$RDMA_BENCH" bw --transport=tcp -p "$port" --pairs=64 -n 100000 127.0.0.1
client=$last_pid
wait_for server.err "serving 127.0.0.1 over tcp"
kill -9 "$client"
ends "$server" 60 "the server"
[ "$code" -eq 69 ] || fail "a server whose client was killed: exit code $code"
[ "$(wc -l <server.err)" -eq 3 ] || fail "no line says what happened to the client"

for bench in lat bw rate; do
	expect 0 "$RDMA_BENCH" $bench --help
	awk 'length > 80 { exit 1 }' last.out || fail "$bench --help: a line above 80 columns"
	says last.out "rdma_bench $bench -d mlx5_0 node7" "-s." "Exit codes"
done
