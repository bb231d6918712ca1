#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts one-line faults into the data path, one at a time, and says which of them no test saw.

Works in a copy of the tree in WORK; the tree itself is only read. For each fault one file is
compiled again, then come the tests of its part, then all the others, cheapest first, until one
fails. A fault that no test sees is a survivor: a test is missing, or the fault changes nothing that
can be seen, and stands with its reason in unseen.txt.

Memory orders are relaxed in a build with ThreadSanitizer, for no test of another build can tell.
"""

import argparse
import collections
import contextlib
import difflib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent import futures

import operators

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
UNSEEN = os.path.join(HERE, "unseen.txt")
SEEN = os.path.join(HERE, "seen.txt")
SENTINELS = 3  # of seen.txt in a run
SURVIVORS_MAX = 0.3  # of what was drawn: with more, the suites have gone blind
DATA_PATH = ("base", "exchange", "kernels", "pserver", "saved", "sparse", "trainer", "transport")
DATA_PATH += ("wire",)
# Of base only what every exchange goes through, and of saved what makes a snapshot durable. The
# tests of verbs run in the guest; the programs, models and readers of the trainer are beside the
# path.
BESIDE = re.compile(
    r"^(base/(?!(ahead|crc32c|env_helper|ring|settings|spin)\.c)"
    r"|saved/(?!(epochs|file|removal|snapshot|snapshot_removal)\.c)"
    r"|(transport/verbs|trainer/(program|models|readers))/)"
)
# Folder of a source (the longest that fits) to the folders of its tests, nearest first.
NEAR = {
    "base": "unit/base unit/trainer threads",
    "exchange": "unit/exchange unit/pserver unit/trainer threads",
    "kernels": "unit/kernels property unit/sparse",
    "pserver": "unit/pserver unit/trainer threads",
    "saved": "unit/saved unit/pserver",
    "sparse/client": "unit/sparse_client unit/sparse property",
    "sparse/server": "unit/sparse_service unit/sparse_client",
    "sparse/table": "unit/sparse unit/sparse_service property unit/sparse_client",
    "trainer": "unit/trainer unit/sparse_client threads",
    "transport": "unit/transport unit/sim conformance",
    "transport/fault": "unit/fault conformance",
    "transport/paths": "unit/paths conformance",
    "transport/shm": "unit/shm conformance",
    "transport/tcp": "unit/transport conformance",
    "wire": "unit/wire fuzz unit/pserver",
}
SUITES = "unit property fuzz conformance cluster threads programs".split()
THREADED = "unit threads".split()
FAR = ["unit property fuzz", "conformance_brief cluster_brief threads", "conformance cluster"]
FAR += ["programs"]
LIMIT_FACTOR, LIMIT_LEAST_S = 10, 30  # a test that takes so much longer than without a fault hangs
# Headers whose functions are a mechanism of their own: others are parts of what includes them.
HEADERS = ("exchange/turn.h",)
# What these warn of is no fault that anybody would commit.
STRICT = "-Werror=int-conversion -Werror=incompatible-pointer-types -Werror=implicit"


class Broken(Exception):
    """The tree fails without a fault, or the tools do."""


class Test:
    def __init__(self, entry):
        self.name, self.command = entry["name"], entry["cmd"]
        self.suites = {suite.split(":")[-1] for suite in entry["suite"]}
        self.env, self.workdir = entry["env"], entry["workdir"]
        self.targets = entry["depends"]
        self.alone = not entry["is_parallel"]

    def folder(self, build):
        """Of its program below tests/, or ''."""
        path = os.path.relpath(self.command[0], os.path.join(build, "tests"))
        return "" if path.startswith("..") else os.path.dirname(path)


class Build:
    """A build directory of the copy, and the tests in it."""

    def __init__(self, name, work, options, suites, wrapper=()):
        self.dir, self.tree = os.path.join(work, name), os.path.join(work, "tree")
        self.wrapper, self.options, self.suites = list(wrapper), options, suites
        self.log = os.path.join(work, name + ".log")
        self.times = os.path.join(work, name + ".times.json")
        self.tests = None
        self.known = {}  # name of a test: seconds, None: skipped
        self.children = set()
        self.env = dict(os.environ)
        self.env.pop("WEFT_SEED", None)  # it is this program's, and would change what tests do

    def run(self, *command):
        with open(self.log, "w", encoding="utf-8") as log:
            return subprocess.call(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env
            )

    def introspected(self, what):
        path = os.path.join(self.dir, "meson-info", "intro-%s.json" % what)
        with open(path, encoding="utf-8") as text:
            return json.load(text)

    def open(self):
        """Configure. Tests are built when they are wanted."""
        if not os.path.exists(os.path.join(self.dir, "build.ninja")):
            env = dict(self.env, CC=("ccache " if shutil.which("ccache") else "") + "gcc")
            if shutil.which("ld.lld"):
                env["CC_LD"] = "lld"
            self.env = env
            options = ["-Ddebug=false", "-Dc_args=" + STRICT] + self.options
            if self.run("meson", "setup", *options, self.dir, self.tree):
                raise Broken("meson setup failed: " + self.log)
        if self.run("ninja", "-C", self.dir, "build.ninja"):
            raise Broken("meson setup failed: " + self.log)
        tests = map(Test, self.introspected("tests"))
        self.tests = [test for test in tests if test.suites & self.suites]
        self.files = {t["id"]: t["filename"] for t in self.introspected("targets")}
        if os.path.exists(self.times):
            with open(self.times, encoding="utf-8") as text:
                self.known = json.load(text)

    def unknown(self, tests):
        return [test for test in tests if test.name not in self.known]

    def seconds(self, test):
        """That it takes without a fault; 0: it is skipped, or nobody has seen it yet."""
        return self.known.get(test.name) or 0

    def limit_s(self, test):
        return max(LIMIT_LEAST_S, LIMIT_FACTOR * (self.seconds(test) or LIMIT_LEAST_S))

    def look_at_clean(self, tests, workers):
        """Each of them passes in the tree without a fault, or says why it cannot. Once."""
        if self.make(self.targets(tests)):
            raise Broken("the tree does not build: " + self.log)
        for test, result in self.results(tests, workers):
            if result.status == "failed":
                result = self.attempt(test)  # by itself
            if result.status == "failed":
                said = result.output[-2000:]
                raise Broken("%s fails without a fault:\n%s" % (test.name, said))
            self.known[test.name] = None if result.status == "skipped" else result.seconds
        with open(self.times, "w", encoding="utf-8") as text:
            json.dump(self.known, text)

    def can_run(self, test):
        return self.known.get(test.name, 0) is not None

    def targets(self, tests):
        names = {name for test in tests for target in test.targets for name in self.files[target]}
        return sorted(os.path.relpath(name, self.dir) for name in names)

    def make(self, targets):
        return self.run("ninja", "-C", self.dir, *targets)

    def objects(self, path):
        """What a source is compiled to, in each form; of a header nothing."""
        with open(os.path.join(self.dir, "compile_commands.json"), encoding="utf-8") as text:
            commands = json.load(text)
        source = os.path.join(self.tree, path)
        return [
            command["output"]
            for command in commands
            if os.path.normpath(os.path.join(command["directory"], command["file"])) == source
        ]

    def attempt(self, test):
        """Run one test in a process group of its own, and end what is left of that."""
        began = time.monotonic()
        with open(self.log + ".%d" % id(test), "w+b") as log:
            child = subprocess.Popen(
                self.wrapper + test.command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=test.workdir or self.dir,
                env=dict(self.env, **test.env),
                start_new_session=True,
            )
            self.children.add(child)
            try:
                code = child.wait(self.limit_s(test))
            except subprocess.TimeoutExpired:
                code = None
            end_group(child)
            self.children.discard(child)
            log.seek(0)
            output = log.read().decode(errors="replace")
        os.unlink(log.name)
        status = "passed" if code == 0 else "skipped" if code == 77 else "failed"
        how = "hangs" if code is None else "fails"
        return Result(status, how, output, time.monotonic() - began)

    def results(self, tests, workers):
        """(test, result) of each, until the caller has enough."""
        side_by_side = [test for test in tests if not test.alone]
        with futures.ThreadPoolExecutor(workers) as pool:
            running = {pool.submit(self.attempt, test): test for test in side_by_side}
            try:
                for done in futures.as_completed(running):
                    yield running[done], done.result()
            finally:
                for waiting in running:
                    waiting.cancel()
                for child in list(self.children):
                    end_group(child)
        for test in tests:
            if test.alone:
                yield test, self.attempt(test)

    def who_fails(self, tests, workers):
        found = self.results(tests, workers)
        for test, result in found:
            if result.status == "failed":
                found.close()
                return "%s %s" % (test.name, result.how)
        return None


def end_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


Result = collections.namedtuple("Result", "status how output seconds")


def copy_tree(top, work):
    """What git knows, or would if it were added; what is the same is left alone. Returns whether
    anything was not the same."""
    names = subprocess.check_output(
        ["git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    )
    tree, changed = os.path.join(work, "tree"), False
    wanted = {name.decode() for name in names.split(b"\0") if name}
    wanted = {name for name in wanted if os.path.isfile(os.path.join(top, name))}
    for folder, _, files in os.walk(tree):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.relpath(path, tree) not in wanted:
                os.unlink(path)
                changed = True
    for name in wanted:
        source, copy = os.path.join(top, name), os.path.join(tree, name)
        if not (os.path.exists(copy) and read_bytes(copy) == read_bytes(source)):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(source, copy)  # newer than what was built of it
            shutil.copymode(source, copy)
            changed = True
    return changed


def near_to(part):
    """Folders of the tests of a part, nearest first; none: NEAR does not know it."""
    while part and part not in NEAR:
        part = os.path.dirname(part)
    return NEAR.get(part, "").split()


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def can_run(path):
    """Has this machine what the file was written for?"""
    flags = {"kernels/avx2.c": "avx2", "kernels/avx512.c": "avx512f"}
    return path not in flags or flags[path] in read("/proc/cpuinfo").split()


def sources(tree):
    found = []
    for part in DATA_PATH:
        for folder, _, names in os.walk(os.path.join(tree, part)):
            found += [os.path.relpath(os.path.join(folder, name), tree) for name in names]
    found = [p for p in found if p.endswith(".c") or p in HEADERS]
    return sorted(p for p in found if not BESIDE.match(p))


def every_mutant(tree):
    """Of the whole data path, also of what this machine cannot run."""
    return [
        mutant
        for path in sources(tree)
        for mutant in operators.mutants(path, read(os.path.join(tree, path)))
    ]


def listed(path):
    """{key of a mutant: reason}. Entries as they are printed: `in function`, the line before behind
    `- `, after behind `+ `, then why, up to an empty line. A path before `in` and comments are passed over."""
    found = {}
    for number, block in enumerate(re.split(r"\n\s*\n", read(path))):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        head = re.match(r"(?:\S+: )?in (\w+)", lines[0])
        if not head or len(lines) < 4 or lines[1][:2] != "- " or lines[2][:2] != "+ ":
            raise Broken("%s: entry %d has no function, lines or reason" % (path, number))
        before, after = (operators.code_of(line[2:]) for line in lines[1:3])
        found[head.group(1), before, after] = " ".join(lines[3:])
    return found


class Run:
    def __init__(self, args):
        self.work, self.workers, self.lock = args.work, args.workers, args.lock
        self.near_only = args.near
        self.tree = os.path.join(args.work, "tree")
        suites = set(args.suites.split(","))
        self.plain = Build("build", args.work, [], suites)
        machine = os.uname().machine
        still = ["setarch", machine, "-R"]  # ThreadSanitizer of gcc 12 needs it
        self.tsan = Build(
            "tsan", args.work, ["-Db_sanitize=thread"], suites & set(THREADED), still
        )
        self.tsan.env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"

    def forget(self):
        """What was seen of another tree."""
        for build in (self.plain, self.tsan):
            if os.path.exists(build.times):
                os.unlink(build.times)

    def build_for(self, mutant):
        build = self.tsan if mutant.kind == "order" else self.plain
        if build.tests is None:
            build.open()
        return build

    def rounds(self, build, path):
        """(are they near, tests), the nearest first, the cheapest of each first."""
        left = sorted(build.tests, key=build.seconds)
        near = near_to(os.path.dirname(path))
        picks = [lambda t, f=f: t.folder(build.dir) == f for f in near]
        picks += [lambda t, s=set(s.split()): bool(t.suites & s) for s in FAR]
        for number, pick in enumerate(picks):
            chosen = [test for test in left if pick(test)]
            left = [test for test in left if not pick(test)]
            if chosen and not (self.near_only and number >= len(near)):
                yield number < len(near), chosen

    def judge(self, mutant):
        """Who sees it, None if nobody does, False if it cannot be built."""
        build = self.build_for(mutant)
        path = os.path.join(self.tree, mutant.path)
        text = read(path)
        write(path, mutant.apply(text))
        try:
            objects = build.objects(mutant.path)
            if objects and build.make(objects):
                return False
            for near, tests in self.rounds(build, mutant.path):
                with turn(None if near else self.lock):
                    new = build.unknown(tests)
                    if new:
                        write(path, text)
                        build.look_at_clean(new, self.workers)
                        write(path, mutant.apply(text))
                    tests = [test for test in tests if build.can_run(test)]
                    if build.make(build.targets(tests)):
                        return False
                    who = build.who_fails(tests, self.workers)
                if who is not None:
                    return who
            return None
        finally:
            write(path, text)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Report:
    """What is said, and one line for each mutant in the form of meson's log for .ci/summary.py."""

    def __init__(self, path, known):
        self.file = open(path, "a", encoding="utf-8") if path else None
        self.known = known
        self.drawn = self.survivors = 0
        self.failed = False

    def tell(self, name, result, text):
        if self.file:
            json.dump({"name": name, "result": result, "stdout": text}, self.file)
            self.file.write("\n")
            self.file.flush()

    def verdict(self, mutant, who, must):
        self.drawn += 1
        place = "%s:%d %s" % (mutant.path, mutant.line, mutant.kind)
        if who is not None:
            print("   seen (%s): %s" % (who, str(mutant).replace("\n", "\n      ")), flush=True)
            self.tell(place, "OK", who)
            return
        reason = self.known.get(mutant.key())
        if reason is not None:
            print("   known (%s): %s" % (reason, place), flush=True)
            self.tell(place, "OK", reason)
            return
        self.survivors += 1
        print("** not seen: %s" % str(mutant).replace("\n", "\n   "), flush=True)
        text = "no test sees it: %s -> %s" % (mutant.before, mutant.after)
        self.tell(place, "FAIL" if must else "SKIP", text)
        self.failed |= must

    def finish(self, seconds):
        blind = self.drawn >= 10 and self.survivors > SURVIVORS_MAX * self.drawn
        if blind:
            share = "%d of %d faults were seen by no test" % (self.survivors, self.drawn)
            print("** " + share)
            self.tell("share of faults that are seen", "FAIL", share)
        print("   %d faults, %d not seen, %d s" % (self.drawn, self.survivors, seconds))
        return 1 if blind or self.failed else 0


