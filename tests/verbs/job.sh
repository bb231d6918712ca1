#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole jobs over soft RDMA devices end with the digest of one process: over RoCE and over iWARP where
# it is demanded, and with --transport=auto where memory cannot be shared, though the device is taken
# away in mid-job. Then the job goes on over TCP. WEFT_LONG: the other modes of tensors, and a job
# whose trainers come over different paths, which tables.sh has too.
long=${WEFT_LONG-}
. "${0%/*}/../programs/lib.sh"
needs_training
[ -e /sys/class/infiniband/rxe0 ] || {
	echo "SKIPPED: this machine has no rxe0" >&2
	exit 77
}

port=$(free_ports)
settings="--num_passes=3 --slice_bytes=64 --seed=5"
# shellcheck disable=SC2086
expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 $settings
alone=$(digest_of last.out)
[ -n "$alone" ] || fail "no digest of the sequential run"

for address in 10.9.0.1 10.8.0.1; do
	[ "$address" = 10.9.0.1 ] || [ -e /sys/class/infiniband/siw0 ] || continue
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=verbs --listen=$address --port="$port" \
		--stats_period=60s --pservers=2 --trainers=2 -- train linear $settings
	[ "$(digest_of last.out)" = "$alone" ] || fail "$address: another digest than $alone"
	[ "$(grep -c -e 'reached pserver [01] lane 0 .* over verbs: RDMA at both ends' \
		-e 'is here over verbs: RDMA at both ends' last.err)" -eq 8 ] ||
		fail "$address: not every pair says that it runs over verbs"
	grep -Eq ' verbs_sent_bytes [1-9][0-9]+ ' last.err || fail "$address: no bytes over verbs"
done

