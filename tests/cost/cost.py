#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What small exchanges cost, all processes together, as counts that do not depend on how fast the
machine is: instructions (valgrind's callgrind) and system calls (strace).

usage: cost.py [--functions] BUILD [ROW...]

Trainers (exchange.c) and a `weft pserver` of one lane share one CPU, nobody polls, and all are
SCHED_BATCH: whoever runs goes on until it sleeps, so that each exchange is the same sequence. Two
runs of different lengths; the difference is what the exchanges cost. The numbers hold for a release
build of gcc 12.

Exits 0 within the limits, 1 above them, 77 where a tool is missing. --functions: what each function
adds, without those below one instruction."""

import argparse
import collections
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

Row = collections.namedtuple("Row", "trainers transport progress what number instructions calls aim")
# The limits are what was measured, plus 2 %; they may only shrink. Calls: to sleep, to receive and
# to send, a side; and a tracer's doing. How the messages of rows meet varies by 2 % from run to run.
# The aim is what the exchange should come down to.
ROWS = {
    "tcp": Row(1, "tcp", "caller", "tensors", 1, 3860, 6.1, 3800),
    "varied": Row(1, "tcp", "caller", "varied", 1, 4560, 6.1, None),  # each step sends STEP
    "thread": Row(1, "tcp", "thread", "tensors", 1, 4470, 6.1, None),
    "shm": Row(1, "shm", "caller", "tensors", 1, 4420, 4.4, None),
    "crew": Row(2, "tcp", "caller", "tensors", 4, 17060, 12.2, None),
    "recorded": Row(1, "tcp", "caller", "recorded", 1, 4960, 6.5, None),  # as tcp, but recorded
    "rows": Row(1, "tcp", "caller", "rows", 16, 22250, 12.6, None),
}
SHORT, LONG = 500, 2500  # exchanges
RECORDED = 900  # the most that one recording may be asked for is 1,000 steps
EVENTS = 11  # that a recorded exchange of one tensor makes, at both ends
RECORDED_S = 2  # until all members record
EVENT_INSTRUCTIONS = 100  # the most that one may cost
EVENT_LEAST = 20  # less, and nothing was recorded
TIMEOUT_S = 120


def place():
    """In the child: one CPU for both, and no preemption by who was just woken."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def two_ports():
    """The first of two free ports in a row: lanes of tensors and of rows have one each."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", 0))
                port = first.getsockname()[1]
                second.bind(("127.0.0.1", port + 1))
                return port
            except (OSError, OverflowError):
                continue
    sys.exit("cost: no two free ports in a row")


def await_start(server):
    for line in server.stderr:
        if re.search(r"ports (\d+) to ", line):
            return
    sys.exit("cost: the pserver did not start")


def record(build, port, trainer):
    """The job is recorded from now on. Who has asked for it leaves: only the recording is measured."""
    if trainer.stdout.readline() != "started\n":
        sys.exit("cost: the trainer did not start")
    asks = subprocess.Popen(
        [os.path.join(build, "tools", "weft"), "trace", "127.0.0.1:%d" % port, "--steps=1000",
         "-o", os.devnull], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(RECORDED_S)
    asks.kill()
    asks.wait()
    trainer.stdin.write("\n")
    trainer.stdin.flush()


def exchange(build, row, count, wrap, work):
    """One job of `count` exchanges. Returns the files that `wrap` had written, by process."""
    names = ["pserver"] + ["trainer %d" % i for i in range(row.trainers)]
    files = {name: os.path.join(work, "%s.%d" % (name.replace(" ", ""), count)) for name in names}
    port = two_ports()
    server = subprocess.Popen(
        wrap(files["pserver"]) +
        [os.path.join(build, "tools", "weft"), "pserver", "--port=%d" % port, "--once",
         "--spin=0", "--transport=" + row.transport, "--num_gradient_servers=%d" % row.trainers,
         "--ports_num_for_sparse=%d" % (row.what == "rows")],
        preexec_fn=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    trainers = []
    try:
        await_start(server)
        for i in range(row.trainers):
            trainers.append(subprocess.Popen(
                wrap(files["trainer %d" % i]) +
                [os.path.join(build, "tests", "cost", "exchange"), str(port), str(count), row.transport,
                 row.progress, row.what, str(row.number), str(row.trainers), str(i)],
                preexec_fn=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True))
        if row.what == "recorded":
            record(build, port, trainers[0])
        for process in trainers:
            if process.wait(timeout=TIMEOUT_S) != 0:
                sys.exit("cost: a trainer ended with %d" % process.returncode)
        server.communicate(timeout=TIMEOUT_S)
    finally:
        for process in [server] + trainers:
            process.kill()
            process.wait()
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


def per_exchange(read, short, long, counts):
    """What `read` counts by name in two files, per exchange."""
    before, after = read(short), read(long)
    return {name: (after[name] - before[name]) / (counts[1] - counts[0]) for name in after}


def lengths(row):
    """The short and the long run, in exchanges."""
    return (SHORT, LONG) if row.what != "recorded" else (RECORDED // 4, RECORDED)


def measure_instructions(build, row, work, show):
    counts = lengths(row)
    short, long = (exchange(build, row, count, callgrind, work) for count in counts)
    total = 0.0
    for name in short:
        cost = (instructions(long[name]) - instructions(short[name])) / (counts[1] - counts[0])
        total += cost
        print("  %-9s %6.0f instructions" % (name, cost))
        if show:
            by_name = per_exchange(functions, short[name], long[name], counts)
            for function in sorted(by_name, key=by_name.get, reverse=True):
                if by_name[function] >= 1:
                    print("    %8.1f %s" % (by_name[function], function))
    return total


def measure_calls(build, row, work):
    counts = lengths(row)
    short, long = (exchange(build, row, count, strace, work) for count in counts)
    total = 0.0
    for name in short:
        by_name = per_exchange(calls, short[name], long[name], counts)
        total += sum(by_name.values())
        often = ["%s %.2f" % (call, by_name[call]) for call in sorted(by_name)
                 if by_name[call] >= 0.01]
        print("  %-9s %6.2f system calls: %s" % (name, sum(by_name.values()), ", ".join(often)))
    return total


def measure(build, name, show):
    """Whether the row is within its limits."""
    row = ROWS[name]
    print("%s: %d trainers over %s, progress=%s, %d %s of 64 bytes" %
          (name, row.trainers, row.transport, row.progress, row.number, row.what))
    with tempfile.TemporaryDirectory() as work:
        cost = measure_instructions(build, row, work, show)
        made = measure_calls(build, row, work)
    if row.what == "recorded":
        with tempfile.TemporaryDirectory() as work:
            print("  the same, not recorded:")
            event = (cost - measure_instructions(build, ROWS["tcp"], work, show)) / EVENTS
        print("  %6.1f instructions for each of %d events (limit %d)" % (event, EVENTS, EVENT_INSTRUCTIONS))
        if not EVENT_LEAST < event <= EVENT_INSTRUCTIONS:
            return False
    aim = "" if row.aim is None else ", aim %d" % row.aim
    print("  all       %6.0f instructions (limit %d%s), %.2f system calls (limit %.2f)"
          % (cost, row.instructions, aim, made, row.calls), flush=True)
    return cost <= row.instructions and made <= row.calls


def main():
    parser = argparse.ArgumentParser(usage="cost.py [--functions] BUILD [ROW...]")
    parser.add_argument("build")
    parser.add_argument("row", nargs="*", choices=[[]] + sorted(ROWS), default=[])
    parser.add_argument("--functions", action="store_true")
    asked = parser.parse_args()
    for tool in ("valgrind", "callgrind_annotate", "strace"):
        if shutil.which(tool) is None:
            print("cost: %s is missing" % tool)
            sys.exit(77)
    within = [measure(asked.build, name, asked.functions) for name in asked.row or ROWS]
    sys.exit(0 if all(within) else 1)


if __name__ == "__main__":
    main()
