/* SPDX-License-Identifier: Apache-2.0 */
/* Which trainer is waited for, how long, and with what: delays that a test makes, under a virtual
 * clock, are attributed to the trainer that has them. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pserver/straggle.h"

#define STEPS 10u
#define TRAINERS 3u
#define DELAY_NS (WF_NS_PER_S)        /* of the one that is late */
#define SLACK_NS (3 * WF_NS_PER_MS)   /* a frame takes up to 1 ms, and there are a few */
#define PAUSE_NS (100 * WF_NS_PER_MS) /* of those that are not */

static bool
is_near(uint64_t sum_ns, uint64_t count, uint64_t expected_ns)
{
	uint64_t mean = count > 0 ? sum_ns / count : 0;
	return count > 0 && mean + SLACK_NS >= expected_ns && mean <= expected_ns + SLACK_NS;
}

static const struct wf_straggle_state *
state_of(const struct stage *stage)
{
	return stage_feature(stage->lane[0], &wf_straggle_hooks);
}

static const struct wf_straggle *
straggle_of(const struct stage *stage, uint32_t trainer)
{
	return &state_of(stage)->peer[trainer].sum;
}

/* Of these, steps that the lines of a period have not said. */
static uint64_t
unsaid(const struct stage *stage, uint32_t trainer)
{
	const struct wf_straggle_peer *own = &state_of(stage)->peer[trainer];
	return own->sum.last - own->logged.last;
}

/* Trainers push PAUSE_NS after the answers, `late` DELAY_NS after them. It says what of this it
 * spent on computing. */
static void
run_steps(struct stage *stage, uint32_t late, uint64_t compute_ns)
{
	for (uint64_t k = 1; k <= STEPS; k++) {
		stage_run(stage, PAUSE_NS);
		for (uint32_t t = 0; t < TRAINERS; t++) {
			stage->puppet[t].compute_ns = t == late ? compute_ns : PAUSE_NS;
			if (t != late) {
				puppet_continue(&stage->puppet[t], k);
			}
		}
		stage_run(stage, DELAY_NS);
		puppet_continue(&stage->puppet[late], k);
		stage_run(stage, 10 * WF_NS_PER_MS); /* answered */
	}
}

static void
be_late(struct stage *stage, uint64_t compute_ns)
{
	const uint64_t interval_ns = PAUSE_NS + DELAY_NS + 10 * WF_NS_PER_MS;
	const uint32_t late = 1;
	puppets_begin(stage);
	run_steps(stage, late, compute_ns);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		const struct wf_straggle *s = straggle_of(stage, t);
		CHECK(stage, s->last == (t == late ? STEPS - 1 : 0)); /* of all but the first */
		CHECK(stage, s->split == STEPS - 2); /* the first has no interval, the last no STEP
						      * behind it */
	}
	const struct wf_straggle *s = straggle_of(stage, late);
	CHECK(stage, is_near(s->behind_next_ns, s->last, DELAY_NS));
	CHECK(stage, is_near(s->behind_first_ns, s->last, DELAY_NS));
	CHECK(stage, s->behind_first_ns >= s->behind_next_ns);
	CHECK(stage, is_near(s->compute_ns, s->split, compute_ns));
	CHECK(stage, is_near(s->network_ns, s->split, interval_ns - compute_ns));
	const struct wf_straggle *prompt = straggle_of(stage, 0);
	CHECK(stage, is_near(prompt->compute_ns, prompt->split, PAUSE_NS));
	CHECK(stage, is_near(prompt->network_ns, prompt->split, 10 * WF_NS_PER_MS));
	const struct wf_straggle_lane *all = &state_of(stage)->sum;
	CHECK(stage, all[0].steps == STEPS - 1 && is_near(all[0].apply_ns, all[0].steps, 0));
	uint64_t waited = wf_stats_get(wf_lane_stats(stage->lane[0]), WF_LANE_STRAGGLER_TIME_NS);
	CHECK(stage, waited == s->behind_next_ns);
}

