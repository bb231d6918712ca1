#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rdma_bench compare says which figures are worse, and ends with 1 then; plot draws; both refuse
# what is no result of rdma_bench.
. "${0%/*}/lib.sh"

: "${RDMA_BENCH:?the program to test}"

# write FILE FACTOR: two figures of 7 pairs; the second one is FACTOR times as good.
write() {
	python3 - "$1" "$2" <<'PYTHON'
import json, sys

def figure(name, factor, unit, better):
    near = [0.98, 0.985, 0.99, 1.0, 1.005, 1.01, 1.02]
    fractions = [0.5 * factor * each for each in near]
    values = [(8 / factor if better == "lower" else 8 * factor) * each for each in near]
    return {"name": name, "transport": "tcp", "mode": "spin", "bytes": 64, "value": values[3],
            "unit": unit, "limit": 4, "fraction": fractions[3], "limited_by": "raw", "better": better,
            "target": 0.8, "values": values, "fractions": fractions}

factor = float(sys.argv[2])
with open(sys.argv[1], "w") as file:
    json.dump({"program": "rdma_bench self", "date": "today", "quick": False,
               "machine": {"cpu": "one"}, "versions": {"weft": "0.1.0"},
               "results": [figure("exchange_bandwidth", 1, "GB/s", "higher"),
                           figure("exchange_latency", factor, "us", "lower")]}, file)
PYTHON
}
write a.json 1
write slower.json 0.8
write faster.json 1.25

expect 0 "$RDMA_BENCH" compare a.json a.json --tolerance=0.05
says last.out "0 better, 2 same, 0 unclear, 0 worse"
for of in fraction value; do
	expect 1 "$RDMA_BENCH" compare a.json slower.json --of=$of --tolerance=0.05
	says last.out "0 better, 1 same, 0 unclear, 1 worse"
	grep -Eq '^exchange_latency .* 0\.800 .* worse$' last.out || fail "$of: no ratio of 0.8"
	expect 0 "$RDMA_BENCH" compare a.json faster.json --of=$of --tolerance=0.05
	says last.out "1 better, 1 same, 0 unclear, 0 worse"
done
expect 1 "$RDMA_BENCH" compare a.json slower.json --json
python3 -c 'import json, sys
run = json.load(open("last.out"))
figure = run["figures"][1]
assert run["worse"] == 1 and figure["verdict"] == "worse" and figure["confidence"] >= 0.95
assert figure["interval"][0] < 0.8 < figure["interval"][1] < 1' || fail "the object is wrong"

expect 0 "$RDMA_BENCH" plot a.json -o a.svg
[ ! -s last.out ] || fail "plot -o wrote on stdout"
python3 -c 'import xml.etree.ElementTree as tree
assert tree.parse("a.svg").getroot().tag.endswith("svg")' || fail "a.svg is no SVG"
expect 0 "$RDMA_BENCH" plot a.json
cmp -s last.out a.svg || fail "the picture on stdout is another one"
expect 74 "$RDMA_BENCH" plot a.json -o no/such/folder.svg
says last.err "no/such/folder.svg"

sed 's/"quick": false/"quick": true/' a.json >quick.json
sed 's/"mode": "spin"/"mode": "sleep"/g' a.json >other.json
sed 's/"value": 8/"value": 1e400/' a.json >infinite.json
printf '{"program": ' >half.json
mkfifo pipe.json
expect 65 "$RDMA_BENCH" compare a.json quick.json
says last.err "quick.json" "measures nothing"
expect 65 "$RDMA_BENCH" compare a.json other.json
says last.err "no figure in common"
expect 65 "$RDMA_BENCH" compare infinite.json a.json
says last.err "infinite.json" "value must be a finite number"
for command in "compare half.json a.json" "plot half.json"; do
	# shellcheck disable=SC2086 # words
	expect 65 "$RDMA_BENCH" $command
	says last.err "half.json: byte"
done
expect 74 "$RDMA_BENCH" plot pipe.json
expect 74 "$RDMA_BENCH" plot no_such.json
expect 64 "$RDMA_BENCH" compare a.json
expect 64 "$RDMA_BENCH" plot
[ ! -s last.out ] || fail "a refused command wrote on stdout"
