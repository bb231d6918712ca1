# SPDX-License-Identifier: Apache-2.0
"""usage: why.py [--times=N] [NAME...]

Slow one part of a running job in a known way, ask `weft why` who it is, and count the right answers;
and healthy jobs, of which nobody may be named. Without NAME: all. Trainer 1 runs in a network
namespace of its own where this machine allows that; what it does not allow (namespaces, a scheduling
class) is skipped by name. The first of each is also traced: all of the file is decoded here, and each
push has to have its apply and its answer. `why.py --times=8` is the whole experiment; its table is in
docs/observe.md."""

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WEFT = os.environ.get("WEFT", os.path.join(TOP, "build/tools/weft"))
sys.path.insert(0, os.path.join(TOP, "tests/python"))
import support  # noqa: E402

STEPS = 3
LIMIT = 90  # seconds: bounds a failure, nothing else
TRAINERS = 2
LANES = 2
PORTS = 8  # of a pserver
RATE = "20mbit"  # of a slow link
PAUSE = 0.05  # seconds of a step for which trainers compute: they sleep


class Skip(Exception):
    pass


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Job:
    """Pservers and two trainers; `slow` has the arguments of trainer 1 that differ."""

    def __init__(self, folder, floats, slow, space=None, pservers=1):
        self.folder, self.space = folder, space
        self.processes = []
        self.ports = support.Ports()
        address = space.address if space else "127.0.0.1"
        first = [self.ports.first + 1 + PORTS * i for i in range(pservers)]
        self.at = ",".join(f"{address}:{port}" for port in first)
        environment = dict(os.environ, PYTHONPATH=support.PACKAGE, OPENBLAS_NUM_THREADS="1")
        for i, port in enumerate(first):
            self.start(
                f"pserver{i}",
                [WEFT, "pserver", f"--listen={address}", f"--port={port}", "--once",
                 f"--ports_num={LANES}", f"--num_gradient_servers={TRAINERS}",
                 f"--ports_num_for_sparse={slow.get('sparse_lanes', 0)}"], environment)
        self.pserver = self.processes[0]
        for trainer in range(TRAINERS):
            words = dict(trainer_id=trainer, trainers=TRAINERS, lanes=LANES, floats=floats,
                         pservers=self.at, sleep=PAUSE)
            words.update(slow if trainer == 1 or "sparse_lanes" in slow or "all" in slow else {})
            command = [sys.executable, os.path.join(HERE, "trainer.py")]
            command += [f"{name}={value}" for name, value in words.items()]
            within = space.within if space and trainer == 1 else []
            self.start(f"trainer{trainer}", within + command, environment)

    def start(self, name, command, environment):
        with open(os.path.join(self.folder, name + ".log"), "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.processes.append(process)
        return process

    def ask(self, *words):
        """What a command of weft prints about the job; it is asked until the job makes steps."""
        end = time.monotonic() + LIMIT
        while True:
            done = subprocess.run([WEFT, *words], capture_output=True, text=True, timeout=LIMIT)
            if done.returncode == 0:
                return done.stdout
            died = [p.args for p in self.processes if p.poll() is not None]
            if done.returncode not in (65, 69) or died or time.monotonic() > end:
                sys.exit(f"weft {words}: exit code {done.returncode}: {done.stderr}{died}"
                         + self.logs())
            time.sleep(0.2)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), errors="replace") as log:
                    text += f"\n--- {name}\n{log.read()[-1500:]}"
        return text

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()


