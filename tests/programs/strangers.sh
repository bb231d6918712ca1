#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A peer that connects to a port and sends noise, half a head, a length of 2^63 or nothing is
# disconnected, and the job that trains meanwhile ends as if there had been no such peer.
. "${0%/*}/lib.sh"
needs_training
: "${STRANGER:?the uninvited guest}"

port=$(free_ports)
start pserver "$WEFT" pserver --port="$port" --num_gradient_servers=2
pserver=$last_pid
wait_for pserver.err "pserver listens on"
start first "$WEFT" train linear --pservers=127.0.0.1:"$port" --num_gradient_servers=2 --num_passes=5
first=$last_pid
# The job is open until trainer 1 comes: all of these meet a job under way.
until_true 60 grep -qi 'trainer 1' first.err pserver.err || fail "no log says that trainer 1 is missing"
guests=""
for kind in random half huge silent leave random random; do
	start "stranger_${kind}_$(echo "$guests" | wc -w)" "$STRANGER" "$port" "$kind"
	guests="$guests $last_pid"
done
expect 0 "$WEFT" train linear --pservers=127.0.0.1:"$port" --num_gradient_servers=2 --trainer_id=1 \
	--num_passes=5
ends "$first" 60 "trainer 0"
[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
for guest in $guests; do
	ends "$guest" 90 stranger
	[ "$code" -eq 0 ] || fail "a stranger was not shown out"
done
disturbed=$(digest_of first.out)
expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 --num_passes=5
[ "$(digest_of last.out)" = "$disturbed" ] || fail "another digest than without strangers"
alive "$pserver" || fail "the pserver has ended"
expect 0 "$WEFT" status --json 127.0.0.1:"$port"
says last.out '"strangers":7'
kill -TERM "$pserver"
ends "$pserver" 20 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
