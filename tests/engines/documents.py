# SPDX-License-Identifier: Apache-2.0
"""The original's documents: the pages that follow them, and the guide's section on Open MPI on a cluster
of four nodes, line by line, weft in the place of paddle."""
import os
import shutil

import jobs
import world as w
from ssh import Ssh

JOB = w.HOME + "/tutorial"
# What the guide's start_mpi_train.sh does on each node: a pserver in the background, then the program.
START = """#!/bin/sh
cd %s || exit
weft pserver --listen=:: --num_gradient_servers=3 --once >logs/pserver-$(hostname).log 2>&1 &
WEFT_PSERVERS=$(paste -sd, machines) %s 2>logs/train-$(hostname).log
status=$?
wait $! && exit $status
"""
# (as the document has it, with ~tutorial for its home folder; as it is now). A file stands
# in for kubectl, which lists the nodes. For Open MPI 4 a host has as many slots as cores unless its line
# says slots=1; with --map-by node each has one process all the same.
GUIDE = (
    ("kubectl get po -o wide | grep nodes | awk '{print $6}' > machines", "printf 'node2\\nnode3\\nnode4\\n' > machines"),
    ("scp -i ssh/id_rsa.mpi.pub machines prepare.py train.py start_mpi_train.sh tutorial@[headIP]:~",
     "ssh node1 mkdir tutorial && scp machines start_mpi_train.sh node1:tutorial"),
    ("python prepare.py", "split -n r/3 -d -a 5 {top}/data/digits.csv train.txt- && ls train.txt-0000[0-2]"),
    ("cat machines | xargs -i scp word_dict.pickle train.py start_mpi_train.sh machines {}:~tutorial",
     "cat machines | xargs -i scp start_mpi_train.sh machines {}:tutorial"),
    ("mpirun -hostfile machines -n 3 mkdir ~tutorial/logs", "mpirun -hostfile machines --map-by node -n 3 mkdir -p tutorial/logs"),
    ("scp train.txt-00000 test.txt-00000 [node1IP]:~tutorial", "scp train.txt-00000 node2:tutorial"),
    ("scp train.txt-00001 test.txt-00001 [node2IP]:~tutorial", "scp train.txt-00001 node3:tutorial"),
    ("scp train.txt-00002 test.txt-00002 [node3IP]:~tutorial", "scp train.txt-00002 node4:tutorial"),
    ("mpirun -hostfile machines -n 3 ~tutorial/start_mpi_train.sh",
     "mpirun -hostfile machines --map-by node -n 3 {home}/tutorial/start_mpi_train.sh"),
)


def case_the_pages_show_what_happens(world):
    """With what is not there for the suite `programs`: mpirun."""
    done = world.run(["sh", w.TOP + "/tests/programs/porting.sh"], None, 150, env={"WEFT": w.WEFT})
    if done.popen.returncode == 77:
        raise w.Skip(done.err.strip())
    w.same(done.popen.returncode, 0, done.shown())


def case_the_guide_trains_on_an_open_mpi_cluster(world):
    if shutil.which("mpirun") is None:
        raise w.Skip("mpirun is not installed (openmpi-bin)")
    next(jobs.programs(world))
    Ssh(world)
    files = "--data='train.txt-*' --data_split=files --num_passes=2"
    w.write(w.HOME + "/start_mpi_train.sh", START % (JOB, "weft train mlp " + files), 0o755, w.USER_ID)
    for _, line in GUIDE:
        last = world.run(line.format(top=w.TOP, home=w.HOME) if "xargs" not in line else line, node="node1")
    oracle = world.run("weft train mlp %s --sequential --num_gradient_servers=3" % files)
    w.same(w.digest_of(last.out), w.digest_of(oracle.out), last.shown())
    w.same(sorted(os.listdir(JOB + "/logs")), sorted("%s-node%d.log" % (name, number) for name in ("pserver", "train")
                                                     for number in (2, 3, 4)))
