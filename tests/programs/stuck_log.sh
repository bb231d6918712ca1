#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A log that nobody reads blocks no process: with stderr in a full pipe a pserver refuses thousands
# of hellos, a job runs to its end, and SIGTERM ends the pserver. What is left of the log is written
# when the pipe is read again. The same holds for a trainer, and for a program's last line.
. "${0%/*}/lib.sh"
needs_training
: "${STRANGER:?the uninvited guest}"

# stuck NAME: a pipe full of blanks, which nobody reads; its reading end is descriptor 4.
stuck() {
	mkfifo "$1"
	exec 3<>"$1"
	exec 4<"$1"
	head -c 65536 /dev/zero | tr '\\0' ' ' >&3
}

answers() {
	"$STRANGER" "$port" leave 2>/dev/null
}

port=$(free_ports)
stuck pserver.err
start pserver "$WEFT" pserver --port="$port" --num_gradient_servers=1 3>&- 4>&-
pserver=$last_pid
exec 3>&-
until_true 60 answers || fail "the pserver does not listen"
expect 0 "$STRANGER" "$port" hello 3000
expect 0 "$WEFT" train linear --pservers=127.0.0.1:"$port" --num_passes=3
job=$(digest_of last.out)
expect 0 "$WEFT" train linear --sequential --num_passes=3
[ "$(digest_of last.out)" = "$job" ] || fail "another digest than without a stuck log"
expect 0 "$STRANGER" "$port" hello 3000
kill -TERM "$pserver"
ends "$pserver" 30 "pserver with a log that nobody reads"
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
exec 4<&-
rm pserver.err

# The same, but the pipe is read again in the end.
stuck pserver.err
start pserver "$WEFT" pserver --port="$port" --num_gradient_servers=1 3>&- 4>&-
pserver=$last_pid
exec 3>&-
until_true 60 answers || fail "the pserver does not listen"
expect 0 "$STRANGER" "$port" hello 3000
cat <&4 >read.err &
reader=$!
started="$started $reader"
wait_for read.err "pserver listens on"
kill -TERM "$pserver"
ends "$pserver" 30 "pserver whose log is read again"
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
ends "$reader" 30 "who reads the log"
exec 4<&-
rm pserver.err
says read.err "refused a trainer: trainer 59998 has num_gradient_servers 60000, this pserver has 1" \
	"more connections were refused or closed than the log names"
refused=$(grep -c "refused a trainer" read.err)
named=$(sed -n 's/.*lane 0: \([0-9]*\) more connections were refused.*/\1/p' read.err |
	awk '{ sum += $1 } END { print sum + 0 }')
# The connection that checked whether the pserver listens may be counted, too.
sum=$((refused + named))
[ "$sum" -eq 3000 ] || [ "$sum" -eq 3001 ] || fail "$refused hellos named and $named counted, of 3000"
says_not read.err "lines of the log were dropped"

# Results do not wait for the log, nor does an error at the end.
stuck train.err
start train "$WEFT" train linear --sequential --num_passes=40 --log_period=1 3>&- 4>&-
ends "$last_pid" 60 "trainer with a log that nobody reads"
[ "$code" -eq 0 ] || fail "trainer: exit code $code"
says train.out "pass 39 "
start train "$WEFT" train linear --sequential --num_passes=40 --data=nowhere.csv 3>&- 4>&-
ends "$last_pid" 60 "trainer that cannot say why"
[ "$code" -ne 0 ] || fail "no data, and exit code 0"
exec 3>&- 4<&-
rm train.err

# Without any stderr: its number is not given to a socket.
"$WEFT" train linear --sequential --num_passes=3 2>&- >last.out || fail "exit code $? without stderr"
[ "$(digest_of last.out)" = "$job" ] || fail "another digest without stderr"
