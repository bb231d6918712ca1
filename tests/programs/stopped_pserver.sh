#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pserver is stopped (SIGSTOP) while a trainer sends GOODBYE: the trainer waits for
# reconnect_timeout, 3 s, reports what is missing, and ends.
. "${0%/*}/lib.sh"

port=$(free_ports)
mkfifo say
start pserver "$WEFT" pserver --port="$port" --once
pserver=$last_pid
start user sh -c "exec '$TRAINER' 127.0.0.1:$port 0 1 1 <say"
user=$last_pid
exec 3>say
echo step >&3
wait_for user.out "step: ok"
kill -STOP "$pserver"
until ! grep -h '^State:' "/proc/$pserver/task/"*/status | grep -qv '(stopped)'; do
	: # the signal reaches one thread after the other
done
echo close >&3
ends "$user" 30 trainer
kill -CONT "$pserver"
[ "$code" -eq 1 ] || fail "trainer: exit code $code, not 1"
says user.out "close: lost" "all steps before were answered"
says user.out "pserver 0 lane 0 (127.0.0.1:$port) did not acknowledge GOODBYE within 3.0 s"
