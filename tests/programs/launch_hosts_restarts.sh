#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch --restarts on several hosts: an agent starts the process again that was killed on its
# host, and no other; the job ends with the digest of a run that nobody disturbed. A host that is
# gone starts nothing: the job is started again as a whole. A script stands in for ssh, as in
# launch_hosts.sh.
. "${0%/*}/lib.sh"
needs_training

passes=300
port=$(free_ports)
mkdir secrets
cat >ssh.sh <<'SH'
#!/bin/sh
folder=${0%/*}/host-$1
echo $$ >"${0%/*}/ssh-$1" # it leads its group, which is without the agent
shift
mkdir -p "$folder" && cd "$folder" || exit 1
TMPDIR="${0%/*}/secrets" setsid sh -c "$*" | cat
SH
chmod +x ssh.sh
"$WEFT" train mlp --sequential --num_gradient_servers=2 --num_passes=$passes >alone.out 2>alone.err ||
	fail "the sequential run"
digest=$(sed -n 's/^pass .* digest //p' alone.out | tail -n 1)

# on_hosts SNAPSHOTS RESTARTS: a job of a pserver and a trainer on each of two hosts.
on_hosts() {
	start job "$WEFT" launch --hosts=127.0.0.1,127.0.0.2 --ssh="$work/ssh.sh" --remote_weft="$WEFT" \
		--port="$port" --snapshot_dir="$work/$1" --snapshot_steps=7 --restarts="$2" \
		-- train mlp --num_passes=$passes
	job=$last_pid
}

# kill_life N NAME: kills that process of the job's N-th life, when that has a snapshot of its own.
kill_life() {
	wait_for job.err " in epoch $1: "
	kill -9 "$(sed -n "s/^$2 | pid \([0-9]*\) on .*/\1/p" job.err | tail -n 1)"
}

# starts NAME COUNT: that process was started so often.
starts() {
	[ "$(grep -c "^$1 | pid [0-9]* on 127.0.0.[12]: weft" job.err)" -eq "$2" ] || fail "$1: not $2 starts"
}

ends_well() {
	ends "$job" 120 launch
	[ "$code" -eq 0 ] || fail "exit code $code"
	[ "$(sed -n 's/^pass .* digest //p' job.out | tail -n 1)" = "$digest" ] || fail "another digest"
}

on_hosts snapshots 4
kill_life 1 "pserver 0"
kill_life 2 "trainer 1"
kill_life 3 "pserver 1"
kill_life 4 "trainer 1"
ends_well
says job.err "weft launch: pserver 0 is started again (1 of 4)" \
	"weft launch: trainer 1 is started again (2 of 4)" \
	"weft launch: pserver 1 is started again (3 of 4)" \
	"weft launch: trainer 1 is started again (4 of 4)"
says_not job.err "the job is started again"
starts "pserver 0" 2
starts "pserver 1" 2
starts "trainer 0" 1
starts "trainer 1" 3
[ "$(grep -c "^pserver 0 | pid .* --resume=auto$" job.err)" -eq 1 ] || fail "not one start with --resume=auto"

# The connection to a host is lost, and with it the host's processes.
on_hosts others 2
wait_for job.err " in epoch 1: "
kill -9 "-$(cat ssh-127.0.0.2)"
ends_well
says job.err "127.0.0.2: the connection ended" "weft launch: the job is started again (1 of 2)"
says_not job.err "trainer 1 is started again"
starts "trainer 0" 2
[ -z "$(ls secrets)" ] || fail "a secret is left"
