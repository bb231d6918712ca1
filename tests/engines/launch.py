# SPDX-License-Identifier: Apache-2.0
"""weft launch on several hosts: through sshd on four nodes, by name, IPv4 and IPv6."""
import os
import re
import shutil
import signal
import stat

import jobs
import world as w
from ssh import Ssh

NODES = "--hosts=node1,node2,node3,node4"
CHILD = re.compile(r"^(?:pserver|trainer) \d+ \| pid \d+ on (\S+): ", re.MULTILINE)


def launch(words, command):
    return "exec weft launch %s -- %s" % (words, command.replace("weft train", "train"))


def secrets():
    """Files that hold a job's secret."""
    return [name for name in os.listdir("/tmp") if name.startswith("weft-secret-")]


def ours(world):
    """Processes of weft that are there, agents and ssh included."""
    return world.pids(lambda variables, words: os.path.basename(words[0]) in ("weft", "weft-train", "ssh", "exe"))


def gone(world):
    w.until(20, lambda: not ours(world) and not secrets(),
            lambda: "processes %s, secrets %s stay" % (ours(world), secrets()))


def case_runs_on_four_nodes_over_sshd(world):
    for family in "46":
        world.hosts(family)
        Ssh(world)
        for command in jobs.programs(world):
            done = world.run(launch(NODES + " --pservers=2", command), node="node1")
            jobs.judge(world, command, 4, done)
            for number in (1, 2):
                address = world.address(number, family)
                shown = "[%s]" % address if family == "6" else address
                w.says(done.err, "pserver %d listens on %s:7164, on host node%d" % (number - 1, shown, number))
            w.same(sorted(set(CHILD.findall(done.err))), list(w.NODES), done.err)
        gone(world)
        world.end()


def case_copies_a_package_and_keeps_logs_on_each_node(world):
    Ssh(world)
    shutil.rmtree(w.HOME + "/job", ignore_errors=True)
    os.makedirs(w.HOME + "/job/a name")
    w.write(w.HOME + "/job/a name/with 'quotes'", "inside")
    os.chmod(w.write(w.HOME + "/job/run.sh", "#!/bin/sh\ncat a*/w*\nstat -c '%a %s' $WEFT_SECRET_FILE\n"
                     "exec weft train linear --num_passes=2 --save_dir=output --pservers=$WEFT_PSERVERS "
                     "--trainer_id=$WEFT_RANK --num_gradient_servers=$WEFT_NUM_GRADIENT_SERVERS\n"), 0o750)
    w.tool("chown", "-R", w.USER, w.HOME + "/job")
    done = world.run(launch("--hosts=node2,node3 --job_dispatch_package=job --job_root=%s" % w.HOME, "./run.sh"),
                     node="node1")
    w.says(done.out, "inside400 32")
    first, second = (re.search(r"^weft launch: %s: workspace (.*)$" % node, done.err, re.MULTILINE).group(1)
                     for node in ("node2", "node3"))
    w.same(stat.S_IMODE(os.stat(first + "/run.sh").st_mode), 0o750)
    for folder, number in ((first, "0\n"), (second, "1\n")):
        with open(folder + "/nodefile") as file:
            w.same(file.read(), number)
        w.same(sorted(os.listdir(folder + "/log")), ["server.log", "train.log"])
    w.same(os.path.exists(first + "/output/pass-00001"), True, done.err)
    gone(world)


def case_leaves_nothing_behind(world):
    Ssh(world)
    for number, status in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        job = world.start("job", launch(NODES, jobs.LONG), node="node1")
        w.until(w.LIMIT_S, lambda: "pass 2 " in job.out, job.shown)
        w.same(len(secrets()), 4)
        os.kill(job.popen.pid, number)
        w.same(job.ends(30), status, job.shown())
        gone(world)


def case_ends_when_a_node_is_unplugged(world):
    world.hosts("4")
    Ssh(world)
    job = world.start("job", launch(NODES + " --peer_timeout=3", jobs.LONG), node="node1")
    w.until(w.LIMIT_S, lambda: "pass 2 " in job.out, job.shown)
    world.link("node3", "down")
    try:
        w.same(job.ends(90), 69, job.shown())
    finally:
        world.link("node3", "up")
    gone(world)


def case_names_who_does_not_reach_whom(world):
    world.hosts("4")
    Ssh(world)
    w.tool("ip", "-n", "node3", "route", "add", "prohibit", world.address(2, "4") + "/32")
    try:
        done = world.run(launch("--hosts=node2,node3,node4 --pservers=1", "train linear"), 69, node="node1")
        w.says(done.err, "host node3 does not reach pserver 0 on host node2 at 10.77.0.2:7164: ")
        w.same(CHILD.findall(done.err), [], done.err)
    finally:
        w.tool("ip", "-n", "node3", "route", "del", "prohibit", world.address(2, "4") + "/32")
    done = world.run(launch("--hosts=node2,nobody", "train linear"), 69, node="node1")
    w.says(done.err, "nobody | ssh: Could not resolve hostname nobody")
    gone(world)


def case_ends_when_an_sshd_is_killed(world):
    next(jobs.programs(world))
    world.hosts("4")
    ssh = Ssh(world)
    job = world.start("job", launch(NODES, jobs.LONG), node="node1")
    w.until(w.LIMIT_S, lambda: "pass 2 " in job.out, job.shown)
    daemon = ssh.daemons["node3"].popen.pid
    daemons = [pid for pid in w.descendants(daemon) if w.comm(pid) == "sshd"]
    w.same(len(daemons) > 0, True, "no connection of sshd on node3")
    for pid in [daemon] + daemons:
        os.kill(pid, signal.SIGKILL)
    w.same(job.ends(30), 69, job.shown())
    w.says(job.err, "node3")
    gone(world)
