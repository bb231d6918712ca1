/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers that the job waits for and that are not admitted, because they were refused, or had
 * begun to connect and are gone: the members that wait are notified at once, and the job ends, but
 * only before its first step. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Just before, and just after, the time to join, from what happened less than half a second
 * ago. */
#define NEARLY_NS (2400 * WF_NS_PER_MS)
#define REST_NS (800 * WF_NS_PER_MS)

static void
play(uint32_t trainers, void (*script)(struct stage *stage))
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		stage_play(&(struct stage_opts){.trainers = trainers, .seed = seed}, script, NULL);
	}
}

/* A trainer with another setting; it is refused. */
static struct puppet *
come_wrong_to(struct stage *stage, uint32_t lane, uint32_t trainer, const char *setting)
{
	struct puppet *wrong = puppet_add(stage, trainer, lane);
	wrong->peer.hello.incarnation += 7000;
	wrong->peer.hello.job_digest ^= 1;
	(void)snprintf(wrong->peer.hello.options, sizeof(wrong->peer.hello.options), "%s", setting);
	puppet_connect(wrong);
	stage_settle(stage);
	CHECK(stage, wrong->peer.down && wrong->peer.welcome.refusal == WEFT_MISMATCH);
	return wrong;
}

static struct puppet *
come_wrong(struct stage *stage, uint32_t trainer, const char *setting)
{
	return come_wrong_to(stage, 0, trainer, setting);
}

static void
begin_with_zero(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_meet(zero);
	puppet_initialise(zero);
	stage_settle(stage);
	puppet_continue(zero, 1);
	stage_settle(stage);
}

static void
check_ended(struct stage *stage, const struct puppet *puppet, enum weft_status status,
	    const char *says)
{
	CHECK(stage, puppet->peer.aborted && puppet->peer.abort.status == status);
	CHECK_SAYS(stage, puppet->peer.abort.reason, "trainer 1 did not join within 3.0 s; ");
	CHECK_SAYS(stage, puppet->peer.abort.reason, says);
}

static void
refused_before_the_first_step(struct stage *stage)
{
	begin_with_zero(stage); /* it has pushed all of its first step, and waits */
	struct puppet *zero = &stage->puppet[0];
	CHECK(stage, zero->peer.absents == 0);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	CHECK(stage, zero->peer.absents == 1 && zero->peer.absent.trainer == 1);
	CHECK_SAYS(stage, zero->peer.absent.reason, "refused: trainer 1 on ");
	CHECK_SAYS(stage, zero->peer.absent.reason, "has learning_rate=0.125, trainer 0 on ");
	char text[2 * WF_REASON_BYTES];
	wf_waits_describe(stage->lane[0], WF_LANE_AWAITS_START, text, sizeof(text));
	CHECK_SAYS(stage, text, "waits for trainer 1 to come; trainer 1: refused: trainer 1 on ");
	stage_run(stage, NEARLY_NS);
	CHECK(stage, !zero->peer.aborted);
	stage_run(stage, REST_NS);
	check_ended(stage, zero, WEFT_MISMATCH, "; refused: trainer 1 on ");
	CHECK_SAYS(stage, zero->peer.abort.reason, "has learning_rate=0.125, trainer 0 on ");
}

static void
who_is_refused_before_the_first_step_is_named_and_ends_the_job(void **state)
{
	(void)state;
	play(2, refused_before_the_first_step);
}

static void
refused_again(struct stage *stage)
{
	begin_with_zero(stage);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	stage_run(stage, 2 * WF_NS_PER_S);
	(void)come_wrong(stage, 1, "learning_rate=0.25");
	CHECK_SAYS(stage, stage->puppet[0].peer.absent.reason, "learning_rate=0.25");
	stage_run(stage, WF_NS_PER_S);
	check_ended(stage, &stage->puppet[0], WEFT_MISMATCH, "has learning_rate=0.25, trainer 0");
}

static void
being_refused_again_gives_no_more_time(void **state)
{
	(void)state;
	play(2, refused_again);
}

