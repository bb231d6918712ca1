#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: tests/guest/perftest.sh [-n ROUNDS] [-d DEVICE] [BUILD]
# rdma_bench beside Debian's perftest on one soft RDMA device, in turn, and the ratios: under emulation
# only these mean something. Starts the guest (tests/guest/run, BUILD is build by default) unless it
# runs in it, or on a machine that has DEVICE (rxe0) with ADDRESS (10.9.0.1).
# Each round measures each row once on both sides, which take turns at being first; ratios are
# medians over ROUNDS.
# Exit status: 0 measured, whatever the ratios; 1 not measured; 77 something is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
rounds=5
device=rxe0
usage() {
	sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
	exit 64
}
while getopts d:n: option; do
	case $option in
	d) device=$OPTARG ;;
	n) rounds=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
build=${1-build}
address=${ADDRESS-10.9.0.1}
build=$(cd "$build" && pwd)
bench=$build/tools/rdma_bench/rdma_bench

if [ ! -e "/sys/class/infiniband/$device" ]; then
	if [ -n "${GUEST_OUT-}" ]; then
		echo "perftest: this machine has no $device" >&2
		exit 77
	fi
	exec "$here/run" -b "$build" -t "${WEFT_GUEST_LIMIT-600}" \
		sh "$here/perftest.sh" -n "$rounds" -d "$device" "$build"
fi
for tool in ib_write_bw ib_send_lat python3; do
	command -v $tool >/dev/null || {
		echo "perftest: $tool is missing: apt-get install perftest python3-minimal" >&2
		exit 77
	}
done
exec python3 - "$bench" "$device" "$address" "$rounds" <<'PYTHON'
import json
import statistics
import subprocess
import sys
import time

BENCH, DEVICE, ADDRESS, ROUNDS = sys.argv[1:4] + [int(sys.argv[4])]
PORT = "18700"
SECONDS = 90  # of one command


def listens():
    """Somebody waits at PORT."""
    for table in ("tcp", "tcp6"):
        with open("/proc/net/" + table) as lines:
            for words in map(str.split, lines):
                if words[3] == "0A" and int(words[1].split(":")[-1], 16) == int(PORT):
                    return True
    return False


def both_ends(server, client):
    """Standard output of the client, or None."""
    quiet = subprocess.DEVNULL
    waiting = subprocess.Popen(server, stdout=quiet, stderr=quiet)
    try:
        limit = time.monotonic() + SECONDS
        while not listens() and time.monotonic() < limit:
            time.sleep(0.05)
        done = subprocess.run(
            client, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS
        )
        if done.returncode != 0:
            print("%s: %s" % (" ".join(client), done.stderr.strip()), file=sys.stderr)
            return None
        waiting.wait(timeout=SECONDS)
        return done.stdout
    except subprocess.TimeoutExpired:
        print("%s: no end within %d s" % (" ".join(client), SECONDS), file=sys.stderr)
        return None
    finally:
        waiting.kill()
        waiting.wait()


def ours(command, *options):
    """{(name, mode): result} of one pair."""
    words = [BENCH, command, "-d", DEVICE, "-p", PORT]
    out = both_ends(
        words + ["--listen=" + ADDRESS],
        words + ["--transport=verbs", "--pairs=1", "--json"] + list(options) + [ADDRESS],
    )
    return out and {(r["name"], r["mode"]): r for r in json.loads(out)["results"]}


def perftest(tool, column, *options):
    """One number of the last line of perftest's table."""
    words = [tool, "-F", "-d", DEVICE, "-x", "1", "-p", PORT] + list(options)
    out = both_ends(words, words + [ADDRESS])
    rows = [line.split() for line in (out or "").splitlines() if line.strip()[:1].isdigit()]
    return float(rows[-1][column]) if rows and len(rows[-1]) > column else None


# In each round: rows that one run of ours gives, and perftest's run beside it.
def put_bandwidth(size, count):
    name = "PUT bandwidth, %d KiB" % (size >> 10)
    r = ours("bw", "--op=put", "-s", str(size), "-n", str(count))
    yield name + " / raw WRITE", r and r[("put_bandwidth", "one way")]["fraction"]
    mine = r and r[("put_bandwidth", "one way")]["value"] * 1e9 / (1 << 20)
    yield name, mine


