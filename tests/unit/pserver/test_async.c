/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of the asynchronous modes as one lane sees them, with scripted messages: applied on
 * arrival, dropped for their lag, answered whole, once, and not before others are near enough.
 * Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
begin(struct stage *stage)
{
	puppets_begin(stage);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(&stage->puppet[stage->opts.trainers - 1]));
}

static uint32_t
pushable(const struct stage *stage)
{
	return stage_slice_count(stage, 0) - 1; /* the last is static */
}

/* All of a step, applied: `updates` counts them, this one included. */
static void
step(struct stage *stage, uint32_t trainer, uint64_t number, uint64_t updates)
{
	puppet_continue(&stage->puppet[trainer], number);
	stage_settle(stage);
	for (uint32_t i = 0; i < pushable(stage); i++) {
		stage_expect_push(stage, trainer, number, i, updates);
	}
}

static uint64_t
count_of(const struct stage *stage, enum wf_lane_counter counter)
{
	return wf_stats_get(wf_lane_stats(stage->lane[0]), counter);
}

static void
interleave(struct stage *stage)
{
	begin(stage);
	uint32_t slices = pushable(stage);
	uint32_t before = stage->puppet[0].answers;
	step(stage, 0, 1, 1);
	CHECK(stage, stage->puppet[0].answers == before + slices);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, !puppet_values_are_right(&stage->puppet[1])); /* nobody told it */
	step(stage, 1, 1, 2);
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	step(stage, 1, 2, 3);
	step(stage, 1, 3, 4);
	step(stage, 0, 2, 5);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	puppet_pull(&stage->puppet[1], 99, 0, slices); /* steps are each trainer's own */
	stage_settle(stage);
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	CHECK(stage, count_of(stage, WF_LANE_SLICE_APPLIED_COUNT) == 5 * slices);
	CHECK(stage, count_of(stage, WF_LANE_STEP_APPLIED_COUNT) == 5);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_DISCARDED_COUNT) == 0);
	CHECK(stage, count_of(stage, WF_LANE_WAIT_TRAINER_COUNT) == 0);
}

static void
a_push_is_applied_when_it_comes_whatever_others_do(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		const struct stage_opts opts = {
			.trainers = 2, .optimizer = kind, .mode = WEFT_DENSE_ASYNC};
		stage_play(&opts, interleave, NULL);
	}
}

static void
leave_behind(struct stage *stage)
{
	begin(stage);
	uint32_t slices = pushable(stage);
	struct puppet *late = &stage->puppet[1];
	step(stage, 0, 1, 1);
	step(stage, 1, 1, 2); /* one push of others is no great lag */
	CHECK(stage, late->discarded == 0);
	step(stage, 0, 2, 3);
	step(stage, 0, 3, 4);
	step(stage, 0, 4, 5);
	uint32_t before = late->answers;
	puppet_continue(late, 2); /* floor(1.5 x 2) = 3 of others: dropped */
	stage_settle(stage);
	CHECK(stage, late->answers == before + slices && late->discarded == slices);
	CHECK(stage, puppet_values_are_right(late)); /* fresh all the same */
	CHECK(stage, stage->puppet[0].discarded == 0);
	step(stage, 1, 3, 6); /* what it has now is fresh */
	CHECK(stage, late->discarded == slices && puppet_values_are_right(late));
	CHECK(stage, count_of(stage, WF_LANE_SLICE_APPLIED_COUNT) == 6 * slices);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_DISCARDED_COUNT) == slices);
	const struct wf_dense_peer *own = stage_dense(stage->lane[0])->peer;
	CHECK(stage, own[0].applied == 4 * slices && own[0].discarded == 0);
	CHECK(stage, own[1].applied == 2 * slices && own[1].discarded == slices);
	CHECK(stage, own[1].lag_max == 3 && own[1].lag_sum == 4 * slices);
}

static void
a_push_that_lags_too_far_is_not_applied_answered_and_reported(void **state)
{
	const struct stage_opts opts = {
		.trainers = 2, .mode = WEFT_DENSE_ASYNC, .discard_ratio = 1.5};
	(void)state;
	stage_play(&opts, leave_behind, NULL);
}

