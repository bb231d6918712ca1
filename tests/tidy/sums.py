#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last line of the check counts what it should: .ci/summary.py on made-up test logs."""

import json
import os
import subprocess
import sys
import tempfile

import tree

CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] a_holds
[       OK ] a_holds
[ RUN      ] b_holds
%s
[ RUN      ] c_holds
[  SKIPPED ] c_holds
[==========] 3 test(s) run.
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] c_holds
"""
PASSING = CMOCKA % "[       OK ] b_holds"
FAILING = (
    CMOCKA % "[  FAILED  ] b_holds"
    + "[  FAILED  ] t: 1 test(s), listed below:\n[  FAILED  ] b_holds\n\n 1 FAILED TEST(S)\n"
)
CRASHED = "[==========] Running 3 test(s).\n[ RUN      ] a_holds\n[       OK ] a_holds\n[ RUN      ] b\n"

# test log entries (result, output), last line, exit status
CASES = [
    ([("OK", "")], "1 passed, 0 failed", 0),
    ([("OK", ""), ("FAIL", "boom")], "1 passed, 1 failed", 1),
    ([("TIMEOUT", "")], "0 passed, 1 failed", 1),
    ([("ERROR", "")], "0 passed, 1 failed", 1),
    ([("UNEXPECTEDPASS", "")], "0 passed, 1 failed", 1),
    ([("OK", ""), ("SKIP", "no device")], "1 passed, 0 failed, 1 skipped", 0),
    ([("OK", PASSING)], "2 passed, 0 failed, 1 skipped", 0),
    ([("FAIL", FAILING)], "1 passed, 1 failed, 1 skipped", 1),
    ([("FAIL", CRASHED)], "1 passed, 1 failed", 1),
    ([("FAIL", PASSING)], "1 passed, 1 failed, 1 skipped", 1),
    ([], "0 passed, 1 failed", 1),
]


def summary(entries):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "stage.json")
        with open(log, "w", encoding="utf-8") as file:
            for number, (result, output) in enumerate(entries):
                entry = {"name": "test %d" % number, "result": result, "stdout": output}
                file.write(json.dumps(entry) + "\n")
        program = os.path.join(tree.TOP, ".ci/summary.py")
        done = subprocess.run(
            [sys.executable, program, log], stdout=subprocess.PIPE, text=True, check=False
        )
        return done.stdout.splitlines(), done.returncode


def main():
    wrong = 0
    for entries, last, status in CASES:
        lines, returned = summary(entries)
        named = sum(line.startswith("skipped: ") for line in lines)
        if lines[-1] != last or returned != status or named != last.count("skipped"):
            print("%s: wanted '%s' and %d, got %d and:" % (entries, last, status, returned))
            print("\n".join(lines))
            wrong += 1
    print("%d cases, %d wrong" % (len(CASES), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