class Space:
    """A network namespace for trainer 1, reached over a pair of devices of which one may be slow."""

    def __init__(self, slow_side):
        if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
            raise Skip("network namespaces need root, ip and tc")
        self.name = f"weft-why-{os.getpid()}"
        self.near = f"wwn{os.getpid()}"
        self.address = f"10.{78 + os.getpid() % 100}.{os.getpid() // 100 % 250}.1"
        far_address = self.address[:-1] + "2"
        self.within = ["nsenter", f"--net=/run/netns/{self.name}"]
        try:
            run("ip", "netns", "add", self.name)
            run("ip", "link", "add", self.near, "type", "veth", "peer", "name", "far", "netns",
                self.name)
            run("ip", "address", "add", self.address + "/24", "dev", self.near)
            run("ip", "link", "set", self.near, "up")
            run(*self.within, "ip", "address", "add", far_address + "/24", "dev", "far")
            run(*self.within, "ip", "link", "set", "far", "up")
            run(*self.within, "ip", "link", "set", "lo", "up")
            shape = ["root", "tbf", "rate", RATE, "burst", "16kb", "latency", "1s"]
            if slow_side == "none":
                return
            if slow_side == "far":
                run(*self.within, "tc", "qdisc", "add", "dev", "far", *shape)
            else:
                run("tc", "qdisc", "add", "dev", self.near, *shape)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            self.close()
            raise Skip(f"no network namespaces here: {error}") from error

    def close(self):
        subprocess.run(["ip", "link", "del", self.near], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "netns", "del", self.name], stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def starved(job):
    """Lane 1 gets a CPU only when nobody else wants it, and somebody always does."""
    tasks = f"/proc/{job.pserver.pid}/task"
    lane = max(int(task) for task in os.listdir(tasks))  # the last one that was started
    cpu = min(os.sched_getaffinity(0))
    busy = []
    try:
        os.sched_setaffinity(lane, {cpu})
        os.sched_setscheduler(lane, os.SCHED_IDLE, os.sched_param(0))
        for _ in range(2):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            busy.append(process)
            os.sched_setaffinity(process.pid, {cpu})
        yield
    except PermissionError as error:
        raise Skip(f"a thread cannot be starved here: {error}") from error
    finally:
        for process in busy:
            process.kill()
            process.wait()


SMALL, LARGE = 5000, 80000

# name: floats of each tensor, what differs, the side of trainer 1's link that is slow, kind, who
EXPERIMENTS = {
    "healthy": (SMALL, {}, "none", "nobody", ""),
    "compute": (SMALL, {"sleep": PAUSE + 0.2}, "none", "slow_compute", "trainer 1"),
    "out": (LARGE, {}, "far", "slow_out", "trainer 1"),
    "in": (LARGE, {}, "near", "slow_in", "trainer 1"),
    "no_cpu": (LARGE, {}, "none", "no_cpu", "lane 1"),
    "hot": (SMALL, {"sparse_lanes": 2, "rows": 1600, "sleep": 0.01}, "none", "hot_keys", "lane 3"),
    "paging": (SMALL, {"paging": "pages"}, "none", "paging", "trainer 1"),
}