/* The rest of the step that `zero` has pushed, and nobody ends the job any more. */
static void
come_right(struct stage *stage, struct puppet *zero, struct puppet *one)
{
	puppet_meet(one);
	CHECK(stage,
	      one->peer.up && zero->peer.absents == 2 && zero->peer.absent.reason[0] == '\0');
	CHECK(stage, one->peer.absents == 0);
	stage_run(stage, 4 * WF_NS_PER_S);
	CHECK(stage, !zero->peer.aborted && !one->peer.aborted);
	puppet_initialise(one);
	stage_settle(stage);
	puppet_continue(one, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
}

static void
refused_and_right(struct stage *stage)
{
	begin_with_zero(stage);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	stage_run(stage, NEARLY_NS);
	come_right(stage, &stage->puppet[0], puppet_add(stage, 1, 0));
}

static void
who_comes_right_in_time_is_refused_no_more(void **state)
{
	(void)state;
	play(2, refused_and_right);
}

/* Of three, one has not come when another is refused: it is told, too, and the job ends for both.
 */
static void
told_later(struct stage *stage)
{
	begin_with_zero(stage);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	struct puppet *two = puppet_add(stage, 2, 0);
	puppet_meet(two);
	CHECK(stage, two->peer.absents == 1 && two->peer.absent.trainer == 1);
	CHECK_SAYS(stage, two->peer.absent.reason, "learning_rate=0.125");
	CHECK(stage, stage->puppet[0].peer.absents == 1);
	stage_run(stage, NEARLY_NS + REST_NS);
	check_ended(stage, &stage->puppet[0], WEFT_MISMATCH, "learning_rate=0.125");
	check_ended(stage, two, WEFT_MISMATCH, "learning_rate=0.125");
}

/* Of two that are refused one comes right. */
static void
two_refused(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0];
	begin_with_zero(stage);
	(void)come_wrong(stage, 2, "learning_rate=0.25");
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	CHECK(stage, zero->peer.absents == 2 && zero->peer.absent.trainer == 2);
	puppet_meet(puppet_add(stage, 2, 0));
	CHECK(stage, zero->peer.absents == 3 && zero->peer.absent.trainer == 1);
	stage_run(stage, NEARLY_NS + REST_NS);
	check_ended(stage, zero, WEFT_MISMATCH, "has learning_rate=0.125, trainer 0");
}

static void
of_two_that_are_refused_the_other_one_is_still_waited_for(void **state)
{
	(void)state;
	play(3, two_refused);
}

/* All that waits for everybody waits for ever: the job ends, whatever has been applied. */
static void
refused_where_all_are_needed(struct stage *stage)
{
	begin_with_zero(stage);
	struct puppet *zero = &stage->puppet[0];
	CHECK(stage, zero->answers > stage->tensor[0].count / STAGE_SLICE_FLOATS); /* of w, too */
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	stage_run(stage, NEARLY_NS);
	CHECK(stage, !zero->peer.aborted);
	stage_run(stage, REST_NS);
	check_ended(stage, zero, WEFT_MISMATCH, "learning_rate=0.125");
}

static void
one_tensor_that_is_summed_is_enough_for_a_refusal_to_end_the_job(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2,
					.mode = WEFT_DENSE_ASYNC,
					.b_mode = WEFT_TENSOR_SYNC},
		   refused_where_all_are_needed, NULL);
}

/* Nothing is pushed on this lane, and trainer 1 has been to no other. */
static void
refused_where_no_steps_are(struct stage *stage)
{
	uint32_t lane = stage->opts.lanes - 1;
	const bool *ends = stage->arg;
	struct puppet *zero = puppet_add(stage, 0, lane);
	puppet_meet(zero);
	puppet_initialise(zero);
	stage_settle(stage);
	CHECK(stage, !stage->lane[lane]->job.has_steps);
	if (stage->opts.all_static) {
		puppet_reduce(zero, 1, 0, 0);
	}
	(void)come_wrong_to(stage, lane, 1, "learning_rate=0.125");
	CHECK(stage, zero->peer.absents == 1);
	stage_run(stage, NEARLY_NS);
	CHECK(stage, !zero->peer.aborted);
	stage_run(stage, *ends ? REST_NS : 10 * WF_NS_PER_S);
	if (*ends) {
		check_ended(stage, zero, WEFT_MISMATCH, "learning_rate=0.125");
	}
	CHECK(stage, zero->peer.aborted == *ends);
}

/* A slice of b and all of w on lane 0, the static tensor on lane 1. */
#define STATIC_ON_LANE_1 .lanes = 2, .w_count = 8

static void
a_lane_without_steps_ends_a_job_that_needs_all(void **state)
{
	(void)state;
	const bool ends = true;
	stage_play(&(struct stage_opts){.trainers = 2, STATIC_ON_LANE_1},
		   refused_where_no_steps_are, &ends);
	stage_play(&(struct stage_opts){.trainers = 2, .all_static = true},
		   refused_where_no_steps_are, &ends);
}