static void
compute_slowly(struct stage *stage)
{
	be_late(stage, PAUSE_NS + DELAY_NS);
}

static void
send_slowly(struct stage *stage)
{
	be_late(stage, PAUSE_NS);
}

static void
who_computes_long_is_named_with_compute(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS,
					.stats_period_ns = WF_NS_PER_S * 3600};
	(void)state;
	stage_play(&opts, compute_slowly, NULL);
}

static void
who_is_long_on_the_way_is_named_with_network(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS,
					.stats_period_ns = WF_NS_PER_S * 3600};
	(void)state;
	stage_play(&opts, send_slowly, NULL);
}

/* What comes between passes is nobody's delay, and who is out of data is not waited for. */
static void
change_passes(struct stage *stage)
{
	puppets_begin(stage);
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	puppet_continue(zero, 1);
	puppet_continue(one, 1);
	stage_settle(stage);
	puppet_say_out(one, 2, 0);
	puppet_continue(zero, 2);
	stage_settle(stage);
	puppet_say_out(zero, 3, 0);
	stage_run(stage, 30 * WF_NS_PER_S);
	for (uint32_t t = 0; t < 2; t++) {
		stage->puppet[t].compute_ns = WF_NS_PER_S;
		puppet_say_step(&stage->puppet[t], 3, 1);
		for (uint32_t i = 0; i + 1 < stage_slice_count(stage, 0); i++) {
			puppet_push(&stage->puppet[t], i, 3);
		}
	}
	stage_settle(stage);
	CHECK(stage, state_of(stage)->sum.steps == 1); /* step 2 */
	for (uint32_t t = 0; t < 2; t++) {
		const struct wf_straggle *s = straggle_of(stage, t);
		CHECK(stage, s->behind_first_ns <= 2 * SLACK_NS && s->network_ns <= SETTLE_NS);
		CHECK(stage, stage->puppet[t].answers > 0);
	}
	CHECK(stage, straggle_of(stage, 1)->last == 0);
}

static void
a_new_pass_begins_a_new_account(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .stats_period_ns = WF_NS_PER_S * 3600};
	(void)state;
	stage_play(&opts, change_passes, NULL);
}

/* The period's sums begin anew with its lines, the job's go on. */
static void
report(struct stage *stage)
{
	puppets_begin(stage);
	run_steps(stage, 2, PAUSE_NS); /* some 11 s */
	CHECK(stage, straggle_of(stage, 2)->last == STEPS - 1);
	CHECK(stage, unsaid(stage, 2) < STEPS - 1);
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, straggle_of(stage, 2)->last == STEPS - 1);
	CHECK(stage, unsaid(stage, 2) == 0);
	CHECK(stage, state_of(stage)->sum.steps == state_of(stage)->logged.steps);
}

static void
lines_tell_of_a_period_and_of_the_job(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .stats_period_ns = 5 * WF_NS_PER_S};
	(void)state;
	stage_play(&opts, report, NULL);
}

static void
measure_nothing(struct stage *stage)
{
	puppets_begin(stage);
	run_steps(stage, 1, PAUSE_NS);
	CHECK(stage, state_of(stage) == NULL);
	CHECK(stage, wf_stats_get(wf_lane_stats(stage->lane[0]), WF_LANE_STRAGGLER_TIME_NS) == 0);
	CHECK(stage, wf_stats_get(wf_lane_stats(stage->lane[0]), WF_LANE_APPLY_TIME_NS) == 0);
}

static void
without_a_period_nothing_is_measured(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS};
	(void)state;
	stage_play(&opts, measure_nothing, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_computes_long_is_named_with_compute),
		cmocka_unit_test(who_is_long_on_the_way_is_named_with_network),
		cmocka_unit_test(a_new_pass_begins_a_new_account),
		cmocka_unit_test(lines_tell_of_a_period_and_of_the_job),
		cmocka_unit_test(without_a_period_nothing_is_measured),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
