/* SPDX-License-Identifier: Apache-2.0 */
/* The round of clipping by the norm, as one lane sees it, with scripted messages: who receives
 * what, what is waited for, and sums that no valid trainer sends. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct stage_opts opts = {.trainers = 2, .clip_norm = 1e30};

/* All of step 1 is here, and each trainer has heard what it comes to. */
static void
begin(struct stage *stage)
{
	puppets_begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_continue(&stage->puppet[t], 1);
	}
	stage_settle(stage);
	for (uint32_t t = 0; t < 2; t++) {
		const struct puppet *p = &stage->puppet[t];
		CHECK(stage, p->norms == 1 && p->norm.step == 1);
		CHECK(stage,
		      memcmp(p->norm.word, stage->puppet[0].norm.word, sizeof(p->norm.word)) == 0);
	}
}

static uint64_t
applied(const struct stage *stage)
{
	return wf_stats_get(wf_lane_stats(stage->lane[0]), WF_LANE_STEP_APPLIED_COUNT);
}

/* The sum over all lanes: what the only lane said. */
static void
say(struct puppet *puppet, const struct wf_msg_norm *norm)
{
	struct wf_msg out;
	wf_msg_norm_encode(norm, &out);
	peer_send(&puppet->peer, &out);
	stage_settle(puppet->stage);
}

static void
break_the_path(struct stage *stage)
{
	begin(stage);
	struct puppet *one = &stage->puppet[1];
	CHECK(stage, applied(stage) == 0);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_meet(one);
	stage_settle(stage);
	CHECK(stage, one->norms == 2 && one->norm.step == 1 && applied(stage) == 0);
	wf_transport_disconnect(stage->puppet[0].peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	say(one, &one->norm); /* one is enough, whoever else is there */
	stage_expect_step(stage, 1);
	CHECK(stage, applied(stage) == 1 && puppet_values_are_right(one));
	puppet_meet(&stage->puppet[0]);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].norms == 1); /* it is over */
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
}

/* Nobody is to blame that the other lanes are not as far. */
static void
wait_for_the_norm(struct stage *stage)
{
	begin(stage);
	stage_check_waits(stage, WF_LANE_AWAITS_STEP,
			  "step 1 has all its gradients here, and waits for other lanes");
	say(&stage->puppet[0], &stage->puppet[0].norm);
	CHECK(stage, applied(stage) == 1);
}

static void
a_step_that_lacks_only_the_norm_waits_for_no_trainer(void **state)
{
	(void)state;
	stage_play(&opts, wait_for_the_norm, NULL);
}

static void
a_path_that_breaks_in_between_is_told_again_and_the_step_is_applied_once(void **state)
{
	(void)state;
	stage_play(&opts, break_the_path, NULL);
}

/* The greatest number there is: the step comes to nothing, and nothing is NaN. */
static void
exaggerate(struct stage *stage)
{
	begin(stage);
	struct wf_msg_norm norm = {.step = 1};
	memset(norm.word, 0xff, sizeof(norm.word));
	say(&stage->puppet[0], &norm);
	CHECK(stage, applied(stage) == 1);
	for (uint32_t i = 0; i + 1 < stage_slice_count(stage, 0); i++) {
		const float *value = puppet_values(&stage->puppet[1], i);
		CHECK(stage, isfinite(value[0]) && fabsf(value[0] - stage->value[i][0]) < 1e-4f);
	}
	norm.word[0] = 0;
	say(&stage->puppet[1], &norm); /* of a step that is over: nothing */
	CHECK(stage, !stage->puppet[0].peer.down && !stage->puppet[1].peer.down);
	norm.step = 2;
	say(&stage->puppet[1], &norm); /* before anything of the step is there */
	CHECK(stage, stage->puppet[1].peer.down && !stage->puppet[0].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[1].lost.why, "NORM: of step 2");
}

static void
no_sum_does_more_than_shorten_a_step(void **state)
{
	(void)state;
	stage_play(&opts, exaggerate, NULL);
}

/* All slices are applied at once: w has three, then b has one. */
static void
answer_in_order(struct stage *stage)
{
	const uint32_t *order = stage->arg;
	begin(stage);
	uint32_t before = stage->puppet[1].answers;
	say(&stage->puppet[0], &stage->puppet[0].norm);
	CHECK(stage, applied(stage) == 1 && stage->puppet[1].answers == before + 4);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK(stage, stage->puppet[1].answered[before + i] == order[i]);
	}
}

static void
answers_of_higher_priorities_go_first(void **state)
{
	(void)state;
	static const uint32_t plain[] = {0, 1, 2, 3};
	static const uint32_t b_first[] = {3, 0, 1, 2};
	struct stage_opts ranked = opts;
	ranked.priority_of_b = -1;
	stage_play(&opts, answer_in_order, plain);
	stage_play(&ranked, answer_in_order, plain);
	ranked.priority_of_b = 1;
	stage_play(&ranked, answer_in_order, b_first);
}

/* Who takes no part in the step has no say in it. */
static void
meddle(struct stage *stage)
{
	begin(stage);
	say(&stage->puppet[0], &stage->puppet[0].norm);
	puppet_say_out(&stage->puppet[1], 2, 0);
	puppet_continue(&stage->puppet[0], 2);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].norms == 2 && stage->puppet[1].norms == 1);
	say(&stage->puppet[1], &stage->puppet[0].norm);
	CHECK(stage, stage->puppet[1].peer.down && applied(stage) == 1);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[1].lost.why, "NORM: of step 2");
	say(&stage->puppet[0], &stage->puppet[0].norm);
	CHECK(stage, applied(stage) == 2);
}

static void
who_is_out_of_data_is_not_asked_and_not_heard(void **state)
{
	(void)state;
	stage_play(&opts, meddle, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_path_that_breaks_in_between_is_told_again_and_the_step_is_applied_once),
		cmocka_unit_test(a_step_that_lacks_only_the_norm_waits_for_no_trainer),
		cmocka_unit_test(no_sum_does_more_than_shorten_a_step),
		cmocka_unit_test(answers_of_higher_priorities_go_first),
		cmocka_unit_test(who_is_out_of_data_is_not_asked_and_not_heard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
