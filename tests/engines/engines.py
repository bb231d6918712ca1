#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts real Open MPI, Slurm and sshd, and jobs of weft through them: README.md.

    sudo tests/engines/engines.py [--json FILE] [--record DIR] [--list] BUILD [WORD...]

Runs the cases whose names contain one of the words (none: all) with the programs in the folder BUILD.
--json: results as meson writes them; --record: environments of ranks for tests/fixtures/launchers.
Exit status: 0, 1 if a case failed, 77 if nothing could run."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
TOOLS = ("unshare", "nsenter", "setpriv", "ip", "tc", "hostname", "mount")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--record")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("words", nargs="*")
    return parser.parse_args(arguments)


def record(path, name, result, text=""):
    print("%-4s %s%s" % (result, name, "" if not text else "\n     " + text.replace("\n", "\n     ")), flush=True)
    if path:
        with open(path, "a") as file:
            file.write(json.dumps({"name": name, "result": result, "stdout": text}) + "\n")


def missing():
    """Why nothing can run here; empty: it can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces with addresses"
    absent = [name for name in TOOLS if shutil.which(name) is None]
    if absent:
        return "not installed: " + ", ".join(absent)
    done = subprocess.run(["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "true"],
                          capture_output=True, text=True)
    return "no namespaces: " + done.stderr.strip() if done.returncode != 0 else ""


def outside(options):
    """Runs this program again as a process of new namespaces, which end with it."""
    why = missing()
    if why:
        record(options.json, "engines", "SKIP", why)
        return 77
    for path in (options.json, options.record):
        if path and not os.path.exists(path):
            (open(path, "w").close() if path == options.json else os.makedirs(path))
    words = [sys.executable, os.path.abspath(__file__), "--inside", "yes", os.path.abspath(options.build)]
    words[4:4] = [w for name in ("json", "record") if getattr(options, name)
                  for w in ("--" + name, os.path.abspath(getattr(options, name)))]
    # The shell reaps whatever loses its parent; its end is the end of all. It dies with unshare, and that
    # with this process, however it ends.
    space = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--mount-proc", "--fork", "--kill-child"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    child = subprocess.Popen(space + ["sh", "-c", '"$@"; exit $?', "sh"] + words + options.words)
    try:
        return child.wait()
    finally:
        child.kill()
        child.wait()


def private(paths):
    """Fresh /run, /tmp, /var/tmp and /dev/shm; these folders of the host stay visible at the given places."""
    from world import tool

    tool("mount", "-t", "tmpfs", "tmpfs", "/run")
    for source, place in paths:
        if os.path.isdir(source):
            os.makedirs(place)
            tool("mount", "--bind", source, place)
    for path in ("/tmp", "/var/tmp", "/dev/shm"):
        tool("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", path)


def inside(options):
    import recorded
    import world as w

    chosen = [case for case in cases() if not options.words or any(word in case[0] for word in options.words)]
    top = os.path.dirname(os.path.dirname(HERE))
    results = os.path.dirname(options.json) if options.json else ""
    kept = [(top, w.TOP), (options.build, w.BUILD), (results, w.ROOT + "/results"),
            (options.record or "", w.ROOT + "/record")]
    private(kept)
    path = os.path.join(w.ROOT, "results", os.path.basename(options.json)) if options.json else None
    w.RECORD = w.ROOT + "/record" if options.record else None
    os.chdir("/")
    world = w.World()
    recorded.prepare()
    failed = ran = 0
    if not world.shaped:
        record(path, "links with a rate", "SKIP", "this kernel has no tbf")
    for name, case in chosen:
        start = time.monotonic()
        try:
            world.begin()
            case(world)
            record(path, name, "OK", "\n".join(["%.0f s" % (time.monotonic() - start)] + world.notes))
            ran += 1
        except w.Skip as why:
            record(path, name, "SKIP", str(why))
        except Exception as why:  # also a mistake of the case itself
            failed += 1
            known = isinstance(why, w.Failure)
            record(path, name, "FAIL", str(why) if known else traceback.format_exc())
        finally:
            world.end()
    return 1 if failed else 0 if ran else 77


def cases():
    """(name, function) of every case, in their order: the functions of these files that begin with case_."""
    import importlib

    for module in ("launch", "open_mpi", "slurm", "documents"):
        found = importlib.import_module(module)
        for name, value in list(vars(found).items()):
            if name.startswith("case_"):
                yield "%s: %s" % (module, re.sub("_", " ", name[5:])), value


def main():
    options = options_of(sys.argv[1:])
    if options.list:
        print("\n".join(name for name, _ in cases()))
        return 0
    return inside(options) if options.inside else outside(options)


if __name__ == "__main__":
    sys.exit(main())
