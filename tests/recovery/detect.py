#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When a job notices that a member or a link has failed, when it trains on, and how many steps it repeats.

    detect.py [--times N] [--json FILE] BUILD [WORD...]

Plays each fault on each transport in each mode, or those that have each WORD (such as `link tcp sync`): one
pserver and two trainers of the built-in model `mlp`, with snapshots and --on_trainer_death=wait. They are in two
network namespaces with a bridge between them in a third, and in one namespace for shared memory. A process that is
killed is started again at once; what is stopped or cut goes on a second after it was noticed. In mode drop
training is synchronous with --on_trainer_death=drop, and a trainer that is killed is not started again; the
other faults end such a job or are as in mode sync.

    kill-pserver, kill-trainer  SIGKILL
    stop-pserver                SIGSTOP, later SIGCONT
    reset                       the kernel resets all TCP connections of the job (ss -K)
    silent                      the bridge loses the pserver's port: both ends see a link, and nothing arrives
    link                        the pserver's interface goes down

    detected   from the fault to the first warning of a process that is not the victim
    recovered  from the fault to the first step that is later than all before it
    repeated   steps that trainer 0 made a second time

The medians of N plays (3) are printed. Nothing is asserted of a time. Faults that need something that is not there
are skipped by name. Exit status: 0; 1 if a job did not train on; 77 without root or namespaces."""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 90
SPACES = ("near", "mid", "far")
FAULTS = ("kill-pserver", "kill-trainer", "stop-pserver", "reset", "silent", "link")
TRANSPORTS = ("tcp", "shm")
MODES = ("sync", "async", "drop")
OF_DROP = ("kill-trainer", "reset")
NEEDS_A_LINK = ("silent", "link")


class Skip(Exception):
    """A row that cannot be played here, with the reason."""


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode != 0:
        raise Skip("%s: %s" % (" ".join(command), done.stdout.strip()))
    return done.stdout


class Net:
    """Three namespaces: near, where the pserver is, far, where the trainers are, and a bridge."""

    def __init__(self):
        self.made = []

    def name(self, space):
        return "weft-%d-%s" % (os.getpid(), space)

    def within(self, space):
        return ["nsenter", "--net=/run/netns/" + self.name(space)]

    def ip(self, space, *words):
        run(*self.within(space), "ip", *words)

    def open(self):
        for space in SPACES:
            run("ip", "netns", "add", self.name(space))
            self.made.append(space)
            self.ip(space, "link", "set", "lo", "up")
        self.ip("mid", "link", "add", "name", "bridge", "type", "bridge")
        self.ip("mid", "link", "set", "bridge", "up")
        for number, space in ((1, "near"), (2, "far")):
            run("ip", "link", "add", "name", space, "netns", self.name(space), "type", "veth", "peer", "name",
                "to-" + space, "netns", self.name("mid"))
            self.ip(space, "address", "add", "10.77.1.%d/24" % number, "dev", space)
            self.ip(space, "link", "set", space, "up")
            self.ip("mid", "link", "set", "to-" + space, "master", "bridge", "up")

    def close(self):
        for space in self.made:
            subprocess.run(["ip", "netns", "del", self.name(space)], stderr=subprocess.DEVNULL, check=False)

    def reset(self):
        """All connections to the pserver's port, at the trainers' ends."""
        for space in ("far", "near"):
            run(*self.within(space), "ss", "-K", "-t", "( dport = :7164 or sport = :7164 )")

    def cut(self, fault, is_cut):
        if fault == "silent":
            self.ip("mid", "link", "set", "to-near", *(["nomaster"] if is_cut else ["master", "bridge"]))
        else:
            self.ip("near", "link", "set", "near", "down" if is_cut else "up")


class Member:
    """A process of the job, and its lines with the moments when they came."""

    def __init__(self, name, command, job):
        self.name, self.command, self.job, self.gone = name, command, job, False
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors="replace")
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stderr:
            with self.job.change:
                self.job.lines.append((time.monotonic(), self.name, line.rstrip("\n")))
                self.job.change.notify_all()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Job:
    def __init__(self, net, build, transport, mode, folder):
        self.lines, self.change, self.members, self.drops = [], threading.Condition(), {}, mode == "drop"
        weft = os.path.join(build, "tools/weft")
        far = "near" if transport == "shm" else "far"
        common = ["--port=7164", "--ports_num=2", "--transport=" + transport,
                  "--num_gradient_servers=2"]
        self.start("pserver 0", net.within("near") + [
            weft, "pserver", *common, "--listen=10.77.1.1", "--once", "--snapshot_dir=" + folder,
            "--snapshot_steps=20", "--resume=auto",
            "--on_trainer_death=" + ("drop" if mode == "drop" else "wait")])
        for number in range(2):
            self.start("trainer %d" % number, net.within(far) + [
                weft, "train", "mlp", *common, "--trainer_id=%d" % number, "--pservers=10.77.1.1",
                "--slice_bytes=256", "--num_passes=1000000", "--log_period=1", "--dot_period=0"]
                + (["--dense_mode=async"] if mode == "async" else []))

    def start(self, name, command):
        self.members[name] = Member(name, command, self)

    def wait(self, find):
        """The first line, by (moment, name, text), for which `find` returns something that is not None."""
        end, at = time.monotonic() + LIMIT, 0
        while True:
            with self.change:
                while at == len(self.lines):
                    ended = [name for name, member in self.members.items() if member.process.poll() is not None]
                    if time.monotonic() > end or ended:
                        raise RuntimeError("nothing came within %d s, ended: %s; %s" % (LIMIT, ended, self.lines[-6:]))
                    self.change.wait(0.2)
                found = find(*self.lines[at])
                at += 1
            if found is not None:
                return found

    def close(self):
        for member in self.members.values():
            member.kill()


def step_of(name, line):
    """(pass, batch) of a line of trainer 0, or None."""
    match = re.search(r" I pass (\d+) batch (\d+) cost", line) if name == "trainer 0" else None
    return (int(match.group(1)), int(match.group(2))) if match else None


def play(net, build, fault, transport, mode):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(net, build, transport, mode, folder)
        try:
            return watch(net, job, fault)
        finally:
            job.close()


def watch(net, job, fault):
    snapshots = []

    def second_snapshot(_, __, line):
        snapshots.extend([line] if " I snapshot of step " in line else [])
        return line if len(snapshots) == 2 else None

    job.wait(second_snapshot)
    victim = {"kill-trainer": "trainer 1", "reset": None, "silent": None, "link": None}.get(fault, "pserver 0")
    begin = time.monotonic()
    strike(net, job, fault, victim)

    def warning(at, name, line):
        return at if at >= begin and name != victim and re.match(r"\S+ \S+ W ", line) else None

    def back(at, name, line):
        return at if at >= begin and name == "trainer 0" and " the job goes back: " in line else None

    def new_step(at, name, line):
        step = step_of(name, line)
        return at if step is not None and at >= since and step > best else None

    noticed = job.wait(warning)
    since = noticed
    if victim is None or fault == "stop-pserver":
        if fault != "reset":
            time.sleep(max(0.0, noticed + 1 - time.monotonic()))
            heal(net, job, fault, victim)
    elif not job.drops:
        since = job.wait(back)
    with job.change:
        best = max([(0, 0)] + [step_of(name, line) for at, name, line in job.lines
                               if step_of(name, line) and at <= since])
    recovered = job.wait(new_step)
    with job.change:
        steps = [step_of(name, line) for at, name, line in job.lines if step_of(name, line)]
    return {"detected": noticed - begin, "recovered": recovered - begin, "repeated": len(steps) - len(set(steps))}


def strike(net, job, fault, victim):
    if fault in ("kill-pserver", "kill-trainer"):
        member = job.members.pop(victim)
        member.kill()
        if not job.drops:
            job.start(victim, member.command)
    elif fault == "stop-pserver":
        job.members[victim].process.send_signal(signal.SIGSTOP)
    elif fault == "reset":
        net.reset()
    else:
        net.cut(fault, True)


def heal(net, job, fault, victim):
    if fault == "stop-pserver":
        job.members[victim].process.send_signal(signal.SIGCONT)
    else:
        net.cut(fault, False)


def rows_of(words):
    rows = [(fault, transport, mode) for mode in MODES for transport in TRANSPORTS for fault in FAULTS]
    return [row for row in rows if all(word in row for word in words) and (row[2] != "drop" or row[0] in OF_DROP)]


def play_row(net, options, row):
    fault, transport, _ = row
    if transport == "shm" and fault in NEEDS_A_LINK:
        raise Skip("both ends are on one host, and no link is between them")
    plays = [play(net, options.build, *row) for _ in range(options.times)]
    return {key: statistics.median(one[key] for one in plays) for key in plays[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    net, results, code = Net(), [], 0
    try:
        try:
            if os.getuid() != 0:
                raise Skip("network namespaces need root")
            net.open()
        except (Skip, OSError) as why:
            print("SKIPPED: %s" % why, file=sys.stderr)
            sys.exit(77)
        print("%-13s %-9s %-5s %10s %10s %9s" % ("fault", "transport", "mode", "detected", "recovered", "repeated"))
        for row in rows_of(options.words):
            try:
                found = play_row(net, options, row)
                print("%-13s %-9s %-5s %8.3f s %8.3f s %9d" % (*row, *found.values()), flush=True)
            except Skip as why:
                found = {"skipped": str(why)}
                print("%-13s %-9s %-5s skipped: %s" % (*row, why), flush=True)
            except RuntimeError as why:
                found, code = {"failed": str(why)}, 1
                print("%-13s %-9s %-5s FAILED: %s" % (*row, why), flush=True)
            results.append(dict(zip(("fault", "transport", "mode"), row), **found))
    finally:
        net.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    sys.exit(code)


if __name__ == "__main__":
    main()
