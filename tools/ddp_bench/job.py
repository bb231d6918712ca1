# SPDX-License-Identifier: Apache-2.0
"""A job that is measured: its trainers and pservers, all of them processes that wait between its turns, so
that several jobs can take turns."""

import dataclasses
import glob
import multiprocessing
import os
import socket
import subprocess
import tempfile
import time
from typing import Any, List, Optional

from ddp_bench import hosts, trainer

_fork = multiprocessing.get_context("fork")  # torch is loaded once, and its pages are shared
READY_SECONDS = 60
SHM, TCP, SPREAD, HOSTS = "shm", "tcp", "spread", "hosts"


@dataclasses.dataclass
class Kind:
    """What is measured, under a name."""

    name: str
    how: str
    # How trainers reach the pserver: SHM or TCP, all on one host; SPREAD: rank 0 by SHM, the others by
    # TCP; HOSTS: each trainer has a network of its own, and a pserver in it.
    over: str
    steps_optimizer: bool = False


@dataclasses.dataclass
class Turn:
    ms: float  # of a step, by the slowest trainer
    processor_ms: float  # of a step, all processes of the job together
    sent_mib: float  # through sockets, in a step, by all of them
    backward: List[Any]  # of each trainer: [(begin_ns, last_gradient_ns, end_ns)] of each step


def free_ports(count, address="127.0.0.1"):
    """The first of so many ports in a row."""
    base = 20000 + os.getpid() % 5000
    while True:
        try:
            for port in range(base, base + count):
                socket.create_server((address, port)).close()
            return base
        except OSError:
            base += count


def _processor_ns(pid):
    """Of all threads of a process."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        try:
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            pass  # the thread has ended
    return total


class Job:
    """Of so many trainers. `sites`: hosts.Hosts for each of them, where kind.over is HOSTS."""

    def __init__(self, program, kind, options, model, ranks, sites=None):
        self.kind, self.how, self.steps_optimizer = kind, kind.how, kind.steps_optimizer
        self.model, self.mebibytes, self.ranks, self.sites = model, options.mebibytes, ranks, sites
        self.bucket_mebibytes = options.bucket_cap_mb
        self.lanes = 1 if kind.over == HOSTS else options.lanes
        self.network: List[Optional[int]] = [None] * ranks if sites is None else sites.pid
        self.folder = tempfile.TemporaryDirectory(prefix="ddp-")
        self.pservers, self.meeting = "", ""
        self.servers, self.trainers, self.lines = [], [], []
        try:
            self._start_pservers(program)
            self.meeting = "%s:%d" % (self._address(0), self._ports(1))
            self._start_trainers()
        except BaseException:
            self.kill()
            raise

    def _start_trainers(self):
        for rank in range(self.ranks):
            line, other = _fork.Pipe()
            process = _fork.Process(target=trainer.main, args=(self, rank, other), daemon=True)
            process.start()
            other.close()
            self.lines.append(line)
            self.trainers.append(process)
        for line in self.lines:
            self._answer(line)

    def _address(self, rank):
        return "127.0.0.1" if self.sites is None else self.sites.address[rank]

    _used = 0  # ports of the networks of hosts, in which nobody else is

    def _ports(self, count):
        if self.sites is None:
            return free_ports(count)
        Job._used += count
        return 7164 + Job._used

    def _start_pservers(self, program):
        """One, or one in each network: each has an equal part of the values."""
        if self.how not in trainer.HAVE_PSERVER:
            return
        count = 1 if self.sites is None else self.ranks
        places = ["%s:%d" % (self._address(number), self._ports(self.lanes)) for number in range(count)]
        self.pservers = ",".join(places)
        accepts = {SHM: "shm", TCP: "tcp"}.get(self.kind.over, "auto")
        for number, place in enumerate(places):
            ready = os.path.join(self.folder.name, "ready%d" % number)
            address, _, port = place.rpartition(":")
            command = [*hosts.within(self.network[number]), program, "pserver", "--once", "--listen=" + address]
            command += ["--port=" + port, "--ports_num=%d" % self.lanes, "--transport=" + accepts]
            command += ["--num_gradient_servers=%d" % self.ranks, "--ready_file=" + ready]
            log = open(ready + ".log", "wb")
            self.servers.append(subprocess.Popen(command, stderr=log))
            log.close()
            until = time.monotonic() + READY_SECONDS
            while not os.path.exists(ready):
                if self.servers[-1].poll() is not None or time.monotonic() > until:
                    raise SystemExit("a pserver does not start: %s" % self.log(number))
                time.sleep(0.01)

    def log(self, number):
        with open(os.path.join(self.folder.name, "ready%d.log" % number), encoding="utf-8") as file:
            return file.read()

    def transport_of(self, rank):
        """How that trainer reaches the pservers."""
        spread = TCP if rank else SHM
        return {SHM: "shm", TCP: "tcp", SPREAD: spread}.get(self.kind.over, "auto")

    def environment(self, rank):
        """Of a trainer. Threads of OpenBLAS would poll beside what is measured."""
        found = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if self.sites is not None:
            found["GLOO_SOCKET_IFNAME"] = "eth0"
        if self.how == trainer.GROUP:
            found.update(WEFT_PSERVERS=self.pservers, WEFT_PORTS_NUM=str(self.lanes))
            found["WEFT_TRANSPORT"] = self.transport_of(rank)
        if self.how == trainer.GROUP and self.sites is not None:
            # As where the group itself starts a pserver on each host (weft.distributed).
            found.update(WEFT_ALL_REDUCE_RING="8MiB", WEFT_SLICE_BYTES="256KiB")
        return found

    def _answer(self, line):
        try:
            return line.recv()
        except EOFError:
            raise SystemExit("%s: a trainer has ended" % self.kind.name) from None

    def _processor_ns(self):
        pids = [process.pid for process in [*self.trainers, *self.servers]]
        return sum(map(_processor_ns, pids))

    def _sent_bytes(self):
        """Through loopback, or through the cables of the hosts."""
        if self.sites is None:
            return hosts.sent_bytes(self.trainers[0].pid)["lo"]
        return sum(hosts.sent_bytes(process.pid)["eth0"] for process in self.trainers)

    def turn(self, steps, notes=False):
        """Makes so many steps. `notes`: with the time of each last gradient."""
        spent, sent = self._processor_ns(), self._sent_bytes()
        for line in self.lines:
            line.send((steps, notes))
        found = [self._answer(line) for line in self.lines]
        spent, sent = self._processor_ns() - spent, self._sent_bytes() - sent
        seconds = max(seconds for seconds, _ in found)
        return Turn(
            ms=seconds / steps * 1e3,
            processor_ms=spent / steps / 1e6,
            sent_mib=sent / steps / 2**20,
            backward=[backward for _, backward in found],
        )

    def kill(self):
        """Of a job that has failed."""
        for process in [*self.trainers, *self.servers]:
            process.kill()

    def close(self):
        for line in self.lines:
            line.send((0, False))
        for line in self.lines:
            self._answer(line)
        for process in self.trainers:
            process.join()
        for server in self.servers:
            server.wait()
        self.folder.cleanup()
