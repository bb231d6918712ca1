#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for srun, scontrol and mpirun on this host: they take the options that scripts of
`weft gen` use, and no others, and give processes the variables that the real ones give them.

    gen_engine.py srun|scontrol|mpirun ARGUMENTS
"""

import os
import signal
import subprocess
import sys

name, *words = sys.argv[1:]
own = dict(os.environ)
count = 1


def value(option):
    """Of --option=value, or of -option value."""
    global words
    first, *rest = words
    if first.startswith(option + "="):
        words = rest
        return first[len(option) + 1 :]
    if first == option:
        words = rest[1:]
        return rest[0]
    return None


if name == "scontrol":
    if "WITHOUT_HOSTS" in os.environ:
        sys.exit("scontrol: error: there is no such job")
    if words != ["show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]:
        sys.exit("scontrol: " + repr(words))
    print(words[2])
    sys.exit()
known = {
    "srun": ["--nodes", "--nodelist", "--cpus-per-task", "--kill-on-bad-exit"],
    "mpirun": ["--bind-to", "--host", "--hostfile"],
}[name]
given = {}
handed = []
while words and words[0].startswith("-"):
    if name == "srun" and words[0] == "--overlap":
        words = words[1:]
    elif (number := value("--ntasks" if name == "srun" else "-np")) is not None:
        count = int(number)
    elif name == "mpirun" and (variable := value("-x")) is not None:
        handed.append(variable)
    else:
        for option in known:
            got = value(option)
            if got is not None:
                given[option] = got
                break
        else:
            sys.exit(f"{name}: unknown option {words[0]}")
if given.get("--nodelist", given.get("--host", "127.0.0.1")) not in ("127.0.0.1", "127.0.0.2"):
    sys.exit(f"{name}: unknown host in {given}")
if name == "mpirun":  # what is not named stays behind, as on another host
    os.makedirs(own["OMPI_MCA_orte_tmpdir_base"])  # fails if two have one folder, as Open MPI may
    kept = ("PATH", "HOME", "TMPDIR", "WEFT", "WEFT_DATA_DIR")
    own = {key: text for key, text in own.items() if key in kept or key in handed}
started = []
for rank in range(count):
    if name == "mpirun":
        variables = {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": count}
    else:
        variables = {"SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": count, "SLURM_NTASKS": 9}
    env = dict(own, **{key: str(number) for key, number in variables.items()})
    started.append(subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL))
signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in started])
codes = [process.wait() for process in started]
worst = max(codes, key=abs)
sys.exit(128 - worst if worst < 0 else worst)