/* What is saved in between brings the trainer no values to compute with. */
static void
save_in_between(struct stage *stage)
{
	begin(stage);
	uint32_t slices = pushable(stage);
	struct puppet *late = &stage->puppet[1];
	for (uint64_t k = 1; k <= 3; k++) {
		step(stage, 0, k, k);
	}
	const struct wf_msg_pull pull = {
		.request_id = 9, .count = slices, .section = WF_SECTION_STATE};
	struct wf_msg out;
	uint32_t before = late->answers;
	puppet_grant(late, 1);
	wf_msg_pull_encode(&pull, &out);
	peer_send(&late->peer, &out);
	stage_settle(stage);
	CHECK(stage, late->answers == before + slices && !late->peer.down);
	puppet_continue(late, 1);
	stage_settle(stage);
	CHECK(stage, late->discarded == slices);
	puppet_pull(late, 0, 0, slices);
	stage_settle(stage);
	step(stage, 1, 2, 4); /* values, pulled or pushed for, are another matter */
	CHECK(stage, late->discarded == slices && puppet_values_are_right(late));
}

static void
a_pull_of_state_makes_no_push_lag_less(void **state)
{
	const struct stage_opts opts = {.trainers = 2,
					.optimizer = WF_MOMENTUM,
					.mode = WEFT_DENSE_ASYNC,
					.discard_ratio = 1.5};
	(void)state;
	stage_play(&opts, save_in_between, NULL);
}

static void
be_alone(struct stage *stage)
{
	begin(stage);
	for (uint64_t k = 1; k <= 20; k++) {
		step(stage, 0, k, k);
	}
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, stage->puppet[0].discarded == 0);
}

static void
one_trainer_never_lags(void **state)
{
	const struct stage_opts opts = {
		.trainers = 1, .mode = WEFT_DENSE_ASYNC, .discard_ratio = 1.5};
	(void)state;
	stage_play(&opts, be_alone, NULL);
}

/* The answer to slice 0 of a push that was dropped got lost; the one to slice 1 did not. */
static void
lose_answers(struct stage *stage)
{
	begin(stage);
	uint32_t slices = pushable(stage);
	struct puppet *late = &stage->puppet[1];
	for (uint64_t k = 1; k <= 3; k++) {
		step(stage, 0, k, k);
	}
	puppet_continue(late, 1);
	stage_settle(stage);
	CHECK(stage, late->discarded == slices);
	wf_transport_disconnect(late->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	step(stage, 0, 4, 4);
	late->have[0] = 0;
	late->discarded = 0;
	uint32_t before = late->answers;
	puppet_meet(late);
	stage_settle(stage);
	CHECK(stage, late->received[0] == 1 && late->received[1] == 1); /* nothing to push again */
	CHECK(stage, late->answers == before + 1 && late->discarded == 1);
	CHECK(stage, memcmp(puppet_values(late, 0), stage->value[0],
			    STAGE_SLICE_FLOATS * sizeof(float)) == 0);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_APPLIED_COUNT) == 4 * slices);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_DISCARDED_COUNT) == slices);
	/* Slice 0 is as step 4 left it, the others lag by the push of step 4: all are applied. */
	step(stage, 1, 2, 5);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_DISCARDED_COUNT) == slices);
	CHECK(stage, puppet_values_are_right(late));
}

static void
an_answer_lost_on_the_way_is_said_again_with_its_verdict(void **state)
{
	const struct stage_opts opts = {
		.trainers = 2, .mode = WEFT_DENSE_ASYNC, .discard_ratio = 1};
	(void)state;
	stage_play(&opts, lose_answers, NULL);
}

/* Half of a step has been pushed when the path ends: the other half is what is asked for. */
static void
lose_the_path(struct stage *stage)
{
	begin(stage);
	struct puppet *one = &stage->puppet[1];
	puppet_say_step(one, 1, 0);
	puppet_push(one, 0, 1);
	stage_settle(stage);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	stage_expect_push(stage, 1, 1, 0, 1);
	step(stage, 0, 1, 2); /* slice 0 has one push more than the others: only adam would tell */
	puppet_meet(one);
	CHECK(stage, one->peer.steps.step == 1 && one->received[0] == 1 && one->received[1] == 0);
	puppet_continue(one, 1);
	stage_settle(stage);
	for (uint32_t i = 1; i < pushable(stage); i++) {
		stage_expect_push(stage, 1, 1, i, 2);
	}
	CHECK(stage, puppet_values_are_right(one) == false); /* slice 0 was answered before */
	puppet_pull(one, 0, 0, 1);
	stage_settle(stage);
	CHECK(stage, puppet_values_are_right(one));
	CHECK(stage, count_of(stage, WF_LANE_SLICE_APPLIED_COUNT) == 2 * pushable(stage));
	CHECK(stage, count_of(stage, WF_LANE_STEP_APPLIED_COUNT) == 2);
}

