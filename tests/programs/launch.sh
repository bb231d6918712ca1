#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch runs a job to its end: trainer 0's result lines on stdout as they are, all others with
# the name of the process on stderr, and each process's lines in a file of its own.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
expect 0 env PADDLE_INIT_PSERVERS=192.0.2.1 PADDLE_INIT_TRAINER_ID=9 "$WEFT" launch --local \
	--pservers=2 --trainers=2 --ports_num=2 --port="$port" --log_dir=logs --seed=3 \
	-- train linear --num_passes=3
[ "$(grep -c '^pass [0-9]* cost [^ ]* test [^ ]* digest [0-9a-f]\{16\}$' last.out)" -eq 3 ] ||
	fail "not three result lines"
[ "$(wc -l <last.out)" -eq 3 ] || fail "more than result lines on stdout"
says last.err "pserver 0 | " "pserver 1 | " "trainer 0 | " "trainer 1 | " \
	"PADDLE_INIT_PSERVERS is not used"
if grep -qv -e '^pserver [01] | ' -e '^trainer [01] | ' -e '^weft launch: ' last.err; then
	fail "a line without a name"
fi
for name in pserver-0 pserver-1 trainer-0 trainer-1; do
	[ -s "logs/$name.log" ] || fail "logs/$name.log is missing or empty"
done
grep -q '^pass 2 ' logs/trainer-0.log || fail "the result lines are not filed"
if grep -q ' | ' logs/pserver-0.log; then
	fail "filed lines have a name before them"
fi
esc=$(printf '\033')
says_not last.err "$esc"
expect 0 env NO_COLOR=1 "$WEFT" launch --local --port="$port" --color=always -- train linear \
	--num_passes=1
says last.err "${esc}["

# Children get no variable that would win over their file's settings, even if they have more threads
# than there are cores.
cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
start job taskset -c "$cpu" "$WEFT" launch --local --port="$port" -- train linear --num_passes=1000000
job=$last_pid
wait_for job.out "pass 0 "
pids=$(sed -n 's/^[a-z]* 0 | pid \([0-9]*\): .*/\1/p' job.err)
[ "$(echo "$pids" | wc -l)" -eq 2 ] || fail "not two children: $pids"
for pid in $pids; do
	tr '\0' '\n' <"/proc/$pid/environ" >environ.out
	says environ.out "PATH="
	says_not environ.out "WEFT_SPIN="
done
trainer=$(sed -n 's/^trainer 0 | pid \([0-9]*\):.*/\1/p' job.err)
[ "$(cat "/proc/$trainer/comm")" = "trainer 0" ] || fail "comm: $(cat "/proc/$trainer/comm")"
kill -TERM "$job"
ends "$job" 30 "weft launch"
