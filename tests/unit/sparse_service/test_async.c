/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous modes of a sparse lane: pushes are applied as they arrive, late ones may be dropped,
 * and trainers that are too far ahead wait. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t low[] = {3, 17, 40, 99, 1000};
static const uint64_t high[] = {3, 40, 41, 500, 1000, 1u << 20};

static const struct wish lows = {.table = 0, .key = low, .count = 5, .scale = 1};
static const struct wish highs = {.table = 0, .key = high, .count = 6, .scale = 3, .offset = 4096};

static void
push_apart(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	for (uint64_t step = 1; step <= 3; step++) { /* nobody waits for a */
		doll_push(b, step, &highs, 1);
		ground_settle(ground);
		ground_model_step(ground, step, 3, &highs, 1);
		CHECK(ground, b->applieds == step && b->applied.step == step);
		CHECK(ground, b->applied.samples == 3 && b->applied.rows_updated == 6);
	}
	doll_push(a, 1, &lows, 1);
	ground_settle(ground);
	ground_model_step(ground, 4, 2, &lows, 1);
	CHECK(ground, a->applieds == 1 && a->applied.step == 1 && a->applied.samples == 2);
	CHECK(ground, ground->lane[0]->order.sum.step == 3); /* what is said of the job */
	doll_pull(a, 1, 1, &lows, 1);
	doll_pull(b, 1, 7, &highs, 1); /* of a step to come: there is only now */
	ground_settle(ground);
	CHECK(ground, a->answers == 1 && b->answers == 1);
	CHECK(ground, b->answer_tag[0] == wf_sparse_answer_tag(1, 0, 7));
	CHECK(ground, ground_rows_are_right(ground, a, &lows));
	CHECK(ground, ground_rows_are_right(ground, b, &highs));
	peer_goodbye(&b->peer);
	doll_push(a, 2, &lows, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 2 && b->peer.goodbye_heard && !a->peer.aborted);
}

static void
pushes_are_applied_as_they_come(void **state)
{
	struct ground_opts opts = {.trainers = 2, .mode = WEFT_SPARSE_ASYNC};
	ground_play(&opts, push_apart);
	opts.grad_reduce = WEFT_REDUCE_MEAN;
	ground_play(&opts, push_apart);
}

/* Two pushes of others after the rows of the batch were read: 2 x 1.0 trainers. */
static void
come_late(struct ground *ground)
{
	struct wf_sparse_push push;
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_pull(a, 1, 0, &lows, 1);
	doll_push(b, 1, &highs, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 3, &highs, 1);
	doll_fill_push(a, 1, &lows, 1, &push);
	push.flags = 0;
	doll_say_push(a, &push); /* in time: the second message changes nothing of that */
	doll_put(a, 0, 0, 1, &lows);
	ground_settle(ground);
	doll_push(b, 2, &highs, 1);
	ground_settle(ground);
	ground_model_step(ground, 2, 3, &highs, 1);
	doll_push(a, 1, NULL, 0);
	ground_settle(ground);
	ground_model_step(ground, 3, 2, &lows, 1);
	CHECK(ground, a->applieds == 1 && a->applied.pushes_lost == 0);
	doll_pull(a, 2, 1, &lows, 1);
	ground_settle(ground);
	doll_push(b, 3, &highs, 1);
	ground_settle(ground);
	doll_push(b, 4, &highs, 1);
	ground_settle(ground);
	ground_model_step(ground, 4, 3, &highs, 1);
	ground_model_step(ground, 5, 3, &highs, 1);
	doll_push(a, 2, &lows, 1); /* too late */
	ground_settle(ground);
	CHECK(ground, a->applieds == 2 && a->applied.pushes_lost == 5);
	CHECK(ground, a->applied.rows_updated == 0);
	doll_pull(a, 3, 2, &lows, 1);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, a, &lows));
	CHECK(ground,
	      wf_stats_get(wf_lane_stats(ground->lane[0]), WF_LANE_PUSH_DISCARDED_COUNT) == 1);
	doll_push(a, 3, &lows, 1); /* in time again */
	ground_settle(ground);
	CHECK(ground, a->applieds == 3 && a->applied.pushes_lost == 0);
}

static void
a_push_that_lags_is_dropped_as_a_whole_and_told(void **state)
{
	const struct ground_opts opts = {
		.trainers = 2, .mode = WEFT_SPARSE_ASYNC, .discard_ratio = 1.0};
	ground_play(&opts, come_late);
}

static void
push_judged(struct doll *doll, uint64_t step, uint32_t verdict)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, step, &lows, 1, &push);
	push.flags |= verdict;
	doll_say_push(doll, &push);
	doll_put(doll, 0, 0, step, &lows);
	ground_settle(doll->ground);
}

/* By its own count the lane would have done the opposite each time. */
static void
follow_verdicts(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	push_judged(a, 1, WF_SPARSE_PUSH_DROP);
	CHECK(ground, a->applieds == 1 && a->applied.dropped && a->applied.pushes_lost == 5);
	ground_model_step(ground, 1, 2, NULL, 0);
	doll_pull(a, 1, 1, &lows, 1);
	for (uint64_t step = 1; step <= 3; step++) {
		doll_push(b, step, &highs, 1);
		ground_settle(ground);
		ground_model_step(ground, step + 1, 3, &highs, 1);
	}
	push_judged(a, 2, WF_SPARSE_PUSH_APPLY);
	ground_model_step(ground, 5, 2, &lows, 1);
	CHECK(ground, a->applieds == 2 && !a->applied.dropped && a->applied.pushes_lost == 0);
	doll_pull(a, 2, 2, &lows, 1);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, a, &lows));
	/* A batch without rows here is as old as the step before it. */
	doll_push(b, 4, &highs, 1);
	doll_push(b, 5, &highs, 1);
	ground_settle(ground);
	doll_push(a, 3, NULL, 0);
	ground_settle(ground);
	CHECK(ground, a->applieds == 3 && a->applied.dropped);
}

