#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trainers on the pserver's host that cannot share memory with it, because they are in another
# network namespace or of another user, train over TCP with the same digest, and log the reason;
# with --transport=shm they end with 64. Skipped without root or `ip`.
. "${0%/*}/lib.sh"
needs_training

skip() {
	echo "SKIPPED: $*" >&2
	exit 77
}
[ "$(id -u)" -eq 0 ] || skip "network namespaces and other users need root"
command -v ip >/dev/null || skip "there is no ip (iproute2)"
command -v setpriv >/dev/null || skip "there is no setpriv (util-linux)"
near=weft-$$-near
far=weft-$$-far
trap 'ip netns del "$near" 2>/dev/null; ip netns del "$far" 2>/dev/null; clean_up' EXIT
ip netns add "$near" 2>ip.err && ip netns add "$far" 2>ip.err &&
	ip link add name near netns "$near" type veth peer name far netns "$far" 2>ip.err ||
	skip "no network namespaces here: $(cat ip.err)"
within() {
	where=$1
	shift
	nsenter --net="/run/netns/$where" "$@"
}
within "$near" ip address add 10.78.0.1/24 dev near
within "$far" ip address add 10.78.0.2/24 dev far
for at in "$near near" "$far far"; do
	# shellcheck disable=SC2086 # two words
	set -- $at
	within "$1" ip link set lo up
	within "$1" ip link set "$2" up
done
chmod 755 .
setpriv --reuid=65534 --regid=65534 --clear-groups "$WEFT" train --help >nobody.out 2>&1 ||
	skip "nobody cannot run $WEFT"

job="linear --num_passes=2 --num_gradient_servers=2"
# shellcheck disable=SC2086 # words
expect 0 "$WEFT" train $job --sequential
alone=$(digest_of last.out)

# together PREFIX...: trainer 0 beside the pserver, trainer 1 behind the prefix.
together() {
	start pserver nsenter --net="/run/netns/$near" "$WEFT" pserver --listen=10.78.0.1 \
		--port=7164 --once --num_gradient_servers=2
	pserver=$last_pid
	wait_for pserver.err "pserver listens on"
	# shellcheck disable=SC2086
	expect 64 "$@" "$WEFT" train $job --trainer_id=1 --pservers=10.78.0.1:7164 --transport=shm
	cp last.err refused.err
	# shellcheck disable=SC2086
	start beside nsenter --net="/run/netns/$near" "$WEFT" train $job --trainer_id=0 \
		--pservers=10.78.0.1:7164
	beside=$last_pid
	# shellcheck disable=SC2086
	expect 0 "$@" "$WEFT" train $job --trainer_id=1 --pservers=10.78.0.1:7164
	ends "$beside" 60 "trainer 0"
	[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "pserver: exit code $code"
	[ "$(digest_of beside.out)" = "$alone" ] || fail "another digest than $alone"
	says beside.err "over shm: same host"
}

together nsenter --net="/run/netns/$far"
says refused.err "--transport=shm, but shm: " "nobody listens there with shm in this network namespace"
says last.err "over tcp: shm: " "nobody listens there with shm in this network namespace"
says pserver.err "is here over tcp: peer says: shm: "

together nsenter --net="/run/netns/$near" setpriv --reuid=65534 --regid=65534 --clear-groups
says refused.err "--transport=shm, but shm: " "have no group in common"
says last.err "over tcp: shm: " "have no group in common"
says pserver.err "is here over tcp: peer says: shm: "