if [ -n "$long" ]; then
	# The other modes of tensors. Local steps have the bits of the same job over TCP, values of 16 bits
	# those of a sequential run; of what is applied
	# as it comes nothing is lost, and each trainer's answers came out of copies.
	in_mode() {
		# shellcheck disable=SC2086
		expect 0 "$WEFT" launch --local --transport="$1" --listen=10.9.0.1 --port="$port" \
			--stats_period=60s --pservers=2 --trainers=2 -- train linear $settings \
			--batch_size=40 --learning_rate=0.01 $2
	}
	in_mode tcp "--dense_mode=local --local_steps=2"
	local_alone=$(digest_of last.out)
	[ -n "$local_alone" ] || fail "local steps over TCP: no digest"
	in_mode verbs "--dense_mode=local --local_steps=2"
	[ "$(digest_of last.out)" = "$local_alone" ] || fail "local steps: not the digest over TCP"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 $settings --batch_size=40 \
		--learning_rate=0.01 --dense_wire=bf16
	halves_alone=$(digest_of last.out)
	[ -n "$halves_alone" ] || fail "16 bits: no digest of the sequential run"
	in_mode verbs "--dense_wire=bf16"
	[ "$(digest_of last.out)" = "$halves_alone" ] || fail "16 bits: not the digest of the sequential run"
	in_mode verbs "--dense_mode=async --async_lagged_grad_discard_ratio=0"
	[ "$(grep -c 'lag of trainer [01]: slices_applied [1-9][0-9]* slices_discarded 0 ' last.err)" -eq 6 ] ||
		fail "asynchronous: not every push was applied"
	grep -Eq ' verbs_sent_bytes [1-9][0-9]+ ' last.err || fail "asynchronous: no bytes over verbs"

	# One trainer over verbs and one over TCP, in one job: the same again.
	start pserver "$WEFT" pserver --listen=10.9.0.1 --port="$port" --once --num_gradient_servers=2
	pserver=$last_pid
	for id in 0 1; do
		# shellcheck disable=SC2086
		start trainer_$id "$WEFT" train linear --pservers=10.9.0.1:"$port" --num_gradient_servers=2 \
			--trainer_id=$id --transport="$([ $id = 0 ] && echo verbs || echo tcp)" $settings
		eval "trainer_$id=$last_pid"
	done
	ends "$trainer_0" 60 "trainer 0"
	[ "$code" -eq 0 ] || fail "trainer 0 of a mixed job: exit code $code"
	ends "$trainer_1" 60 "trainer 1"
	[ "$code" -eq 0 ] || fail "trainer 1 of a mixed job: exit code $code"
	ends "$pserver" 60 pserver
	says trainer_0.err "over verbs: RDMA at both ends"
	says trainer_1.err "over tcp: --transport=tcp"
	[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "mixed: another digest than $alone"
fi

# Who has no group in common with the pserver cannot share its memory.
settings="--num_passes=200 --slice_bytes=64 --seed=5"
# shellcheck disable=SC2086
expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 $settings
alone=$(digest_of last.out)
start pserver "$WEFT" pserver --listen=10.9.0.1 --port="$port" --once --num_gradient_servers=2
pserver=$last_pid
for id in 0 1; do
	# shellcheck disable=SC2086
	start trainer_$id setpriv --reuid=65534 --regid=65534 --clear-groups "$WEFT" train linear \
		--pservers=10.9.0.1:"$port" --num_gradient_servers=2 --trainer_id=$id $settings
	eval "trainer_$id=$last_pid"
done
wait_for trainer_0.out "pass 1 "
for id in 0 1; do
	says trainer_$id.err "over verbs: RDMA at both ends"
done
rdma link delete rxe0
alive "$trainer_0" || fail "the job was over before the device went"
ends "$trainer_0" 60 "trainer 0"
[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
ends "$trainer_1" 60 "trainer 1"
[ "$code" -eq 0 ] || fail "trainer 1: exit code $code"
ends "$pserver" 60 pserver
rdma link add rxe0 type rxe netdev e0
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
[ "$(digest_of trainer_0.out)" = "$alone" ] || fail "another digest than $alone"
for id in 0 1; do
	[ "$(grep -c 'over tcp: verbs broke' trainer_$id.err)" -eq 1 ] ||
		fail "trainer $id does not say once that it goes on over TCP"
done

# little KIB COMMAND...: as a user who may lock that much memory only.
little() {
	(
		ulimit -l "$1"
		shift
		exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	)
}

# Too little memory to lock, for the trainer's links, for the pserver's, for its slots: auto says so
# and goes on over TCP, verbs does not.
settings="--num_passes=1 --seed=5"
set -- "last:little 64:" "pserver::little 1024"
[ -z "$long" ] || set -- "pserver::little 64" "$@"
for case; do
	model=linear
	[ "$case" != "pserver::little 1024" ] || model="mlp --hidden=1024"
	client=${case#*:}
	client=${client%:*}
	# shellcheck disable=SC2086
	start pserver ${case##*:} "$WEFT" pserver --listen=10.9.0.1 --port="$port" --once
	pserver=$last_pid
	wait_for pserver.err "pserver listens on"
	# shellcheck disable=SC2086
	expect 0 $client "$WEFT" train $model --pservers=10.9.0.1:"$port" $settings
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "$case: pserver: exit code $code"
	says last.err " over tcp: "
	grep -q ' cannot be locked for RDMA.*ulimit -l unlimited' "${case%%:*}.err" ||
		fail "$case: it is not said that too little memory may be locked"
done
grep -q 'verbs is left out from now on: .* cannot be locked' pserver.err ||
	fail "slots that cannot be locked do not leave verbs out"
start pserver "$WEFT" pserver --listen=10.9.0.1 --port="$port"
wait_for pserver.err "pserver listens on"
# shellcheck disable=SC2086
expect 64 little 64 "$WEFT" train linear --pservers=10.9.0.1:"$port" --transport=verbs $settings
says last.err "--transport=verbs" "ulimit -l unlimited"
