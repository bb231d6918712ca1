#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver's memory, RssAnon and its memfds, is at most 5 % above parameters + optimizer state +
# slots + parked slices, plus 32 MiB.
. "${0%/*}/lib.sh"

if [ "${SANITIZER-none}" != none ]; then
	echo "SKIPPED: sanitizer $SANITIZER needs memory of its own" >&2
	exit 77
fi
mib=32
port=$(free_ports)
mkfifo say_0 say_1
start pserver "$WEFT" pserver --port="$port" --once --num_gradient_servers=2
pserver=$last_pid
for i in 0 1; do
	start "user_$i" sh -c "exec '$TRAINER' 127.0.0.1:$port $i 2 $mib <say_$i"
	eval "user_$i=$last_pid"
done
exec 3>say_0 4>say_1
wait_for user_0.out "start: ok"
wait_for user_1.out "start: ok"

# Prints the pserver's memory in KiB.
held() {
	anon=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pserver/status")
	memfds=0
	for fd in "/proc/$pserver"/fd/*; do
		case $(readlink "$fd") in
		/memfd:*) memfds=$((memfds + $(stat -L -c %b "$fd") / 2)) ;;
		esac
	done
	echo $((anon + memfds))
}

# check WHAT KIB: the memory in use is not above its bound.
check() {
	now=$(held)
	limit=$(($2 * 105 / 100 + 32 * 1024))
	echo "$1: $now KiB held, $2 KiB to account for, $limit KiB allowed"
	[ "$now" -le "$limit" ] || fail "$1: $now KiB, more than $limit KiB"
}
held_at_least() {
	[ "$(held)" -ge "$1" ]
}

# Parameters alone so far, but two arrays of state are to come; 2 trainers x 8 slots x 256 KiB.
params=$((mib * 1024))
slots=$((2 * 8 * 256))
check "started" $((3 * params + slots))
echo step >&3
echo step >&4
wait_for user_0.out "step: ok"
wait_for user_1.out "step: ok"
check "one step" $((3 * params + slots))
held_at_least $((3 * params * 95 / 100)) || fail "$(held) KiB are less than parameters and state"

# Trainer 0 is a step ahead: all that it pushed is parked, except one window.
echo push >&3
until_true 60 held_at_least $(((4 * params - 2048) * 95 / 100)) ||
	fail "$(held) KiB: trainer 0's slices are not parked"
check "a step parked" $((4 * params + slots))
echo push >&4
for i in 3 4; do
	echo wait >&$i
	echo step >&$i
	echo close >&$i
done
wait_for user_0.out "close: ok"
wait_for user_1.out "close: ok"
ends "$pserver" 60 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
