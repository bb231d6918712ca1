#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: watched.py [--seconds=N] [--sleep=SECONDS]

What it costs to watch a job with everything that there is: its page and /metrics are read each
second, and it is recorded all the time. Two equal jobs run side by side, of which one is watched. Of
each second: the CPU time of all processes of the watched job less that of the other one. Prints the
median, and between which values it is (95 %). The limit is 10 ms: 1 % of the time, and so of any
step, of one CPU; exits 1 if all of the interval is above it."""

import glob
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import why

LIMIT_MS = 10
FLOATS = 250000  # of each of two tensors
PATHS = ("/metrics", "/api/v1/status")


class Watched(why.Job):
    """A job whose trainers sleep for some time in each step, with a page or without."""

    def __init__(self, folder, sleep, page):
        self.page = page
        super().__init__(folder, FLOATS, {"sleep": sleep, "all": 1, "slice_bytes": 262144})

    def start(self, name, command, environment):
        if self.page and name.startswith("pserver"):
            command = command + [f"--status={self.page}"]
        return super().start(name, command, environment)

    def cpu_ns(self):
        sum_ns = 0
        for process in self.processes:
            for path in glob.glob(f"/proc/{process.pid}/task/*/schedstat"):
                with open(path) as file:
                    sum_ns += int(file.read().split()[0])
        return sum_ns


class Watcher:
    """Reads the page's documents each second, and has the job recorded all the time."""

    def __init__(self, job):
        self.job, self.reads, self.recordings, self.failed = job, 0, 0, 0
        self.over = False
        self.records = None
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.record)]
        for thread in self.threads:
            thread.start()

    def read(self):
        while not self.over:
            begun = time.monotonic()
            for path in PATHS:
                try:
                    page = http.client.HTTPConnection("127.0.0.1", self.job.page, timeout=30)
                    page.request("GET", path)
                    self.reads += page.getresponse().status == 200
                    page.close()
                except OSError:
                    self.failed += 1
            time.sleep(max(0, 1 - (time.monotonic() - begun)))

    def record(self):
        while not self.over:
            self.records = subprocess.Popen(
                [why.WEFT, "trace", self.job.at, "--steps=100", "-o", os.devnull],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if self.records.wait() == 0:
                self.recordings += 1
            else:
                time.sleep(0.1)

    def close(self):
        self.over = True
        self.records.terminate()
        for thread in self.threads:
            thread.join()


def interval(values):
    """Between which values the median is, by the signs of the differences: 95 %."""
    ordered, count = sorted(values), len(values)
    skip = max(0, int(count / 2 - 0.98 * count**0.5) - 1)
    return ordered[skip], ordered[count - 1 - skip]


def main():
    words = dict(word.lstrip("-").split("=") for word in sys.argv[1:])
    seconds, sleep = int(words.get("seconds", 60)), float(words.get("sleep", 0.1))
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as watched:
        jobs = [Watched(plain, sleep, None)]
        jobs.append(Watched(watched, sleep, jobs[0].ports.first + 40))
        try:
            for job in jobs:
                job.ask("why", job.at, "--json")  # it makes steps
            watcher = Watcher(jobs[1])
            time.sleep(12)  # until the other one shows nothing more
            seen = [[job.cpu_ns() for job in jobs]]
            for _ in range(seconds):
                time.sleep(1)
                seen.append([job.cpu_ns() for job in jobs])
            watcher.close()
        finally:
            for job in jobs:
                job.close()
    spent = [[(b - a) / 1e6 for a, b in zip(*pair)] for pair in zip(seen, seen[1:])]
    more = [with_it - without for without, with_it in spent]
    low, high = interval(more)
    print(f"{watcher.reads} documents were read, {watcher.failed} were not; "
          f"{watcher.recordings} recordings of 100 steps")
    print(f"CPU time of a job in a second: {statistics.median(one for one, _ in spent):.2f} ms; watched: "
          f"{statistics.median(more):.2f} ms more, between {low:.2f} and {high:.2f}, {seconds} seconds")
    return 0 if low <= LIMIT_MS and watcher.reads > 0 and watcher.recordings > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
