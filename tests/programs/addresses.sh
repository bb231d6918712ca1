#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs over IPv6 and by host name train as over IPv4.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
# job LISTEN PSERVERS: train once; the digest is in $digest.
job() {
	start pserver "$WEFT" pserver --listen="$1" --port="$port" --ports_num=2 --once
	pserver=$last_pid
	expect 0 "$WEFT" train linear --num_passes=3 --ports_num=2 --pservers="$2"
	digest=$(digest_of last.out)
	[ -n "$digest" ] || fail "no digest over $2"
	ends "$pserver" 60 pserver
	[ "$code" -eq 0 ] || fail "pserver on $1: exit code $code"
	port=$((port + 2))
}

job 127.0.0.1 "127.0.0.1:$port"
first=$digest
job localhost "localhost:$port"
says pserver.err "listens on localhost" "only this host can reach it"
grep -qE 'localhost:[0-9]+ \((127\.0\.0\.1|\[::1\]):[0-9]+\): only this host' pserver.err ||
	fail "the address that localhost stands for is not named"
[ "$digest" = "$first" ] || fail "localhost: digest $digest, not $first"
job 127.0.0.1 "localhost:$port" # also where the name has an IPv6 address that nobody listens on
[ "$digest" = "$first" ] || fail "localhost over IPv4: digest $digest, not $first"
if grep -q '^00000000000000000000000000000001 ' /proc/net/if_inet6 2>/dev/null; then
	job ::1 "[::1]:$port"
	[ "$digest" = "$first" ] || fail "IPv6: digest $digest, not $first"
else
	echo "no IPv6 loopback here: that part is left out"
fi
expect 69 "$WEFT" train linear --connect_timeout=2s --pservers=no-such-host.invalid
says last.err no-such-host.invalid
