#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What snapshots cost a job that trains on, and how fast they are beside a plain write to the same disk.

    snapshots.py [--mib M] [--rate BYTES] [--seconds S] [--folder DIR] BUILD

A pserver and a trainer exchange one tensor of M MiB (256) with SGD for S seconds (60). First with --snapshot_rate (32
MiB per second unless given) and 2 seconds between two snapshots: the steps during which a snapshot is written are
compared with those of the pauses, so that on and off alternate in the same minute. Then without a limit: each
snapshot is followed by a plain sequential write of as many bytes with fsync. Prints

    slowed     median step while a snapshot is written / median step in the pauses, and how many of each there were
    first      the longest step of the first snapshot, which begins early, and the longest of the later ones
    written    bytes per second of the snapshots without a limit, of the plain writes, and the median of their ratios

Nothing is asserted of a time. Exit status: 0; 1 if a value was wrong, or the job ended."""

import argparse
import os
import re
import socket
import statistics
import sys
import tempfile
import time

import restart

MADE = r"snapshot of step (\d+) in epoch \d+: (\d+) bytes in (\S+) s"


def start_job(options, folder, *more):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pserver = restart.start([os.path.join(options.build, "tools/weft"), "pserver", "--port=%d" % port, "--once",
                             "--transport=shm", "--snapshot_dir=" + folder, *more])
    trainer = restart.start(
        [sys.executable, os.path.abspath(restart.__file__), "--trainer=127.0.0.1:%d" % port, options.build,
         "--mib=%d" % options.mib, "--transport=shm"], PYTHONPATH=os.path.join(restart.TOP, "bindings/python"),
        WEFT_LIBRARY=os.path.join(options.build, "trainer/libweft.so.0"))
    return pserver, trainer


def stop_job(*processes):
    for lines in processes:
        lines.process.kill()
        lines.process.wait()


def steps_of(trainer):
    """(end, duration) of each step but the first three."""
    ends = [float(m.group(1)) for m in (re.match(r"step \d+ (\S+) right", line) for _, line in trainer.lines) if m]
    return [(b, b - a) for a, b in zip(ends[3:], ends[4:])]


def snapshots_of(pserver):
    """(begin, end, bytes) of each."""
    found = [(at, re.search(MADE, line)) for at, line in pserver.lines]
    return [(at - float(m.group(3)), at, int(m.group(2))) for at, m in found if m]


def measure_steps(options, folder):
    pserver, trainer = start_job(options, folder, "--snapshot_period=2s", "--snapshot_rate=%d" % options.rate)
    try:
        trainer.wait(r"^step 5 ", 0)
        time.sleep(options.seconds)
        steps, written = steps_of(trainer), snapshots_of(pserver)
        if trainer.process.poll() is not None:
            sys.exit("snapshots: the trainer ended: %s" % trainer.lines[-3:])
    finally:
        stop_job(trainer, pserver)
    # A step is one of a snapshot if all of it is; what is partly in one counts nowhere.
    during = [took for end, took in steps if any(b <= end - took and end <= e for b, e, _ in written)]
    beside = [took for end, took in steps if all(end < b or end - took > e for b, e, _ in written)]
    copies = [max([took for end, took in steps if end - took <= e and end >= b - 0.5] or [0]) for b, e, _ in written]
    print("slowed  %.3f (%d steps of %.1f ms during %d snapshots, %d of %.1f ms beside them)"
          % (statistics.median(during) / statistics.median(beside), len(during), 1e3 * statistics.median(during),
             len(written), len(beside), 1e3 * statistics.median(beside)))
    print("first   %.1f ms, later at most %.1f ms" % (1e3 * copies[0], 1e3 * max(copies[1:])))


def plain_write(folder, count):
    block = os.urandom(1 << 20)
    path = os.path.join(folder, "plain")
    begin = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(count >> 20):
            file.write(block)
        os.fsync(file.fileno())
    took = time.monotonic() - begin
    os.unlink(path)
    return took


def measure_disk(options, folder):
    pserver, trainer = start_job(options, folder, "--snapshot_period=3s")
    ratios, speeds = [], []
    try:
        seen, end = 0, time.monotonic() + options.seconds
        while time.monotonic() < end:
            pserver.wait(MADE, 0, seen + 1)
            seen += 1
            begin, done, count = snapshots_of(pserver)[-1]
            took = plain_write(folder, count)
            ratios.append(took / (done - begin))
            speeds.append((count / (done - begin), count / took))
    finally:
        stop_job(trainer, pserver)
    print("written %.0f MB/s, plain %.0f MB/s, ratio %.2f (%d times)"
          % (statistics.median(a for a, _ in speeds) / 1e6, statistics.median(b for _, b in speeds) / 1e6,
             statistics.median(ratios), len(ratios)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rate", type=int, default=32 << 20)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--folder", help="for the snapshots, instead of a temporary one")
    parser.add_argument("build")
    options = parser.parse_args()
    print("%d MiB, --snapshot_rate=%d" % (options.mib, options.rate))
    for measure in (measure_steps, measure_disk):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            measure(options, folder)


if __name__ == "__main__":
    main()
