#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job over RDMA devices of several kinds, whose trainer or pserver is killed with -9: every other
# process ends with 69, names who is gone, and leaves nothing behind. Then the link is down for a
# moment, and for longer, which a job outlives; and with auto one goes on over TCP when the device goes.
. "${0%/*}/lib.sh"

port=$(free_ports)
job_address=$address
job_pserver="--transport=verbs --reconnect_timeout=1s"

# killed WHO TEXT PROCESSES...: these end, and their last lines hold the text.
killed() {
	who=$1
	its_name=$2
	shift 2
	wait_for trainer_0.out "pass 2 "
	eval "kill -9 \$$who"
	for name; do
		eval "pid=\$$name"
		ends "$pid" 20 "$name"
		[ "$code" -eq 69 ] || fail "$kind: $name: exit code $code, not 69"
		tail -n 1 "$name.err" | grep -qF "$its_name" ||
			fail "$kind: $name does not name $its_name in its last line"
		says "$name.err" "$both"
	done
	books_are_closed $# "$kind, $who killed"
}

kill_one_of_each() {
	kind=$1
	be $kind ""
	start_job 2 2 linear --transport=verbs --num_passes=1000000
	killed trainer_1 "trainer 1" trainer_0 pserver_0 pserver_1
	be $kind ""
	start_job 2 2 linear --transport=verbs --num_passes=1000000
	killed pserver_1 "$address:$((port + 1))" trainer_0 trainer_1 pserver_0
}
kill_one_of_each mlx5
if [ -n "$long" ]; then
	kill_one_of_each irdma
	kill_one_of_each cxgb4
fi

# so_many_passes PASSES: of the jobs from here on.
so_many_passes() {
	passes=$1
	settings="--num_passes=$passes --slice_bytes=64 --seed=5"
	in_one_process linear 2 1 "$settings"
}
so_many_passes 400

# in_mid_job KIND COMMAND OPTIONS: what the command does befalls a job in its first half. Where the
# machine is too fast for that, or this script too slow, the next job has more passes.
in_mid_job() {
	while :; do
		be "$1" ""
		# shellcheck disable=SC2086
		start_job 1 2 linear $3 $settings
		wait_for trainer_0.out "pass 1 "
		$2
		has trainer_0.out "pass $((passes / 2)) " || return 0
		add_device
		for name in trainer_0 trainer_1 pserver_0; do
			eval "pid=\$$name"
			ends "$pid" 120 "$name"
		done
		so_many_passes $((passes * 4))
	done
}

# The link is down in mid-job, and back when each trainer has said TEXT.
link_down() {
	echo "1: DOWN" >"$device/ports/1/state"
}
link_is_down_until() {
	in_mid_job mlx5 link_down "--transport=verbs $2"
	for name in trainer_0 trainer_1; do
		wait_for $name.err "fake0: port 1 is down"
		wait_for $name.err "$1"
	done
	echo "4: ACTIVE" >"$device/ports/1/state"
	for name in trainer_0 trainer_1 pserver_0; do
		eval "pid=\$$name"
		ends "$pid" 60 "$name"
		[ "$code" -eq 0 ] || fail "the link was down: $name: exit code $code"
	done
	[ "$(digest_of trainer_0.out)" = "$alone" ] ||
		fail "the link was down: another digest than $alone"
	books_are_closed 3 "the link was down"
}

# For a moment: nothing is lost by it. (A busy machine's moment may be long.)
patient=--verbs=ack_timeout=20
job_pserver="--transport=verbs $patient"
link_is_down_until "port 1 is down" $patient
for name in trainer_0 trainer_1 pserver_0; do
	says_not $name.err lost
done

# For longer than a device asks in vain: for a while there is no path, and who demands it waits.
patient=--reconnect_timeout=30s
job_pserver="--transport=verbs --verbs=retry=1 $patient"
link_is_down_until "lost pserver 0" "--verbs=retry=1 $patient"
for name in trainer_0 trainer_1; do
	says $name.err "regained pserver 0 lane 0"
done

# With auto, and other hosts, the job goes on over TCP.
job_host=$other_host
job_pserver=
remove() {
	rm -r "$device"
}
for kind in mlx5 cxgb4; do
	in_mid_job $kind remove ""
	says trainer_0.err "$both"
	for name in trainer_0 trainer_1 pserver_0; do
		eval "pid=\$$name"
		ends "$pid" 60 "$name"
		[ "$code" -eq 0 ] || fail "$kind: $name: exit code $code"
	done
	[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "$kind: another digest than $alone"
	for id in 0 1; do
		[ "$(grep -c 'over tcp: verbs broke' trainer_$id.err)" -eq 1 ] ||
			fail "$kind: trainer $id does not say once that it goes on over TCP"
	done
	books_are_closed 3 "$kind, removed"
	add_device
done
