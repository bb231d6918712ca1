/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a tensor's optimizer, as one lane sees them, with scripted messages: trainers that
 * agree, that differ, that come back, and what no valid trainer sends. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/numbers.h"

static const struct stage_opts opts = {.trainers = 2, .optimizer = WF_TORCH_SGD};

/* One change of one step. */
struct sent {
	uint32_t puppet, tensor, number;
	double value;
	uint64_t step;
};

static void
send_change(struct stage *stage, const struct sent *sent)
{
	struct wf_msg out;
	const struct wf_msg_changes msg = {
		.step = sent->step == 0 ? 1 : sent->step,
		.count = 1,
		.change[0] = {.tensor = sent->tensor, .number = sent->number, .value = sent->value},
	};
	wf_msg_change_encode(&msg, &out);
	peer_send(&stage->puppet[sent->puppet].peer, &out);
	stage_settle(stage);
}

static uint64_t
applied(const struct stage *stage)
{
	return wf_stats_get(wf_lane_stats(stage->lane[0]), WF_LANE_STEP_APPLIED_COUNT);
}

/* A rate of 0, sent by both, of all that is pushed: nothing moves. Trainer 1 loses its path before
 * it has begun the step, and sends all of it once more; trainer 0 after that, and sends nothing. */
static void
agree(struct stage *stage)
{
	puppets_begin(stage);
	const struct sent first = {.puppet = 1}, second = {.puppet = 1, .tensor = 1};
	send_change(stage, &first);
	wf_transport_disconnect(stage->puppet[1].peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	for (uint32_t tensor = 0; tensor < 2; tensor++) {
		send_change(stage, &(struct sent){.tensor = tensor});
	}
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	puppet_meet(&stage->puppet[1]);
	stage_settle(stage);
	send_change(stage, &first);
	send_change(stage, &second);
	wf_transport_disconnect(stage->puppet[0].peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_meet(&stage->puppet[0]);
	stage_settle(stage);
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	CHECK(stage, applied(stage) == 1);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0])); /* as they were */
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	CHECK(stage, !stage->puppet[0].peer.down && !stage->puppet[1].peer.down);
}

static void
changes_that_all_trainers_make_are_in_force_whatever_connections_break(void **state)
{
	(void)state;
	stage_play(&opts, agree, NULL);
}

/* What trainers send before they begin step 1, and the cause that the job ends with. */
struct differing {
	struct sent sent[4];
	uint32_t count;
	uint32_t first; /* the trainer that begins the step first; 2: none does */
	const char *says;
};

static const struct differing differing[] = {
	{.sent = {{.puppet = 0, .number = 1, .value = 0.5},
		  {.puppet = 1, .number = 1, .value = 0.25}},
	 .count = 2,
	 .first = 2,
	 .says = "step 1: trainer 0 changes momentum of w to 0.5, trainer 1 to 0.25;"},
	{.sent = {{.puppet = 1, .value = 2}},
	 .count = 1,
	 .first = 0,
	 .says = "step 1: trainer 1 changes learning_rate of w to 2, trainer 0 does not;"},
	{.sent = {{.puppet = 0, .value = 2},
		  {.puppet = 0, .tensor = 1, .number = 8, .value = 1},
		  {.puppet = 1, .value = 2}},
	 .count = 3,
	 .first = 1,
	 .says = "step 1: trainer 0 changes decay of b to 1, trainer 1 does not;"},
	{.sent = {{.puppet = 0, .tensor = 1, .number = 8, .value = 1},
		  {.puppet = 1, .number = 8, .value = 1}},
	 .count = 2,
	 .first = 2,
	 .says = "step 1: trainer 1 changes decay of w to 1, trainer 0 does not;"},
	{.sent = {{.puppet = 0, .number = 8, .value = 1}, {.puppet = 1, .number = 9, .value = 1}},
	 .count = 2,
	 .first = 2,
	 .says = "step 1: trainer 0 changes decay of w to 1, trainer 1 does not;"},
};

static void
differ(struct stage *stage)
{
	const struct differing *what = stage->arg;
	puppets_begin(stage);
	for (uint32_t i = 0; i < what->count; i++) {
		send_change(stage, &what->sent[i]);
	}
	if (what->first < 2) {
		puppet_continue(&stage->puppet[what->first], 1);
		stage_settle(stage);
	}
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_FAILED);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK_SAYS(stage, stage->puppet[t].peer.abort.reason, what->says);
		CHECK(stage, stage->puppet[t].peer.abort.status == WEFT_MISMATCH);
	}
	CHECK(stage, applied(stage) == 0);
}

/* One change comes when the other trainer has begun the step without it. */
static void
come_late(struct stage *stage)
{
	puppets_begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	send_change(stage, &(struct sent){.puppet = 1, .number = 2, .value = 0.5});
	stage_run(stage, WF_NS_PER_S);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason,
		   "trainer 1 changes dampening of w to 0.5, trainer 0 does not;");
}

static void
trainers_that_differ_end_the_job_and_both_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(differing); i++) {
		stage_play(&opts, differ, &differing[i]);
	}
	stage_play(&opts, come_late, NULL);
}

