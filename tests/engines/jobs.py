# SPDX-License-Identifier: Apache-2.0
"""The jobs that every engine runs, and what they have to come to: the digest of one process alone."""
import world as w

DEMO = "weft train mlp --num_passes=2"
TORCH = "python3 %s/tests/engines/train.py" % w.TOP
LONG = "weft train linear --num_passes=10000000"
ORACLES = {DEMO: DEMO + " --sequential --num_gradient_servers=%d", TORCH: TORCH + " --sequential=%d"}
NAMES = {DEMO: "weft train", TORCH: "python3 train.py"}
known = {}


def programs(world):
    """The trainers' commands, weft's own first; a Failure, not a Skip, comes from a program that breaks."""
    missing = world.run("weft train --help", None)
    if missing.popen.returncode != 0:
        raise w.Skip("weft train is not there: built without OpenBLAS")
    yield DEMO
    if world.run(["python3", "-c", "import torch"], None).popen.returncode != 0:
        raise w.Skip("PyTorch is not installed (python3-torch)")
    yield TORCH


def digest(world, command, trainers):
    """Of this training in one process."""
    key = command, trainers
    if key not in known:
        known[key] = w.digest_of(world.run(ORACLES[command] % trainers).out)
    return known[key]


def judge(world, command, trainers, process, out=None):
    w.same(w.digest_of(process.out if out is None else out), digest(world, command, trainers),
           "%s, %d trainers: %s" % (NAMES[command], trainers, process.shown()))