static void
a_lane_without_steps_leaves_the_end_of_others_to_them(void **state)
{
	(void)state;
	const bool ends = false;
	stage_play(&(struct stage_opts){.trainers = 2, STATIC_ON_LANE_1, .mode = WEFT_DENSE_ASYNC},
		   refused_where_no_steps_are, &ends);
	stage_play(&(struct stage_opts){.trainers = 2, .all_static = true, .has_tables = true},
		   refused_where_no_steps_are, &ends);
}

static void
who_comes_after_a_refusal_hears_of_it(void **state)
{
	(void)state;
	play(3, told_later);
}

/* Trainer 1 comes while the job is read, and is gone before it is. */
static void
held_and_gone(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, stage->lane[0]->newcomers.held_count == 1);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_send_job(zero);
	stage_settle(stage);
	bool is_gone = strstr(zero->peer.absent.reason, "had begun to connect and is gone: ");
	CHECK(stage, zero->peer.absents == 1 && zero->peer.absent.trainer == 1);
	if (!is_gone) {
		CHECK_SAYS(stage, zero->peer.absent.reason,
			   "has given up an attempt to connect and tries again: ");
	}
	if (stage->opts.seed % 2 == 0 || !is_gone) {
		puppet_grant(zero, 0);
		puppet_have(zero);
		puppet_initialise(zero);
		stage_settle(stage);
		puppet_continue(zero, 1);
		stage_run(stage, is_gone ? 0 : 100 * WF_NS_PER_S);
		come_right(stage, zero, one);
		return;
	}
	stage_run(stage, NEARLY_NS + REST_NS);
	CHECK(stage, !zero->peer.aborted); /* a lane that has refused it ends the job first */
	stage_run(stage, WF_REFUSAL_FIRST_NS);
	check_ended(stage, zero, WEFT_LOST, "had begun to connect and is gone: ");
}

/* The connection has gone when its hello is to be answered, and its DOWN, which says how, comes
 * later: it is this end that closes it, which is no loss. */
static void
gone_when_it_is_answered(struct stage *stage)
{
	struct wf_lane *lane = stage->lane[0];
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, lane->newcomers.held_count == 1);
	puppet_send_job(zero);
	stage_run(stage, stage->opts.seed * 20 * WF_NS_PER_US);
	if (lane->newcomers.held_count == 0) {
		return; /* it has been answered */
	}
	wf_transport_disconnect(lane->newcomers.held[0].conn, WF_DISCONNECT_NOW);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, lane->newcomers.held_count == 0 && zero->peer.absents > 0);
	CHECK_SAYS(stage, zero->peer.absent.reason, "has given up an attempt to connect");
	stage_run(stage, 100 * WF_NS_PER_S);
	CHECK(stage, !zero->peer.aborted);
}

static void
whose_attempt_is_over_when_it_is_answered_is_named_by_its_end(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed},
			   gone_when_it_is_answered, NULL);
	}
}

static void
who_had_begun_to_connect_and_is_gone_is_named_and_counted_the_same_way(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed}, held_and_gone, NULL);
	}
}

/* How its connection ended at some moment of an attempt, as the lane knows it. */
struct moments {
	unsigned unseen, lost, given_up;
};

/* Nobody waits for 300 s for who is lost, whatever the moment. Who closed its connection in good
 * order is alive and tries again: the first lane to count it as here was too early. */
static void
gone_at_any_moment(struct stage *stage)
{
	begin_with_zero(stage);
	struct moments *const *count = stage->arg;
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(one);
	stage_run(stage, stage->opts.seed * 100 * WF_NS_PER_US);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_run(stage, 2 * WF_NS_PER_S);
	const char *why = wf_absent_why(stage->lane[0], 1);
	bool given_up = strstr(why, "has given up an attempt to connect") != NULL;
	bool lost = !given_up && (stage->lane[0]->peers.all[1].state == WF_PEER_LOST || *why);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, zero->peer.aborted == lost);
	if (lost) {
		CHECK(stage, zero->peer.abort.status == WEFT_LOST);
		CHECK_SAYS(stage, zero->peer.abort.reason, "trainer 1");
	}
	if (given_up) {
		CHECK_SAYS(stage, zero->peer.absent.reason, "has given up an attempt to connect");
		stage_run(stage, 200 * WF_NS_PER_S);
		come_right(stage, zero, one);
	}
	(*count)->given_up += given_up ? 1 : 0;
	(*count)->lost += lost ? 1 : 0;
	(*count)->unseen += !given_up && !lost ? 1 : 0;
}

static void
a_trainer_that_is_gone_at_any_moment_after_its_hello_is_named(void **state)
{
	(void)state;
	struct moments seen = {0};
	struct moments *const count = &seen;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed}, gone_at_any_moment,
			   &count);
	}
	assert_true(seen.unseen > 5 && seen.lost > 5 && seen.given_up > 5);
}