def fields(data):
    """Strictly: (number, value) of each field of a message; bytes where its length is given."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a varint of more than 64 bits")

    while at < len(data):
        tag = varint()
        if tag >> 3 == 0:
            raise ValueError("field 0")
        if tag & 7 == 0:
            value = varint()
        elif tag & 7 == 1:
            value = struct.unpack_from("<Q", data, at)[0]
            at += 8
        elif tag & 7 == 2:
            count = varint()
            value = bytes(data[at:at + count])
            if len(value) != count:
                raise ValueError("a field beyond the end")
            at += count
        else:
            raise ValueError(f"wire type {tag & 7}")
        found.append((tag >> 3, value))
    return found


def one(message, number, default=None):
    values = [value for field, value in message if field == number]
    if len(values) > 1:
        raise ValueError(f"field {number} {len(values)} times")
    return values[0] if values else default


WANTED = {"push posted", "push arrived", "applied", "answer posted", "answer arrived"}


def check_trace(path):
    """Decodes all of it. Returns how many pushes were posted, and how many lack apply or answer."""
    with open(path, "rb") as file:
        packets = fields(file.read())
    tracks, depth, flows, seen = set(), {}, {}, {}
    for number, packet in packets:
        if number != 1:
            raise ValueError(f"field {number} of a Trace")
        packet = fields(packet)
        descriptor, event = one(packet, 60), one(packet, 11)
        if descriptor is not None:
            tracks.add(one(fields(descriptor), 1))
        if event is None:
            continue
        event = fields(event)
        kind, track = one(event, 9), one(event, 11)
        name = one(event, 23, b"").decode()
        if track not in tracks or one(packet, 8) is None or one(packet, 10) is None:
            raise ValueError(f"event {name} without track, time or sequence")
        depth[track] = depth.get(track, 0) + {1: 1, 2: -1, 3: 0}[kind]
        if depth[track] < 0:
            raise ValueError(f"a slice of track {track} ends before it begins")
        notes = [fields(value) for field, value in event if field == 4]
        step = {one(note, 10): one(note, 3, 0) for note in notes}.get(b"step")
        for field, value in event:
            if field in (47, 48):
                flows.setdefault((step, value), set()).add(name)
        if name in WANTED:
            seen.setdefault((track, name), []).append(step)
    if any(depth.values()):
        raise ValueError("a slice does not end")
    # Rings begin and end in the middle of steps, and not at the same time.
    first = max(min(steps) for steps in seen.values())
    last = min(max(steps) for steps in seen.values())
    inner = [names for (step, _), names in flows.items() if first < step < last]
    return len(inner), sum(not WANTED <= names for names in inner)


def open_space(side):
    """None: only what needs no slow link can be tried here."""
    try:
        return Space(side)
    except Skip:
        if side != "none":
            raise
        return None


def play(name, traces):
    """Returns the verdict as "kind of who"."""
    floats, slow, side, _, _ = EXPERIMENTS[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        slow = {key: os.path.join(TOP if not os.access(TOP, os.W_OK) else folder, value)
                if key == "paging" else value for key, value in slow.items()}
        space = open_space(side)
        if space:
            stack.callback(space.close)
        job = Job(folder, floats, slow, space)
        stack.callback(job.close)
        job.ask("why", job.at, "--json")  # it makes steps
        if name == "no_cpu":
            stack.enter_context(starved(job))
            time.sleep(0.5)
        verdict = json.loads(job.ask("why", job.at, f"--steps={STEPS}", "--json"))
        if traces:
            path = os.path.join(folder, "t.pftrace")
            print(job.ask("trace", job.at, f"--steps={STEPS}", "-o", path).strip())
            pushes, lacking = check_trace(path)
            if pushes == 0 or lacking > 0:
                sys.exit(f"{lacking} of {pushes} pushes lack their apply or answer")
            again = json.loads(job.ask("why", path, "--json"))
            print(f"{name}: from the file: {again['kind']} of {again['who'] or 'nobody'}")
        print(job.ask("why", job.at, f"--steps={STEPS}"), end="", flush=True)
    return f"{verdict['kind']} of {verdict['who'] or 'nobody'}"


def repeat(name, times):
    """Returns how many verdicts are right, of how many, and what was said."""
    _, _, _, kind, who = EXPERIMENTS[name]
    expected = f"{kind} of {who or 'nobody'}"
    said = []
    for i in range(times):
        try:
            said.append(play(name, i == 0))
        except Skip as why:
            print(f"{name}: SKIPPED: {why}")
            break
        print(f"{name}: {'right' if said[-1] == expected else 'WRONG'}: {said[-1]}", flush=True)
    wrong = sorted(set(said) - {expected})
    return said.count(expected), len(said), ", ".join([expected] + wrong)


def main():
    words = sys.argv[1:]
    times = 1
    if words and words[0].startswith("--times="):
        times = int(words.pop(0).split("=")[1])
    table = {name: repeat(name, times) for name in words or list(EXPERIMENTS)}
    print(f"\n{'experiment':<12} {'right':>5}  of  verdicts (the first is the right one)")
    for name, (right, count, said) in table.items():
        print(f"{name:<12} {right:>5} {count:>3}  {said}")
    healthy, healthy_of, _ = table.pop("healthy", (0, 0, ""))
    right = sum(row[0] for row in table.values())
    count = sum(row[1] for row in table.values())
    print(f"{right} of {count} slow jobs named rightly; nobody named in {healthy} of {healthy_of} healthy ones")
    if count + healthy_of == 0:
        return 1
    # 46 of 48, and no healthy job
    return 0 if right * 48 >= 46 * count and healthy == healthy_of else 1


if __name__ == "__main__":
    sys.exit(main())