static void
a_step_cut_in_half_is_applied_once(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .mode = WEFT_DENSE_ASYNC};
	(void)state;
	stage_play(&opts, lose_the_path, NULL);
}

static uint32_t
free_buffers(const struct stage *stage, uint32_t trainer)
{
	const struct wf_staging *copies = &stage_dense(stage->lane[0])->async.copies;
	uint32_t count = 0;
	for (uint32_t at = copies->first[trainer]; at != WF_STAGING_NONE; at = copies->next[at]) {
		count++;
	}
	return count;
}

/* More answers than there are buffers for them. */
static void
few_buffers(struct stage *stage)
{
	begin(stage);
	for (uint64_t k = 1; k <= 4; k++) {
		step(stage, 0, k, 2 * k - 1);
		step(stage, 1, k, 2 * k);
	}
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	puppet_pull(&stage->puppet[0], 0, 0, stage_slice_count(stage, 0));
	stage_settle(stage);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, free_buffers(stage, 0) == stage->opts.slot_count);
	CHECK(stage, free_buffers(stage, 1) == stage->opts.slot_count);
}

static void
answers_wait_for_a_buffer_and_all_are_given_back(void **state)
{
	(void)state;
	for (uint32_t slots = 1; slots <= 4; slots *= 2) {
		const struct stage_opts opts = {.trainers = 2,
						.mode = WEFT_DENSE_ASYNC,
						.slot_count = slots,
						.w_count = 40 * STAGE_SLICE_FLOATS};
		stage_play(&opts, few_buffers, NULL);
	}
}

/* Step 1: nobody waits. Step 2 of trainer 0 is answered when trainer 1 has pushed all of step 1. */
static void
run_ahead(struct stage *stage)
{
	begin(stage);
	uint32_t slices = pushable(stage);
	struct puppet *fast = &stage->puppet[0];
	struct puppet *slow = &stage->puppet[1];
	uint32_t before = fast->answers;
	puppet_continue(fast, 1);
	stage_settle(stage);
	CHECK(stage, fast->answers == before + slices);
	puppet_continue(fast, 2);
	stage_settle(stage);
	CHECK(stage, fast->answers == before + slices);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_APPLIED_COUNT) == 2 * slices);
	stage_check_waits(stage, WF_LANE_AWAITS_HOLDS,
			  "answers of bounded tensors wait for trainer 1");
	puppet_say_step(slow, 1, 0);
	for (uint32_t i = 0; i + 1 < slices; i++) {
		puppet_push(slow, i, 1);
	}
	stage_settle(stage);
	CHECK(stage, fast->answers == before + slices); /* not all of it */
	puppet_push(slow, slices - 1, 1);
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 2 * slices);
	CHECK(stage, wf_waits_since(stage->lane[0], WF_LANE_AWAITS_HOLDS) == 0);
	puppet_continue(fast, 3);
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 2 * slices);
	puppet_say_out(slow, 2, 0); /* takes no part any more */
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 3 * slices);
	puppet_continue(fast, 4);
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 4 * slices);
	/* The next pass: who is back first waits for who is not. */
	puppet_say_out(fast, 5, 0);
	puppet_say_step(fast, 5, 1);
	for (uint32_t i = 0; i < slices; i++) {
		puppet_push(fast, i, 5);
	}
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 5 * slices);
	puppet_say_step(fast, 6, 1);
	for (uint32_t i = 0; i < slices; i++) {
		puppet_push(fast, i, 6);
	}
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 5 * slices);
	puppet_say_step(slow, 5, 1); /* from its step 1 on */
	for (uint32_t i = 0; i < slices; i++) {
		puppet_push(slow, i, 5);
	}
	stage_settle(stage);
	CHECK(stage, fast->answers == before + 6 * slices && !slow->peer.down);
}

