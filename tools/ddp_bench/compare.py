# SPDX-License-Identifier: Apache-2.0
"""weft beside Gloo: jobs that take turns, and the table of what they took."""

import contextlib
import random
import statistics
import sys

from ddp_bench import hosts, models, overlap, table
from ddp_bench.job import HOSTS, SHM, SPREAD, TCP, Job, Kind
from ddp_bench.trainer import BY_OPTIMIZER, GLOO, GROUP, HOOK, IN_BACKWARD, NONE, NOTHING, PSERVERS, WORKERS

BARE, BARE_DDP = "no exchange", "no exchange under DDP"
GLOO_TCP, GLOO_TCP_STEP = "gloo tcp", "gloo tcp + optimizer"
GLOO_HOSTS, GLOO_HOSTS_STEP = "gloo hosts", "gloo hosts + optimizer"
KINDS = [
    Kind(BARE, NONE, TCP),
    Kind(BARE_DDP, NOTHING, TCP),
    Kind(GLOO_TCP, GLOO, TCP),
    Kind(GLOO_TCP_STEP, GLOO, TCP, True),
    Kind(GLOO_HOSTS, GLOO, HOSTS),
    Kind(GLOO_HOSTS_STEP, GLOO, HOSTS, True),
    Kind("hook shm", HOOK, SHM),
    Kind("hook tcp", HOOK, TCP),
    Kind("hook hosts", HOOK, HOSTS),
    Kind("optimizer on the pservers shm", PSERVERS, SHM, True),
    Kind("optimizer on the pservers tcp", PSERVERS, TCP, True),
    Kind("optimizer on the pservers hosts", PSERVERS, HOSTS, True),
    Kind("pservers in backward shm", IN_BACKWARD, SHM, True),
    Kind("pservers in backward tcp", IN_BACKWARD, TCP, True),
    Kind("pservers in backward hosts", IN_BACKWARD, HOSTS, True),
    Kind("optimizer at the workers shm", WORKERS, SHM, True),
    Kind("process group shm", GROUP, SHM),
    Kind("process group tcp", GROUP, TCP),
    Kind("process group spread", GROUP, SPREAD),
    Kind("process group hosts", GROUP, HOSTS),
]
WANTED = {
    "hook shm": 0.5,
    "hook tcp": 1.0,
    "hook hosts": 1.0,
    "optimizer on the pservers shm": 0.35,
    "optimizer on the pservers tcp": 0.9,
    "optimizer on the pservers hosts": 0.9,
    "pservers in backward shm": 0.35,
    "pservers in backward tcp": 0.9,
    "pservers in backward hosts": 0.9,
}


def _rival(kind):
    """What stands against it: Gloo over the same network, and the step without an exchange of both."""
    if kind.over == HOSTS:
        rival = GLOO_HOSTS_STEP if kind.steps_optimizer else GLOO_HOSTS
    else:
        rival = GLOO_TCP_STEP if kind.steps_optimizer else GLOO_TCP
    return rival, BARE if kind.steps_optimizer else BARE_DDP


def _chosen(only):
    """Kinds whose name has one of the words, with what they are compared to."""
    named = {kind.name: kind for kind in KINDS}
    names = [name for name in named if any(word.strip() in name for word in only.split(","))] if only else list(named)
    rivals = [other for name in names if named[name].how not in (NONE, NOTHING, GLOO) for other in _rival(named[name])]
    return [kind for kind in KINDS if kind.name in names or kind.name in rivals]


def _beyond(turns, one, other, floor, of):
    """In each round: what the one takes beyond the step without exchange, the other's being 1."""
    rounds = zip(turns[one], turns[other], turns[floor])
    values = [(getattr(a, of), getattr(b, of), getattr(c, of)) for a, b, c in rounds]
    return [(a - c) / (b - c) for a, b, c in values if b > c]


def _print_table(kinds, turns):
    print("%-34s %10s %10s %10s" % ("a step", "CPU ms", "ms", "MiB sent"))
    for kind in kinds:
        found = turns[kind.name]
        medians = [statistics.median(getattr(turn, of) for turn in found) for of in ("processor_ms", "ms", "sent_mib")]
        print("%-34s %10.1f %10.1f %10.1f" % (kind.name, *medians))
    print("%-34s %-22s %-22s %s" % ("beyond no exchange; Gloo: 1", "CPU", "ms", "wanted (CPU)"))
    for kind in kinds:
        rival, floor = _rival(kind)
        if kind.how in (NONE, NOTHING, GLOO):
            continue
        columns = [table.with_interval(_beyond(turns, kind.name, rival, floor, of)) for of in ("processor_ms", "ms")]
        wanted = "%.2f" % WANTED[kind.name] if kind.name in WANTED else ""
        print("%-34s %-22s %-22s %s" % (kind.name, *columns, wanted), flush=True)


def _measure(program, options, model, ranks, kinds, sites):
    size = models.bytes_of(models.shapes_of(model, options.mebibytes)) / 2**20
    print(
        "\n%s of %.1f MiB, %d trainers: %d rounds of %d steps" % (model, size, ranks, options.rounds, options.steps),
        flush=True,
    )
    jobs, order, turns = [], random.Random(1), {kind.name: [] for kind in kinds}
    try:
        for kind in kinds:
            jobs.append(Job(program, kind, options, model, ranks, sites if kind.over == HOSTS else None))
        for _ in range(options.rounds):
            for job in order.sample(jobs, len(jobs)):
                turns[job.kind.name].append(job.turn(options.steps))
        _print_table(kinds, turns)
        recorded = [job for job in jobs if job.how == HOOK or job.how in BY_OPTIMIZER]
        if recorded:
            overlap.print_table(program, recorded, options.record)
        for job in jobs:
            job.close()
    except BaseException:
        for job in jobs:
            job.kill()
        raise


def main(program, options):
    """Of each model and number of trainers."""
    import torch  # noqa: F401, pylint: disable=unused-import # before the trainers are forked

    kinds = _chosen(options.only)
    for model in options.model.split(","):
        if model not in models.NAMES:
            raise SystemExit("--model=%s: %s are known" % (model, ", ".join(models.NAMES)))
        for ranks in map(int, options.ranks.split(",")):
            with contextlib.ExitStack() as stack:
                sites, these = None, kinds
                if any(kind.over == HOSTS for kind in kinds):
                    try:
                        sites = stack.enter_context(hosts.Hosts(ranks))
                    except hosts.Unavailable as error:
                        print("left out: trainers on hosts of their own: %s" % error, file=sys.stderr)
                        these = [kind for kind in kinds if kind.over != HOSTS]
                _measure(program, options, model, ranks, these, sites)