@contextlib.contextmanager
def turn(path):
    if path is None:
        yield
        return
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stale(path, known, choices):
    """A text for each entry of the list at `path` that fits no fault, with the fault most like it."""
    there = {mutant.key() for mutant in choices}
    for key in sorted(known.keys() - there):
        text = "%s: this cannot be put there any more, renew or delete it:\nin %s\n- %s\n+ %s"
        text %= (os.path.basename(path),) + key
        like = [m for m in choices if m.function == key[0] or m.key()[1:] == key[1:]]
        if like:
            text += "\nMost like it is %s" % max(like, key=lambda m: likeness(m.key(), key))
        yield text


def likeness(one, other):
    return difflib.SequenceMatcher(None, "\n".join(one), "\n".join(other)).ratio()


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--work", required=True, help="folder of the copy and of its builds")
    parser.add_argument("--count", type=int, default=20, help="faults to draw (20)")
    parser.add_argument("--seed", type=int, default=None, help="default: WEFT_SEED, or by chance")
    parser.add_argument("--suites", default=",".join(SUITES), help="(%(default)s)")
    parser.add_argument("--only", default="", help="regular expression found in path:line:kind")
    parser.add_argument("--all", action="store_true", help="all that --only leaves, in order")
    parser.add_argument("--listed", metavar="FILE", help="the faults of such a list, and no others")
    parser.add_argument("--no-sentinels", action="store_true", help="none of seen.txt")
    parser.add_argument("--near", action="store_true", help="no tests but those of its part")
    parser.add_argument("--lock", help="file to lock while the tests of other parts run")
    parser.add_argument("--json", help="append results for .ci/summary.py")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="tests at a time")
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    if args.seed is None:
        text = os.environ.get("WEFT_SEED")
        args.seed = int(text, 0) if text else random.SystemRandom().randrange(1 << 32)
    return args