static void
who_is_too_far_ahead_waits_for_its_answer(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .mode = WEFT_DENSE_BOUNDED, .staleness = 1};
	(void)state;
	stage_play(&opts, run_ahead, NULL);
}

/* An answer that waits has been copied with its push; others push the slice before it leaves. */
static void
change_what_waits(struct stage *stage)
{
	begin(stage);
	struct puppet *fast = &stage->puppet[0];
	step(stage, 0, 1, 1);
	uint32_t before = fast->answers;
	step(stage, 0, 2, 2);
	CHECK(stage, fast->answers == before);
	CHECK(stage, free_buffers(stage, 0) < stage->opts.slot_count);
	step(stage, 1, 1, 3);
	CHECK(stage, fast->answers == before + pushable(stage));
	CHECK(stage, puppet_values_are_right(fast));
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	CHECK(stage, free_buffers(stage, 0) == stage->opts.slot_count);
}

static void
an_answer_that_waited_has_the_newest_values(void **state)
{
	const struct stage_opts opts = {
		.trainers = 2, .mode = WEFT_DENSE_BOUNDED, .staleness = 1, .slot_count = 8};
	(void)state;
	stage_play(&opts, change_what_waits, NULL);
}

/* The path ends with the answer. */
static void
leave_while_it_waits(struct stage *stage)
{
	begin(stage);
	struct puppet *fast = &stage->puppet[0];
	step(stage, 0, 1, 1);
	step(stage, 0, 2, 2);
	CHECK(stage, free_buffers(stage, 0) < stage->opts.slot_count);
	wf_transport_disconnect(fast->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	CHECK(stage, free_buffers(stage, 0) == stage->opts.slot_count);
}

static void
a_path_that_ends_gives_back_what_was_copied(void **state)
{
	const struct stage_opts opts = {
		.trainers = 2, .mode = WEFT_DENSE_BOUNDED, .staleness = 1, .slot_count = 8};
	(void)state;
	stage_play(&opts, leave_while_it_waits, NULL);
}

static void
check_answered(struct stage *stage, uint32_t from, const uint32_t *order)
{
	const struct puppet *zero = &stage->puppet[0];
	CHECK(stage, zero->answers == from + pushable(stage));
	for (uint32_t i = 0; i < pushable(stage); i++) {
		CHECK(stage, zero->answered[from + i] == order[i]);
	}
}

/* w waits for trainer 1, b for nobody. */
static void
overtake(struct stage *stage)
{
	begin(stage);
	struct puppet *zero = &stage->puppet[0];
	puppet_continue(zero, 1);
	stage_settle(stage);
	uint32_t before = zero->answers;
	puppet_continue(zero, 2);
	stage_settle(stage);
	CHECK(stage, zero->answers == before + 1);
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	check_answered(stage, before, (const uint32_t[]){3, 0, 1, 2});
}

static void
answers_that_wait_keep_their_order_when_another_overtakes(void **state)
{
	struct stage_opts opts = {.trainers = 2,
				  .mode = WEFT_DENSE_BOUNDED,
				  .staleness = 1,
				  .b_mode = WEFT_TENSOR_ASYNC};
	(void)state;
	for (opts.priority_of_b = -1; opts.priority_of_b <= 1; opts.priority_of_b++) {
		stage_play(&opts, overtake, NULL);
	}
}

/* b waits for trainer 1, w for a buffer; when neither has to, b has the higher priority. */
static void
wait_for_both(struct stage *stage)
{
	begin(stage);
	struct puppet *zero = &stage->puppet[0];
	struct wf_dense_peer *own = &stage_dense(stage->lane[0])->peer[0];
	puppet_continue(zero, 1);
	stage_settle(stage);
	uint32_t before = zero->answers;
	uint32_t *first = &stage_dense(stage->lane[0])->async.copies.first[0];
	uint32_t buffer = *first;
	*first = WF_STAGING_NONE;
	puppet_continue(zero, 2);
	stage_settle(stage);
	CHECK(stage, own->answers.count == pushable(stage));
	CHECK(stage, *wf_ordinal_ring_at(&own->answers, 3) == 3);
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	CHECK(stage, zero->answers == before);
	*first = buffer;
	stage_settle(stage);
	check_answered(stage, before, (const uint32_t[]){3, 0, 1, 2});
}

static void
answers_that_waited_go_by_their_priority(void **state)
{
	const struct stage_opts opts = {.trainers = 2,
					.mode = WEFT_DENSE_ASYNC,
					.b_mode = WEFT_TENSOR_BOUNDED,
					.b_staleness = 1,
					.priority_of_b = 1};
	(void)state;
	stage_play(&opts, wait_for_both, NULL);
}

struct wrong {
	const char *what;
	const char *says;
	void (*act)(struct puppet *puppet); /* trainer 1, which has done step 1 */
};

static void
skip_a_step(struct puppet *puppet)
{
	puppet_say_step(puppet, 3, 0);
}

static void
begin_twice(struct puppet *puppet)
{
	puppet_say_step(puppet, 2, 0);
	puppet_put(puppet, 0, 0, 2);
	puppet_say_step(puppet, 3, 0);
}

static void
put_twice(struct puppet *puppet)
{
	puppet_say_step(puppet, 2, 0);
	puppet_put(puppet, 0, 0, 2);
	puppet_put(puppet, 0, 1, 2);
}

/* The first of the two announces step 2, for the trainer has announced step 1. */
static void
put_of_a_second_step(struct puppet *puppet)
{
	puppet_put(puppet, 0, 0, 2);
	stage_settle(puppet->stage);
	puppet_put(puppet, 0, 1, 3);
}

static void
go_out_in_the_middle(struct puppet *puppet)
{
	puppet_say_step(puppet, 2, 0);
	puppet_say_out(puppet, 3, 0);
}

static void
come_back_too_far(struct puppet *puppet)
{
	puppet_say_out(puppet, 2, 0);
	puppet_say_step(puppet, 1ull << 63, 1);
}

static void
come_back_to_the_same_pass(struct puppet *puppet)
{
	puppet_say_out(puppet, 2, 0);
	puppet_say_step(puppet, 2, 0);
}

static void
go_back_a_pass(struct puppet *puppet)
{
	puppet_say_step(puppet, 2, 1);
	for (uint32_t i = 0; i < pushable(puppet->stage); i++) {
		puppet_put(puppet, i, i, 2);
	}
	stage_settle(puppet->stage);
	puppet_say_step(puppet, 3, 0);
}

static const struct wrong wrongs[] = {
	{"skips a step", "steps are missing", skip_a_step},
	{"begins a step in the middle of one", "before all of the last one", begin_twice},
	{"puts a slice twice", "waited for is step", put_twice},
	{"puts in the next step", "before all of the last one", put_of_a_second_step},
	{"runs out of data in the middle", "before all of the last one", go_out_in_the_middle},
	{"comes back with any number", "steps are missing", come_back_too_far},
	{"comes back to its pass", "not its pass", come_back_to_the_same_pass},
	{"goes back a pass", "not its pass", go_back_a_pass},
};

static void
do_wrong(struct stage *stage)
{
	const struct wrong *wrong = stage->arg;
	begin(stage);
	step(stage, 0, 1, 1);
	step(stage, 1, 1, 2);
	struct puppet *one = &stage->puppet[1];
	wrong->act(one);
	stage_settle(stage);
	CHECK(stage, one->peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[1].lost.why, wrong->says);
	CHECK(stage, !stage->puppet[0].peer.down);
}

static void
steps_that_are_not_a_trainers_next_cost_its_connection(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .mode = WEFT_DENSE_ASYNC};
	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		stage_play(&opts, do_wrong, &wrongs[i]);
	}
}

