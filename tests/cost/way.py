#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The way of a slice: the functions of this project that a plain synchronous step of one 64-byte
tensor runs through, at each end, as callgrind counts their calls (cost.py: one CPU, nobody polls).

usage: way.py [--renew] BUILD

Compares them with way.txt, where each line is an end, a file and a function. None of the files of
FEATURES may be among them: a job without a feature does not run its code. BUILD has to be built
without optimisation (meson setup --buildtype=debug -Dslow_asserts=true), so that each function is
one. --renew writes the list, after a change that is meant.

Exits 0 where they agree, 1 where not, 77 where a tool or the right build is missing."""

import argparse
import collections
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import cost

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIST = os.path.join(HERE, "way.txt")
ROW = cost.ROWS["tcp"]
# Less often than this in an exchange is what the clock brings, which slow_clock.c slows down.
CALLS_MIN = 0.5
FEATURES = {
    "pserver/announce.c", "pserver/async.c", "pserver/averages.c", "pserver/change.c",
    "pserver/feature.c", "pserver/halves.c", "pserver/inquiry.c", "pserver/norm.c",
    "pserver/outgoing.c", "pserver/position.c", "pserver/snapshot.c",
    "pserver/snapshot_dense.c", "pserver/snapshots.c", "pserver/straggle.c",
    "trainer/session/announce.c", "trainer/session/change_send.c", "trainer/session/feature.c",
    "trainer/session/halves.c", "trainer/session/norm.c", "trainer/session/others.c",
    "trainer/session/position.c", "trainer/session/position_send.c",
}


def calls(path):
    """Calls by file and function of a callgrind profile. Names are given once, as `(id) name`."""
    names, by_function = {}, collections.Counter()
    callee_file = callee = ""
    file = ""

    def name_of(kind, text):
        match = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if match is None:
            return text
        if match.group(2) is not None:
            names[kind, match.group(1)] = match.group(2)
        return names[kind, match.group(1)]

    with open(path, encoding="utf-8") as profile:
        for line in profile:
            key, _, value = line.rstrip("\n").partition("=")
            if key in ("fl", "fi", "fe"):
                file = name_of("file", value)
            elif key == "fn":
                name_of("function", value)
                callee_file = file
            elif key in ("cfi", "cfl"):
                callee_file = name_of("file", value)
            elif key == "cfn":
                callee = name_of("function", value)
            elif key == "calls":
                by_function[callee_file, callee] += int(value.split()[0])
                callee_file = file
    return by_function


def has(path, name):
    """Whether the function stands in that file: callgrind puts some inline ones into another."""
    path = os.path.join(ROOT, path)
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as source:
        return re.search(r"^%s\(" % name, source.read(), re.MULTILINE) is not None


def way(short, long):
    """(file, function) of the project's own; assertions may be slow ones, or not."""
    before, after = calls(short), calls(long)
    found = set()
    for (file, function), count in after.items():
        often = (count - before[file, function]) / (cost.LONG - cost.SHORT)
        path = os.path.relpath(os.path.normpath(file), ROOT)
        name = function.split("'")[0]
        if often >= CALLS_MIN and not path.startswith(("..", "tests/", "base/assert")) \
                and has(path, name):
            found.add((path, name))
    return found


def callgrind(build):
    slow_clock = os.path.join(build, "tests", "cost", "libslow_clock.so")
    return lambda path: ["env", "LD_PRELOAD=" + os.path.abspath(slow_clock)] + cost.callgrind(path)


def measure(build):
    with tempfile.TemporaryDirectory() as work:
        short, long = (cost.exchange(build, ROW, count, callgrind(build), work)
                       for count in (cost.SHORT, cost.LONG))
        return ["%s %s %s" % (name.split()[0], file, function) for name in sorted(short)
                for file, function in sorted(way(short[name], long[name]))]


def is_plain(build):
    """Whether functions stand as they are written, and no more of them than that."""
    out = subprocess.run(["meson", "introspect", "--buildoptions", build],
                         capture_output=True, text=True, check=True).stdout
    of = {option["name"]: option["value"] for option in json.loads(out)}
    return of["optimization"] == "0" and of["b_sanitize"] == "none"


def main():
    parser = argparse.ArgumentParser(usage="way.py [--renew] BUILD")
    parser.add_argument("build")
    parser.add_argument("--renew", action="store_true")
    asked = parser.parse_args()
    if shutil.which("valgrind") is None or platform.machine() != "x86_64":
        print("way: valgrind is missing, or this is no x86-64, for which the list is")
        sys.exit(77)
    if not is_plain(asked.build):
        print("way: %s is not built with --buildtype=debug" % asked.build)
        sys.exit(77)
    found = measure(asked.build)
    astray = [line for line in found if line.split()[1] in FEATURES]
    for line in astray:
        print("way: %s: a plain step runs through a feature's file" % line)
    if asked.renew and not astray:
        with open(LIST, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in found)
        print("way: %d functions written to tests/cost/way.txt" % len(found))
        sys.exit(0)
    with open(LIST, encoding="utf-8") as file:
        listed = file.read().splitlines()
    for line in sorted(set(found) - set(listed)):
        print("way: + %s" % line)
    for line in sorted(set(listed) - set(found)):
        print("way: - %s" % line)
    same = set(found) == set(listed)
    print("way: %d functions, %s" % (len(found), "as listed" if same else
          "not as tests/cost/way.txt lists them; if that is meant: way.py --renew BUILD"))
    sys.exit(0 if same and not astray else 1)


if __name__ == "__main__":
    main()