def plan(args, choices, report):
    """(mutant, must it be seen) in order; without end where they are drawn."""
    by_key = {}
    for mutant in choices:
        by_key.setdefault(mutant.key(), mutant)
    if args.listed:
        yield from ((by_key[key], True) for key in listed(args.listed) if key in by_key)
        return
    picked = re.compile(args.only)
    left = [m for m in choices if picked.search("%s:%d:%s" % (m.path, m.line, m.kind))]
    if args.all:
        yield from ((mutant, False) for mutant in left)
        return
    sentinels = sorted(key for key in listed(SEEN) if key in by_key)
    rng = random.Random(args.seed)
    count = 0 if args.no_sentinels else min(SENTINELS, len(sentinels))
    for key in rng.sample(sentinels, count):
        yield by_key[key], True
    while True:
        yield operators.draw(rng, left), False


def perform(args):
    os.makedirs(args.work, exist_ok=True)
    changed = copy_tree(TOP, args.work)
    run = Run(args)
    if changed:
        run.forget()
    report = Report(args.json, listed(UNSEEN))
    every = every_mutant(run.tree)
    choices = [mutant for mutant in every if can_run(mutant.path)]
    began = time.monotonic()
    print("   WEFT_SEED=%d, %d faults to choose from" % (args.seed, len(choices)), flush=True)
    for path in (UNSEEN, SEEN):
        for line in stale(path, listed(path), every):
            print("** " + line)
            report.tell(os.path.basename(path), "FAIL", line)
            report.failed = True
    left = args.count
    for mutant, must in plan(args, choices, report):
        if left == 0:
            break
        who = run.judge(mutant)
        if who is False:
            continue  # does not compile: the next of the draw takes its place
        report.verdict(mutant, who, must)
        left -= 0 if must or args.all else 1
    return report.finish(time.monotonic() - began)


def main():
    args = parse_args()
    try:
        return perform(args)
    except Broken as why:
        print("mutation: %s" % why, file=sys.stderr)
        if args.json:
            Report(args.json, {}).tell("the tree without a fault", "FAIL", str(why))
        return 1


if __name__ == "__main__":
    sys.exit(main())
