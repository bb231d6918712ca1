#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a 64-byte push-pull over TCP costs, both sides together, as counts that do not depend on how
fast the machine is: instructions (valgrind's callgrind) and system calls (strace).

usage: cost.py [--functions] BUILD

A trainer (exchange.c) that drives its own progress and a `weft pserver` of one lane share one CPU,
neither spins, and both are SCHED_BATCH: whoever runs goes on until it sleeps, so that each exchange
is the same sequence: both sides sleep and are woken once. Two runs of different lengths; the
difference is what the exchanges cost. The numbers hold for a release build of gcc 12.

Exits 0 within the limits, 1 above them, 77 where a tool is missing. --functions: what each function
adds, without those below one instruction."""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Measured, plus 2 %; they may only shrink. The aim is what an exchange should come down to.
INSTRUCTIONS_MAX = 5940
INSTRUCTIONS_AIM = 3800
CALLS_MAX = 6.1  # epoll_pwait, recvfrom and sendto a side; and a tracer's doing
SHORT, LONG = 500, 2500  # exchanges
TIMEOUT_S = 120


def place():
    """In the child: one CPU for both, and no preemption by who was just woken."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def listening_port(server):
    """The start line of the pserver says which port it was given."""
    for line in server.stderr:
        match = re.search(r"ports (\d+) to ", line)
        if match:
            return match.group(1)
    sys.exit("cost: the pserver did not start")


def exchange(build, count, wrap, work):
    """One job of `count` exchanges. Returns the files that `wrap` had written: pserver, trainer."""
    files = [os.path.join(work, "%s.%d" % (side, count)) for side in ("pserver", "trainer")]
    server = subprocess.Popen(
        wrap(files[0]) + [os.path.join(build, "tools", "weft"), "pserver", "--port=0", "--once",
                          "--transport=tcp", "--spin=0"],
        preexec_fn=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        port = listening_port(server)
        subprocess.run(
            wrap(files[1]) + [os.path.join(build, "tests", "cost", "exchange"), port, str(count)],
            preexec_fn=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
            timeout=TIMEOUT_S)
        server.communicate(timeout=TIMEOUT_S)
    finally:
        server.kill()
        server.wait()
    if server.returncode != 0:
        sys.exit("cost: the pserver ended with %d" % server.returncode)
    return files


def callgrind(path):
    return ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + path]


def strace(path):
    return ["strace", "-f", "-c", "-o", path]


def instructions(path):
    with open(path, encoding="utf-8") as file:
        return int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.MULTILINE).group(1))


def calls(path):
    """Calls by name; columns of strace -c: % time, seconds, usecs/call, calls, [errors], name."""
    by_name = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if len(words) >= 5 and words[3].isdigit() and words[-1] != "total":
                by_name[words[-1]] += int(words[3])
    return by_name


def functions(path):
    out = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", path],
        capture_output=True, text=True, check=True).stdout
    by_name = collections.Counter()
    for line in out.splitlines():
        match = re.match(r"\s*([\d,]+)\s+\S+?:(\S+)", line)
        if match:
            by_name[match.group(2)] += int(match.group(1).replace(",", ""))
    return by_name


def per_exchange(read, short, long):
    """What `read` counts by name in two files, per exchange."""
    before, after = read(short), read(long)
    return {name: (after[name] - before[name]) / (LONG - SHORT) for name in after}


def measure_instructions(build, work, show):
    short, long = (exchange(build, count, callgrind, work) for count in (SHORT, LONG))
    total = 0.0
    for side, a, b in zip(("pserver", "trainer"), short, long):
        cost = (instructions(b) - instructions(a)) / (LONG - SHORT)
        total += cost
        print("%-8s %6.0f instructions" % (side, cost))
        if show:
            by_name = per_exchange(functions, a, b)
            for name in sorted(by_name, key=by_name.get, reverse=True):
                if by_name[name] >= 1:
                    print("  %8.1f %s" % (by_name[name], name))
    return total


def measure_calls(build, work):
    short, long = (exchange(build, count, strace, work) for count in (SHORT, LONG))
    total = 0.0
    for side, a, b in zip(("pserver", "trainer"), short, long):
        by_name = per_exchange(calls, a, b)
        total += sum(by_name.values())
        often = ["%s %.2f" % (name, by_name[name]) for name in sorted(by_name)
                 if by_name[name] >= 0.01]
        print("%-8s %6.2f system calls: %s" % (side, sum(by_name.values()), ", ".join(often)))
    return total


def main():
    parser = argparse.ArgumentParser(usage="cost.py [--functions] BUILD")
    parser.add_argument("build")
    parser.add_argument("--functions", action="store_true")
    asked = parser.parse_args()
    for tool in ("valgrind", "callgrind_annotate", "strace"):
        if shutil.which(tool) is None:
            print("cost: %s is missing" % tool)
            sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        cost = measure_instructions(asked.build, work, asked.functions)
        made = measure_calls(asked.build, work)
    print("both     %6.0f instructions (limit %d, aim %d), %.2f system calls (limit %.2f)"
          % (cost, INSTRUCTIONS_MAX, INSTRUCTIONS_AIM, made, CALLS_MAX))
    sys.exit(1 if cost > INSTRUCTIONS_MAX or made > CALLS_MAX else 0)


if __name__ == "__main__":
    main()
