/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that no STEP announces: the first PUT of a step does, with the samples and in the pass of
 * the step before. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
push_all(struct puppet *puppet, uint64_t step)
{
	struct stage *stage = puppet->stage;
	for (uint32_t i = 0; i < stage_slice_count(stage, 0); i++) {
		if (!stage_is_static(stage, 0, i)) {
			puppet_push(puppet, i, step);
		}
	}
}

static void
expect(struct stage *stage, uint64_t step)
{
	stage_settle(stage);
	stage_expect_step(stage, step);
	for (uint32_t i = 0; i < stage->puppet_count; i++) {
		CHECK(stage, puppet_values_are_right(&stage->puppet[i]));
	}
	CHECK(stage,
	      wf_stats_get(wf_lane_stats(stage->lane[0]), WF_LANE_STEP_APPLIED_COUNT) == step);
}

/* Step 1 is announced by all, later steps by one trainer each. Samples differ by trainer. */
static void
announce_some(struct stage *stage)
{
	puppets_begin(stage);
	for (uint64_t step = 1; step <= 6; step++) {
		for (uint32_t i = 0; i < stage->puppet_count; i++) {
			struct puppet *puppet = &stage->puppet[i];
			if (step == 1 || (step + i) % 3 == 0) {
				puppet_say_step(puppet, step, 0);
			}
			push_all(puppet, step);
		}
		expect(stage, step);
	}
}

static void
steps_that_puts_announce_give_the_same_values(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct stage_opts opts = {.seed = seed, .trainers = 3};
		stage_play(&opts, announce_some, NULL);
	}
}

/* The PUT counts the trainer in: the lane waits for the other one, and not for it. */
static void
put_one(struct stage *stage)
{
	puppets_begin(stage);
	for (uint32_t i = 0; i < 2; i++) {
		puppet_continue(&stage->puppet[i], 1);
	}
	expect(stage, 1);
	puppet_push(&stage->puppet[1], 0, 2);
	stage_settle(stage);
	const struct wf_order *order = &stage->lane[0]->order;
	CHECK(stage, order->sum.heard == 1 && order->sum.samples == stage_samples(1));
	stage_check_waits(stage, WF_LANE_AWAITS_STEP, "step 2 waits for trainer 0");
}

static void
a_put_counts_its_trainer_in(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, put_one, NULL);
}

/* A new path begins with STEP, also for a step that was announced by a PUT on the old one. */
static void
break_the_path(struct stage *stage)
{
	puppets_begin(stage);
	struct puppet *one = &stage->puppet[1];
	for (uint32_t i = 0; i < 2; i++) {
		puppet_continue(&stage->puppet[i], 1);
	}
	expect(stage, 1);
	puppet_push(one, 0, 2);
	stage_settle(stage);
	peer_disconnect(&one->peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	puppet_meet(one);
	CHECK(stage, one->peer.steps.step == 2); /* RESUME: the lane has counted it */
	puppet_say_step(one, 2, 0);
	for (uint32_t i = 1; i < stage_slice_count(stage, 0); i++) {
		if (!stage_is_static(stage, 0, i)) {
			puppet_push(one, i, 2);
		}
	}
	push_all(&stage->puppet[0], 2);
	expect(stage, 2);
	push_all(&stage->puppet[0], 3);
	push_all(one, 3);
	expect(stage, 3);
}

static void
a_new_path_begins_with_step(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, break_the_path, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_that_puts_announce_give_the_same_values),
		cmocka_unit_test(a_put_counts_its_trainer_in),
		cmocka_unit_test(a_new_path_begins_with_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
