#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What data and launching cost, beside what is promised for them. Asserts no time: run it on a quiet
machine, with a release build; docs/figures.md has what it printed.

usage: data.py [--rounds=N] [--jobs=N+N,...] [--rows=N] BUILD [stream|recordio|launch...]

stream    ctr on rows of gzip'd Criteo text in 8 files, streamed, beside the same rows in memory:
          passes a second behind the first pass, which includes the start. The threads of trainer and
          pserver share one CPU in both runs, and the reader's thread has another (wanted: 0.90)
recordio  CPU time of zlib and snappy alone beside that of RecordIO with them, written and read, for
          the lines of two files of data/ (recordio.c; wanted: 0.80)
launch    from the start of `weft launch` to the end of the first step of a job of 64 processes, 8
          pservers and 56 trainers, or 32 of each, beside starting as many of the same programs with
          --help, all at once (wanted: at most 1.30)

Both sides of a figure are measured in turn, so many rounds; a line has the medians of both, the
median of the ratios within a round, and the lowest and highest of these."""

import argparse
import contextlib
import gzip
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PASSES = 4
FILES = 8
STREAMED, WHOLE = "8MiB", "1GiB"  # windows: less than the text, and more, so that it stays in memory


def print_row(what, unit, pairs, is_cost=False):
    """pairs: (weft's, the other) of each round; of costs the ratio is the other way round."""
    ratios = sorted(other / weft if is_cost else weft / other for weft, other in pairs)
    weft, other = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    middle = statistics.median(ratios)
    print(f"{what:34}{weft:9.3f}{other:9.3f} {unit:10}{middle:6.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)


def free_ports(count):
    """The first of so many consecutive ports that are free now."""
    while True:
        first = random.randrange(20000, 32000)
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return first


# ---- stream ----


def write_rows(folder, rows):
    """Rows in the layout of Criteo's logs, half in each category's few values and half in many."""
    chance = random.Random(1)
    for part in range(FILES):
        with gzip.open(os.path.join(folder, f"day-{part}.gz"), "wt", compresslevel=6) as out:
            for _ in range(rows // FILES):
                fields = [str(chance.randrange(2))]
                fields += ["" if chance.random() < 0.1 else str(chance.randrange(1000)) for _ in range(13)]
                few = [f"{chance.randrange(300) * 7919:08x}" for _ in range(13)]
                many = [f"{chance.randrange(200000) * 7919 % 2**32:08x}" for _ in range(13)]
                out.write("\t".join(fields + few + many) + "\n")


def passes_per_s(weft, folder, in_memory, cpus):
    """Passes a second, from the end of the first one on."""
    port = str(free_ports(2))
    lanes = ["--ports_num_for_sparse=1", f"--port={port}", f"--pin={cpus[0]}"]
    server = subprocess.Popen(
        ["taskset", "-c", str(cpus[0]), weft, "pserver", "--once", *lanes], stderr=subprocess.DEVNULL
    )
    trainer = subprocess.Popen(
        ["taskset", "-c", f"{cpus[0]},{cpus[1]}", weft, "train", "ctr", "--format=criteo", "--no-baseline"]
        + [f"--data={folder}", f"--pservers=127.0.0.1:{port}", f"--num_passes={PASSES}", "--batch_size=256"]
        + [f"--data_window={WHOLE if in_memory else STREAMED}", *lanes],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    ends = [time.monotonic() for line in trainer.stdout if line.startswith("pass ")]
    if trainer.wait() != 0 or server.wait() != 0 or len(ends) != PASSES:
        sys.exit("data.py: a job of `stream` has failed")
    return (PASSES - 1) / (ends[-1] - ends[0])


def stream(options, weft):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("data.py: stream needs two CPUs")
    with tempfile.TemporaryDirectory() as folder:
        write_rows(folder, options.rows)
        pairs = [[passes_per_s(weft, folder, memory, cpus) for memory in (False, True)] for _ in range(options.rounds)]
    print_row("ctr, 8 gzip'd files", "passes/s", pairs)


# ---- recordio ----


def recordio(options, weft):
    program = os.path.join(options.build, "tests/cost/recordio")
    for compressor, name in (("snappy", "moby-dick.txt"), ("snappy", "birdstrikes.csv"), ("gzip", "moby-dick.txt")):
        command = [program, os.path.join(TOP, "data", name), compressor, str(options.rounds)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
        rounds = [[float(word) for word in line.split()] for line in lines if line]
        print_row(f"write {compressor} {name}", "s", [r[0:2] for r in rounds], is_cost=True)
        print_row(f"read {compressor} {name}", "s", [r[2:4] for r in rounds], is_cost=True)


# ---- launch ----


def first_step_s(weft, pservers, trainers):
    """Seconds to the first pass of linear, which is one step of all rows."""
    start = time.monotonic()
    job = subprocess.Popen(
        [weft, "launch", "--local", f"--port={free_ports(pservers)}", f"--pservers={pservers}"]
        + [f"--trainers={trainers}", "--", "train", "linear", "--num_passes=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    line = job.stdout.readline()
    took = time.monotonic() - start
    if job.wait() != 0 or not line.startswith("pass 0 "):
        sys.exit("data.py: a job of `launch` has failed")
    return took


def help_s(weft, pservers, trainers):
    script = """
        for i in $(seq "$1"); do "$0" pserver --help & done
        for i in $(seq "$2"); do "$0" train linear --help & done
        wait"""
    start = time.monotonic()
    subprocess.run(["sh", "-c", script, weft, str(pservers), str(trainers)], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def launch(options, weft):
    for job in options.jobs.split(","):
        counts = [int(count) for count in job.split("+")]
        pairs = [[first_step_s(weft, *counts), help_s(weft, *counts)] for _ in range(options.rounds)]
        print_row(f"launch, {counts[0]} + {counts[1]} processes", "s", pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", default="8+56,32+32")
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("build")
    parser.add_argument("figures", nargs="*")
    options = parser.parse_args()
    all_figures = {"stream": stream, "recordio": recordio, "launch": launch}
    if not set(options.figures) <= set(all_figures):
        parser.error("figures are: " + ", ".join(all_figures))
    weft = os.path.abspath(os.path.join(options.build, "tools/weft"))
    print(f"{'':34}{'weft':>9}{'beside':>9} {'unit':10}{'ratio':>6}   within rounds")
    for name in options.figures or all_figures:
        all_figures[name](options, weft)


if __name__ == "__main__":
    main()
