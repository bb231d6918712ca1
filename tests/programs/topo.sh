#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft topo: this machine, captured ones and invented ones, as text and as JSON; and weft launch
# --pin=auto, which gives each process its part of the plan.
. "${0%/*}/lib.sh"
machines=${0%/*}/../fixtures/machines
case $machines in
/*) ;;
*) fail "the script has to be called by its whole path" ;;
esac

expect 0 "$WEFT" topo
says last.out "this machine: " "NUMA node" "huge pages for shared memory: " \
	"GiB available, slabs are " "pserver 0    dense lane 0        7164" \
	"trainer 0    progress thread 0"
expect 0 "$WEFT" topo --save=machine.xml
[ ! -s last.out ] || fail "--save prints"
expect 0 "$WEFT" topo --xml=machine.xml
says last.out "machine.xml: "

# A captured machine: lanes beside the adapter, the trainer where it fits.
expect 0 "$WEFT" topo --xml="$machines/24em64t-2n6c2t-pci.xml" --ports_num=2 \
	--ports_num_for_sparse=1 --pservers=2 --trainer_count=2
says last.out "12 cores, 24 cpus, 2 packages, 2 NUMA nodes" \
	"rdma mlx4_0, node 0, pci 0000:05:00.0, port 1 unknown" \
	"pserver 0    dense lane 1        7165     2     0  mlx4_0 port 1" \
	"pserver 1    sparse lane 0       7169    10     0  mlx4_0 port 1" \
	"trainer 0    progress thread 0      -     1     1  mlx4_0 port 1" \
	"each of 9 threads has a core of its own, of 12"
cp last.out first.out
expect 0 "$WEFT" topo --xml="$machines/24em64t-2n6c2t-pci.xml" --ports_num=2 \
	--ports_num_for_sparse=1 --pservers=2 --trainer_count=2
cmp -s first.out last.out || fail "the same question has two answers"

expect 0 "$WEFT" topo --synthetic="node:2 core:1 pu:2" --ports_num=3 --trainers=0
says last.out "3 threads on 2 cores: each has a cpu of its own, of 4"
expect 0 "$WEFT" topo --synthetic="node:1 core:1 pu:2"
says last.out "3 threads on 2 CPUs: no thread is pinned"

expect 0 "$WEFT" topo --xml="$machines/32em64t-2n8c2t-pci-normalio.xml" --ports_num=2 --json
python3 - <<'END' || fail "the JSON does not describe the machine"
import json
whole = json.load(open("last.out"))
machine, plan = whole["machine"], whole["plan"]
assert not machine["here"] and len(machine["cores"]) == 16, machine
assert [node["cores"] for node in machine["nodes"]] == [8, 8], machine["nodes"]
adapter = machine["devices"][0]
assert (adapter["name"], adapter["kind"], adapter["node"]) == ("mlx5_0", "rdma", 1), adapter
assert adapter["ports"] == ["active"], adapter
assert adapter["closed"] == "", adapter # another machine's: nobody knows
assert plan["share"] == "cores" and len(plan["seats"]) == 4, plan
for seat in plan["seats"]:
    assert seat["node"] == 1, seat
    if seat["process"] == "pserver 0":
        assert seat["device"] == "mlx5_0" and seat["device_port"] == 1, seat
        assert seat["port"] == 7164 + seat["idx"], seat
END

expect 65 "$WEFT" topo --xml=/dev/null
says last.err "/dev/null cannot be read as XML of hwloc" "weft topo --save=FILE"
truncate -s 65M huge.xml
expect 65 "$WEFT" topo --xml=huge.xml
says last.err "huge.xml has more than 64 MiB, which is not the description of a machine"
expect 64 "$WEFT" topo --synthetic=nonsense
says last.err '"nonsense" does not describe a machine'
expect 64 "$WEFT" topo --xml=a --synthetic=b
says last.err "give one of them"
expect 64 "$WEFT" topo --xml="$machines/24em64t-2n6c2t-pci.xml" --verbs=device=mlx9_9
says last.err "device mlx9_9 is not in this machine, which has mlx4_0"
expect 74 "$WEFT" topo --save=no/such/folder
says last.err "no/such/folder cannot be written"
ln -s machine.xml link.xml
cp machine.xml before.xml
expect 74 "$WEFT" topo --save=link.xml
says last.err "link.xml: is a link" "weft overwrites none of these"
cmp -s machine.xml before.xml || fail "--save wrote through a link"

expect 64 "$WEFT" pserver --pin=auto:2/2
says last.err "--pin=auto:2/2" "from 0 to N - 1"

# Settings of RDMA are checked before anything else is done.
for command in "pserver" "launch --local" "demo"; do
	rest=
	[ "${command#launch}" = "$command" ] || rest="-- train linear"
	# shellcheck disable=SC2086 # words
	expect 64 "$WEFT" $command --verbs=retry=99 $rest
	says last.err "--verbs=retry=99: retry=99; a number from 0 to 6 is needed"
	# shellcheck disable=SC2086
	expect 64 "$WEFT" $command --verbs=mtu=1024,rety=3 $rest
	says last.err 'there is no setting "rety"' "retry"
done

needs_training
port=$(free_ports)
expect 64 "$WEFT" train linear --pservers=127.0.0.1:"$port" --verbs=retry=99
says last.err "retry=99; a number from 0 to 6 is needed"

# Each process that is to be bound gets CPUs of its own; if there are too few, none is bound.
expect 0 "$WEFT" launch --local --port="$port" --pin=auto --verbs=retry=5 -- train linear \
	--progress=caller --num_passes=2
if [ "$(nproc)" -ge 2 ]; then
	says last.err "lane 0: cpu"
	[ "$(sed -n 's/.* --pin=\([0-9]*\)$/\1/p' last.err | sort -u | wc -l)" -eq 2 ] ||
		fail "two processes share a cpu: $(grep -e --pin= last.err)"
else
	says last.err "no thread is pinned"
fi
cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
expect 0 taskset -c "$cpu" "$WEFT" launch --local --port="$port" --pin=auto -- train linear \
	--progress=caller --num_passes=2
says last.err "no thread is pinned"

# On one CPU a process that polls takes it from the one that would answer: the plan turns polling
# off, unless the user asks for it.
[ "$(grep -c -e ' --spin=0' last.err)" -eq 2 ] || fail "a process polls on a shared cpu"
expect 0 taskset -c "$cpu" "$WEFT" launch --local --port="$port" --spin=20us -- train linear --num_passes=2
says_not last.err "--spin=0"
