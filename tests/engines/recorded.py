# SPDX-License-Identifier: Apache-2.0
"""Environments of ranks as engines set them: tests/fixtures/launchers, on which the detector's tests stand."""
import os
import re

import world as w

FOLDER = w.TOP + "/tests/fixtures/launchers"
KEPT = re.compile(r"^(OMPI|PMIX?|PRTE|SLURMD?)_")
PLACES = ((w.HOME, "/srv/user"), (w.ROOT, "/srv"))

# What a rank runs: its environment and what weft makes of it, in files named by $1 and its number.
RANK = w.ROOT + "/rank"
SCRIPT = """#!/bin/sh
# rank NAME ROLE: a pserver or a trainer that only says where it is
name=%s/$1.${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}
env >"$name.env"
weft env --role="$2" >"$name.tmp" && mv "$name.tmp" "$name.weft"
""" % w.HOME


def prepare():
    w.write(RANK, SCRIPT, 0o755)


def kept(text):
    """The variables of launchers, without the places and names of this machine."""
    lines = [line for line in text.splitlines() if "=" in line and KEPT.match(line.split("=")[0])]
    for place, other in PLACES:
        lines = [line.replace(place, other) for line in lines]
    return sorted(lines)


def judge(world, name, rank, fixture, source, role="trainer"):
    """What this rank of `name` printed; --record writes the fixture, else what weft prints in it is compared."""
    with open("%s/%s.%d.env" % (w.HOME, name, rank)) as file:
        lines = kept(file.read())
    with open("%s/%s.%d.weft" % (w.HOME, name, rank)) as file:
        printed = file.read()
    world.notes.append("%s: %s" % (fixture, printed))
    if w.RECORD:
        w.write("%s/%s.env" % (w.RECORD, fixture), "# %s\n%s\n" % (source, "\n".join(lines)))
        return printed
    path = "%s/%s.env" % (FOLDER, fixture)
    if not os.path.exists(path):
        raise w.Failure("%s is missing: engines.py --record writes it" % path)
    with open(path) as file:
        own = [line for line in file.read().splitlines() if "=" in line and not line.startswith("#")]
    again = world.run(["env", "-i"] + own + [w.WEFT, "env", "--role=" + role]).out
    w.same(printed, again, "%s: what weft env prints of a real rank differs from what it prints of the fixture" % fixture)
    return printed


def rows(printed):
    """{setting: value} of what weft env says is used."""
    found = {}
    for line in printed.splitlines():
        words = line.split()
        if len(words) >= 4 and words[-1] == "used":
            found[words[0]] = words[1]
    return found
