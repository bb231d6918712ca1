#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a job stands still when its pserver is killed and started again, and what the time goes into.

    restart.py [--mib M] [--times N] [--cold] [--transport T] [--ports_num L] [--json FILE] BUILD

A pserver and a trainer exchange one tensor of M MiB (1024) with SGD. The pserver is killed at a random moment of a
step after a snapshot, and started again at once. The trainer stays, goes back to the snapshot, and compares its
values with those that they have to be, to the bit, in each step. Prints for each of the N times (3):

    detected   from the kill to the trainer's first line that names the loss
    listens    from the kill to the new pserver's line that it listens
    chosen     from the kill to the line that names the snapshot
    back       from the kill to the trainer's return from the call, with the values of the snapshot
    step       from the kill to the end of the first step after that, with the right values
    ordinary   a step of this job when nothing fails, the median
    read       a plain sequential read of the snapshot's files, in the same state of the page cache
    ratio      step / (detected + read), which is to be 1.5 at the most

With --cold the files are no longer in the page cache when the pserver is killed, nor when they are read. Nothing
is asserted of a time. Exit status: 0; 1 if a value was wrong, or the job ended; 77 without NumPy."""

import argparse
import glob
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 120
RATE = 2.0**-10
SHOWN = ("detected", "listens", "chosen", "back", "step", "ordinary", "read", "ratio")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--ports_num", type=int, default=1)
    parser.add_argument("--folder", help="for the snapshots, instead of a temporary one")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("WEFT_SEED", "0")) or random.randrange(1 << 30))
    parser.add_argument("--json")
    parser.add_argument("--trainer", help=argparse.SUPPRESS)
    parser.add_argument("build")
    return parser.parse_args(arguments)


# ---- the trainer, a process of its own ----


def train(options):
    """Prints a line for each step: all values are -step x RATE, which f32 has exactly."""
    import numpy as np

    import weft

    session = weft.Session(
        pservers=options.trainer, ports_num=options.ports_num, transport=options.transport,
        learning_rate=RATE, connect_timeout=LIMIT,
    )
    tensor = session.empty(options.mib << 18, name="w")
    tensor.param[:] = 0
    session.start()
    while True:
        try:
            session.step(1)
            tensor.grad[:] = 1
            session.push(tensor)
            session.wait()
        except weft.RolledBack as back:
            print("back %d %.6f" % (back.step, time.monotonic()), flush=True)
            continue
        now = time.monotonic()
        right = bool(np.all(tensor.param == np.float32(-session.steps * RATE)))
        print("step %d %.6f %s" % (session.steps, now, "right" if right else "wrong"), flush=True)
        if not right:
            sys.exit(1)


# ---- who watches ----


class Lines:
    """The lines that a process writes, each with the moment when it came."""

    def __init__(self, process):
        self.process, self.lines, self.change = process, [], threading.Condition()
        for file in (process.stdout, process.stderr):
            if file is not None:
                threading.Thread(target=self.read, args=(file,), daemon=True).start()

    def read(self, file):
        for line in file:
            with self.change:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.change.notify_all()

    def wait(self, pattern, since, number=1):
        """The moment and the match of the line, the number-th since then."""
        end = time.monotonic() + LIMIT
        with self.change:
            while True:
                found = [(at, match) for at, match in
                         ((at, re.search(pattern, line)) for at, line in self.lines if at >= since) if match]
                if len(found) >= number:
                    return found[number - 1]
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("no line %r: %s" % (pattern, [line for _, line in self.lines[-8:]]))
                self.change.wait(0.2)


def start(command, **more):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", env=dict(os.environ, **more))
    return Lines(process)


def files_of(folder):
    return sorted(glob.glob(folder + "/epoch-*/*"))


def newest(folder):
    manifests = sorted(glob.glob(folder + "/epoch-*/manifest"))
    return [path for path in files_of(folder) if os.path.dirname(path) == os.path.dirname(manifests[-1])]


def forget(paths):
    """Out of the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain_read(paths, cold):
    if cold:
        forget(paths)
    block = bytearray(1 << 20)
    begin = time.monotonic()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(block):
                pass
    return time.monotonic() - begin


def play(options, chance, port, folder):
    """A job with one kill; its times."""
    command = [os.path.join(options.build, "tools/weft"), "pserver", "--port=%d" % port, "--once",
               "--ports_num=%d" % options.ports_num, "--transport=" + options.transport, "--snapshot_dir=" + folder,
               "--snapshot_steps=8", "--resume=auto", "--on_trainer_death=wait"]
    own = [sys.executable, os.path.abspath(__file__), "--trainer=127.0.0.1:%d" % port, options.build,
           "--mib=%d" % options.mib, "--transport=" + options.transport, "--ports_num=%d" % options.ports_num]
    pserver = start(command)
    trainer = None
    try:
        trainer = start(own, PYTHONPATH=os.path.join(TOP, "bindings/python"),
                        WEFT_LIBRARY=os.path.join(options.build, "trainer/libweft.so.0"))
        at, _ = pserver.wait(r"snapshot of step \d+ in epoch \d+: ", 0)
        trainer.wait(r"^step \d+ .* right", at, 4)
        steps = [float(m.group(1)) for m in (re.match(r"step \d+ (\S+) right", line)
                                              for _, line in trainer.lines) if m]
        paths = newest(folder)
        found = {"read": plain_read(paths, options.cold)}
        found["ordinary"] = statistics.median(b - a for a, b in zip(steps[1:], steps[2:]))
        if options.cold:
            forget(files_of(folder))
        time.sleep(chance.random() * found["ordinary"])
        kill = time.monotonic()
        pserver.process.kill()
        pserver.process.wait()
        pserver = start(command)
        found["detected"] = trainer.wait(r"lost|gone|closed|reset", kill)[0] - kill
        found["listens"] = pserver.wait(r"listen", kill)[0] - kill
        found["chosen"] = pserver.wait(r"goes on from the snapshot", kill)[0] - kill
        found["back"] = float(trainer.wait(r"^back \d+ (\S+)", kill)[1].group(1)) - kill
        found["step"] = float(trainer.wait(r"^step \d+ (\S+) right", kill + found["back"])[1].group(1)) - kill
        found["ratio"] = found["step"] / (found["detected"] + found["read"])
        return found, pserver.lines, trainer.lines
    finally:
        for lines in (trainer, pserver):
            if lines is not None:
                lines.process.kill()
                lines.process.wait()


def main():
    options = options_of(sys.argv[1:])
    if options.trainer:
        train(options)
    chance = random.Random(options.seed)
    print("%d MiB, %s, seed %d" % (options.mib, "cold" if options.cold else "warm", options.seed))
    print(" ".join("%9s" % name for name in SHOWN))
    results = []
    for _ in range(options.times):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            found, pserver, trainer = play(options, chance, port, folder)
        results.append(found)
        print(" ".join("%9.3f" % found[name] for name in SHOWN), flush=True)
        if os.environ.get("RESTART_LOG"):
            print("\n".join("%.3f %s" % line for line in pserver + trainer))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"mib": options.mib, "cold": options.cold, "times": results}, file, indent=1)


if __name__ == "__main__":
    main()
