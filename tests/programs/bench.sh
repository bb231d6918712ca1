#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rdma_bench self prints one complete and plausible JSON object, or a table for people, and refuses
# mistakes. No speed is tested. The check asks for two figures, "more" for all of them.
more=${1-}
. "${0%/*}/lib.sh"

: "${RDMA_BENCH:?the program to test}"
if ! "$RDMA_BENCH" self --quick --only=idle_cpu --transport=tcp >last.out 2>last.err &&
	grep -q "two CPUs are needed" last.err; then
	echo "SKIPPED: one CPU" >&2
	exit 77
fi

if [ -n "$more" ]; then
	expect 0 "$RDMA_BENCH" self --quick --json
	[ "$(nproc)" -ge 4 ] || says last.err "lanes by the clock are not measured" "need 4 CPUs"
else
	expect 0 "$RDMA_BENCH" self --quick --json --only=exchange_latency,idle_cpu
fi
python3 - last.out ${more:+"$more"} <<'PYTHON' || fail "the object is not complete and sane"
import json, os, sys

def only_once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), "a key comes twice: %s" % keys
    return dict(pairs)

with open(sys.argv[1]) as file:
    text = file.read()
run = json.loads(text, object_pairs_hook=only_once)
for key in ("program", "date", "quick", "machine", "versions", "tcp_congestion", "cpus"):
    assert key in run, key
assert run["quick"] is True and len(set(run["cpus"])) == 2 and run["tcp_congestion"]
results = run["results"]
seen = {(r["name"], r["transport"], r["mode"], r["bytes"], r["limited_by"]) for r in results}
assert len(seen) == len(results), "a figure comes twice"
def has_all_figures():
    wanted = {
        "fused_sum_sgd": {"memory"},
        "exchange_bandwidth": {"tcp", "shm"},
        "exchange_latency": {"tcp", "shm"},
        "scaling": {"tcp", "shm"},
        "async": {"shm"},
        "crowd": {"tcp"},
        "idle_cpu": {"tcp", "shm"},
        "table_insert": {"memory"},
        "table_pause": {"memory"},
        "table_memory": {"memory"},
        "table_pull": {"memory"},
        "table_push": {"memory"},
        "rows_pull": {"tcp", "shm"},
        "rows_step": {"tcp", "shm"},
        "rows_merge": {"memory"},
        "lanes": {"tcp", "shm"},
    }
    for name, transports in wanted.items():
        there = {r["transport"] for r in results if r["name"] == name}
        assert there == transports, "%s over %s" % (name, there)
    assert {r["bytes"] for r in results if r["name"] == "fused_sum_sgd"} == {1 << 20, 64 << 20}
    sizes = {64 << 10, 1 << 20, 4 << 20, 64 << 20}
    for transport in ("tcp", "shm"):
        exchanges = [r for r in results if r["name"] == "exchange_bandwidth" and r["transport"] == transport]
        assert {r["bytes"] for r in exchanges} == sizes, exchanges
    for transport in ("tcp", "shm"):
        kinds = [(r["name"], r["mode"]) for r in results if r["name"].startswith("rows_") and r["transport"] == transport]
        modes = ("spin", "spin, as drawn")
        assert sorted(kinds) == [(n, m) for n in ("rows_pull", "rows_step") for m in modes], kinds
    merges = [r["mode"] for r in results if r["name"] == "rows_merge"]
    assert merges == ["keys", "keys, gradients"], merges
    crowds = {(r["mode"], r["unit"]) for r in results if r["name"] == "crowd"}
    assert crowds == {("1 + 1", "MiB"), ("1 + 2", "MiB"), ("1 + 4", "MiB"), ("1 + 2", "us"), ("1 + 4", "us")}
    lanes = {r["mode"] for r in results if r["name"] == "lanes"}
    by_cpu = {"CPU, pull", "CPU, step"}
    by_clock = {"clock, pull"} if len(os.sched_getaffinity(0)) >= 4 else set()
    assert lanes == by_cpu | by_clock, lanes

if len(sys.argv) > 2:
    has_all_figures()
else:
    assert {r["name"] for r in results} == {"exchange_latency", "idle_cpu"}, results
for r in results:
    assert r["value"] > 0 and r["limit"] > 0 and r["fraction"] > 0 and r["bytes"] > 0, r
    assert r["unit"] in ("us", "ms", "GB/s", "M/s", "B", "MiB", "%") and r["limited_by"], r
    assert r["better"] == ("higher" if r["unit"] in ("GB/s", "M/s") else "lower"), r
    assert 0 < r["target"] <= (5 if "absl" in r["limited_by"] else 1)
    assert r["met"] == (r["fraction"] >= r["target"] - 0.005), r
    in_pairs = r["name"] not in ("idle_cpu", "table_pause", "table_memory") and r["unit"] != "MiB"
    assert len(r["values"]) == len(r["fractions"]) == (r["kept"] if in_pairs else 0), r
    if in_pairs:
        assert min(r["fractions"]) <= r["fraction_from"] * 1.001, r
        assert r["fraction_from"] <= r["fraction"] * 1.001 <= r["fraction_to"] * 1.002, r
        assert r["fraction_to"] <= max(r["fractions"]) * 1.001 and 0 <= r["fraction_confidence"] < 1, r
    else:
        assert r["fraction_from"] is r["fraction_to"] is r["fraction_confidence"] is None, r
    assert r["kept"] >= 1 and r["kept"] == r["pairs"][r["placement"]], r
PYTHON
[ -z "$more" ] || exit 0

expect 0 "$RDMA_BENCH" self --quick --only=exchange_latency --transport=shm
says last.out "exchange_latency" "cache line" "QUICK"
says_not last.out "fused_sum_sgd"
says_not last.out "raw socket"

expect 0 "$RDMA_BENCH" self --quick --only=fused_sum_sgd --slow=limit
expect 64 "$RDMA_BENCH" self --slow=both
expect 64 "$RDMA_BENCH"
expect 64 "$RDMA_BENCH" itself
expect 64 "$RDMA_BENCH" self --only=exchange_speed
says last.err "exchange_speed"
figures="fused_sum_sgd exchange_bandwidth exchange_latency scaling async crowd idle_cpu table rows merge lanes"
for figure in $figures; do says last.err "$figure"; done
expect 64 "$RDMA_BENCH" self --transport=pigeon
expect 64 "$RDMA_BENCH" self --pairs=0
expect 64 "$RDMA_BENCH" self --cpus=0,0
says last.err "two different CPUs"
expect 64 "$RDMA_BENCH" self --tcp_congestion=no_such_thing
says last.err "no_such_thing" "name one of"
[ ! -s last.out ] || fail "a refused run wrote on stdout"
expect 69 "$RDMA_BENCH" self --limit=1s --pairs=64 --seconds=10s --only=fused_sum_sgd
says last.err "--limit"

expect 0 "$RDMA_BENCH" self --help
head -n 1 last.out | grep -q "^Usage: rdma_bench self" || fail "self --help: no usage on top"
awk 'length > 80 { exit 1 }' last.out || fail "self --help: a line above 80 columns"
for option in json quick only transport pairs seconds slow limit cpus tcp_congestion; do
	grep -Eq -e "--(\[no-\])?$option" last.out || fail "self --help: no $option"
done
for figure in $figures; do says last.out "$figure"; done
