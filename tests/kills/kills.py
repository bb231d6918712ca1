#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills processes of real jobs at random instants, which `weft launch --restarts` starts again by themselves or
with all others, and compares how each job ends with a sequential run.

    tests/kills/kills.py [--json FILE] [--kills N] [--seed S] BUILD [WORD...]

Plays the jobs whose names contain one of the words (none: all) with the programs in the folder BUILD, until
each has had its share of N kills (40). A victim is any pserver or trainer, at any time of a life of the job:
while it starts, trains, writes snapshots, or ends. WEFT_SEED or --seed repeats the choices; the instants depend
on the machine. Exit status: 0, or 1 if a job did not end with the digest of the sequential run."""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

# Name; kills of one job at the most; longest time from the start of a life to a kill; launch; train.
JOBS = (
    ("dense_shm", 12, 1.0, "--pservers=2 --ports_num=2 --transport=shm --snapshot_steps=7", "mlp --num_passes=400"),
    ("dense_tcp", 12, 1.0, "--pservers=3 --transport=tcp --snapshot_steps=11", "mlp --num_passes=300"),
    ("dense_period", 12, 1.0, "--pservers=1 --ports_num=3 --snapshot_period=50ms --keep=1",
     "mlp --num_passes=400"),
    ("rows_tcp", 8, 3.0, "--pservers=2 --ports_num_for_sparse=2 --transport=tcp --snapshot_steps=101",
     "ctr --num_passes=20"),
    ("rows_shm", 8, 1.0, "--pservers=1 --ports_num_for_sparse=1 --transport=shm --snapshot_steps=53",
     "ctr --num_passes=60"),
)
TRAINERS = 2
STUCK_SECONDS = 300


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("WEFT_SEED", "0")) or random.randrange(1 << 30))
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    return parser.parse_args(arguments)


def digest_of(lines):
    """The digest of the last pass."""
    found = [match.group(1) for match in (re.search(r"^pass .* digest (\S+)", line) for line in lines) if match]
    return found[-1] if found else None


class Launch:
    """A running job. Its processes are known from the lines in which launch names them."""

    def __init__(self, command):
        self.lines = []
        self.results = []
        self.living = {}
        self.lives = 1
        self.whole = 0  # starts of all processes; the other lives began with that of one
        self.change = threading.Condition()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace")
        self.readers = [threading.Thread(target=self.read_log), threading.Thread(target=self.read_results)]
        for reader in self.readers:
            reader.start()

    def read_log(self):
        for line in self.process.stderr:
            with self.change:
                self.lines.append(line.rstrip("\n"))
                named = re.match(r"((?:pserver|trainer) \d+) \| pid (\d+):", line)
                if named:
                    self.living[named.group(1)] = int(named.group(2))
                ended = re.match(r"weft launch: ((?:pserver|trainer) \d+) (\(pid|ended with)", line)
                if ended:
                    self.living.pop(ended.group(1), None)
                if line.startswith("weft launch: the job is started again"):
                    self.living = {}
                    self.whole += 1
                if re.match(r"weft launch: (the job|(pserver|trainer) \d+) is started again", line):
                    self.lives += 1
                self.change.notify_all()

    def read_results(self):
        self.results = [line.rstrip("\n") for line in self.process.stdout]

    def wait_for_life(self, number):
        """Whether that life of the job has all its processes; false: the job has ended."""
        end = time.monotonic() + STUCK_SECONDS
        with self.change:
            while self.lives < number or not self.living:
                if self.process.poll() is not None:
                    return False
                if time.monotonic() > end:
                    raise RuntimeError("the job was not started again within %d s" % STUCK_SECONDS)
                self.change.wait(0.05)
        return True

    def kill_one(self, chance):
        """Kills one that is still a child of launch; its name, or None."""
        with self.change:
            names = sorted(self.living)
        name = chance.choice(names)
        pid = self.living.get(name)
        try:
            with open("/proc/%d/stat" % pid) as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            if parent != self.process.pid:
                return None
            os.kill(pid, 9)
        except (OSError, TypeError):
            return None
        return name

    def end(self):
        code = self.process.wait(STUCK_SECONDS)
        for reader in self.readers:
            reader.join()
        return code

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


def play(weft, job, folder, most, chance):
    """One job, from the start to its end: kills made, lives, and what went wrong, or None."""
    _, _, longest, launch, train = job
    command = [weft, "launch", "--local", "--trainers=%d" % TRAINERS, "--restarts=1000", "--snapshot_dir=" + folder,
               "--port=%d" % (20000 + os.getpid() % 20000), *launch.split(), "--", "train", *train.split()]
    running = Launch(command)
    kills, life = 0, 1
    try:
        while kills < most and running.wait_for_life(life):
            time.sleep(chance.uniform(0, longest))
            if running.kill_one(chance) is None:
                if running.process.poll() is not None:
                    break
                continue
            kills += 1
            life += 1
        code = running.end()
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        running.stop()
        return kills, running, str(problem)
    return kills, running, None if code == 0 else "exit code %d" % code


def play_all(weft, job, share, chance, work):
    """Jobs of one kind until they have had their share of kills."""
    name, most, _, _, train = job
    alone = subprocess.run([weft, "train", *train.split(), "--sequential", "--num_gradient_servers=%d" % TRAINERS],
                           capture_output=True, text=True)
    expected = digest_of(alone.stdout.splitlines())
    if alone.returncode != 0 or expected is None:
        return "the sequential run ended with %d: %s" % (alone.returncode, alone.stderr[-500:])
    kills, jobs, alone, whole = 0, 0, 0, 0
    while kills < share:
        folder = os.path.join(work, "%s-%d" % (name, jobs))
        made, running, problem = play(weft, job, folder, min(most, share - kills), chance)
        digest = digest_of(running.results)
        if problem is None and digest != expected:
            problem = "digest %s, expected %s" % (digest, expected)
        if problem is not None:
            return "%s after %d kills; the last lines:\n%s" % (problem, made, "\n".join(running.lines[-40:]))
        kills += made
        jobs += 1
        whole += running.whole
        alone += running.lives - 1 - running.whole
        shutil.rmtree(folder)
    print("     %s: %d kills in %d jobs, %d starts of one process, %d of all"
          % (name, kills, jobs, alone, whole), flush=True)
    return None


def main(arguments):
    options = options_of(arguments)
    weft = os.path.join(options.build, "tools", "weft")
    chosen = [job for job in JOBS if not options.words or any(word in job[0] for word in options.words)]
    share = -(-options.kills // max(1, len(chosen)))
    print("seed %d, %d kills of each kind of job" % (options.seed, share), flush=True)
    failed = 0
    for idx, job in enumerate(chosen):
        work = tempfile.mkdtemp(prefix="weft_kills_")
        problem = play_all(weft, job, share, random.Random(options.seed + idx), work)
        print("%-4s %s%s" % ("OK" if problem is None else "FAIL", job[0], "" if problem is None else "\n" + problem),
              flush=True)
        if options.json:
            with open(options.json, "a") as file:
                file.write(json.dumps({"name": job[0], "result": "OK" if problem is None else "FAIL",
                                       "stdout": problem or ""}) + "\n")
        failed += problem is not None
        shutil.rmtree(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