static const struct {
	struct sent sent;
	const char *says;
} lies[] = {
	{{.step = 2}, "CHANGE: of step 2, the lane is in step 1"},
	{{.tensor = 3}, "CHANGE: tensor 3 of 3"},
	{{.tensor = 2}, "CHANGE: number 0 of fixed, which it does not have"},
	{{.number = WF_NUMBER_COUNT}, "CHANGE: number 13 of w, which it does not have"},
	{{.number = WF_NUMBER_BETA1}, "CHANGE: beta1 0: the optimizer torch_sgd has no beta1"},
	{{.number = WF_NUMBER_MOMENTUM, .value = 1}, "CHANGE: momentum 1: "},
	{{.number = WF_NUMBER_NESTEROV, .value = 2}, "CHANGE: nesterov 2: must be a whole number"},
	{{.number = WF_NUMBER_UPDATES, .value = 0.5}, "CHANGE: updates 0.5: must be a whole"},
	{{.number = WF_NUMBER_ASSIGNED, .value = 2}, "CHANGE: the assigned array 2: must be"},
};

static void
lie(struct stage *stage)
{
	const size_t *which = stage->arg;
	puppets_begin(stage);
	send_change(stage, &lies[*which].sent);
	CHECK(stage, stage->puppet[0].peer.down && !stage->puppet[1].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why, lies[*which].says);
}

/* In messages of their own; within one the decoder finds it. */
static void
repeat(struct stage *stage)
{
	puppets_begin(stage);
	send_change(stage, &(struct sent){.tensor = 1});
	send_change(stage, &(struct sent){.tensor = 1});
	CHECK(stage, stage->puppet[0].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why,
		   "number 0 of tensor 1 out of order");
}

static void
begin_and_change(struct stage *stage)
{
	puppets_begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	send_change(stage, &(struct sent){0});
	CHECK(stage, stage->puppet[0].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why,
		   "waits for step 2 of this trainer");
}

static void
change_asynchronously(struct stage *stage)
{
	puppets_begin(stage);
	send_change(stage, &(struct sent){0});
	CHECK(stage, stage->puppet[0].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why, "this lane has no changes of the");
}

static void
what_no_trainer_sends_costs_it_its_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(lies); i++) {
		stage_play(&opts, lie, &i);
	}
	stage_play(&opts, repeat, NULL);
	stage_play(&opts, begin_and_change, NULL);
	struct stage_opts lagging = opts;
	lagging.mode = WEFT_DENSE_ASYNC;
	stage_play(&lagging, change_asynchronously, NULL);
}

/* Step 1, with which both replace the values of so many tensors. */
static void
assign_and_step(struct stage *stage, uint32_t tensors)
{
	puppets_begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		for (uint32_t tensor = 0; tensor < tensors; tensor++) {
			send_change(stage, &(struct sent){.puppet = t,
							  .tensor = tensor,
							  .number = WF_NUMBER_ASSIGNED});
		}
		puppet_continue(&stage->puppet[t], 1);
		stage_settle(stage);
	}
}

/* The first trainer's gradients become the values; then all is as always. */
static void
assign(struct stage *stage)
{
	assign_and_step(stage, 2);
	CHECK(stage, applied(stage) == 1);
	for (uint32_t i = 0; i + 1 < stage_slice_count(stage, 0); i++) {
		for (uint32_t e = 0; e < stage_slice(stage, 0, i)->count; e++) {
			stage->value[i][e] = stage_gradient(0, 1, i, e);
		}
	}
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	for (uint32_t t = 0; t < 2; t++) {
		puppet_continue(&stage->puppet[t], 2);
	}
	stage_settle(stage);
	stage_expect_step(stage, 2);
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
}

static void
an_array_that_is_assigned_is_that_of_the_first_trainer_for_one_step(void **state)
{
	(void)state;
	stage_play(&opts, assign, NULL);
}

/* The lane sends the norm of what is not assigned. */
static void
assign_with_norm(struct stage *stage)
{
	static const struct wf_msg_norm zero;
	const uint32_t *tensors = stage->arg;
	assign_and_step(stage, *tensors);
	const struct puppet *puppet = &stage->puppet[0];
	CHECK(stage, puppet->norms == 1 && puppet->norm.step == 1);
	bool is_zero = memcmp(puppet->norm.word, zero.word, sizeof(zero.word)) == 0;
	CHECK(stage, is_zero == (*tensors == 2));
}

static void
an_array_that_is_assigned_is_no_part_of_the_norm(void **state)
{
	struct stage_opts clipping = opts;
	(void)state;
	clipping.clip_norm = 1e30;
	for (uint32_t tensors = 1; tensors <= 2; tensors++) {
		stage_play(&clipping, assign_with_norm, &tensors);
	}
}

/* ---- who has made them is dropped ---- */

enum when { NEVER, BEFORE, AFTER };

/* Trainer 1 has begun step 2, and is dropped. */
struct lost {
	bool has_changed; /* with that step */
	enum when
		others; /* trainer 0 makes the same changes, and when; NEVER: it is in a new pass */
};

