#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Add up test results and show what failed.

usage: summary.py --stage NAME SECONDS FILE   one stage: what failed and its log, one line of sum
       summary.py FILE...                     all stages: what was skipped, then the last line

A FILE holds meson's testlog.json: one JSON object per line. A program that reports in cmocka's form
counts once per test in it, any other program counts once. Exit status 1 if anything failed.
"""

import json
import os
import re
import sys

LOG_LINES = 60
RUN = re.compile(r"\[ RUN      \] (.+)")
MARK = re.compile(r"\[  (FAILED|SKIPPED) {1,2}\] (?!.*listed below:)(.+)")


class Sum:
    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = []  # names
        self.broken = []  # (name, result, output)

    def add(self, stage, entry):
        output = entry.get("stdout", "") + entry.get("stderr", "")
        name, result = "%s: %s" % (stage, entry["name"].replace("weft:", "")), entry["result"]
        ran = RUN.findall(output)
        marks = MARK.findall(output)
        failed = {test for mark, test in marks if mark == "FAILED"}
        skipped = {test for mark, test in marks if mark == "SKIPPED"} - failed
        count = max(len(ran), 1)
        if result == "SKIP":
            self.skipped.append(name + skip_reason(output))
            return
        if result not in ("OK", "EXPECTEDFAIL"):
            self.broken.append((name, result, output))
            self.failed += max(len(failed), 1)
            self.passed += max(count - max(len(failed), 1) - len(skipped), 0)
        else:
            self.passed += count - len(skipped)
        self.skipped += ["%s: %s" % (name, test) for test in sorted(skipped)]

    def line(self):
        text = "%d passed, %d failed" % (self.passed, self.failed)
        return text + (", %d skipped" % len(self.skipped) if self.skipped else "")


def skip_reason(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return " (%s)" % lines[-1].strip() if lines else ""


def load(path, total):
    count = 0
    stage = os.path.basename(path).rsplit(".", 1)[0]
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.strip():
                    total.add(stage, json.loads(line))
                    count += 1
    if count == 0:
        total.add(stage, {"name": "run tests", "result": "FAIL", "stdout": "no test ran"})


def without_good(output):
    """The lines that do not only say that some test in the program ran and passed."""
    kept = []
    for line in output.splitlines():
        if line.startswith("[       OK ]") and kept and kept[-1].startswith("[ RUN "):
            kept.pop()
        else:
            kept.append(line)
    return kept


def show_broken(total):
    for name, result, output in total.broken:
        print("-- %s: %s" % (result, name))
        for line in without_good(output)[-LOG_LINES:]:
            print("   | " + line)


def main(args):
    total = Sum()
    if args[:1] == ["--stage"]:
        _, stage, seconds, path = args
        load(path, total)
        show_broken(total)
        print("   %s: %s, %s s" % (stage, total.line(), seconds))
        return 0
    for path in args:
        load(path, total)
    for name in total.skipped:
        print("skipped: " + name)
    for name, result, _ in total.broken:
        print("failed: %s (%s)" % (name, result))
    print(total.line())
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
