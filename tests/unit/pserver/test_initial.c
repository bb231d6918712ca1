/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid messages of trainer 0 about the initial values, which it has to send, cost its
 * connection. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The step after the first one would be 2^63. */
static void
begin_at_the_end_of_numbers(struct stage *stage)
{
	const uint64_t *step = stage->arg;
	struct puppet *zero = puppet_add(stage, 0, 0);
	const struct wf_msg_init msg = {.step = *step, .samples = 50, .sections = 1};
	struct wf_msg out;
	puppet_meet(zero);
	wf_msg_init_encode(&msg, &out);
	peer_send(&zero->peer, &out);
	puppet_put(zero, 0, 0, 0);
	stage_settle(stage);
	puppet_put(zero, 0, 1, 0);
	stage_settle(stage);
	CHECK(stage, zero->peer.down && stage->lane[0]->state == WF_LANE_RUNNING);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why, "INIT: step is");
}

static void
init_beyond_all_steps_costs_the_connection(void **state)
{
	static const uint64_t step[] = {1ull << 62, INT64_MAX - 1, INT64_MAX, 1ull << 63};
	(void)state;
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		stage_play(&(struct stage_opts){.trainers = 2}, begin_at_the_end_of_numbers,
			   &step[i]);
	}
}

static void
say_init(struct puppet *zero, uint64_t step, uint64_t samples)
{
	const struct wf_msg_init msg = {.step = step, .samples = samples, .sections = 1};
	struct wf_msg out;
	wf_msg_init_encode(&msg, &out);
	peer_send(&zero->peer, &out);
	stage_settle(zero->stage);
}

/* The same may be said again, whatever has come since: the first may have been lost. */
static void
begin_elsewhere_in_the_middle(struct stage *stage)
{
	const uint64_t *elsewhere = stage->arg;
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_meet(zero);
	say_init(zero, 5, 50);
	puppet_put(zero, 0, 0, 0);
	stage_settle(stage);
	say_init(zero, 5, 50);
	CHECK(stage, !zero->peer.down);
	say_init(zero, elsewhere[0], elsewhere[1]);
	CHECK(stage, zero->peer.down && stage->lane[0]->state == WF_LANE_RUNNING);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why,
		   "INIT: from trainer 0, after 1 of 5");
}

static void
another_init_after_initial_values_costs_the_connection(void **state)
{
	static const uint64_t elsewhere[][2] = {{5, 60}, {6, 50}, {6, 60}};
	(void)state;
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		stage_play(&(struct stage_opts){.trainers = 2}, begin_elsewhere_in_the_middle,
			   elsewhere[i]);
	}
}

static void
initialise_with_less(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_meet(zero);
	puppet_put_bytes(zero, 0, 0, 0, 32);
	stage_settle(stage);
	CHECK(stage, zero->peer.down && stage->lane[0]->state == WF_LANE_RUNNING);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why,
		   "PUT: 32 bytes of slice 0 of w, which has 64");
}

static void
initial_values_that_are_not_all_there_cost_the_connection(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, initialise_with_less, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_beyond_all_steps_costs_the_connection),
		cmocka_unit_test(another_init_after_initial_values_costs_the_connection),
		cmocka_unit_test(initial_values_that_are_not_all_there_cost_the_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
