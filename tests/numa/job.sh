#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In a running job the memory of lanes and of the trainer is at the node of their cores, whichever
# that is; weft launch --pin=auto gives each process cores of its own.
. "${0%/*}/../programs/lib.sh"
needs_training
[ -e /sys/devices/system/node/node1 ] || {
	echo "SKIPPED: this machine has one NUMA node" >&2
	exit 77
}

port=$(free_ports)
# pages PID NODE: of its slabs, at that node
pages() {
	sed -n "/memfd:weft-slab/s/.* N$2=\([0-9]*\).*/\1/p" "/proc/$1/numa_maps" |
		awk '{ sum += $1 } END { print sum + 0 }'
}
some_pages() {
	[ "$(pages "$1" "$2")" -gt 0 ]
}

# at NODE PID NAME: it has slabs there, and nowhere else
at() {
	until_true 60 some_pages "$2" "$1" || fail "$3 has no slab at node $1"
	[ "$(pages "$2" $((1 - $1)))" -eq 0 ] ||
		fail "$3 has slabs elsewhere than at node $1: $(grep weft-slab "/proc/$2/numa_maps")"
}

# A job whose lanes are at node 1, and its trainer at node 0.
start pserver "$WEFT" pserver --port="$port" --ports_num=2 --pin=2,3
pserver=$last_pid
start trainer "$WEFT" train linear --pservers=127.0.0.1:"$port" --ports_num=2 --slice_bytes=64 \
	--num_passes=1000000 --log_period=0 --pin=1,0
trainer=$last_pid
wait_for trainer.out "pass 1 "
at 1 "$pserver" pserver
at 0 "$trainer" trainer
says pserver.err "lane 0: cpu 2, node 1 (memory bound)" "lane 1: cpu 3, node 1 (memory bound)"
grep -q 'memfd:weft-slab' "/proc/$pserver/numa_maps" || fail "pserver has no slab"
if grep 'memfd:weft-slab' "/proc/$pserver/numa_maps" | grep -qv ' bind[^ ]*:1 '; then
	fail "a slab of the pserver is not bound to node 1: $(grep weft-slab "/proc/$pserver/numa_maps")"
fi
kill -9 "$trainer" "$pserver"
wait "$trainer" "$pserver" 2>/dev/null || true

# Three processes, four threads, four cores: nobody shares one.
expect 0 "$WEFT" topo --ports_num=2 --trainers=2 --progress=caller
says last.out "each of 4 threads has a core of its own, of 4"
expect 0 "$WEFT" launch --local --port="$port" --ports_num=2 --trainers=2 --pin=auto -- \
	train linear --progress=caller --num_passes=1 --slice_bytes=64
[ "$(sed -n 's/.* --pin=\([0-9,]*\)$/\1/p' last.err | tr ',' '\n' | sort -u | wc -l)" -eq 4 ] ||
	fail "threads share cores: $(grep -e --pin last.err)"
says last.err "lane 0: cpu" "lane 1: cpu"
[ "$(sed -n 's/.*lane [01]: cpu [0-9]*, \(node [01]\).*/\1/p' last.err | sort -u | wc -l)" -eq 2 ] ||
	fail "lanes do not spread over the nodes"
