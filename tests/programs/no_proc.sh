#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# If /proc is not mounted, as in a bare chroot, the commands of the README work as elsewhere.
# Skipped if no mount namespace can be made.
. "${0%/*}/lib.sh"
needs_training
if [ "${SANITIZER-none}" != none ]; then
	echo "SKIPPED: sanitizer $SANITIZER does not work without /proc" >&2
	exit 77
fi

# Runs a command with an empty folder in place of /proc.
without_proc() {
	unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"
}
if ! without_proc true 2>space.err; then
	echo "SKIPPED: no mount namespace without /proc: $(cat space.err)" >&2
	exit 77
fi
expect 1 without_proc test -e /proc/self

# By its path, and by its name in PATH.
port=$(free_ports)
expect 0 without_proc "$WEFT" demo --port="$port"
says last.out PASS
PATH=${WEFT%/*}:$PATH
expect 0 without_proc weft train linear --sequential --num_passes=2
alone=$(digest_of last.out)
[ -n "$alone" ] || fail "no digest"
expect 0 without_proc weft launch --local --pservers=2 --port="$port" -- train linear --num_passes=2
[ "$(digest_of last.out)" = "$alone" ] || fail "another digest"
# Only the reason why the processes use TCP is logged.
unknown="whether both ends are on one host is unknown, for one has no /proc"
says last.err "over tcp: shm: $unknown"
grep -v "$unknown" last.err >rest.err
says_not rest.err /proc
for command in version topo env "pserver --help"; do
	# shellcheck disable=SC2086 # words
	expect 0 without_proc weft $command
	says_not last.err /proc
done
