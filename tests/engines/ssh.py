# SPDX-License-Identifier: Apache-2.0
"""sshd on nodes: one on each, with its own keys, for the one user."""
import os
import shutil

import world as w

PORT = 2222
FOLDER = w.ROOT + "/ssh"
SERVER = """Port %(port)d
ListenAddress 0.0.0.0
ListenAddress ::
HostKey %(folder)s/host-%(node)s
AuthorizedKeysFile %(folder)s/authorized-%(node)s
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PrintMotd no
UseDNS no
MaxStartups 100
Subsystem sftp internal-sftp
SetEnv %(env)s
"""
CLIENT = """Host *
  Port %d
  User %s
  IdentityFile %s/.ssh/id
  UserKnownHostsFile %s/.ssh/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 5
""" % (PORT, w.USER, w.HOME, w.HOME)


class Ssh:
    """`nodes`: where an sshd runs. The user may log in from each node to each."""

    def __init__(self, world, nodes=w.NODES):
        for name in ("sshd", "ssh", "ssh-keygen"):
            if shutil.which(name) is None:
                raise w.Skip("%s is not installed" % name)
        self.world = world
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.rmtree(w.HOME + "/.ssh", ignore_errors=True)
        os.makedirs(FOLDER)
        os.makedirs(w.HOME + "/.ssh", 0o700)
        self._key(w.HOME + "/.ssh/id")
        with open(w.HOME + "/.ssh/id.pub") as file:
            public = file.read()
        # What a login finds there, as where weft is installed.
        own = world.environment()
        env = " ".join('%s="%s"' % (n, own[n]) for n in ("PATH", "PYTHONPATH", "WEFT_LIBRARY"))
        known, self.daemons = "", {}
        for number, node in enumerate(w.NODES, 1):
            self._key("%s/host-%s" % (FOLDER, node))
            with open("%s/host-%s.pub" % (FOLDER, node)) as file:
                key = file.read()
            names = [node, world.address(number, "4"), world.address(number, "6")]
            known += "".join("[%s]:%d %s" % (name, PORT, key) for name in names)
            w.write("%s/authorized-%s" % (FOLDER, node), public)
            w.write("%s/conf-%s" % (FOLDER, node),
                    SERVER % {"port": PORT, "folder": FOLDER, "node": node, "env": env})
        w.write(w.HOME + "/.ssh/config", CLIENT, 0o600)
        w.write(w.HOME + "/.ssh/known_hosts", known, 0o600)
        for base, _, names in os.walk(w.HOME + "/.ssh"):
            for path in [base] + [os.path.join(base, name) for name in names]:
                shutil.chown(path, w.USER_ID, w.USER_ID)
        for node in nodes:
            self.daemons[node] = world.start(
                "sshd-" + node, ["/usr/sbin/sshd", "-D", "-e", "-f", "%s/conf-%s" % (FOLDER, node)], node, None)
        for node in nodes:
            w.until(15, lambda: "Server listening on ::" in self.daemons[node].err, self.daemons[node].shown)

    @staticmethod
    def _key(path):
        w.tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path)
