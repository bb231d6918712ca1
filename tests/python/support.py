# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python binding share: pservers of their own, and the environment of the
programs that they start. WEFT is the program, WEFT_LIBRARY the library; meson.build names both."""

import atexit
import multiprocessing
import os
import random
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEFT = os.environ.get("WEFT", os.path.join(TOP, "build/tools/weft"))
PACKAGE = os.path.join(TOP, "bindings/python")
LIMIT = 120  # seconds: bounds a failure, nothing else

LONG = bool(os.environ.get("WEFT_LONG"))

# Settings and launchers of whoever runs the tests are no part of them.
_LAUNCHERS = ("WEFT_", "PADDLE_", "TRAINING_", "OMPI_", "SLURM_", "VC_", "VK_")
_PLACES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "JOB_COMPLETION_INDEX")
for _name in list(os.environ):
    if (_name.startswith(_LAUNCHERS) or _name in _PLACES) and _name != "WEFT_LIBRARY":
        del os.environ[_name]
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)


class Ports:
    """A block of 64 of them that no other process of these tests has, for it listens at the first one as
    long as it lives. Where whose ports are: tests/programs/lib.sh."""

    def __init__(self):
        self.claim = None
        while self.claim is None:
            self.first = 26000 + 64 * random.randrange(78)
            try:
                self.claim = socket.create_server(("127.0.0.1", self.first))
            except OSError:
                continue
        self.given = 1

    def free(self, count):
        while True:
            if self.given + count > 64:
                self.given = 1
            base = self.first + self.given
            self.given += count
            try:
                for port in range(base, base + count):
                    socket.create_server(("127.0.0.1", port)).close()
                return base
            except OSError:
                continue


_ports = []


def free_port(count):
    """The first of so many ports in a row that nobody uses, and that were not given for a while: who asked
    for them may not listen there yet."""
    if not _ports:
        _ports.append(Ports())
    return _ports[0].free(count)


def environment(**more):
    return dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", **more)


def state_of(task):
    """The letter that the kernel shows for a thread: R, S, T and others."""
    with open(task + "/stat") as stat:
        return stat.read().rpartition(") ")[2][0]


def mapped(address):
    """Whether there is memory of a session of this process."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        ranges = [line.split()[0].split("-") for line in maps if "weft-slab" in line]
    return any(int(first, 16) <= address < int(end, 16) for first, end in ranges)


class Process:
    """A program in the background; its output in a file."""

    def __init__(self, *command, **more):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.command = command
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment(**more)
        )

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        """SIGSTOP, and none of its threads runs any more: on a busy machine the signal takes a while."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = "/proc/%d/task/" % self.process.pid
        deadline = time.monotonic() + LIMIT
        while any(state_of(tasks + task) != "T" for task in os.listdir(tasks)):
            if time.monotonic() > deadline:
                raise AssertionError("did not stop: %s" % (self.command,))
            time.sleep(0.001)

    def end(self):
        """Wait for it; its exit status, and what it said."""
        try:
            status = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("still runs: %s\n%s" % (self.command, self.said())) from None
        said = self.said()
        self.log.close()
        return status, said

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if not self.log.closed:
            self.log.close()


class Child:
    """function(*arguments) in a child of this process, which has imported once what is slow to import. It
    must not have started threads that its children need: PyTorch has set_num_threads(1). The environment
    has `more` in addition; its output is in a file."""

    def __init__(self, function, *arguments, **more):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.command = [function.__module__, *map(str, arguments)]
        self.process = multiprocessing.get_context("fork").Process(
            target=self.run, args=(function, arguments, more)
        )
        self.process.start()

    def run(self, function, arguments, more):
        os.dup2(self.log.fileno(), 1)
        os.dup2(self.log.fileno(), 2)
        os.environ.update(more)
        status = 0
        try:
            function(*arguments)
        except SystemExit as end:
            status = end.code or 0
            if not isinstance(status, int):
                print(status, file=sys.stderr)
                status = 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
            status = 1
        atexit._run_exitfuncs()  # as at the end of a program
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    def end(self):
        """Wait for it; its exit status, and what it said."""
        self.process.join(LIMIT)
        status = self.process.exitcode
        if status is None:
            self.kill()
        self.log.seek(0)
        said = self.log.read()
        if status is None:
            raise AssertionError("still runs: %s\n%s" % (self.command, said))
        return status, said

    def kill(self):
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


def run_script(path, *arguments):
    """In a child: what `python3 PATH ARGUMENTS` does."""
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(path)
    runpy.run_path(path, run_name="__main__")


class Case(unittest.TestCase):
    """A test with pservers."""

    def run_program(self, *command, **more):
        process = Process(*command, **more)
        self.addCleanup(process.kill)
        return process

    def own_folder(self):
        """An empty folder until the end of the test. tempfile's object would remove it in each child, too."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def run_child(self, function, *arguments, **more):
        child = Child(function, *arguments, **more)
        self.addCleanup(child.kill)
        return child

    def pserver(self, trainers=1, sparse=0, count=1, lanes=1, more=()):
        """Start pservers for one job, with `more` options. The list for `pservers`; ports_num is `lanes`."""
        self.pservers = []
        names = []
        for _ in range(count):
            port = free_port(lanes + sparse)
            self.pservers.append(
                self.run_program(
                    WEFT,
                    "pserver",
                    "--port=%d" % port,
                    "--ports_num=%d" % lanes,
                    "--ports_num_for_sparse=%d" % sparse,
                    "--num_gradient_servers=%d" % trainers,
                    "--once",
                    *more,
                )
            )
            names.append("127.0.0.1:%d" % port)
        return ",".join(names)

    def ends_well(self, process):
        status, said = process.end()
        self.assertEqual(status, 0, "%s:\n%s" % (" ".join(process.command), said))
        return said

    def jobs_end_well(self):
        for pserver in self.pservers:
            self.ends_well(pserver)


def python(*arguments):
    return (sys.executable,) + arguments


def passes_in(text):
    """[(cost, test, digest)] of the lines that training programs print."""
    found = re.findall(r"^pass \d+ cost (\S+) test (\S+) digest (\w+)$", text, re.MULTILINE)
    return [(float(cost), float(test), digest) for cost, test, digest in found]


def main():
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("SKIPPED: NumPy is not there: apt-get install python3-numpy")
        sys.exit(77)
    # A shell starts programs in the background with SIGINT ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
