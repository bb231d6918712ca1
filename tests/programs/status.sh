#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is shown of a running job: the page's documents and metrics over HTTP, attacks on that port,
# `weft status` and `weft top`. The dashboard and the alerts of examples/ name metrics that exist.
. "${0%/*}/lib.sh"

if "$WEFT" version | grep -q 'with_status: OFF'; then
	expect 64 "$WEFT" pserver --port=0 --status=0
	says last.err '--status' 'libmicrohttpd'
	echo "SKIPPED: built without libmicrohttpd" >&2
	exit 77
fi
needs_training

for wrong in x 70000 127.0.0.1 127.0.0.1:x ''; do
	[ -n "$wrong" ] || continue
	expect 64 "$WEFT" pserver --port=0 --status="$wrong"
	says last.err '[ADDR:]PORT'
done

port=$(free_ports)
start pserver "$WEFT" pserver --port="$port" --ports_num=2 --ports_num_for_sparse=1 \
	--num_gradient_servers=2 --once --status=0 --snapshot_dir=snapshots --snapshot_period=1s
wait_for pserver.err 'the page of this pserver is http://127.0.0.1:'
for trainer in 0 1; do
	start "trainer$trainer" "$WEFT" train ngram --port="$port" --ports_num=2 \
		--ports_num_for_sparse=1 --num_gradient_servers=2 --trainer_id=$trainer \
		--num_passes=1000
done
page=$(sed -n 's/.*the page of this pserver is http:\/\/127.0.0.1:\([0-9]*\)\/.*/\1/p' pserver.err)
python3 "${0%/*}/status.py" "$WEFT" "$port" "$page" "${0%/*}/../../examples/monitoring" \
	>last.out 2>last.err || fail "$(tail -n 1 last.err)"

# Without the secret nobody learns anything, and with it everything.
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret
chmod 600 secret
cp secret other
printf 0 >>other
start guarded "$WEFT" pserver --port="$((port + 8))" --secret_file=secret
wait_for guarded.err 'pserver listens on'
expect 69 "$WEFT" status "127.0.0.1:$((port + 8))" --timeout=20s
says last.err 'secret'
says_not last.out pserver
expect 69 "$WEFT" status "127.0.0.1:$((port + 8))" --secret_file=other --timeout=20s
expect 0 "$WEFT" status "127.0.0.1:$((port + 8))" --secret_file=secret --timeout=20s
says last.out 'no job: it waits for trainers'
expect 69 "$WEFT" status "127.0.0.1:$((port + 9))"
says last.err 'weft status:' 'refused' 'give HOST:PORT, the first port of one that runs'
[ "$(grep -o "127.0.0.1:$((port + 9))" last.err | wc -l)" = 1 ] || fail "it names the port not once"

# Another program's port, which closes each connection.
start closer python3 -c 'import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", file=sys.stderr, flush=True)
while True:
    listener.accept()[0].close()' "$((port + 9))"
wait_for closer.err listens
expect 69 "$WEFT" status "127.0.0.1:$((port + 9))"
[ "$(grep -o "127.0.0.1:$((port + 9))" last.err | wc -l)" = 1 ] || fail "it names the port not once"

# A pserver that demands another path than TCP.
start over_shm "$WEFT" pserver --port="$((port + 10))" --transport=shm
wait_for over_shm.err 'pserver listens on'
expect 0 "$WEFT" status "127.0.0.1:$((port + 10))" --timeout=20s
says last.out 'no job: it waits for trainers'
