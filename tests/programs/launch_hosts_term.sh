#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGTERM for weft launch alone, of a job on two hosts: it reaches every process there, and each may
# save within --term_grace; a process that ignores it is killed after that, and named. A script
# stands in for ssh, as in launch_hosts.sh.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
cat >ssh.sh <<'SH'
#!/bin/sh
shift # HOST
setsid env TMPDIR="${0%/*}" sh -c "$*" | cat
SH
chmod +x ssh.sh
mlp="mlp --slice_bytes=256 --learning_rate=0.01 --seed=5 --optimizer=adam"

# on_hosts [options]: weft launch with two trainers and two pservers, one of each on a host.
on_hosts() {
	exec "$WEFT" launch --hosts=127.0.0.1,127.0.0.2 --ssh="$work/ssh.sh" --remote_weft="$WEFT" \
		--port="$port" "$@"
}
# ---- trainer 0 saves; the others stay until it has ----
# shellcheck disable=SC2086
start save on_hosts --save_on_term --term_grace=20m -- train $mlp --num_passes=1000000 \
	--saving_period=1000000 --save_dir="$work/saved"
job=$last_pid
wait_for save.out "pass 1 "
children=$(sed -n 's/^[a-z]* [0-9]* | pid \([0-9]*\) on .*/\1/p' save.err)
[ "$(echo "$children" | wc -w)" -eq 4 ] || fail "not four processes: $children"
# has_term PID: SIGTERM, number 15, is pending for the process, which is stopped.
has_term() {
	mask=$(sed -n 's/^ShdPnd:[[:space:]]*//p' "/proc/$1/status")
	[ $(((0x$mask >> 14) & 1)) -eq 1 ]
}
# All threads of the processes are stopped; before that one of them might still handle the signal.
all_stopped() {
	for pid in $children; do
		for status in /proc/"$pid"/task/*/status; do
			grep -q '^State:[[:space:]]*T' "$status" || return 1
		done
	done
}
# shellcheck disable=SC2086
kill -STOP $children
until_true 60 all_stopped || fail "SIGSTOP has not stopped the processes"
kill -TERM "$job"
for pid in $children; do
	until_true 60 has_term "$pid" || fail "SIGTERM has not reached process $pid"
done
# shellcheck disable=SC2086
kill -CONT $children
ends "$job" 120 "weft launch"
[ "$code" -eq 143 ] || fail "SIGTERM: exit code $code"
says save.err "weft train: stopped by SIGTERM: saved in pass" "; all processes have ended"
says_not save.err "has not ended within"
at=$(sed -n 's/.*; continue with --start_pass=\([0-9]*\) --start_batch=\([0-9]*\)$/\1 \2/p' save.err | head -n 1)
passes=$((${at% *} + 2))
# shellcheck disable=SC2086
expect 0 "$WEFT" train $mlp --sequential --num_gradient_servers=2 --num_passes=$passes
whole=$(digest_of last.out)
# shellcheck disable=SC2086
expect 0 "$WEFT" train $mlp --sequential --num_gradient_servers=2 --num_passes=$passes \
	--save_dir=saved --start_pass="${at% *}" --start_batch="${at#* }"
[ "$(digest_of last.out)" = "$whole" ] || fail "continued: another digest"

# ---- a program on every host gets SIGTERM; one of them ignores it ----
cat >program.sh <<'SH'
#!/bin/sh
if [ "$WEFT_RANK" = 1 ]; then
	trap '' TERM
else
	trap 'echo saved >"${0%/*}/term-$WEFT_RANK"; exit 0' TERM
fi
echo "ready $WEFT_RANK" >&2
while :; do
	sleep 1000 &
	wait
done
SH
chmod +x program.sh
start ignored on_hosts --trainers=4 --save_on_term --term_grace=1s -- "$work/program.sh"
job=$last_pid
for rank in 0 1 2 3; do
	wait_for ignored.err "trainer $rank | ready $rank"
done
children=$(sed -n 's/^[a-z]* [0-9]* | pid \([0-9]*\) on .*/\1/p' ignored.err)
deaf=$(sed -n 's/^trainer 1 | pid \([0-9]*\) on 127.0.0.2:.*/\1/p' ignored.err)
kill -TERM "$job"
ends "$job" 120 "weft launch"
[ "$code" -eq 143 ] || fail "SIGTERM with a trainer that ignores it: exit code $code"
for rank in 0 2 3; do
	has "term-$rank" saved || fail "trainer $rank has not had SIGTERM"
done
# 5 s and --term_grace.
[ "$(grep 'has not ended' ignored.err)" = \
	"weft launch: trainer 1 (pid $deaf on 127.0.0.2) has not ended within 6.000 s of SIGTERM and is killed" ] ||
	fail "named: $(grep 'has not ended' ignored.err)"
all_gone() {
	for pid in $children; do
		! alive "$pid" || return 1
	done
}
until_true 60 all_gone || fail "a process is left"
