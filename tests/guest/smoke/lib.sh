# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What the scripts here share. They run in the guest only, in a folder of their own.
set -eu

if [ -z "${GUEST_OUT-}" ]; then
	echo "runs in the guest only: tests/guest/suite.py BUILD"
	exit 77
fi
work=$(mktemp -d)
cd "$work"

fail() {
	echo "FAILED: $*"
	tail -n 20 ./*.log 2>/dev/null || true
	exit 1
}

# same WHAT FOUND WANTED
same() {
	[ "$2" = "$3" ] || fail "$1: '$2', not '$3'"
}

# until_true COMMAND...: look until it holds; the number only bounds a failure.
until_true() {
	tries=400
	while ! "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

# Soft iWARP is built from the kernel's source, for which there may be no compiler.
needs_siw() {
	if ! modprobe -n siw 2>/dev/null; then
		echo "siw was not built: $(cat /run/no_siw)"
		exit 77
	fi
}

# listens ADDRESS: somebody waits there for the connection manager
listens() {
	rdma resource show cm_id | grep -q "state LISTEN.*src-addr $1:"
}

# rping_between SERVER CLIENT [COMMAND...]: the client's address is bound; COMMAND runs the server.
# On soft iWARP about one rping in two hundred loses a wake-up and both its ends wait for good, so
# what was not done in 10 s is tried again, and said; three in a row are a failure.
rping_between() {
	for try in 1 2 3; do
		if rping_once "$@"; then
			return
		fi
		echo "rping $2 -> $1 hung, try $try of 3"
	done
	fail "rping $2 -> $1 hung three times"
}

# rping_once, as above: false if it hung
rping_once() {
	to=$1
	from=$2
	shift 2
	"$@" timeout 15 rping -s -a "$to" -C 5 -v >server.log 2>&1 &
	server=$!
	until_true listens "$to" || fail "rping does not listen on $to"
	status=0
	timeout 10 rping -c -a "$to" -I "$from" -C 5 -v >client.log 2>&1 || status=$?
	if [ "$status" = 124 ]; then
		kill "$server"
		wait "$server" || true
		return 1
	fi
	[ "$status" = 0 ] || fail "rping $from -> $to: status $status"
	same "pings $from -> $to" "$(grep -c '^ping data: rdma-ping-' client.log)" 5
	wait "$server" || status=$?
	[ "$status" != 124 ] || return 1
	[ "$status" = 0 ] || fail "the server of rping on $to: status $status"
}

# hears PORT: a TCP socket waits there
hears() {
	grep -q "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") 0*:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# pingpong_between PORT CLIENT SERVER GID_INDEX ROUNDS: 4 KiB to and fro, without the connection
# manager. Soft RoCE may stop for good on a link that loses packets (in about one run of 1,000
# rounds in thirty with a loss of 3 %): the device does not send a lost packet again, and no timer
# of the program ends its wait. A run that takes longer than 20 s is therefore reported and
# repeated; three of them in a row are a failure.
pingpong_between() {
	for try in 1 2 3; do
		if pingpong_once "$@"; then
			return
		fi
		echo "ibv_rc_pingpong $2 -> $3 hung, try $try of 3"
	done
	fail "ibv_rc_pingpong $2 -> $3 hung three times"
}

# pingpong_once, as above: false if it hung
pingpong_once() {
	timeout 25 ibv_rc_pingpong -p "$1" -d "$3" -g "$4" -n "$5" >server.log 2>&1 &
	server=$!
	until_true hears "$1" || fail "ibv_rc_pingpong does not listen on port $1"
	status=0
	timeout 20 ibv_rc_pingpong -p "$1" -d "$2" -g "$4" -n "$5" localhost >client.log 2>&1 ||
		status=$?
	if [ "$status" = 124 ]; then
		kill "$server"
		wait "$server" || true
		return 1
	fi
	[ "$status" = 0 ] || fail "ibv_rc_pingpong $2 -> $3: status $status"
	wait "$server" || status=$?
	[ "$status" != 124 ] || return 1
	[ "$status" = 0 ] || fail "the server of ibv_rc_pingpong on $3: status $status"
}

# sent DEVICE: packets that this device has sent
sent() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}
