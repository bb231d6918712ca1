#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run suites of a build in one boot of the guest.

usage: suite.py [--limit SECONDS] [--json FILE] BUILD [SUITE...]     (default: guest numa verbs)

The tests are those that meson knows, with its names, arguments, environment, folders and limits
(times SLOWER: emulation is slow). One line per test goes to standard output; --json adds one JSON
object per test, in the form of meson's testlog.json. Where no guest can be had, every test is
skipped, by name.
Exit status: 0; 1 if a test failed; 77 if all were skipped.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SLOWER = 10
SKIP, TIMED_OUT = 77, (124, 137)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            return text.read()
    except OSError:
        return None


def chosen(build, suites):
    """The tests of these suites, those of higher priority first."""
    listed = read(os.path.join(build, "meson-info", "intro-tests.json"))
    if listed is None:
        sys.exit("suite: %s is not a build directory of meson" % build)
    tests = [
        test
        for test in json.loads(listed)
        if suites & {suite.split(":")[-1] for suite in test["suite"]}
    ]
    return sorted(tests, key=lambda test: -test["priority"])


def write_tests(folder, tests):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    lists = {"side": [], "alone": []}
    for number, test in enumerate(tests):
        with open(os.path.join(folder, "%d.sh" % number), "w", encoding="utf-8") as script:
            for name, value in sorted(test["env"].items()):
                script.write("export %s=%s\n" % (name, shlex.quote(value)))
            script.write("cd %s\n" % shlex.quote(test["workdir"] or "."))
            script.write("exec %s\n" % " ".join(shlex.quote(word) for word in test["cmd"]))
        with open(os.path.join(folder, "%d.limit" % number), "w", encoding="utf-8") as limit:
            limit.write("%d\n" % (test["timeout"] * SLOWER))
        lists["side" if test["is_parallel"] else "alone"].append(number)
    for name, numbers in lists.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as listing:
            listing.writelines("%d\n" % number for number in numbers)


def jobs():
    """The guest has four CPUs, however many this machine has."""
    return min(4, max(2, len(os.sched_getaffinity(0))))


def boot(build, folder, out, limit):
    """The guest's exit status and what was said about it."""
    shutil.rmtree(out, ignore_errors=True)
    ran = subprocess.run(
        [os.path.join(HERE, "run"), "-b", build, "-o", out, "-t", str(limit)]
        + ["sh", os.path.join(HERE, "series"), folder, str(jobs())],
        cwd=build,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return ran.returncode, ran.stdout.decode("utf-8", "replace")


def result(out, number, status, said):
    """What became of a test: result in meson's words, seconds, output."""
    if status == SKIP:
        return "SKIP", 0, said
    output = read(os.path.join(out, "%d.log" % number))
    ended = read(os.path.join(out, "%d.status" % number))
    if not ended:
        begun = "did not end" if output is not None else "was not reached"
        note = "this test %s before the guest ended" % begun
        return "FAIL", 0, "\n".join([output or "", note, said])
    code, start, end = ended.split()
    code, seconds = int(code), float(end) - float(start)
    if code in TIMED_OUT:
        return "TIMEOUT", seconds, "%s\nended at its limit" % output
    return {0: "OK", SKIP: "SKIP"}.get(code, "FAIL"), seconds, output


def reason(verdict, output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " (%s)" % lines[-1] if verdict == "SKIP" and lines else ""


def main():
    parser = argparse.ArgumentParser(usage="suite.py [--limit S] [--json FILE] BUILD [SUITE...]")
    parser.add_argument("--limit", type=int, default=1800)
    parser.add_argument("--json")
    parser.add_argument("build")
    parser.add_argument("suites", nargs="*")
    asked = parser.parse_args()
    build = os.path.abspath(asked.build)
    tests = chosen(build, set(asked.suites or ["guest", "numa", "verbs"]))
    if not tests:
        sys.exit("suite: %s has no such tests" % build)
    folder, out = os.path.join(build, "guest", "tests"), os.path.join(build, "guest", "out")
    write_tests(folder, tests)
    status, said = boot(build, folder, out, asked.limit)

    results = []
    for number, test in enumerate(tests):
        verdict, seconds, output = result(out, number, status, said)
        results.append(verdict)
        print("%-7s %5.1f s  %s%s" % (verdict, seconds, test["name"], reason(verdict, output)))
        entry = {"name": test["name"], "result": verdict, "duration": seconds, "stdout": output}
        if asked.json:
            with open(asked.json, "a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")
        elif verdict not in ("OK", "SKIP"):
            print("\n".join("   | " + line for line in output.splitlines()[-60:]))
    if all(verdict == "SKIP" for verdict in results):
        return SKIP
    return 0 if set(results) <= {"OK", "SKIP"} else 1


if __name__ == "__main__":
    sys.exit(main())