/* Of all that is pushed. */
static void
change_rate(struct stage *stage, uint32_t puppet, uint64_t step, double rate)
{
	for (uint32_t tensor = 0; tensor < 2; tensor++) {
		send_change(stage, &(struct sent){.puppet = puppet,
						  .tensor = tensor,
						  .value = rate,
						  .step = step});
	}
}

static void
lose_one(struct stage *stage, const struct lost *lost)
{
	struct peer *one = &stage->puppet[1].peer;
	if (lost->others == NEVER) {
		puppet_say_out(&stage->puppet[0], 2, 0);
	}
	if (lost->has_changed) {
		change_rate(stage, 1, 2, 0.125);
	}
	if (lost->others == BEFORE) {
		send_change(stage, &(struct sent){.value = 0.125, .step = 2});
	}
	puppet_say_step(&stage->puppet[1], 2, 0);
	stage_settle(stage);
	peer_disconnect(one, WF_DISCONNECT_NOW);
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, stage->lane[0]->peers.all[1].leaving.is_dropped);
}

/* In a new pass, or not. */
static void
step_alone(struct puppet *zero, uint64_t step, uint32_t pass)
{
	puppet_say_step(zero, step, pass);
	zero->peer.steps.step = step;
	puppet_continue(zero, step);
	stage_settle(zero->stage);
	CHECK(zero->stage, !zero->peer.aborted && !zero->peer.down);
}

static void
go_on_alone(struct stage *stage)
{
	const struct lost *lost = stage->arg;
	struct puppet *zero = &stage->puppet[0];
	puppets_begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		change_rate(stage, t, 1, 0.25);
		puppet_continue(&stage->puppet[t], 1);
	}
	stage_settle(stage);
	stage->opts.learning_rate = 0.25;
	stage_expect_step(stage, 1);
	lose_one(stage, lost);
	if (lost->others == BEFORE) {
		send_change(stage, &(struct sent){.tensor = 1, .value = 0.125, .step = 2});
	} else if (lost->others == AFTER) {
		change_rate(stage, 0, 2, 0.125);
	}
	step_alone(zero, 2, lost->others == NEVER ? 1 : 0);
	CHECK(stage, applied(stage) == 2);
	stage->opts.learning_rate = lost->others == NEVER ? 0.25 : 0.125;
	stage->opts.trainers = 1;
	stage_expect_step(stage, 2);
	CHECK(stage, puppet_values_are_right(zero));
}

/* Trainer 1 is alone in step 1, which is applied on one lane, and the other never gets its pushes.
 * The puppets of lane 0 come first. */
static void
go_on_after_half(struct stage *stage)
{
	const uint32_t slices = stage_slice_count(stage, 0);
	puppets_begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_meet(puppet_add(stage, t, 1));
		puppet_initialise(&stage->puppet[2 + t]);
	}
	stage_settle(stage);
	for (uint32_t lane = 0; lane < 2; lane++) {
		puppet_say_out(&stage->puppet[2 * lane], 1, 0);
		change_rate(stage, 2 * lane + 1, 1, 0.125);
	}
	puppet_say_step(&stage->puppet[3], 1, 0);
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	CHECK(stage, applied(stage) == 1);
	stage->opts.learning_rate = 0.125;
	for (uint32_t i = 0; i < slices; i++) {
		stage_expect_push(stage, 1, 1, i, 1);
	}
	peer_disconnect(&stage->puppet[1].peer, WF_DISCONNECT_NOW);
	peer_disconnect(&stage->puppet[3].peer, WF_DISCONNECT_NOW);
	stage_run(stage, 10 * WF_NS_PER_S);
	for (uint32_t lane = 0; lane < 2; lane++) {
		CHECK(stage, stage->lane[lane]->peers.all[1].leaving.is_dropped);
		step_alone(&stage->puppet[2 * lane], 2, 1);
	}
	CHECK(stage, applied(stage) == 2);
	stage->opts.learning_rate = 0.5;
	for (uint32_t i = 0; i < slices; i++) {
		stage_expect_push(stage, 0, 2, i, 2);
	}
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
}

static void
what_a_dropped_trainer_has_changed_counts_if_others_change_it(void **state)
{
	static const struct lost lost[] = {
		{true, NEVER}, {true, BEFORE}, {true, AFTER}, {false, NEVER}, {false, AFTER}};
	struct stage_opts dropping = opts;
	(void)state;
	dropping.min_trainers = 1;
	for (size_t i = 0; i < WF_ARRAY_COUNT(lost); i++) {
		stage_play(&dropping, go_on_alone, &lost[i]);
	}
	dropping.lanes = 2;
	stage_play(&dropping, go_on_after_half, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			changes_that_all_trainers_make_are_in_force_whatever_connections_break),
		cmocka_unit_test(trainers_that_differ_end_the_job_and_both_are_named),
		cmocka_unit_test(what_no_trainer_sends_costs_it_its_connection),
		cmocka_unit_test(
			an_array_that_is_assigned_is_that_of_the_first_trainer_for_one_step),
		cmocka_unit_test(an_array_that_is_assigned_is_no_part_of_the_norm),
		cmocka_unit_test(what_a_dropped_trainer_has_changed_counts_if_others_change_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
