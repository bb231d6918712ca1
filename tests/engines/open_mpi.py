# SPDX-License-Identifier: Apache-2.0
"""Open MPI: mpirun of Debian, on one host and over sshd on four."""
import os
import shutil
import signal

import jobs
import recorded
import world as w
from ssh import Ssh

VERSION = "Open MPI 4.1.4, mpirun "


def mpirun(world, words, status=0, node=None, seconds=w.LIMIT_S):
    if shutil.which("mpirun") is None:
        raise w.Skip("mpirun is not installed (openmpi-bin)")
    return world.run("mpirun " + words, status, seconds, node=node)


def case_tells_each_rank_its_place(world):
    mpirun(world, "--oversubscribe -np 3 %s one trainer" % recorded.RANK)
    printed = recorded.judge(world, "one", 2, "open-mpi-one-program", VERSION + "-np 3, rank 2")
    w.same(recorded.rows(printed), {"trainer_id": "2", "num_gradient_servers": "3"}, printed)
    mpirun(world, "--oversubscribe -np 1 {0} two pserver : -np 2 {0} two trainer".format(recorded.RANK))
    printed = recorded.judge(world, "two", 2, "open-mpi-two-programs-trainer", VERSION + "-np 1 : -np 2, rank 2")
    w.same(recorded.rows(printed), {"trainer_id": "1", "num_gradient_servers": "2"}, printed)
    printed = recorded.judge(world, "two", 0, "open-mpi-two-programs-pserver", VERSION + "-np 1 : -np 2, rank 0",
                             "pserver")
    w.same(recorded.rows(printed), {"num_gradient_servers": "2"}, printed)


def case_tells_ranks_on_four_nodes_their_place(world):
    for family in "46":
        world.hosts(family)
        Ssh(world)
        mpirun(world, "--host node2,node3,node4 -np 3 %s nodes%s trainer" % (recorded.RANK, family), node="node1")
        printed = recorded.judge(world, "nodes" + family, 2, "open-mpi-nodes-ipv" + family,
                                 VERSION + "--host node2,node3,node4 on node1, rank 2")
        w.same(recorded.rows(printed), {"trainer_id": "2", "num_gradient_servers": "3"}, printed)
        world.end()


def case_runs_a_generated_script_on_four_nodes(world):
    world.hosts("4")
    Ssh(world)
    train = "train linear --num_passes=3"
    oracle = world.run("weft %s --sequential --num_gradient_servers=4" % train)
    w.write(w.HOME + "/machines", "".join("%s slots=2\n" % node for node in w.NODES))
    world.run("head -c 32 /dev/urandom >mpi.key && chmod 0400 mpi.key")
    world.run("weft gen mpi --pservers=5 --trainers=4 --secret_file=mpi.key --weft=%s --out=gen.sh -- %s"
              % (w.WEFT, train))
    if shutil.which("mpirun") is None:
        raise w.Skip("mpirun is not installed (openmpi-bin)")
    printed = world.run(["bash", "gen.sh", "machines"], node="node1")
    w.same(w.digest_of(printed.out), w.digest_of(oracle.out), printed.err)
    w.says(printed.err, "ports 7165 to 7165")
    w.same("anyone who reaches" in printed.err, False, printed.err)  # the warning of a pserver without a secret


def case_runs_both_roles_on_one_host(world):
    for command in jobs.programs(world):
        for where in ("127.0.0.1", "::1"):
            done = mpirun(world, "--oversubscribe -np 1 weft pserver --listen=%s --once : -x WEFT_PSERVERS=%s -np 3 %s"
                          % (where, where if "." in where else "[%s]" % where, command))
            jobs.judge(world, command, 3, done)


def case_ends_by_ctrl_c(world):
    next(jobs.programs(world))
    job = world.start("mpirun", "exec mpirun --oversubscribe -np 1 weft pserver --once : -np 2 " + jobs.LONG)
    w.until(30, lambda: "pass 0 " in job.out, job.shown)
    job.signal(signal.SIGINT)
    job.ends(30)
    w.until(10, lambda: not world.pids(lambda env, _: "OMPI_COMM_WORLD_RANK" in env), "ranks are left")
    w.says(job.err, "weft train: ", " was stopped by SIGTERM")


def case_runs_both_roles_on_four_nodes(world):
    for family, everywhere in (("4", "0.0.0.0"), ("6", "::")):
        world.hosts(family)
        Ssh(world)
        for command in jobs.programs(world):
            done = mpirun(world, "--host node1 -np 1 weft pserver --once --listen=%s "
                          ": -x WEFT_PSERVERS=node1 --host node2,node3,node4 -np 3 %s" % (everywhere, command), node="node1")
            jobs.judge(world, command, 3, done)
        world.end()


def case_runs_a_pserver_and_a_trainer_on_each_node(world):
    Ssh(world)
    w.write(w.HOME + "/machines", "".join(node + " slots=2\n" for node in w.NODES))
    command = next(jobs.programs(world))
    done = mpirun(world, "--hostfile machines --map-by node --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "
                  "-np 4 weft pserver --once --listen=:: : -np 4 %s --pservers=%s" % (command, ",".join(w.NODES)),
                  node="node1")
    jobs.judge(world, command, 4, done)


def case_ends_everywhere_when_a_rank_is_killed(world):
    world.hosts("4")
    Ssh(world)
    # mpirun stops the others by SIGTERM. Whoever notices the loss first names it, or else the signal.
    for victim, lost in (("2", "lane 0: trainer 1 is lost"), ("0", "lost pserver 0 lane 0 (node1:7164)")):
        job = world.start("mpirun", "exec mpirun --host node1 -np 1 weft pserver --once --listen=0.0.0.0 "
                          ": --host node2,node3 -np 2 %s --pservers=node1" % jobs.LONG, "node1")
        w.until(30, lambda: "pass 0 " in job.out, job.shown)
        ranks = world.pids(lambda env, _: env.get("OMPI_COMM_WORLD_RANK") == victim)
        w.same(len(ranks), 1, job.shown())
        os.kill(ranks[0], signal.SIGKILL)
        w.same(job.ends(30), 128 + signal.SIGKILL, job.shown())
        if lost not in job.err and "was stopped by SIGTERM" not in job.err:
            raise w.Failure("no cause in:\n" + job.shown())
        w.says(job.err, "weft train: ", "mpirun noticed that process rank %s " % victim)
        w.until(10, lambda: not world.pids(lambda env, _: "OMPI_COMM_WORLD_RANK" in env), "ranks are left")
