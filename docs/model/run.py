#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Search models exhaustively: each configuration below holds, and each seeded mistake is found.

usage: run.py [MODEL...]    (default: all)

What the flags mean is in README.md. Two searches run side by side, a quarter of an hour in all; the
largest takes 6 GB. Exit status 77 without spin.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent import futures

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = 2
PAIRS = ("STORE", "LOOK", "SAY", "SEE")
# model: flags of what holds, flags of each mistake
RUNS = {
    "announce": (
        ("", "ROOM=1 FAULTS=4", "WIN=2 FAULTS=1", "NT=2 STEPS=3"),
        ("NT=2 M_NOROOM", "NT=2 M_NOPARK", "NT=2 M_FREEONDOWN", "NT=2 M_NOOUT")
        + ("NT=2 M_EACH ROOM=1", "M_SAYMAX=2 FAULTS=0"),
    ),
    "epoch": (
        ("", "DEATHS=2", "STEPS=4", "WHOLE NEVERHALF", "WHOLE NEVERHALF DEATHS=2"),
        ("TEXT", "NEVERHALF", "M_ONEPHASE=1", "M_ONEPHASE=2", "M_NOHOLD", "M_BYID DEATHS=0")
        + ("M_JOINHALF", "M_SILENT", "M_INDEP", "M_NODOWN", "WHOLE M_NOEPOCH"),
    ),
    "exchange": (
        ("", "FAULTS=2", "STEPS=3 FAULTS=2", "NL=2 FAULTS=2", "NT=3", "NT=3 NS=1 FAULTS=2")
        + ("NS=1 STEPS=3 FAULTS=4", "SHM=1", "DROP", "DIE", "DIE NL=2"),
        ("M_UPFIRST", "M_RESEARLY", "M_KEEPGRANT", "M_NOREANSWER", "M_BLINDANSWER", "M_REPEAT")
        + ("M_NOREGRANT", "M_BYEONCE", "DROP M_DROPKEEP"),
    ),
    "orders": (
        ("SLEEP", "SLEEP N=3", "THREAD", "THREAD N=3", "OWNER", "OWNER N=3", "ASIDE")
        + ("ASIDE N=3", "REVOKE", "SLEEP M_TAKE"),
        tuple("%s M_%s" % (p, m) for p in ("SLEEP", "THREAD", "OWNER", "ASIDE", "REVOKE") for m in PAIRS)
        + ("SLEEP M_NOLOOK", "THREAD M_SEEN"),
    ),
    "rollback": (
        ("SLEEPS=0", "SLEEPS=0 KILLS=2", "SLEEPS=0 KILLS=3 BREAKS=0 SNAPS=1", "SLEEPS=0 BREAKS=2 DAMAGE=1")
        + ("SLEEPS=0 NT=2 BREAKS=0 SNAPS=1", "KILLS=0", "BREAKS=0 SNAPS=1"),
        tuple("SLEEPS=0 BREAKS=0 M_%s" % m for m in ("KEEPPATH", "ONLYDEAD", "SAMEINC"))
        + tuple("SLEEPS=0 BREAKS=0 KILLS=2 M_%s" % m for m in ("EPOCHMEM", "RUNFIRST"))
        + tuple("KILLS=0 BREAKS=0 M_%s" % m for m in ("FINRACE", "TKEEP", "OLDLANE", "LOWINC"))
        + ("SLEEPS=0 M_NOREPEAT", "BREAKS=0 SNAPS=1 ALL M_NOCHAIN", "SLEEPS=0 BREAKS=0 DAMAGE=1 M_ONEPHASE")
        + ("SLEEPS=0 BREAKS=0 KILLS=2 DAMAGE=1 M_KEEPARRAYS",)
        + ("SLEEPS=0 BREAKS=0 SNAPS=0 NT=2 M_BYEFIRST",),
    ),
    "snapshot": (
        ("", "DAMAGE=0 FAILS=0 KEEP=2", "ASYNC FAILS=0 DAMAGE=0", "ASYNC MAXB=1"),
        ("M_NOPRE", "M_LATE", "M_HEAD", "M_STATE", "M_NOFSYNC", "M_NODIRSYNC", "M_MANFIRST", "M_NAME")
        + ("M_KEEPOWN", "M_PARTSFIRST", "M_RMNOSYNC", "M_KEEPALL", "M_FAILHOLD", "M_REUSE")
        + ("M_NOCRC", "M_POSNOW", "ASYNC M_STATE MAXB=1", "ASYNC M_POSNOW MAXB=1")
        + ("ASYNC M_PUSHALL MAXB=1",),
    ),
    "sparse": (
        ("", "WIN=1", "AHEAD=1 NACKS=0", "AHEAD=1 WIN=1", "AHEAD=1 NT=1 STEPS=4 FAULTS=3 NACKS=2"),
        ("M_HALF", "M_NOREST", "M_KEEPPARTS", "M_NOHOLD", "M_NOPARK WIN=1", "M_CREDITLATE")
        + ("M_REPEAT", "M_NOAGAIN", "M_NOCHANGED AHEAD=1 NT=1", "M_PUTAGAIN AHEAD=1 NT=1")
        + ("M_KEEPAHEAD AHEAD=1 NT=1", "M_AHEADAGAIN AHEAD=1 NT=1"),
    ),
    "window": (
        ("FAULTS=4", "STEPS=2", "NSLOT=6", "DROP FAULTS=3"),
        ("M_PARTIAL", "M_SENDWIN=2", "M_FREEONDOWN FAULTS=3", "NSLOT=2")
        + ("M_FREEONDOWN M_EARLYFREE FAULTS=1",),
    ),
}


def search(model, flags):
    """(does it hold, what pan says)"""
    defines = ["-D" + flag for flag in flags.split()]
    source = os.path.join(HERE, model + ".pml")
    compiled = "-O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -DVECTORSZ=4096 -DMEMLIM=5800"
    with tempfile.TemporaryDirectory() as folder:
        for command in (
            ["spin", "-a"] + defines + [source],
            ["gcc"] + compiled.split() + ["-o", "pan", "pan.c"],
            ["./pan", "-m100000"],
        ):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0 and command[0] != "./pan":
                raise RuntimeError("%s: %s" % (" ".join(command), done.stdout + done.stderr))
    errors = re.search(r"errors: (\d+)", done.stdout)
    if errors is None or "Search not completed" in done.stdout and errors.group(1) == "0":
        raise RuntimeError("%s %s: the search did not end:\n%s" % (model, flags, done.stdout))
    return errors.group(1) == "0", done.stdout


def main():
    if shutil.which("spin") is None:
        print("spin is not installed")
        return 77
    there = sorted(name[:-4] for name in os.listdir(HERE) if name.endswith(".pml"))
    if there != sorted(RUNS):
        sys.exit("run: the models are %s, and listed are %s" % (there, sorted(RUNS)))
    runs = [
        (model, flags, sound)
        for model in sys.argv[1:] or sorted(RUNS)
        for sound in (True, False)
        for flags in RUNS[model][0 if sound else 1]
    ]
    wrong = 0
    with futures.ThreadPoolExecutor(WORKERS) as pool:
        results = pool.map(lambda run: search(run[0], run[1]), runs)
        for (model, flags, sound), (holds, said) in zip(runs, results):
            states = re.search(r"(\d+) states, stored", said)
            verdict = "holds" if holds else "found"
            print("%s %s: %s, %s states" % (model, flags, verdict, states.group(1)), flush=True)
            if holds != sound:
                wrong += 1
                print("** that is wrong: it must %s" % ("hold" if sound else "be found"))
                print(said if holds else said[:2000])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