/* What others push while it waits for the next pass came before its rows were read, if any. */
static void
come_back(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, &lows, 1);
	ground_settle(ground);
	doll_say_out(a, 2, 0);
	for (uint64_t step = 1; step <= 3; step++) {
		doll_push(b, step, &highs, 1);
		ground_settle(ground);
	}
	struct wf_sparse_push push;
	doll_fill_push(a, 2, NULL, 0, &push);
	push.pass = 1;
	doll_say_push(a, &push);
	ground_settle(ground);
	CHECK(ground, a->applieds == 2 && !a->applied.dropped);
}

static void
a_batch_without_rows_is_not_late_after_a_pause(void **state)
{
	const struct ground_opts opts = {
		.trainers = 2, .mode = WEFT_SPARSE_ASYNC, .discard_ratio = 1.0};
	ground_play(&opts, come_back);
}

static void
judge_twice(struct ground *ground)
{
	struct wf_sparse_push push;
	struct doll *a = doll_add(ground, 0, 0);
	doll_meet(a);
	doll_fill_push(a, 1, &lows, 1, &push);
	push.flags = WF_SPARSE_PUSH_APPLY;
	doll_say_push(a, &push);
	doll_put(a, 0, 0, 1, &lows);
	push.flags = WF_SPARSE_PUSH_LAST | WF_SPARSE_PUSH_DROP;
	doll_say_push(a, &push);
	ground_settle(ground);
	CHECK(ground, a->peer.down);
	CHECK(ground, strstr(ground->lane[0]->peers.all[0].lost.why, "another verdict") != NULL);
}

static void
a_push_that_is_judged_in_two_ways_costs_the_connection(void **state)
{
	const struct ground_opts opts = {
		.trainers = 1, .mode = WEFT_SPARSE_ASYNC, .discard_ratio = 1.0};
	ground_play(&opts, judge_twice);
}

static void
a_verdict_of_the_first_lane_is_followed(void **state)
{
	const struct ground_opts opts = {
		.trainers = 2, .mode = WEFT_SPARSE_ASYNC, .discard_ratio = 1.0};
	ground_play(&opts, follow_verdicts);
}

/* It is told whom APPLIED waits for, and this one is asked whether it takes turns. */
static void
check_held_for(struct ground *ground, uint32_t trainer)
{
	const struct wf_lane *lane = ground->lane[0];
	char text[128];
	char expected[128];
	(void)snprintf(expected, sizeof(expected), "answers of bounded tables wait for trainer %u",
		       trainer);
	wf_waits_describe(lane, WF_LANE_AWAITS_HOLDS, text, sizeof(text));
	CHECK(ground, wf_waits_since(lane, WF_LANE_AWAITS_HOLDS) != 0);
	CHECK(ground, strcmp(text, expected) == 0);
	CHECK(ground, wf_waits_on(lane, WF_LANE_AWAITS_HOLDS, &lane->peers.all[trainer]));
}

static void
run_ahead(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, &lows, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 1);
	doll_push(a, 2, &lows, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 1); /* applied, but not told yet */
	check_held_for(ground, 1);
	CHECK(ground, ground->lane[0]->peers.all[0].member.step_next == 3);
	doll_push(b, 1, &highs, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 2 && b->applieds == 1);
	CHECK(ground, wf_waits_since(ground->lane[0], WF_LANE_AWAITS_HOLDS) == 0);
	doll_push(a, 3, &lows, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 2);
	doll_say_out(b, 2, 0); /* who has no data is waited for no more */
	ground_settle(ground);
	CHECK(ground, a->applieds == 3);
	doll_push(a, 4, &lows, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 4);
}

static void
who_is_too_far_ahead_waits(void **state)
{
	const struct ground_opts opts = {
		.trainers = 2, .mode = WEFT_SPARSE_BOUNDED, .staleness = 1};
	ground_play(&opts, run_ahead);
}

/* APPLIED was lost with the path, while it was still held back. */
static void
lose_the_path_ahead(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, &lows, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 0);
	wf_transport_disconnect(a->peer.conn, WF_DISCONNECT_NOW);
	ground_settle(ground);
	doll_meet(a);
	CHECK(ground, a->peer.steps.step == 1 && a->peer.steps.step_of[0] == 1 && a->applieds == 0);
	doll_push(b, 1, &highs, 1);
	ground_settle(ground);
	CHECK(ground, a->applieds == 1 && b->applieds == 1);
}

static void
a_push_that_is_held_back_is_applied_once(void **state)
{
	const struct ground_opts opts = {.trainers = 2, .mode = WEFT_SPARSE_BOUNDED};
	ground_play(&opts, lose_the_path_ahead);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_are_applied_as_they_come),
		cmocka_unit_test(a_push_that_lags_is_dropped_as_a_whole_and_told),
		cmocka_unit_test(a_verdict_of_the_first_lane_is_followed),
		cmocka_unit_test(a_batch_without_rows_is_not_late_after_a_pause),
		cmocka_unit_test(a_push_that_is_judged_in_two_ways_costs_the_connection),
		cmocka_unit_test(who_is_too_far_ahead_waits),
		cmocka_unit_test(a_push_that_is_held_back_is_applied_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