/* --- one tensor of a synchronous job --- */

static uint32_t
ordinal_of_b(const struct stage *stage)
{
	uint32_t ordinal = 0;
	while (stage_slice(stage, 0, ordinal)->tensor != 1) {
		ordinal++;
	}
	return ordinal;
}

/* b alone is answered at once; the rest when all have pushed it, and then the step is over. */
static void
mix(struct stage *stage)
{
	begin(stage);
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	uint32_t b = ordinal_of_b(stage);
	uint32_t summed = pushable(stage) - 1;
	uint32_t before = zero->answers;
	puppet_continue(zero, 1);
	stage_settle(stage);
	stage_expect_push(stage, 0, 1, b, 1);
	CHECK(stage, zero->answers == before + 1);
	CHECK(stage, puppet_values_are_right(zero));
	CHECK(stage, count_of(stage, WF_LANE_STEP_APPLIED_COUNT) == 0);
	before = one->answers;
	puppet_say_step(one, 1, 0);
	for (uint32_t i = 0; i < pushable(stage); i++) {
		if (i != b) {
			puppet_push(one, i, 1);
		}
	}
	stage_settle(stage);
	CHECK(stage, one->answers == before + summed && one->have[b] == 0);
	CHECK(stage, count_of(stage, WF_LANE_STEP_APPLIED_COUNT) == 1);
	puppet_say_step(zero, 2, 0); /* while b of trainer 1's step 1 is not here */
	puppet_push(zero, b, 2);
	stage_settle(stage);
	CHECK(stage, zero->have[b] == 2);
	puppet_push(one, b, 1);
	stage_settle(stage);
	CHECK(stage, one->have[b] == 1 && !one->peer.down && !zero->peer.down);
	CHECK(stage, count_of(stage, WF_LANE_SLICE_APPLIED_COUNT) == summed + 3);
}

