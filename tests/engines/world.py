# SPDX-License-Identifier: Apache-2.0
"""The machines of tests/engines: one that runs everything over loopback, and four nodes.

All of it lives in namespaces of its own (mounts, network, names, processes), which engines.py has made
before this runs. A node is a network namespace with its own host name and its own link to a bridge;
processes and files are those of all. Whatever is mounted, started or written here is gone when
the first process of these namespaces ends, however it ends."""
import os
import re
import shutil
import signal
import subprocess
import time

ROOT = "/run/weft"
TOP, BUILD, HOME = ROOT + "/top", ROOT + "/build", ROOT + "/home"
WEFT = BUILD + "/tools/weft"
USER, USER_ID = "user", 4242
NODES = ("node1", "node2", "node3", "node4")
HEAD = "head"
SLURM_NAMES = ("one", "two")  # of the head, where Slurm takes it for two nodes
RATE = "400mbit"
LIMIT_S = 60
PATIENCE = 5  # times each limit, on machines that do much else
PEOPLE = """root:*:0:0:root:/root:/bin/sh
munge:*:102:102:munge:/nonexistent:/usr/sbin/nologin
sshd:*:103:65534:sshd:/run/sshd:/usr/sbin/nologin
slurm:*:64030:64030:slurm:/nonexistent:/usr/sbin/nologin
%s:*:%d:%d:user:%s:/bin/sh
nobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
""" % (USER, USER_ID, USER_ID, HOME)


class Failure(Exception):
    """What did not hold, with the output that shows it."""


class Skip(Exception):
    """What is missing on this machine."""


def tool(*words):
    """Runs a tool of the rig itself; it must succeed."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure("%s: exit status %d: %s" % (" ".join(words), done.returncode, done.stderr.strip()))
    return done.stdout


def write(path, text, mode=0o644, owner=None):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    if owner is not None:
        shutil.chown(path, owner, owner)
    return path


def until(seconds, holds, text):
    """Waits until it holds; the seconds only bound a failure."""
    end = time.monotonic() + seconds * PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise Failure("%s: not within %d s" % (text() if callable(text) else text, seconds * PATIENCE))
        time.sleep(0.05)


class Process:
    """A process that runs in the background, its output in files."""

    def __init__(self, world, name, words, node, user, cwd, env):
        self.name = name
        self.paths = [os.path.join(world.logs, "%s.%s" % (name, end)) for end in ("out", "err")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.popen = subprocess.Popen(
                world.command(words, node, user), cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True)

    def text(self, which):
        with open(self.paths[which], errors="replace") as file:
            return file.read()

    @property
    def out(self):
        return self.text(0)

    @property
    def err(self):
        return self.text(1)

    def shown(self):
        return "%s\n--- stdout\n%s\n--- stderr\n%s" % (self.name, self.out[-40000:], self.err[-40000:])

    def ends(self, seconds=LIMIT_S):
        """Its exit status, once it has ended by itself."""
        try:
            return self.popen.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            shown = self.shown()
            self.kill()
            raise Failure("still runs after %d s: %s" % (seconds * PATIENCE, shown)) from None

    def signal(self, number):
        """To its whole group."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.popen.wait()


