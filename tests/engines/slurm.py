# SPDX-License-Identifier: Apache-2.0
"""Slurm: slurmctld, one slurmd per node, munged, all from Debian."""
import os
import re
import shutil

import jobs
import recorded
import world as w

FOLDER = w.ROOT + "/slurm"
CONF = """ClusterName=engines
SlurmctldHost=%(head)s
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket=%(folder)s/munge.socket
CredType=cred/munge
StateSaveLocation=%(folder)s/state
SlurmdSpoolDir=%(folder)s/spool-%%n
SlurmctldPidFile=%(folder)s/slurmctld.pid
SlurmdPidFile=%(folder)s/slurmd-%%n.pid
SlurmctldPort=%(port)d
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
KillWait=60
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
CommunicationParameters=%(families)s
%(nodes)s
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


class Slurm:
    def __init__(self, world, nodes, families="4"):
        for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun"):
            if shutil.which(name) is None:
                raise w.Skip("%s is not installed" % name)
        self.world, self.nodes = world, nodes
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER + "/state")
        shutil.chown(FOLDER + "/state", "slurm")
        self.head = nodes[0] if nodes[0] in w.NODES else None
        self._munge()
        self.conf = w.write(FOLDER + "/slurm.conf", CONF % {
            "head": self.head or w.HEAD, "folder": FOLDER, "port": 6817,
            "families": "EnableIPv6" if families == "6" else "DisableIPv6",
            "nodes": "\n".join(self._node(i, n) for i, n in enumerate(nodes))})
        w.write(FOLDER + "/cgroup.conf", "CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n")
        self.env = {"SLURM_CONF": self.conf}
        self.controller = world.start("slurmctld", ["slurmctld", "-D", "-i", "-v", "-f", self.conf], self.head, "slurm")
        self.daemons = {
            node: world.start("slurmd-" + node, ["slurmd", "-D", "-v", "-f", self.conf]
                              + ([] if node in w.NODES else ["-N", node]),
                              node if node in w.NODES else None, None)
            for node in nodes}
        w.until(30, self._all_idle, self._state)

    def _node(self, number, node):
        more = "" if node in w.NODES else " NodeAddr=127.0.0.1 NodeHostname=%s Port=%d" % (w.HEAD, 6820 + number)
        return "NodeName=%s CPUs=8 State=UNKNOWN%s" % (node, more)

    def _munge(self):
        key = w.write(FOLDER + "/munge.key", "", 0o600, "munge")
        with open(key, "wb") as file:
            file.write(os.urandom(128))
        socket = FOLDER + "/munge.socket"
        os.chmod(FOLDER, 0o1777)
        self.munge = self.world.start("munged", [
            "munged", "--foreground", "--force", "--socket=" + socket, "--key-file=" + key,
            "--pid-file=" + FOLDER + "/munged.pid", "--seed-file=" + FOLDER + "/munged.seed",
            "--log-file=" + FOLDER + "/munged.log"], None, "munge")
        w.until(10, lambda: os.path.exists(socket), self.munge.shown)

    def _all_idle(self):
        done = self.world.run(["sinfo", "-h", "-N", "-o", "%N %T"], None, env=self.env, node=self.head)
        return done.out.split().count("idle") == len(self.nodes)

    def _state(self):
        return "\n".join([self.world.run(["sinfo", "-N", "-l"], None, env=self.env, node=self.head).out, self.controller.shown()]
                         + [d.shown() for d in self.daemons.values()])

    def run(self, words, status=0, **more):
        return self.world.run(words, status, node=self.head, env=dict(self.env, **more))


VERSION = "Slurm 22.05.8, "
HET = """#!/bin/sh
#SBATCH -N1 -n1
#SBATCH hetjob
#SBATCH -N2 -n3
set -e
{0} batch trainer
srun --het-group=0 {0} het pserver : --het-group=1 {0} het trainer
srun --het-group=1 {0} part trainer
""".format(recorded.RANK)


def case_tells_each_task_its_place(world):
    slurm = Slurm(world, ("one", "two"))
    slurm.run("srun -N2 -n3 %s step trainer" % recorded.RANK)
    printed = recorded.judge(world, "step", 2, "slurm-step", VERSION + "srun -N2 -n3, task 2")
    w.same(recorded.rows(printed), {"trainer_id": "2", "num_gradient_servers": "3", "pservers": "one"}, printed)
    slurm.run("srun -n2 %s host trainer" % recorded.RANK)
    printed = recorded.judge(world, "host", 1, "slurm-step-one-host", VERSION + "srun -n2, task 1")
    w.same(recorded.rows(printed), {"trainer_id": "1", "num_gradient_servers": "2"}, printed)


def case_tells_tasks_of_heterogeneous_jobs_their_place(world):
    world.hosts("4")
    slurm = Slurm(world, w.NODES)
    w.write(w.HOME + "/job", HET, 0o755)
    slurm.run("sbatch -W -o job.out job || { cat job.out; exit 1; }")
    recorded.judge(world, "batch", 0, "slurm-batch-script", VERSION + "the script of a heterogeneous job")
    source = "--het-group=0 : --het-group=1 of jobs with 1 and 3 tasks, task %d"
    printed = recorded.judge(world, "het", 0, "slurm-het-pserver", VERSION + source % 0, "pserver")
    place = {"num_gradient_servers": "3", "pservers": "node1"}
    w.same(recorded.rows(printed), place, printed)
    printed = recorded.judge(world, "het", 2, "slurm-het-trainer", VERSION + source % 2)
    w.same(recorded.rows(printed), dict(place, trainer_id="1"), printed)
    printed = recorded.judge(world, "part", 2, "slurm-het-one-component", VERSION + "--het-group=1 of such a job, task 2")
    w.same(recorded.rows(printed), dict(place, trainer_id="2"), printed)


def case_runs_a_generated_script(world):
    world.hosts("4")
    slurm = Slurm(world, w.NODES)
    train = "train linear --num_passes=3"
    oracle = world.run("weft %s --sequential --num_gradient_servers=4" % train)
    world.run("head -c 32 /dev/urandom >key && chmod 0400 key")
    world.run("weft gen slurm --pservers=2 --trainers=4 --nodes=4 --cpu=1 --time_limit=5m --secret_file=key "
              "--out=batch.sh -- " + train)
    slurm.run("sbatch -W -o batch.out batch.sh || { cat batch.out; exit 1; }")
    with open(w.HOME + "/batch.out") as file:
        printed = file.read()
    w.same(w.digest_of(printed), w.digest_of(oracle.out), printed)
    w.same("anyone who reaches" in printed, False, printed)  # the warning of a pserver without a secret
    world.run("rm batch.sh && weft gen slurm --trainers=2 --out=batch.sh -- train linear --num_passes=0x")
    slurm.run("sbatch -W -o batch.out batch.sh", 64)


# Two steps of one allocation, as a user writes them: the pserver on the first node, the trainers on all.
STEPS = """#!/bin/sh
#SBATCH --nodes={nodes} --ntasks={trainers}
srun --overlap --nodes=1 --ntasks=1 --relative=0 weft pserver --listen={everywhere} --once \\
	--num_gradient_servers={trainers} &