/* It tries no more: the job ends when the time for all to connect is over, by its name. */
static void
given_up_for_good(struct stage *stage)
{
	begin_with_zero(stage);
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, one->peer.up && stage->lane[0]->peers.all[1].state == WF_PEER_UP);
	peer_disconnect(&one->peer, WF_DISCONNECT_DRAIN);
	stage_run(stage, 290 * WF_NS_PER_S);
	CHECK(stage, !zero->peer.aborted);
	stage_run(stage, 15 * WF_NS_PER_S);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_TIMEOUT);
	CHECK_SAYS(stage, zero->peer.abort.reason,
		   "trainer 1 of 2 did not come within 300 s; host ");
	CHECK_SAYS(stage, zero->peer.abort.reason, "has given up an attempt to connect");
}

static void
who_gives_up_an_attempt_has_as_long_as_everybody_to_connect(void **state)
{
	(void)state;
	play(2, given_up_for_good);
}

/* A refusal after it limits the time. */
static void
refused_and_given_up(struct stage *stage)
{
	begin_with_zero(stage);
	struct puppet *one = puppet_add(stage, 1, 0);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, one->peer.up && stage->puppet[0].peer.absent.reason[0] == '\0');
	peer_disconnect(&one->peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	(void)come_wrong(stage, 1, "learning_rate=0.25");
	stage_run(stage, NEARLY_NS + REST_NS);
	check_ended(stage, &stage->puppet[0], WEFT_MISMATCH, "learning_rate=0.25");
}

static void
who_gave_up_an_attempt_and_is_then_refused_ends_the_job_soon(void **state)
{
	(void)state;
	play(2, refused_and_given_up);
}

/* In a job that runs without it, for its pushes are applied as they come, a trainer that was never
 * here is refused: a stranger, perhaps. It is named, and ends nothing before its time. */
static void
refused_in_a_job_that_runs(struct stage *stage)
{
	begin_with_zero(stage);
	struct puppet *zero = &stage->puppet[0];
	CHECK(stage, zero->answers > 0);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	CHECK(stage, zero->peer.absents == 1);
	stage_run(stage, 60 * WF_NS_PER_S);
	CHECK(stage, !zero->peer.aborted);
	stage_run(stage, 260 * WF_NS_PER_S);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_TIMEOUT);
	CHECK_SAYS(stage, zero->peer.abort.reason,
		   "trainer 1 of 2 did not come within 300 s; refused: ");
	CHECK_SAYS(stage, zero->peer.abort.reason, "has learning_rate=0.125");
}

/* It was refused before the job ran, and time passes. */
static void
refused_before_the_job_runs(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_meet(zero);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	CHECK(stage, zero->peer.absents == 1);
	puppet_initialise(zero);
	stage_settle(stage);
	puppet_continue(zero, 1);
	stage_run(stage, 60 * WF_NS_PER_S);
	CHECK(stage, zero->answers > 0 && !zero->peer.aborted);
}

static void
nobody_who_is_refused_ends_a_job_that_runs(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2, .mode = WEFT_DENSE_ASYNC},
		   refused_before_the_job_runs, NULL);
	stage_play(&(struct stage_opts){.trainers = 2, .mode = WEFT_DENSE_ASYNC},
		   refused_in_a_job_that_runs, NULL);
}

/* Another process wants the place of one who is here, or of nobody; and another job's comes. */
static void
refused_for_ids_that_nobody_waits_for(struct stage *stage)
{
	begin_with_zero(stage);
	struct puppet *zero = &stage->puppet[0];
	(void)come_wrong(stage, 0, "learning_rate=0.125");
	struct puppet *other = puppet_add(stage, 1, 0);
	other->peer.hello.trainer_count = 5;
	other->peer.hello.trainer_id = 4;
	puppet_connect(other);
	stage_settle(stage);
	CHECK(stage, other->peer.down && other->peer.welcome.refusal == WEFT_MISMATCH);
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, zero->peer.absents == 0 && !zero->peer.aborted);
	puppet_meet(puppet_add(stage, 1, 0));
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, zero->peer.absents == 0 && !zero->peer.aborted);
}

static void
nobody_who_is_not_waited_for_ends_a_job(void **state)
{
	(void)state;
	play(2, refused_for_ids_that_nobody_waits_for);
}

