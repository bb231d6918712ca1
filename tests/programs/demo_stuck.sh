#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# If nobody reads the stdout of weft demo the job goes on, and SIGTERM ends all of it.
. "${0%/*}/lib.sh"
needs_training

mkfifo demo.out
exec 3<>demo.out
exec 4<demo.out
head -c 61440 /dev/zero | tr '\\0' ' ' >&3 # its first lines fit, a line of passes is one in a hundred

is_full() {
	python3 - <<'END'
import os, select
end = select.poll()
end.register(os.open("demo.out", os.O_WRONLY | os.O_NONBLOCK), select.POLLOUT)
raise SystemExit(1 if end.poll(0) else 0)
END
}

lines() {
	wc -l <logs/trainer-0.log
}

goes_on() {
	[ "$(lines)" -gt "$1" ]
}

start demo "$WEFT" demo linear --num_passes=100000000 --log_dir=logs 3>&- 4>&-
demo=$last_pid
exec 3>&-
until_true 120 is_full || fail "the demo fills no pipe"
wait_for logs/trainer-0.log "pass "
before=$(lines)
until_true 120 goes_on "$((before + 10000))" || fail "the job waits for the reader of the demo's lines"
kill -TERM "$demo"
ends "$demo" 30 "demo with a stdout that nobody reads"
[ "$code" -eq 143 ] || fail "demo: exit code $code"
exec 4<&-
rm demo.out
