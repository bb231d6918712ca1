#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --transport: both ends log the choice once per lane with the reason; a process that requires what
# the other excludes ends with 64 at once, with one line that says which one lacks it and the
# remedy.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
at="--pservers=127.0.0.1:$port"

# pair TRANSPORT TRANSPORT: of the pserver, of the trainer; both end with 0.
pair() {
	start pserver "$WEFT" pserver --port="$port" --ports_num=2 --once --transport="$1"
	pserver=$last_pid
	wait_for pserver.err "pserver listens on"
	expect 0 "$WEFT" train linear "$at" --ports_num=2 --slice_bytes=64 --num_passes=1 \
		--transport="$2" --stats_period=60s
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "pserver: exit code $code"
	[ "$(grep -c 'trainer 0: reached pserver 0 lane [01] ' last.err)" -eq 2 ] ||
		fail "the trainer does not log once for each lane what it runs over"
	[ "$(grep -c 'lane [01]: trainer 0 (.*) is here over ' pserver.err)" -eq 2 ] ||
		fail "the pserver does not log once for each lane what it runs over"
}

pair auto auto
says last.err "over shm: same host" " paths_broken 0"
says pserver.err "is here over shm: same host"
grep -Eq ' shm_sent_bytes [1-9][0-9]+ ' last.err || fail "no bytes over shm"
pair tcp auto
says last.err "over tcp: peer offers tcp only"
says pserver.err "is here over tcp: --transport=tcp"
pair auto tcp
says last.err "over tcp: --transport=tcp"
says pserver.err "is here over tcp: peer allows tcp only"
pair shm auto
says last.err "over shm: same host"

# mismatch TRANSPORT TRANSPORT TEXT: the trainer ends with 64 and one line; the pserver goes on
# waiting.
mismatch() {
	start pserver "$WEFT" pserver --port="$port" --once --transport="$1"
	pserver=$last_pid
	wait_for pserver.err "pserver listens on"
	expect 64 "$WEFT" train linear "$at" --num_passes=1 --transport="$2"
	says last.err "$3"
	[ "$(grep -c -e '--transport=' last.err)" -eq 1 ] || fail "more than one line"
	wait_for pserver.err "--transport="
	expect 0 "$WEFT" train linear "$at" --num_passes=1
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "pserver: exit code $code"
}
mismatch tcp shm "--transport=shm here, but the peer uses tcp only; start it with --transport=auto or shm"
mismatch shm tcp "the listener demands --transport=shm, the connecting end excludes it; start both with auto or shm"

# Without RDMA devices auto says nothing about them, and verbs ends at once, with one line.
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
	pair auto auto
	says_not last.err verbs
	says_not pserver.err verbs
	for command in "pserver --port=$port" "train linear $at"; do
		# shellcheck disable=SC2086
		expect 69 "$WEFT" $command --transport=verbs
		says last.err "--transport=verbs: " "RDMA" "; auto and tcp do without"
	done
fi

expect 64 "$WEFT" train linear "$at" --transport=pigeon
says last.err "there are auto, shm, verbs and tcp"
expect 64 "$WEFT" pserver --transport=pigeon
expect 64 "$WEFT" demo --transport=pigeon

# The demonstration ends with the same digest over each transport.
first=""
for transport in shm tcp auto; do
	expect 0 "$WEFT" demo mlp --transport=$transport --port="$port"
	digest=$(sed -n 's/^ *distributed *\([0-9a-f]*\)$/\1/p' last.out)
	[ -n "$digest" ] && [ "$digest" = "${first:=$digest}" ] ||
		fail "$transport: digest '$digest', not '$first'"
done
