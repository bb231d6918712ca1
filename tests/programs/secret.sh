#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job with a secret: a trainer that has it trains, over TCP and shared memory; for one that has
# none or another, its message says what to check, and the pserver's log names it; and the secret is
# nowhere else afterwards.
peer=$(cd "${0%/*}" && pwd)/secret_peer.py
. "${0%/*}/lib.sh"
needs_training
if ! command -v python3 >/dev/null 2>&1; then
	echo "SKIPPED: python3 is not there" >&2
	exit 77
fi

for name in secret other; do
	head -c 24 /dev/urandom | base64 >$name
	chmod 0400 $name
done

# Files that may not hold a secret. The message names the file and the remedy.
cp secret open
chmod 0440 open
ln -s secret link
head -c 31 secret >short
chmod 0400 short
for try in "open:has mode 0440" "link:is a link" "short:too few bytes" "none:cannot be opened"; do
	got=0
	"$WEFT" pserver --port="$(free_ports)" --secret_file="${try%%:*}" >last.out 2>last.err || got=$?
	[ "$got" -ne 0 ] || fail "--secret_file=${try%%:*} was accepted"
	says last.err "secret_file ${try%%:*}" "${try#*:}"
done

port=$(free_ports)
start pserver "$WEFT" pserver --port="$port" --ports_num=1 --ports_num_for_sparse=1 --secret_file=secret
pserver=$last_pid
wait_for pserver.err "pserver listens on"
train="$WEFT train linear --pservers=127.0.0.1:$port --ports_num_for_sparse=1 --num_passes=2"
# Without a secret, and with another one: the trainer ends at once, although --connect_timeout is
# 300 s.
expect 64 $train
says last.err "it has a secret, and this end has none" "--secret_file"
expect 64 $train --secret_file=other
says last.err "it has another secret than this end" "sha256sum"
wait_for pserver.err "closed the connection of a stranger: 127.0.0.1:"
expect 0 python3 "$peer" "$port" secret
says last.out "refused" "with the same 66 bytes"
# With the secret, over both transports, and from the environment.
expect 0 $train --secret_file=secret --transport=tcp
digest=$(digest_of last.out)
WEFT_SECRET_FILE=$work/secret
export WEFT_SECRET_FILE
expect 0 $train --transport=shm
unset WEFT_SECRET_FILE
[ "$(digest_of last.out)" = "$digest" ] || fail "another digest over shared memory"
kill -TERM "$pserver"
ends "$pserver" 20 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
expect 0 "$WEFT" train linear --sequential --num_passes=2
[ "$(digest_of last.out)" = "$digest" ] || fail "another digest than without a pserver"

# The other way round: the trainer requires the secret. A pserver without one logs who can do what.
port=$(free_ports)
start clear "$WEFT" pserver --port="$port" --listen=0.0.0.0
clear=$last_pid
wait_for clear.err "anyone who reaches 0.0.0.0 port $port can read and change the parameters"
says clear.err "--secret_file=FILE"
expect 64 "$WEFT" train linear --pservers=127.0.0.1:"$port" --secret_file=secret
says last.err "it has no secret, and this end demands one"
wait_for clear.err "it has a secret, and this end was started without --secret_file"
kill -TERM "$clear"
ends "$clear" 20 clear

# launch passes the secret to both; with it, a pserver that listens for other hosts has nothing to
# warn of.
expect 0 "$WEFT" launch --local --port="$(free_ports)" --listen=0.0.0.0 --secret_file=secret -- \
	train linear --num_passes=1
says_not last.err "anyone who reaches"
for file in *.out *.err; do
	says_not "$file" "$(cat secret)"
done
