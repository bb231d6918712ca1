#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --stats_period: a line of each lane and each trainer in each period, and one about the whole job
# at its end, with the documented fields; no line without the option.
. "${0%/*}/lib.sh"
needs_training

lane_fields="steps steps_per_s received_mb_per_s sent_mb_per_s messages_received messages_sent
	puts_received puts_sent slices_applied slots_used slices_parked parked_bytes waits_trainer
	waits_lent waits_post poll_percent apply_percent park_percent idle_percent step_p50_us
	step_p99_us reconnects refused strangers"
trainer_fields="steps steps_per_s received_mb_per_s sent_mb_per_s messages_received messages_sent
	puts_received puts_sent slices_answered slices_pulled waits_slot waits_post poll_percent
	idle_percent away_percent exchange_p50_us exchange_p99_us reconnects"

# has_fields FILE TEXT FIELD...: the first line with the text has each field and a number.
has_fields() {
	line=$(grep -F -e "$2" "$1" | head -n 1)
	[ -n "$line" ] || fail "'$2' is not in $1"
	shift 2
	for field; do
		echo "$line" | grep -Eq " $field [0-9]+(\.[0-9]+)?( |\$)" || fail "no $field in: $line"
	done
}

# value FILE TEXT FIELD: prints the value of the field in the last such line.
value() {
	grep -F -e "$2" "$1" | tail -n 1 | sed -n "s/.* $3 \([0-9.]*\).*/\1/p"
}

# Lines come while the job waits for its second trainer.
port=$(free_ports)
start pserver "$WEFT" pserver --port="$port" --ports_num=2 --once --num_gradient_servers=2 \
	--stats_period=1s
pserver=$last_pid
start trainer_0 "$WEFT" train linear --num_passes=2 --trainer_id=0 --num_gradient_servers=2 \
	--ports_num=2 --slice_bytes=64 --pservers=127.0.0.1:"$port" --stats_period=1s
trainer_0=$last_pid
for line in "lane 0: stats of " "lane 1: stats of "; do
	wait_for pserver.err "$line"
	# shellcheck disable=SC2086
	has_fields pserver.err "$line" $lane_fields
done
wait_for trainer_0.err "trainer 0: stats of "
# shellcheck disable=SC2086
has_fields trainer_0.err "trainer 0: stats of " $trainer_fields
start trainer_1 "$WEFT" train linear --num_passes=2 --trainer_id=1 --num_gradient_servers=2 \
	--ports_num=2 --slice_bytes=64 --pservers=127.0.0.1:"$port"
trainer_1=$last_pid
ends "$trainer_0" 60 "trainer 0"
[ "$code" -eq 0 ] || fail "trainer 0: exit code $code"
ends "$trainer_1" 60 "trainer 1"
[ "$code" -eq 0 ] || fail "trainer 1: exit code $code"
ends "$pserver" 60 pserver
[ "$code" -eq 0 ] || fail "pserver: exit code $code"
says_not trainer_1.err "stats of"

# One line about the whole job for each: two steps, and each slice of each step was pushed by two
# trainers.
for who in "lane 0" "lane 1"; do
	[ "$(grep -cF "$who: stats of the job, " pserver.err)" -eq 1 ] || fail "$who: the job"
	# shellcheck disable=SC2086
	has_fields pserver.err "$who: stats of the job, " $lane_fields
	[ "$(value pserver.err "$who: stats of the job, " steps)" -eq 2 ] || fail "$who: steps"
done
[ "$(grep -cF "trainer 0: stats of the session, " trainer_0.err)" -eq 1 ] || fail "the session"
[ "$(value trainer_0.err "stats of the session, " steps)" -eq 2 ] || fail "trainer 0: steps"
answered=$(value trainer_0.err "stats of the session, " slices_answered)
sent=$(value trainer_0.err "stats of the session, " puts_sent)
[ "$answered" -gt 0 ] && [ "$answered" -eq "$sent" ] || fail "sent $sent, answered $answered"

# launch passes the option to both sides; without it there is no line. Trainer 0's line names the
# trainer that was waited for.
expect 0 "$WEFT" launch --local --port="$port" --stats_period=60s --trainers=2 -- train linear \
	--num_passes=1 --batch_size=50
says last.err "lane 0: stats of the job, " "trainer 0: stats of the session, " \
	"pass 0: stragglers: lane_steps " "pass 0: straggler trainer 0: last " \
	"pass 0: straggler trainer 1: last "
says_not last.err "lag of trainer"
expect 0 "$WEFT" launch --local --port="$port" --stats_period=60s --trainers=2 --ports_num=2 -- \
	train linear --num_passes=2 --dense_mode=async
for pass in 0 1; do
	for trainer in 0 1; do
		has_fields last.err "pass $pass: lag of trainer $trainer: " slices_applied \
			slices_discarded lag_mean lag_max_of_job
	done
done
says_not last.err "straggler trainer"
expect 0 "$WEFT" launch --local --port="$port" -- train linear --num_passes=1
says_not last.err "stats of"
expect 64 "$WEFT" pserver --stats_period=often
says last.err "stats_period"
