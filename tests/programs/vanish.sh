#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Both ends notice within peer_timeout that a host has vanished (a link cut between two network
# namespaces), and name it. Skipped without root or `ip`.
. "${0%/*}/lib.sh"
needs_training

skip() {
	echo "SKIPPED: $*" >&2
	exit 77
}
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip (iproute2)"
near=weft-$$-near
far=weft-$$-far
trap 'ip netns del "$near" 2>/dev/null; ip netns del "$far" 2>/dev/null; clean_up' EXIT
ip netns add "$near" 2>ip.err && ip netns add "$far" 2>ip.err &&
	ip link add name near netns "$near" type veth peer name far netns "$far" 2>ip.err ||
	skip "no network namespaces here: $(cat ip.err)"
# Not `ip -n` and `ip netns exec`: they remount, which a chroot does not allow.
within() {
	where=$1
	shift
	nsenter --net="/run/netns/$where" "$@"
}
within "$near" ip address add 10.77.0.1/24 dev near
within "$far" ip address add 10.77.0.2/24 dev far
for at in "$near near" "$far far"; do
	# shellcheck disable=SC2086 # two words
	set -- $at
	within "$1" ip link set lo up
	within "$1" ip link set "$2" up
done

# A pserver that was not told where to listen: the trainer names the likely cause.
start lonely nsenter --net="/run/netns/$near" "$WEFT" pserver --port=7170
lonely=$last_pid
wait_for lonely.err "only this host can reach it"
expect 69 nsenter --net="/run/netns/$far" "$WEFT" train linear --pservers=10.77.0.1:7170 \
	--connect_timeout=1s
says last.err "Connection refused" "a server that listens on loopback only cannot be reached there"
kill -TERM "$lonely"
ends "$lonely" 30 "weft pserver"

timeouts="--peer_timeout=2s --reconnect_timeout=1s"
# shellcheck disable=SC2086 # words
start pserver nsenter --net="/run/netns/$near" "$WEFT" pserver --listen=10.77.0.1 --port=7164 --once $timeouts
pserver=$last_pid
# shellcheck disable=SC2086
start trainer nsenter --net="/run/netns/$far" "$WEFT" train linear --num_passes=100000000 \
	--pservers=10.77.0.1:7164 $timeouts
trainer=$last_pid
wait_for trainer.out "pass 2 "
within "$far" ip link set far down
ends "$trainer" 20 trainer
[ "$code" -eq 69 ] || fail "trainer: exit code $code, not 69"
tail -n 1 trainer.err | grep -qF "10.77.0.1:7164" || fail "the trainer does not name the pserver"
ends "$pserver" 20 pserver
[ "$code" -eq 69 ] || fail "pserver: exit code $code, not 69"
tail -n 1 pserver.err | grep -qF "trainer 0" || fail "the pserver does not name the trainer"
