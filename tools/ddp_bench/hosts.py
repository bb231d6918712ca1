# SPDX-License-Identifier: Apache-2.0
"""Hosts of one machine: network namespaces without a name, each with an address and a cable (veth) to
one switch (bridge). They go when the processes that hold them end. Needs root and ip of iproute2."""

import ctypes
import os
import signal
import subprocess

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """This machine, or this user, cannot have them."""


def enter(pid):
    """Move the calling process, which has one thread, to the network of another one."""
    fd = os.open("/proc/%d/ns/net" % pid, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(fd, _CLONE_NEWNET) != 0:
            raise Unavailable("setns: " + os.strerror(ctypes.get_errno()))
    finally:
        os.close(fd)


def within(pid):
    """The beginning of a command that is to run in the network of a process; None: in this one."""
    return [] if pid is None else ["nsenter", "--net=/proc/%d/ns/net" % pid]


def _hold():
    """The pid of a child with a network of its own, which ends with this process."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.write(told, b"1" if _libc.unshare(_CLONE_NEWNET) == 0 else b"0")
        while True:
            signal.pause()
    os.close(told)
    with os.fdopen(ready, "rb") as file:
        done = file.read(1)
    if done != b"1":
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise Unavailable("a network namespace needs root")
    return pid


class Hosts:
    """So many, as a context: `pid` holds each one's network, `address` is where the others reach it."""

    def __init__(self, count):
        self.address = ["10.77.0.%d" % (1 + number) for number in range(count)]
        self.pid = []
        self._switch = None

    def _ip(self, pid, *words):
        try:
            done = subprocess.run([*within(pid), "ip", *words], stderr=subprocess.PIPE, text=True, check=False)
        except FileNotFoundError as error:
            raise Unavailable("%s is missing: packages iproute2 and util-linux" % error.filename) from error
        if done.returncode != 0:
            raise Unavailable("ip %s: %s" % (" ".join(words), done.stderr.strip()))

    def __enter__(self):
        try:
            self._switch = _hold()
            self._ip(self._switch, "link", "add", "switch0", "type", "bridge")
            self._ip(self._switch, "link", "set", "switch0", "up")
            for number, address in enumerate(self.address):
                pid, port = _hold(), "port%d" % number
                self.pid.append(pid)
                self._ip(
                    self._switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(pid)
                )
                self._ip(self._switch, "link", "set", port, "master", "switch0", "up")
                self._ip(pid, "addr", "add", address + "/24", "dev", "eth0")
                self._ip(pid, "link", "set", "eth0", "up")
                self._ip(pid, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for pid in [*self.pid, self._switch]:
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.pid, self._switch = [], None


def sent_bytes(pid):
    """What has left through the interfaces of the network in which a process is, by their names."""
    with open("/proc/%d/net/dev" % pid, encoding="ascii") as file:
        rows = [line.replace(":", " ").split() for line in file.readlines()[2:]]
    return {row[0]: int(row[9]) for row in rows}