static void
beside_summed_tensors_one_is_answered_when_it_comes(void **state)
{
	const struct stage_opts opts = {
		.trainers = 2, .optimizer = WF_MOMENTUM, .b_mode = WEFT_TENSOR_ASYNC};
	(void)state;
	stage_play(&opts, mix, NULL);
}

/* All of a step but b: the sums are done, the trainer's step is not. */
static void
owe_one(struct stage *stage)
{
	const struct wrong *wrong = stage->arg;
	begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_say_step(&stage->puppet[t], 1, 0);
		for (uint32_t i = 0; i < pushable(stage); i++) {
			if (i != ordinal_of_b(stage)) {
				puppet_push(&stage->puppet[t], i, 1);
			}
		}
	}
	stage_settle(stage);
	wrong->act(&stage->puppet[1]);
	stage_settle(stage);
	CHECK(stage, stage->puppet[1].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[1].lost.why, wrong->says);
	CHECK(stage, !stage->puppet[0].peer.down);
}

static void
go_on(struct puppet *puppet)
{
	puppet_say_step(puppet, 2, 0);
}

static void
run_out(struct puppet *puppet)
{
	puppet_say_out(puppet, 2, 0);
}

static void
a_step_is_over_when_its_asynchronous_tensors_are_pushed_too(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .b_mode = WEFT_TENSOR_ASYNC};
	const struct wrong wrong[] = {
		{"begins the next", "before all of the last one was pushed", go_on},
		{"runs out of data", "before all of the last one was pushed", run_out},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		stage_play(&opts, owe_one, &wrong[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_push_is_applied_when_it_comes_whatever_others_do),
		cmocka_unit_test(a_push_that_lags_too_far_is_not_applied_answered_and_reported),
		cmocka_unit_test(a_pull_of_state_makes_no_push_lag_less),
		cmocka_unit_test(one_trainer_never_lags),
		cmocka_unit_test(an_answer_lost_on_the_way_is_said_again_with_its_verdict),
		cmocka_unit_test(a_step_cut_in_half_is_applied_once),
		cmocka_unit_test(answers_wait_for_a_buffer_and_all_are_given_back),
		cmocka_unit_test(who_is_too_far_ahead_waits_for_its_answer),
		cmocka_unit_test(an_answer_that_waited_has_the_newest_values),
		cmocka_unit_test(a_path_that_ends_gives_back_what_was_copied),
		cmocka_unit_test(answers_that_wait_keep_their_order_when_another_overtakes),
		cmocka_unit_test(answers_that_waited_go_by_their_priority),
		cmocka_unit_test(steps_that_are_not_a_trainers_next_cost_its_connection),
		cmocka_unit_test(beside_summed_tensors_one_is_answered_when_it_comes),
		cmocka_unit_test(a_step_is_over_when_its_asynchronous_tensors_are_pushed_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
