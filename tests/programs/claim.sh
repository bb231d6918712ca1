#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A hello that claims 60,000 trainers is refused unless the pserver was started for so many, and
# makes it allocate no memory for them.
. "${0%/*}/lib.sh"
: "${STRANGER:?the uninvited guest}"

port=$(free_ports)

# resident PID: its memory, KiB.
resident() {
	sed -n 's/^VmRSS: *\([0-9]*\) kB/\1/p' "/proc/$1/status"
}

# claimed OPTION...: what a pserver grows by, KiB, when a stranger says hello as one of 60,000.
claimed() {
	start pserver "$WEFT" pserver --port="$port" --num_gradient_servers=0 "$@"
	pserver=$last_pid
	wait_for pserver.err "pserver listens on"
	before=$(resident "$pserver")
	start claim "$STRANGER" "$port" hello
	claim=$last_pid
	until_true 60 test -s claim.out || fail "nothing was answered"
	grown=$(($(resident "$pserver") - before))
	ends "$claim" 90 stranger
	kill -TERM "$pserver"
	ends "$pserver" 20 pserver
}
claimed
says claim.out "takes up to 1024" "--num_gradient_servers=60000, or with a larger --max_trainers"
claimed --max_trainers=65536
says pserver.err "trainer 59998 (host stranger, pid 0) is here"
[ "$grown" -lt 16384 ] || fail "one hello cost $grown KiB"
