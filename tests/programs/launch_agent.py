#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A launcher that speaks to `weft _node` as tools/launch/frame.h says, and hangs, ends or is silent
where a good one would not. WEFT is the program; files are made in the working folder."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time

WEFT = os.environ["WEFT"]
PATIENCE = 60  # seconds; they only bound a failure
HELLO, REPLY, STARTED, LINE, ENDED, WORKSPACE, PACKAGE, DATA = range(1, 9)
PROCESS, SECRET, START, SIGNAL, ALIVE = range(13, 18)
NEW = 2
SECRETS = os.path.abspath("secrets")


def check(condition, text):
    if not condition:
        raise SystemExit("FAILED: " + text)


def until(condition, text):
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, "%s: not within %d seconds" % (text, PATIENCE))
        time.sleep(0.02)


def number(value):
    return struct.pack("<I", value)


def text(value):
    raw = value.encode()
    return number(len(raw)) + raw + b"\0"


def texts(values):
    return number(len(values)) + b"".join(text(value) for value in values)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Agent:
    """Its input is one end of a pair of sockets, as sshd makes them; its output is a pipe."""

    def __init__(self, path=None):
        ours, its = socket.socketpair()
        env = dict(os.environ, TMPDIR=SECRETS)
        if path:
            env["PATH"] = path + ":" + env["PATH"]
        self.link = ours
        self.process = subprocess.Popen([WEFT, "_node"], stdin=its, stdout=subprocess.PIPE, env=env)
        its.close()
        self.got = b""
        check(self.next()[0] == HELLO, "the first frame is no hello")

    def send(self, kind, body=b""):
        self.link.sendall(struct.pack("<B3xI", kind, len(body)) + body)

    def next(self):
        head = self.read(8)
        kind, count = struct.unpack("<B3xI", head)
        return kind, self.read(count)

    def read(self, count):
        data = self.process.stdout.read(count)
        check(len(data) == count, "the agent's output ends")
        return data

    def request(self, kind, body=b""):
        self.send(kind, body)
        return self.reply()

    def reply(self):
        kind, body = self.next()
        check(kind == REPLY, "frame %d instead of a reply" % kind)
        check(body[:4] == number(0), "a request failed: %r" % body[8:])
        return body[8:-1].decode()

    def workspace(self, name, processes):
        self.request(WORKSPACE, number(NEW) + text(os.path.abspath(name)) + number(0) + number(processes))
        self.request(SECRET, bytes(32))
        check(len(os.listdir(SECRETS)) == 1, "there is no secret")

    def start(self, at, argv, again=""):
        self.request(PROCESS, number(at) + text("trainer %d" % at) + text("train%d" % at) + text(argv[0]) +
                     texts(argv) + texts([]) + text(again))
        self.send(START, number(at))

    def is_idle(self):
        """It has worked for half a second on nothing: it has written or queued all that there is."""
        before = self.ticks()
        time.sleep(0.5)
        return self.ticks() == before

    def ticks(self):
        with open("/proc/%d/stat" % self.process.pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[11:13]

    def ends(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit("FAILED: the agent does not end") from None

    def gone(self, pids=()):
        code = self.ends()
        for pid in pids:
            until(lambda pid=pid: not alive(pid), "process %d is left" % pid)
        until(lambda: not os.listdir(SECRETS), "a secret is left")
        return code


def script(name, body):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as out:
        out.write("#!/bin/sh\n" + body)
    os.chmod(name, 0o755)


def hung_package(name):
    """An agent whose tar reads nothing, as when its disk hangs, with more data than the pipe holds."""
    script("hung/tar", "echo $$ >%s.pid; exec sleep 1000\n" % os.path.abspath(name))
    agent = Agent(os.path.abspath("hung"))
    agent.workspace(name, 0)
    agent.send(PACKAGE, text(""))
    agent.send(DATA, bytes(200000))
    until(lambda: os.path.exists(name + ".pid") and os.path.getsize(name + ".pid"), "tar does not start")
    with open(name + ".pid") as pid:
        return agent, int(pid.read())


def a_stop_ends_an_agent_whose_disk_hangs():
    agent, tar = hung_package("stopped")
    agent.process.send_signal(signal.SIGTERM)
    agent.gone([tar])


def a_launcher_that_is_gone_ends_an_agent_whose_disk_hangs():
    agent, tar = hung_package("closed")
    agent.link.close()
    agent.gone([tar])


def half_a_link_ends_an_agent_whose_disk_hangs():
    agent, tar = hung_package("half")
    agent.link.shutdown(socket.SHUT_WR)
    agent.gone([tar])


def data_waits_for_a_slow_disk():
    script("slow/tar", "sleep 1; exec cksum >../cksum.out\n")
    agent = Agent(os.path.abspath("slow"))
    agent.workspace("slow-job", 0)
    agent.send(PACKAGE, text(""))
    for _ in range(20):
        agent.send(DATA, b"x" * 200000)
    agent.send(DATA)
    agent.reply()
    with open("cksum.out") as out:
        check(out.read().split()[1] == "4000000", "tar has not read all")
    agent.link.close()
    check(agent.gone() == 0, "the agent did not end well")


def the_end_of_a_process_gets_through_when_its_lines_do_not_fit():
    with open("flood.py", "w") as out:
        out.write("import fcntl, os, sys, time\n"
                  "for fd in 1, 2:\n    fcntl.fcntl(fd, 1031, 1 << 20)\n"  # F_SETPIPE_SZ
                  "os.write(2, b'ready\\n')\n"
                  "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
                  "for fd in 1, 2:\n    os.write(fd, bytes([10]) * (1 << 20))\n"
                  "sys.exit(7)\n")
    agent = Agent()
    agent.workspace("flood", 1)
    agent.start(0, [sys.executable, os.path.abspath("flood.py")])
    _, body = agent.next()
    pid = struct.unpack("<II", body)[1]
    check(b"ready" in agent.next()[1], "another line")
    agent.process.send_signal(signal.SIGSTOP)
    open("flood/go", "w").close()
    until(lambda: not alive(pid), "it does not end")
    agent.process.send_signal(signal.SIGCONT)
    until(agent.is_idle, "it is always busy")
    lost = False
    kind, body = agent.next()
    while kind == LINE:
        lost = lost or b"lines were lost" in body
        kind, body = agent.next()
    check((kind, body) == (ENDED, number(0) + number(7 << 8)), "another end: %d %r" % (kind, body))
    check(lost, "nothing was lost, so this shows nothing")
    agent.link.close()
    agent.gone()


def a_killed_agent_leaves_neither_a_process_nor_a_secret():
    agent = Agent()
    agent.workspace("killed", 1)
    agent.start(0, ["sleep", "1000"])
    kind, body = agent.next()
    check(kind == STARTED, "it is not started")
    agent.process.kill()
    agent.gone([struct.unpack("<II", body)[1]])


def an_agent_answers_a_sign_of_life():
    agent = Agent()
    agent.send(ALIVE)
    check(agent.next() == (ALIVE, b""), "it does not answer")
    agent.workspace("alive", 0)
    agent.send(ALIVE)
    check(agent.next() == (ALIVE, b""), "it does not answer")
    agent.link.close()
    agent.gone()


def a_process_that_has_ended_is_started_again():
    agent = Agent()
    agent.workspace("again", 2)
    agent.start(1, ["sleep", "1000"])
    check(agent.next()[0] == STARTED, "it is not started")
    agent.start(0, ["sh", "-c", "echo \"$# $ONCE\"; kill -9 $$", "name"], "ONCE=more")
    for arguments in ["0 ", "0 more", "0 more"]:
        check(agent.next()[0] == STARTED, "it is not started")
        kind, body = agent.next()
        check((kind, body) == (LINE, number(0) + number(1) + text(arguments)), "other arguments: %r" % body)
        check(agent.next() == (ENDED, number(0) + number(9)), "another end")
        agent.send(START, number(0))
    agent.link.close()
    agent.gone()


def a_process_that_runs_is_not_started_again():
    agent = Agent()
    agent.workspace("twice", 1)
    agent.start(0, ["sleep", "1000"])
    _, body = agent.next()
    agent.send(START, number(0))
    check(agent.gone([struct.unpack("<II", body)[1]]) == 69, "the agent accepts it")


def main():
    os.mkdir(SECRETS)
    for test in [
        a_stop_ends_an_agent_whose_disk_hangs,
        a_launcher_that_is_gone_ends_an_agent_whose_disk_hangs,
        half_a_link_ends_an_agent_whose_disk_hangs,
        data_waits_for_a_slow_disk,
        an_agent_answers_a_sign_of_life,
        a_killed_agent_leaves_neither_a_process_nor_a_secret,
        a_process_that_has_ended_is_started_again,
        a_process_that_runs_is_not_started_again,
        the_end_of_a_process_gets_through_when_its_lines_do_not_fit,
    ]:
        print(test.__name__, flush=True)
        test()


if __name__ == "__main__":
    sys.exit(main())