/* Refused for more ids than are remembered: the first ones end the job. */
static void
refused_for_many_ids(struct stage *stage)
{
	begin_with_zero(stage);
	struct puppet *odd = puppet_add(stage, 1, 0);
	odd->peer.hello.incarnation = 9;
	odd->peer.hello.job_digest ^= 1;
	for (uint32_t t = 1; t <= 2 * WF_ABSENTEES_MAX && !script_failed(&stage->script); t++) {
		odd->peer.hello.trainer_id = t;
		odd->peer.down = false;
		puppet_connect(odd);
		stage_settle(stage);
		CHECK(stage, odd->peer.down && odd->peer.welcome.refusal == WEFT_MISMATCH);
	}
	CHECK(stage, stage->lane[0]->waits.absent.count == WF_ABSENTEES_MAX);
	stage_run(stage, 3 * WF_NS_PER_S);
	check_ended(stage, &stage->puppet[0], WEFT_MISMATCH, "refused: trainer 1 on ");
}

static void
as_many_are_remembered_as_there_is_room_for(void **state)
{
	(void)state;
	play(40, refused_for_many_ids);
}

/* What was known of a failed job's trainers is forgotten with it. */
static void
next_job(struct stage *stage)
{
	struct wf_lane *lane = stage->lane[0];
	begin_with_zero(stage);
	(void)come_wrong(stage, 1, "learning_rate=0.125");
	stage_run(stage, 6 * WF_NS_PER_S);
	CHECK(stage, stage->puppet[0].peer.aborted && wf_lane_job_state(lane) == WF_LANE_FAILED);
	if (script_failed(&stage->script)) {
		return;
	}
	wf_lane_reset(lane);
	struct puppet *zero = puppet_add(stage, 0, 0);
	zero->peer.hello.incarnation += 500;
	puppet_meet(zero);
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, zero->peer.absents == 0 && !zero->peer.aborted);
}

static void
the_next_job_knows_nothing_of_it(void **state)
{
	(void)state;
	play(2, next_job);
}

/* `steps`: what both have done before trainer 1 goes. */
static void
lost(struct stage *stage)
{
	const uint64_t *steps = stage->arg;
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	puppets_begin(stage);
	for (uint64_t step = 1; step <= *steps; step++) {
		puppet_continue(zero, step);
		puppet_continue(one, step);
		stage_settle(stage);
	}
	peer_disconnect(&one->peer, WF_DISCONNECT_DRAIN);
	stage_run(stage, NEARLY_NS + REST_NS);
	CHECK(stage, zero->peer.aborted == (*steps > 0));
	stage_run(stage, WF_NS_PER_S / 2);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, zero->peer.abort.reason, "not back within 3.0 s");
}

/* It may have been refused by another lane, which then ends the job with that reason. */
static void
who_is_lost_before_the_first_step_ends_the_job_after_who_is_refused(void **state)
{
	(void)state;
	for (uint64_t steps = 0; steps <= 1; steps++) {
		stage_play(&(struct stage_opts){.trainers = 2}, lost, &steps);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_refused_before_the_first_step_is_named_and_ends_the_job),
		cmocka_unit_test(being_refused_again_gives_no_more_time),
		cmocka_unit_test(who_comes_right_in_time_is_refused_no_more),
		cmocka_unit_test(who_comes_after_a_refusal_hears_of_it),
		cmocka_unit_test(of_two_that_are_refused_the_other_one_is_still_waited_for),
		cmocka_unit_test(one_tensor_that_is_summed_is_enough_for_a_refusal_to_end_the_job),
		cmocka_unit_test(a_lane_without_steps_ends_a_job_that_needs_all),
		cmocka_unit_test(a_lane_without_steps_leaves_the_end_of_others_to_them),
		cmocka_unit_test(
			who_had_begun_to_connect_and_is_gone_is_named_and_counted_the_same_way),
		cmocka_unit_test(whose_attempt_is_over_when_it_is_answered_is_named_by_its_end),
		cmocka_unit_test(a_trainer_that_is_gone_at_any_moment_after_its_hello_is_named),
		cmocka_unit_test(who_gives_up_an_attempt_has_as_long_as_everybody_to_connect),
		cmocka_unit_test(who_gave_up_an_attempt_and_is_then_refused_ends_the_job_soon),
		cmocka_unit_test(
			who_is_lost_before_the_first_step_ends_the_job_after_who_is_refused),
		cmocka_unit_test(nobody_who_is_refused_ends_a_job_that_runs),
		cmocka_unit_test(nobody_who_is_not_waited_for_ends_a_job),
		cmocka_unit_test(as_many_are_remembered_as_there_is_room_for),
		cmocka_unit_test(the_next_job_knows_nothing_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