srun --overlap --kill-on-bad-exit=1 {command}
status=$?
wait $! || exit 1
exit $status
"""


def submit(slurm, nodes, trainers, command, everywhere):
    """Runs that script to its end; what it printed."""
    w.write(w.HOME + "/steps", STEPS.format(**locals()), 0o755)
    done = slurm.run("sbatch --wait --output=steps.out steps; status=$?; cat steps.out; exit $status")
    jobs.judge(slurm.world, command, trainers, done)


def case_runs_both_roles_on_one_host(world):
    slurm = Slurm(world, ("one", "two"))
    for command in jobs.programs(world):
        for where in ("127.0.0.1", "::1"):
            submit(slurm, 2, 3, command, where)


def case_runs_both_roles_on_four_nodes(world):
    for family, everywhere in (("4", "0.0.0.0"), ("6", "::")):
        world.hosts(family)
        slurm = Slurm(world, w.NODES, family)
        for command in jobs.programs(world):
            submit(slurm, 4, 4, command, everywhere)
        world.end()


def case_runs_programs_of_one_step(world):
    world.hosts("4")
    slurm = Slurm(world, w.NODES)
    command = next(jobs.programs(world))
    w.write(w.HOME + "/roles", "0 weft pserver --listen=0.0.0.0 --once --num_gradient_servers=3\n"
            "1-3 %s --trainer_id=%%o --num_gradient_servers=3\n" % command)
    jobs.judge(world, command, 3, slurm.run("srun --nodes=4 --ntasks=4 --multi-prog roles"))


class Endless:
    """A job that does not end by itself: one pserver on node1, a trainer on each of three nodes."""

    def __init__(self, world):
        world.hosts("4")
        self.slurm = Slurm(world, w.NODES)
        w.write(w.HOME + "/steps", STEPS.format(nodes=3, trainers=3, command=jobs.LONG, everywhere="0.0.0.0"), 0o755)
        w.write(w.HOME + "/steps.out", "", owner=w.USER_ID)
        self.batch = world.start("sbatch", "sbatch --wait --no-requeue --output=steps.out steps", self.slurm.head,
                                 env=self.slurm.env)
        w.until(30, lambda: re.search("(?m)^pass 0 ", self.raw()), self.out)
        self.number = self.slurm.run(["squeue", "--noheader", "--format=%i"]).out.strip()

    @staticmethod
    def raw():
        with open(w.HOME + "/steps.out") as file:
            return file.read()

    def out(self):
        return re.sub(r"(?m)^pass .*\n", "", self.raw())

    def ends(self, seconds, state):
        """No task is left, and this is what Slurm calls it."""
        w.until(seconds, lambda: not tasks(self.slurm.world), lambda: "tasks are left: " + self.out())
        self.batch.ends(seconds)
        w.until(10, lambda: "JobState=" + state in self.slurm.run(["scontrol", "show", "job", self.number]).out,
                "JobState=" + state)


def tasks(world):
    return world.pids(lambda env, _: "SLURM_PROCID" in env)


def case_ends_by_scancel(world):
    next(jobs.programs(world))
    job = Endless(world)
    job.slurm.run(["scancel", job.number])
    job.ends(30, "CANCELLED")
    w.says(job.out(), "was stopped by SIGTERM (said ", "weft train: trainer ", "weft pserver: ")
    if "Killed" in job.out():
        raise w.Failure("a process waited for SIGKILL:\n" + job.out())


def case_ends_when_a_node_is_gone(world):
    next(jobs.programs(world))
    job = Endless(world)
    world.link("node3", "down")
    try:
        for text in ("the host is silent; it has 3.0 s to come back", "weft train: trainer 2 (host node3, pid ",
                     "weft pserver: trainer 2 (host node3, pid "):
            w.until(30, lambda: text in job.out(), job.out)
        w.until(60, lambda: "Node failure on node3" in job.out(), job.out)
    finally:
        world.link("node3", "up")
    job.ends(60, "NODE_FAIL")


def case_tells_ranks_of_an_mpirun_inside_its_job_their_place(world):
    if shutil.which("mpirun") is None:
        raise w.Skip("mpirun is not installed (openmpi-bin)")
    world.hosts("4")
    slurm = Slurm(world, w.NODES)
    command = next(jobs.programs(world))
    w.write(w.HOME + "/steps", "#!/bin/sh\nmpirun --map-by node -np 4 %s mixed trainer\nmpirun --map-by node -np 1 weft "
            "pserver --once --listen=0.0.0.0 : -np 3 %s\n" % (recorded.RANK, command), 0o755)
    jobs.judge(world, command, 3, slurm.run("sbatch --wait -N4 -n4 --output=steps.out steps; status=$?; "
                                            "cat steps.out; exit $status"))
    source = VERSION + "mpirun of Open MPI 4.1.4 in a batch script on four nodes, rank %d"
    for rank, fixture in ((0, "open-mpi-in-slurm-first-host"), (2, "open-mpi-in-slurm-other-host")):
        printed = recorded.judge(world, "mixed", rank, fixture, source % rank)
        w.same(recorded.rows(printed), {"trainer_id": str(rank), "num_gradient_servers": "4", "pservers": "node1"},
               printed)
