# SPDX-License-Identifier: Apache-2.0
"""How much of an exchange falls into the backward pass: the times of slices, beside those of gradients."""

import os
import statistics
import subprocess
import tempfile

from ddp_bench import hosts, recording

STEPS = 8  # are recorded


def _share(part, whole):
    return 100.0 * part / whole if whole > 0 else 0.0


def shares(backward, slices):
    """Of a step of a trainer: of how many slices the push had begun when the last gradient was there, and how
    many were answered by then, in percent; and which part of the time in which any slice was under way lies
    before that."""
    begin, end, _ = backward
    begun = sum(posted < end for posted, _ in slices)
    answered = sum(at < end for _, at in slices)
    inside = whole = until = 0
    for posted, at in sorted(slices):
        posted = max(posted, until)
        if at > posted:
            whole += at - posted
            inside += max(0, min(at, end) - max(posted, begin))
            until = at
    return _share(begun, len(slices)), _share(answered, len(slices)), _share(inside, whole)


def _of_job(backward, found):
    """Shares of each step of each trainer, of whose recording nothing is missing."""
    rows = []
    for trainer, steps in found.items():
        most = max(map(len, steps.values()), default=0)
        for slices in (steps[step] for step in steps if len(steps[step]) == most):
            first = min(posted for posted, _ in slices)
            # The pass that had begun last when the step's first slice was pushed: in it, or behind it.
            before = [span for span in backward[trainer] if span[0] <= first]
            if before:
                rows.append(shares(before[-1], slices))
    return rows


def measure(program, job, folder):
    """Records some steps of a job, and returns (shares of slices begun in backward, answered in backward,
    time under way in backward), in percent, medians over its steps and trainers; and the file."""
    path = os.path.join(folder, job.kind.name.replace(" ", "_") + ".pftrace")
    command = [*hosts.within(job.network[0]), program, "trace", job.pservers, "-o", path, "--steps=%d" % STEPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as trace:
        backward = [[] for _ in range(job.ranks)]
        while trace.poll() is None:
            for mine, more in zip(backward, job.turn(2, notes=True).backward):
                mine += more
        text = trace.stdout.read()
    if trace.returncode != 0:
        raise SystemExit("weft trace: " + text)
    rows = _of_job(backward, recording.pushes(path))
    if not rows:
        raise SystemExit("%s: the recording has no whole step" % path)
    for rank, spans in enumerate(backward):
        computing = [(begin, last) for begin, last, _ in spans]
        recording.add_spans(path, rank, "backward of trainer %d" % rank, computing)
    return [statistics.median(column) for column in zip(*rows)], path


def print_table(program, jobs, folder):
    """`folder`: where the recordings stay; None: they do not."""
    with tempfile.TemporaryDirectory(prefix="ddp-") as temporary:
        print("%-34s %10s %10s %10s" % ("before the last gradient:", "begun", "answered", "under way"))
        for job in jobs:
            found, path = measure(program, job, folder or temporary)
            text = "%-34s %9.0f%% %9.0f%% %9.0f%%" % (job.kind.name, *found)
            print(text + ("  " + path if folder else ""), flush=True)
