#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --tcp_congestion: the sockets of both ends use it, and a name that the host does not know is
# refused.
. "${0%/*}/lib.sh"
needs_training
port=$(free_ports)
list=/proc/sys/net/ipv4/tcp_allowed_congestion_control
if [ ! -r "$list" ] || ! command -v ss >/dev/null; then
	echo "SKIPPED: no $list, or no ss to look at sockets with" >&2
	exit 77
fi

for command in "pserver --port=$port" "train linear --pservers=127.0.0.1:$port" \
	"launch --local --port=$port"; do
	rest=
	[ "${command#launch}" = "$command" ] || rest="-- train linear"
	# shellcheck disable=SC2086 # words
	expect 64 "$WEFT" $command --tcp_congestion=no_such_thing $rest
	says last.err "tcp_congestion=no_such_thing" "name one of"
done
expect 64 "$WEFT" pserver --port="$port" --tcp_congestion=longer_than_any_name_may_be

# A trainer that waits for another one keeps its connection open meanwhile. reno is in every kernel,
# and never the default.
grep -qw reno "$list" || {
	echo "SKIPPED: reno is not for this user" >&2
	exit 77
}
start pserver "$WEFT" pserver --port="$port" --num_gradient_servers=2 --tcp_congestion=reno
wait_for pserver.err "listens on"
start trainer "$WEFT" train linear --pservers=127.0.0.1:"$port" --num_gradient_servers=2 \
	--transport=tcp --tcp_congestion=reno
wait_for pserver.err "trainer 0"

# both_are NAME: the connection has two established ends, each with this algorithm.
both_are() {
	[ "$(ss -tnHi state established "( sport = :$port or dport = :$port )" |
		grep -cw "$1")" -eq 2 ]
}
until_true 20 both_are reno || fail "not reno at both ends:
$(ss -tnHi state established "( sport = :$port or dport = :$port )")"
