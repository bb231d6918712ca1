# SPDX-License-Identifier: Apache-2.0
"""usage: why.py [--times=N] [NAME...]

Slow one part of a running job in a known way, ask `weft why` who it is, and count the right answers;
and healthy jobs, of which nobody may be named. Without NAME: all. What this machine does not allow
(network namespaces, a scheduling class) is skipped by name. The first of each is also traced: all
of the file is decoded here, and each push has to have its apply and its answer."""

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

STEPS = 5
LIMIT = 90  # seconds: bounds a failure, nothing else
TRAINERS = 2
LANES = 2
RATE = "20mbit"  # of a slow link


class Skip(Exception):
    pass


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Job:
    """One pserver and two trainers; `slow` has the arguments of trainer 1 that differ."""

    def __init__(self, folder, floats, slow, space=None):
        self.folder, self.space = folder, space
        self.processes = []
        self.ports = support.Ports()
        self.port = self.ports.first + 1
        self.address = space.address if space else "127.0.0.1"
        environment = dict(os.environ, PYTHONPATH=support.PACKAGE, OPENBLAS_NUM_THREADS="1")
        self.pserver = self.start(
            "pserver",
            [WEFT, "pserver", f"--listen={self.address}", f"--port={self.port}", "--once",
             f"--ports_num={LANES}", f"--num_gradient_servers={TRAINERS}"], environment)
        for trainer in range(TRAINERS):
            words = dict(trainer_id=trainer, trainers=TRAINERS, lanes=LANES, floats=floats,
                         pservers=f"{self.address}:{self.port}", sleep=0.03)
            words.update(slow if trainer == 1 else {})
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

    def at(self):
        return f"{self.address}:{self.port}"

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


SMALL, LARGE = 5000, 40000

# name: floats of each tensor, what is slow of trainer 1, which side of its link, kind, who
EXPERIMENTS = {
    "healthy": (SMALL, {}, None, "nobody", ""),
    "device": (SMALL, {"sleep": 0.23}, None, "slow_device", "trainer 1"),
    "compute": (SMALL, {"sleep": 0, "busy": 0.2}, None, "slow_compute", "trainer 1"),
    "out": (LARGE, {}, "far", "slow_out", "trainer 1"),
    "in": (LARGE, {}, "near", "slow_in", "trainer 1"),
    "paging": (SMALL, {"paging": "pages"}, None, "paging", "trainer 1"),
    "no_cpu": (LARGE, {}, None, "no_cpu", "lane 1"),
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


def play(name, traces):
    """Returns the verdict as "kind of who"."""
    floats, slow, side, _, _ = EXPERIMENTS[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        slow = {key: os.path.join(TOP if not os.access(TOP, os.W_OK) else folder, value)
                if key == "paging" else value for key, value in slow.items()}
        space = Space(side) if side else None
        if space:
            stack.callback(space.close)
        job = Job(folder, floats, slow, space)
        stack.callback(job.close)
        job.ask("why", job.at(), "--json")  # it makes steps
        if name == "no_cpu":
            stack.enter_context(starved(job))
            time.sleep(0.5)
        verdict = json.loads(job.ask("why", job.at(), f"--steps={STEPS}", "--json"))
        if traces:
            path = os.path.join(folder, "t.pftrace")
            print(job.ask("trace", job.at(), f"--steps={STEPS}", "-o", path).strip())
            pushes, lacking = check_trace(path)
            if pushes == 0 or lacking > 0:
                sys.exit(f"{lacking} of {pushes} pushes lack their apply or answer")
            again = json.loads(job.ask("why", path, "--json"))
            print(f"{name}: from the file: {again['kind']} of {again['who'] or 'nobody'}")
        print(job.ask("why", job.at(), f"--steps={STEPS}"), end="", flush=True)
    return f"{verdict['kind']} of {verdict['who'] or 'nobody'}"


def main():
    words = sys.argv[1:]
    times = 1
    if words and words[0].startswith("--times="):
        times = int(words.pop(0).split("=")[1])
    right, all_of = 0, 0
    for name in words or list(EXPERIMENTS):
        _, _, _, kind, who = EXPERIMENTS[name]
        expected = f"{kind} of {who or 'nobody'}"
        for i in range(times):
            try:
                verdict = play(name, i == 0)
            except Skip as why:
                print(f"{name}: SKIPPED: {why}")
                break
            all_of += 1
            right += verdict == expected
            print(f"{name}: {'right' if verdict == expected else 'WRONG'}: {verdict}", flush=True)
    print(f"{right} of {all_of} verdicts are right")
    # 46 of 48
    return 0 if all_of > 0 and right * 48 >= 46 * all_of else 1


sys.exit(main())
