#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real jobs whose transports refuse, delay, cut, split, post shortly and stall at points that
# WEFT_SEED decides end with the digest of one process. What was injected is in the log.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
seed=${WEFT_SEED:-1}
settings="--slice_bytes=256 --num_passes=2 --seed=11"
faults="seed=$seed,delay=5%:2ms,split=30%,short=20%,stall=1%:5ms,refuse=5%"
# Pservers cut at random. A trainer that was cut between its GOODBYE and the answer would have no
# lane to come back to, so trainers cut by script, in the middle.
pserver_faults="$faults,cut=0.2%"
trainer_faults="$faults,refuse@connect:2,cut@put:$((20 + seed % 50)),cut@op:$((100 + seed % 90))"
trainer_path_faults="$faults,refuse@connect:2" # one path alone may see so much at the end only

# injected KIND: prints how often all processes of the last run injected it.
injected() {
	sed -n "s/.*transport fault: injected .*$1 \([0-9]*\).*/\1/p" ./*.err |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# train PSERVER_TRANSPORT TRAINER_TRANSPORT: two pservers with two lanes each, two trainers.
train() {
	list=""
	rm -f ./*.err ./*.out
	for i in 0 1; do
		at=$((port + 2 * i))
		start "pserver_$i" "$WEFT" pserver --port=$at --ports_num=2 --once \
			--num_gradient_servers=2 --log_level=debug --transport="$1"
		eval "pserver_$i=$last_pid"
		list="${list:+$list,}127.0.0.1:$at"
	done
	for i in 0 1; do
		# shellcheck disable=SC2086
		start "trainer_$i" "$WEFT" train mlp $settings --num_gradient_servers=2 --trainer_id=$i \
			--pservers="$list" --ports_num=2 --transport="$2"
		eval "trainer_$i=$last_pid"
	done
	for name in trainer_0 trainer_1 pserver_0 pserver_1; do
		eval "pid=\$$name"
		ends "$pid" 120 "$name"
		[ "$code" -eq 0 ] || fail "$name ended with $code over $1"
	done
	[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "another digest than $alone over $1"
}

# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $settings
alone=$(digest_of last.out)
[ -n "$alone" ] || fail "no digest of the sequential run"

for name in tcp shm auto; do
	train "fault($pserver_faults)+$name" "fault($trainer_faults)+$name"
	for kind in delay split short stall; do
		[ "$(injected $kind)" -gt 0 ] || fail "no $kind was injected over $name"
	done
	[ "$(cat trainer_*.err | grep -c 'regained pserver')" -ge 2 ] ||
		fail "no connection was cut over $name"
done
train "fault($pserver_faults)+tcp,fault($pserver_faults)+shm" \
	"fault($trainer_path_faults)+tcp,fault($trainer_path_faults)+shm"
[ "$(injected cut)" -gt 0 ] || fail "no path was cut"

# A mistake in the specification is named, with what would be right.
expect 64 "$WEFT" pserver --transport="fault(cutt=1%)+tcp" --port=0
says last.err "cutt=1%" "refuse, delay, cut, split, short, stall"
expect 64 "$WEFT" pserver --transport="fault(cut=1%+tcp" --port=0
says last.err "is missing" "fault(SPEC)+NAME"