class World:
    def __init__(self):
        self.logs = ROOT + "/logs"
        self.count = 0
        self.processes = []
        self.notes = []  # what a case shows besides its result
        for path in (self.logs, "/run/sshd", "/run/netns", "/run/uts"):
            os.makedirs(path, exist_ok=True)
        self._people()
        self._network()

    def begin(self):
        """What a case finds: an empty home, names with both addresses, nothing that runs."""
        self.notes = []
        shutil.rmtree(HOME, ignore_errors=True)
        os.makedirs(HOME)
        shutil.chown(HOME, USER_ID, USER_ID)
        self.hosts("46")

    # What /etc says here: nobody outside sees it.
    def _people(self):
        shadow = "".join("%s:*:19000:0:99999:7:::\n" % line.split(":")[0] for line in PEOPLE.split())
        groups = "".join("%s:*:%s:\n" % tuple(line.split(":")[:3:2]) for line in PEOPLE.split())
        for name, text in (("passwd", PEOPLE), ("shadow", shadow), ("group", groups), ("hosts", "")):
            own = write("%s/%s" % (ROOT, name), text)
            tool("mount", "--bind", own, "/etc/" + name)

    def hosts(self, families):
        """Which addresses the names of nodes have: "4", "6" or "46"."""
        lines = ["%s localhost %s %s" % (where, HEAD, " ".join(SLURM_NAMES))
                 for where, family in (("127.0.0.1", "4"), ("::1", "6")) if family in families]
        for number, node in enumerate(NODES, 1):
            lines += ["%s %s" % (self.address(number, family), node) for family in families]
        with open("/etc/hosts", "w") as file:
            file.write("\n".join(lines) + "\n")

    @staticmethod
    def address(number, family):
        return "10.77.0.%d" % number if family == "4" else "fd77::%d" % number

    def _network(self):
        tool("hostname", HEAD)
        tool("ip", "link", "set", "lo", "up")
        tool("ip", "link", "add", "bridge", "type", "bridge")
        tool("ip", "link", "set", "bridge", "up")
        # Names are looked up only for a host that has an address beyond its loopback (AI_ADDRCONFIG).
        tool("ip", "addr", "add", self.address(9, "4") + "/24", "dev", "bridge")
        tool("ip", "addr", "add", self.address(9, "6") + "/64", "dev", "bridge", "nodad")
        self.shaped = True
        for number, node in enumerate(NODES, 1):
            inside = ("ip", "-n", node)
            tool("ip", "netns", "add", node)
            write("/run/uts/" + node, "")
            tool("unshare", "--uts=/run/uts/" + node, "hostname", node)
            tool("ip", "link", "add", "to-" + node, "type", "veth", "peer", "name", "eth0", "netns", node)
            tool("ip", "link", "set", "to-" + node, "master", "bridge", "up")
            for family, bits in (("4", "24"), ("6", "64")):
                where = "%s/%s" % (self.address(number, family), bits)
                tool(*inside, "addr", "add", where, "dev", "eth0", *(["nodad"] if family == "6" else []))
            tool(*inside, "link", "set", "lo", "up")
            tool(*inside, "link", "set", "eth0", "up")
            rate = ("root", "tbf", "rate", RATE, "burst", "256kb", "latency", "50ms")
            try:
                tool("tc", "-n", node, "qdisc", "add", "dev", "eth0", *rate)
            except Failure:
                self.shaped = False

    def link(self, node, state):
        """Pulls the plug of a node ("down"), or puts it in again ("up")."""
        tool("ip", "link", "set", "to-" + node, state)

    # Processes

    @staticmethod
    def command(words, node, user):
        enter = [] if node is None else ["nsenter", "--net=/run/netns/" + node, "--uts=/run/uts/" + node]
        become = [] if user is None else ["setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups"]
        return enter + become + list(words)

    def environment(self, more=None):
        """A user's, without what the caller of the tests has set."""
        return dict(
            {
                "PATH": BUILD + "/tools:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": HOME,
                "USER": USER,
                "LANG": "C.UTF-8",
                "PYTHONPATH": TOP + "/bindings/python",
                "WEFT_LIBRARY": BUILD + "/trainer/libweft.so.0",
            },
            **(more or {}),
        )

    def start(self, name, words, node=None, user=USER, cwd=HOME, env=None):
        """In the background; a command as one text is for the shell."""
        self.count += 1
        words = ["sh", "-c", words] if isinstance(words, str) else words
        process = Process(self, "%03d-%s" % (self.count, name), words, node, user, cwd, self.environment(env))
        self.processes.append(process)
        return process

    def run(self, words, status=0, seconds=LIMIT_S, **where):
        """To its end, which has to have this exit status (None: any)."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", words if isinstance(words, str) else " ".join(words))[:40]
        process = self.start(name, words, **where)
        got = process.ends(seconds)
        if status is not None and got != status:
            raise Failure("exit status %d, not %d: %s\n%s" % (got, status, words, process.shown()))
        return process

    @staticmethod
    def pids(wanted):
        """Processes of the user, by what their environment and command line say: wanted(variables, words)."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open("/proc/%s/environ" % name, "rb") as env, open("/proc/%s/cmdline" % name, "rb") as line:
                    variables = dict(v.split("=", 1) for v in env.read().decode().split("\0") if "=" in v)
                    words = line.read().decode().split("\0")[:-1]
            except (OSError, ValueError):
                continue
            if words and wanted(variables, words):
                found.append(int(name))
        return found

    def end(self):
        """Ends all that runs yet, whoever started it: in this process namespace -1 means the rig's own."""
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for process in self.processes:
            process.popen.wait()
        self.processes = []


def comm(pid):
    """A process's name; empty: it is gone."""
    try:
        with open("/proc/%d/comm" % pid) as file:
            return file.read().strip()
    except OSError:
        return ""


def descendants(pid):
    """Processes that this one has started, and theirs."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            children = [int(text) for text in file.read().split()]
    except OSError:
        return []
    return children + [one for child in children for one in descendants(child)]


def says(text, *wanted):
    for want in wanted:
        if want not in text:
            raise Failure("%r is not in:\n%s" % (want, text[-6000:]))


def digest_of(text):
    found = re.findall(r"^pass .* digest ([0-9a-f]{16})$", text, re.MULTILINE)
    if not found:
        raise Failure("there is no line with a digest in:\n%s" % text[-6000:])
    return found[-1]


def same(got, wanted, text=""):
    if got != wanted:
        raise Failure("%s is not %s\n%s" % (got, wanted, text))
