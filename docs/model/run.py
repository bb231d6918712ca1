#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Search models exhaustively: each configuration below holds, and each seeded mistake is found.

usage: run.py [MODEL...]    (default: all that are listed here)

Here stand the models that take a moment. The others, and what their flags mean, are in README.md.
Exit status 77 without spin.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = ("STORE", "LOOK", "SAY", "SEE")
# model: (flags, is it sound)
RUNS = {
    "orders": [(part, True) for part in ("SLEEP", "SLEEP N=3", "THREAD", "THREAD N=3")]
    + [(part, True) for part in ("OWNER", "OWNER N=3", "REVOKE", "SLEEP M_TAKE")]
    + [
        ("%s M_%s" % (part, mistake), False)
        for part in ("SLEEP", "THREAD", "OWNER", "REVOKE")
        for mistake in PAIRS
    ]
    + [("SLEEP M_NOLOOK", False), ("THREAD M_SEEN", False)],
}


def search(model, flags, folder):
    """(does it hold, what pan says)"""
    defines = ["-D" + flag for flag in flags.split()]
    source = os.path.join(HERE, model + ".pml")
    for command in (
        ["spin", "-a"] + defines + [source],
        "gcc -O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -DVECTORSZ=4096 -o pan pan.c".split(),
        ["./pan", "-m100000"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0 and command[0] != "./pan":
            sys.exit("run: %s: %s" % (" ".join(command), done.stdout + done.stderr))
    errors = re.search(r"errors: (\d+)", done.stdout)
    if errors is None or "Search not completed" in done.stdout and errors.group(1) == "0":
        sys.exit("run: %s %s: the search did not end:\n%s" % (model, flags, done.stdout))
    return errors.group(1) == "0", done.stdout


def main():
    if shutil.which("spin") is None:
        print("spin is not installed")
        return 77
    wrong = 0
    for model in sys.argv[1:] or sorted(RUNS):
        for flags, sound in RUNS[model]:
            with tempfile.TemporaryDirectory() as folder:
                holds, said = search(model, flags, folder)
            states = re.search(r"(\d+) states, stored", said)
            verdict = "holds" if holds else "found"
            print("%s -D%s: %s, %s states" % (model, flags, verdict, states.group(1)))
            if holds != sound:
                wrong += 1
                print("** that is wrong: it must %s" % ("hold" if sound else "be found"))
                print(said if holds else said[:2000])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
