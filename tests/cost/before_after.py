#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast two states of weft are beside the limits of this machine, by turns in one run.

usage: before_after.py [--rounds=N] [--pairs=N] [--only=NAME,...] BEFORE AFTER

BEFORE and AFTER are release builds of two checkouts, with the targets tools/weft, tests/cost/exchange and
tools/rdma_bench/rdma_bench. Prints a line for each kind of work:

    instructions, system calls   of both sides of a small exchange (cost.py): counted, so a busy machine
                                 does not matter
    figures of `rdma_bench self` value, and fraction of the limit that its pairs measured; --only has
                                 their names. Each round (3) has BEFORE and AFTER, so many pairs (5) of
                                 each, and takes turns at who is first; what is printed are medians over
                                 the pairs of all rounds

A figure that one of the two does not have is printed as "-". Exit status: 0; 70 if something failed."""

import argparse
import collections
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cost  # noqa: E402

COUNTED = ("tcp", "thread", "shm", "rows", "crew")
FIGURES = "fused_sum_sgd,exchange_latency,exchange_bandwidth,rows,async,scaling"

Figure = collections.namedtuple("Figure", "name transport mode bytes limited_by unit")
Pairs = collections.namedtuple("Pairs", "values fractions")


def counted(build, row):
    """Instructions and system calls of a small exchange."""
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
        return (cost.measure_instructions(build, cost.ROWS[row], work, False),
                cost.measure_calls(build, cost.ROWS[row], work))


def print_counts(builds):
    print("%-44s %9s %9s" % ("counted (both sides of a small exchange)", "before", "after"))
    for row in COUNTED:
        before, after = (counted(build, row) for build in builds)
        print("%-44s %9.0f %9.0f" % (row + ", instructions", before[0], after[0]))
        print("%-44s %9.1f %9.1f" % (row + ", system calls", before[1], after[1]))


def measured(build, only, pairs):
    """One run of `rdma_bench self`: its results by Figure."""
    out = subprocess.run(
        [os.path.join(build, "tools", "rdma_bench", "rdma_bench"), "self", "--json",
         "--only=" + only, "--pairs=%d" % pairs],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if out.returncode != 0:
        sys.exit("before_after: rdma_bench of %s ended with %d" % (build, out.returncode))
    return {
        Figure(*(result[key] for key in Figure._fields)): result
        for result in json.loads(out.stdout)["results"]
    }


def merged(builds, only, rounds, pairs):
    """[{Figure: Pairs}] of the builds."""
    all_pairs = [collections.defaultdict(lambda: Pairs([], [])) for _ in builds]
    for turn in range(rounds):
        order = range(len(builds))
        for which in order if turn % 2 == 0 else reversed(order):
            for figure, result in measured(builds[which], only, pairs).items():
                all_pairs[which][figure].values.extend(result.get("values") or [result["value"]])
                all_pairs[which][figure].fractions.extend(
                    result.get("fractions") or [result["fraction"]])  # of versions without pairs
    return all_pairs


def name_of(figure):
    size = figure.bytes
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or size % 1024 != 0 or unit == "MiB":
            break
        size //= 1024
    return "%s %s, %s, %d %s (%s)" % (figure.name, figure.transport, figure.mode, size, unit,
                                      figure.limited_by)


def cell(pairs):
    if pairs is None:
        return "%8s %8s" % ("-", "-")
    return "%8.3f %8.2f" % (statistics.median(pairs.values), statistics.median(pairs.fractions))


def print_figures(builds, options):
    print("%-58s %4s %8s %8s %8s %8s" % (
        "beside the limit", "unit", "before", "fraction", "after", "fraction"))
    for only in options.only.split(","):
        before, after = merged(builds, only, options.rounds, options.pairs)
        for figure in dict.fromkeys(list(after) + list(before)):
            print("%-58s %4s %s %s" % (name_of(figure), figure.unit, cell(before.get(figure)),
                                       cell(after.get(figure))), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", default=FIGURES)
    parser.add_argument("before")
    parser.add_argument("after")
    options = parser.parse_args()
    builds = (options.before, options.after)
    print_counts(builds)
    print_figures(builds, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