def latency(size):
    r = ours("lat", "-s", str(size), "-n", "1000")
    for op, raw in (("put", "raw WRITE with imm"), ("send", "raw SEND")):
        one = r and r.get((op + "_latency", "to and fro"))
        if one:
            label = "%s latency, %d B" % (op.upper(), size)
            yield label + " / " + raw, one["value"] / one["limit"]
            yield label, one["value"]


def rate():
    r = ours("rate", "--op=send", "-n", "2000")
    yield "updates, coalesced", r and r[("send_rate", "coalesced")]["value"]
    yield "updates, plain SEND", r and r[("send_rate", "plain")]["value"]


# What is measured: ours (label -> figure), perftest's (label, tool, column, options).
ROWS = [
    (lambda: put_bandwidth(65536, 800), [("ib_write_bw 64 KiB", "ib_write_bw", 3, ["-s", "65536", "-n", "800"])]),
    (lambda: put_bandwidth(1 << 20, 60), [("ib_write_bw 1 MiB", "ib_write_bw", 3, ["-s", str(1 << 20), "-n", "60"])]),
    (
        lambda: latency(8),
        [
            ("ib_send_lat 8 B", "ib_send_lat", 4, ["-s", "8", "-n", "1000"]),
            ("ib_write_lat 8 B", "ib_write_lat", 4, ["-s", "8", "-n", "1000"]),
        ],
    ),
    (lambda: latency(4000), [("ib_send_lat 4000 B", "ib_send_lat", 4, ["-s", "4000", "-n", "1000"])]),
    (lambda: latency(4096), []),
    (rate, [("ib_write_bw 8 B, M/s", "ib_write_bw", 4, ["-s", "8", "-n", "5000"])]),
]
# (what, divided by, at least or at most)
RATIOS = [
    ("PUT bandwidth, 64 KiB", "ib_write_bw 64 KiB", ">=", 0.95),
    ("PUT bandwidth, 1024 KiB", "ib_write_bw 1 MiB", ">=", 0.95),
    ("PUT latency, 8 B / raw WRITE with imm", None, "<=", 1.1),
    ("PUT latency, 4096 B / raw WRITE with imm", None, "<=", 1.1),
    ("SEND latency, 8 B", "ib_send_lat 8 B", "<=", 1.1),
    ("SEND latency, 4000 B", "ib_send_lat 4000 B", "<=", 1.1),
    ("updates, coalesced", "ib_write_bw 8 B, M/s", ">=", 20),
    # No targets of their own.
    ("PUT bandwidth, 64 KiB / raw WRITE", None, None, None),
    ("PUT bandwidth, 1024 KiB / raw WRITE", None, None, None),
    ("SEND latency, 8 B / raw SEND", None, None, None),
    ("PUT latency, 8 B", "ib_write_lat 8 B", None, None),
    ("updates, plain SEND", "ib_write_bw 8 B, M/s", None, None),
]


def one_round(number, seen):
    for mine, others in ROWS:
        steps = [lambda: list(mine())]
        steps += [
            lambda o=o: [(o[0], perftest(o[1], o[2], *o[3]))] for o in others
        ]
        if number % 2 == 1:
            steps.reverse()
        for step in steps:
            for label, figure in step():
                seen.setdefault(label, []).append(figure)


def main():
    seen = {}
    for number in range(ROUNDS):
        one_round(number, seen)
        print("round %d of %d" % (number + 1, ROUNDS), file=sys.stderr)
    whole = True
    print("%-42s %-22s %7s  %-13s %s" % ("what", "beside", "ratio", "of rounds", "wanted"))
    for what, beside, sign, wanted in RATIOS:
        a = seen.get(what, [])
        b = seen.get(beside, []) if beside else [1] * len(a)
        pairs = [x / y for x, y in zip(a, b) if x and y]
        if not pairs:
            print("%-42s %-22s not measured" % (what, beside or ""))
            whole = False
            continue
        ratio = statistics.median(pairs)
        met = sign is None or (ratio >= wanted if sign == ">=" else ratio <= wanted)
        print(
            "%-42s %-22s %7.2f%s %5.2f-%-6.2f %s"
            % (what, beside or "", ratio, " " if met else "!", min(pairs), max(pairs),
               "%s %g" % (sign, wanted) if sign else "")
        )
    print()
    for label, figures in sorted(seen.items()):
        known = [x for x in figures if x]
        if known and " / " not in label:
            print("%-30s median %10.4g of %d" % (label, statistics.median(known), len(known)))
    return 0 if whole else 1


sys.exit(main())
PYTHON
