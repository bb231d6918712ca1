/* SPDX-License-Identifier: Apache-2.0 */
/* A whole job as one lane sees it, with scripted messages. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
step(struct stage *stage, uint64_t number)
{
	for (uint32_t t = 0; t < stage->opts.trainers; t++) {
		puppet_continue(&stage->puppet[t], number);
	}
	stage_settle(stage);
	stage_expect_step(stage, number);
}

static void
check_state(struct stage *stage, struct puppet *puppet, uint32_t idx)
{
	const struct wf_msg_pull pull = {
		.request_id = 9,
		.step = 2,
		.section = WF_SECTION_STATE,
		.state_idx = (uint8_t)idx,
		.count = stage_slice_count(stage, 0) - 1, /* the last is static and has no step 2 */
	};
	struct wf_msg out;
	uint32_t before = puppet->answers;
	CHECK(stage, stage_is_static(stage, 0, pull.count));
	puppet_grant(puppet, (uint8_t)(1 + idx));
	wf_msg_pull_encode(&pull, &out);
	peer_send(&puppet->peer, &out);
	stage_settle(stage);
	CHECK(stage, puppet->answers == before + pull.count);
	for (uint32_t i = 0; i < pull.count; i++) {
		CHECK(stage, memcmp(puppet_state(puppet, idx, i), stage->state[idx][i],
				    stage_slice(stage, 0, i)->count * sizeof(float)) == 0);
		CHECK(stage, puppet_state(puppet, idx, i)[0] != 0.0f);
	}
	struct wf_msg_pull beyond = pull;
	beyond.first = pull.count - 1;
	beyond.count = 2;
	wf_msg_pull_encode(&beyond, &out);
	peer_send(&puppet->peer, &out);
	stage_settle(stage);
	CHECK(stage, puppet->nacks == idx + 1 && puppet->answers == before + pull.count);
	CHECK_SAYS(stage, puppet->nack.reason, "a static or reduced tensor has no state");
}

static void
leave(struct stage *stage)
{
	for (uint32_t t = 0; t < stage->opts.trainers; t++) {
		peer_goodbye(&stage->puppet[t].peer);
	}
	stage_settle(stage);
	for (uint32_t t = 0; t < stage->opts.trainers; t++) {
		CHECK(stage, stage->puppet[t].peer.goodbye_heard);
		peer_disconnect(&stage->puppet[t].peer, WF_DISCONNECT_DRAIN);
	}
	stage_settle(stage);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_FINISHED);
}

static uint64_t
count_of(const struct wf_lane *lane, enum wf_lane_counter counter)
{
	return wf_stats_get(wf_lane_stats(lane), counter);
}

static void
honest(struct stage *stage)
{
	const struct wf_stats *stats = wf_lane_stats(stage->lane[0]);
	puppets_begin(stage);
	struct puppet *one = &stage->puppet[1];
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(one));
	step(stage, 1);
	step(stage, 2);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]) && puppet_values_are_right(one));
	uint32_t slices = stage_slice_count(stage, 0);
	CHECK(stage, one->answers == slices + 2 * (slices - 1));
	memset(puppet_values(one, 0), 0, STAGE_SLICE_FLOATS * sizeof(float));
	puppet_pull(one, 2, 0, 1);
	stage_settle(stage);
	CHECK(stage, puppet_values_are_right(one));
	uint32_t before = one->answers;
	puppet_pull(one, 2, slices - 1, 1); /* static: as it is, whatever the step */
	stage_settle(stage);
	CHECK(stage, one->answers == before + 1 && puppet_values_are_right(one));
	for (uint32_t i = 0; i < wf_optimizer_state_count((enum wf_optimizer)stage->opts.optimizer);
	     i++) {
		check_state(stage, one, i);
	}
	puppet_reduce(&stage->puppet[0], 1, 2, 0.5);
	puppet_reduce(one, 1, 2, 2.0);
	stage_settle(stage);
	CHECK(stage, one->peer.reduced_count == 1 && one->peer.reduced.count == 2);
	CHECK(stage, one->peer.reduced.value[0] == 2.5 && one->peer.reduced.value[1] == 4.5);
	CHECK(stage, one->peer.reduced.step == 2);
	leave(stage);
	CHECK(stage, wf_stats_get(stats, WF_LANE_STEP_APPLIED_COUNT) == 2);
	CHECK(stage, wf_stats_get(stats, WF_LANE_SLICE_APPLIED_COUNT) == 2 * (slices - 1));
	CHECK(stage, wf_stats_get(stats, WF_LANE_HELLO_REFUSED_COUNT) == 0);
	CHECK(stage, wf_stats_get(stats, WF_LANE_GRADIENT_SKIPPED_COUNT) == 0);
	wf_lane_reset(stage->lane[0]);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_IDLE);
}

static void
a_job_ends_with_the_optimizers_values_and_state(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		const struct stage_opts opts = {.trainers = 2, .optimizer = kind};
		stage_play(&opts, honest, NULL);
	}
}

static void
pull_ahead(struct stage *stage)
{
	puppets_begin(stage);
	struct puppet *one = &stage->puppet[1];
	uint32_t before = one->answers;
	puppet_pull(one, 1, 0, 1);
	stage_settle(stage);
	CHECK(stage, one->answers == before);
	step(stage, 1);
	uint32_t slices = stage_slice_count(stage, 0);
	CHECK(stage, one->answers == before + 1 + slices - 1);
	CHECK(stage, puppet_values_are_right(one));
}

static void
a_pull_ahead_of_its_step_is_answered_when_the_step_is_applied(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, pull_ahead, NULL);
}

static void
out_and_back(struct stage *stage)
{
	puppets_begin(stage);
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	step(stage, 1);
	puppet_say_out(one, 2, 0);
	puppet_continue(zero, 2);
	stage_settle(stage);
	stage->opts.trainers = 1; /* only trainer 0 pushes step 2 */
	stage_expect_step(stage, 2);
	CHECK(stage, puppet_values_are_right(zero) && !puppet_values_are_right(one));
	puppet_pull(one, 2, 0, stage_slice_count(stage, 0) - 1);
	stage_settle(stage);
	CHECK(stage, puppet_values_are_right(one));
	stage->opts.trainers = 2;
	for (uint32_t t = 0; t < 2; t++) {
		puppet_say_step(&stage->puppet[t], 3, 1);
		for (uint32_t i = 0; i < stage_slice_count(stage, 0) - 1; i++) {
			puppet_push(&stage->puppet[t], i, 3);
		}
	}
	stage_settle(stage);
	stage_expect_step(stage, 3);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
}

static void
a_trainer_out_of_data_is_skipped_until_the_next_pass(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, out_and_back, NULL);
}

/* --- not finite --- */

/* Trainer 1 pushes slice 0 of step 1 with these two elements. */
static void
push_odd(struct stage *stage, float third, float fifth)
{
	struct puppet *one = &stage->puppet[1];
	puppets_begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	puppet_say_step(one, 1, 0);
	for (uint32_t i = 1; i < stage_slice_count(stage, 0) - 1; i++) {
		puppet_push(one, i, 1);
	}
	stage_settle(stage);
	for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
		puppet_source(one, 0)[e] = stage_gradient(1, 1, 0, e);
	}
	puppet_source(one, 0)[3] = third;
	puppet_source(one, 0)[5] = fifth;
	puppet_put(one, 0, 0, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
}

static void
nan_aborts(struct stage *stage)
{
	push_odd(stage, NAN, INFINITY);
	for (uint32_t t = 0; t < 2; t++) {
		const struct puppet *puppet = &stage->puppet[t];
		CHECK(stage, puppet->peer.aborted && puppet->peer.abort.status == WEFT_DATA);
		CHECK(stage, puppet->peer.abort.step == 1);
		CHECK_SAYS(stage, puppet->peer.abort.reason, "2 values of the gradient of w");
		CHECK_SAYS(stage, puppet->peer.abort.reason, "from trainer 1");
		CHECK_SAYS(stage, puppet->peer.abort.who, "pserver 0 lane 0");
	}
}

static void
a_gradient_that_is_not_finite_ends_the_job_naming_trainer_and_tensor(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, nan_aborts, NULL);
}

static void
nan_skips(struct stage *stage)
{
	const struct wf_stats *stats = wf_lane_stats(stage->lane[0]);
	push_odd(stage, NAN, -INFINITY);
	CHECK(stage, wf_stats_get(stats, WF_LANE_GRADIENT_SKIPPED_COUNT) == 2);
	CHECK(stage, wf_stats_get(stats, WF_LANE_STEP_APPLIED_COUNT) == 1);
	stage->value[0][3] = stage_gradient(0, 0, 0, 3);
	stage->value[0][5] = stage_gradient(0, 0, 0, 5);
	CHECK(stage, stage->value[0][4] != stage_gradient(0, 0, 0, 4));
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	CHECK(stage, !stage->puppet[0].peer.aborted);
}

static void
skipped_elements_keep_their_value_and_are_counted(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2, .skips_nonfinite = true}, nan_skips, NULL);
}

/* Who is out of data has pushed nothing that could be looked at. */
static void
nan_beside_one_out(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	puppets_begin(stage);
	step(stage, 1);
	puppet_say_out(zero, 2, 0);
	puppet_say_step(one, 2, 0);
	for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
		puppet_source(one, 0)[e] = e == 3 ? NAN : 1.0f;
	}
	puppet_put(one, 0, 0, 2);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_DATA &&
			     zero->peer.abort.step == 2);
	CHECK_SAYS(stage, zero->peer.abort.reason, "1 values of the gradient of w from trainer 1");
}

static void
a_gradient_that_is_not_finite_is_found_beside_trainers_out_of_data(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, nan_beside_one_out, NULL);
}

static void
sum_overflows(struct stage *stage)
{
	puppets_begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_say_step(&stage->puppet[t], 1, 0);
		for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
			puppet_source(&stage->puppet[t], 0)[e] = 3e38f;
		}
		stage_settle(stage);
		puppet_put(&stage->puppet[t], 0, 0, 1);
	}
	stage_settle(stage);
	CHECK(stage,
	      stage->puppet[0].peer.aborted && stage->puppet[0].peer.abort.status == WEFT_DATA);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "16 values of w would be");
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "above 3.4e38");
}

static void
a_sum_that_overflows_is_not_blamed_on_a_trainer(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, sum_overflows, NULL);
}

/* --- sleep --- */

/* A quiet lane sleeps without a turn before it, and what is due is sent by the arm; one that is to
 * work takes a turn first. */
static void
arm_with_something_due(struct stage *stage)
{
	struct wf_lane *lane = stage->lane[0];
	uint64_t deadline_ns = 0;
	puppets_begin(stage);
	lane->turn.awaits_done = false; /* of answers, which have long been taken */
	CHECK(stage, wf_lane_arm(lane, &deadline_ns) == WF_REST_NOW);
	stage_settle(stage);
	wf_peer_due(&lane->peers.all[0]);
	CHECK(stage, wf_lane_arm(lane, &deadline_ns) == WF_REST_NOW);
	CHECK(stage, lane->turn.due == NULL);
	stage_settle(stage);
	lane->turn.works = true;
	CHECK(stage, wf_lane_arm(lane, &deadline_ns) == WF_REST_IF_EMPTY);
	lane->turn.works = false;
}

static void
a_lane_sends_what_is_due_and_works_before_it_sleeps(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, arm_with_something_due, NULL);
}

/* --- windows --- */

static void
opposite_orders(struct stage *stage)
{
	const uint32_t window = stage->opts.slot_count;
	const struct wf_lane *lane = stage->lane[0];
	puppets_begin(stage);
	uint32_t slices = stage_slice_count(stage, 0) - 1; /* the last is static */
	CHECK(stage, slices == 49);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_say_step(&stage->puppet[t], 1, 0);
		for (uint32_t i = 0; i < slices; i++) {
			puppet_push(&stage->puppet[t], t == 0 ? i : slices - 1 - i, 1);
		}
		stage_settle(stage); /* trainer 0 pushes all it can before 1 begins */
		if (t == 0) {
			/* Its windows fill and are parked as a whole; what is left stays in slots.
			 */
			uint64_t parked = slices / window * window;
			CHECK(stage, count_of(lane, WF_LANE_SLICE_PARKED_COUNT) == parked);
			CHECK(stage, count_of(lane, WF_LANE_PARK_PEAK_BYTES) == parked * 64);
			CHECK(stage, stage->puppet[0].peer.credits == parked);
			CHECK(stage, lane->peers.all[0].slots.held == slices - parked);
		}
	}
	stage_expect_step(stage, 1);
	CHECK(stage, count_of(lane, WF_LANE_SLICE_APPLIED_COUNT) == slices);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	CHECK(stage, wf_store_parked_bytes(&stage_dense(lane)->store) == 0);
	CHECK(stage,
	      stage_dense(lane)->store.park.free_count == stage_dense(lane)->store.park.count);
	CHECK(stage, lane->peers.all[0].slots.held == 0 && lane->peers.all[1].slots.held == 0);
	leave(stage);
}

static void
opposite_orders_do_not_block_each_other(void **state)
{
	(void)state;
	for (uint32_t slots = 1; slots <= 2; slots++) {
		for (uint64_t seed = 1; seed <= 5; seed++) {
			const struct stage_opts opts = {.seed = seed,
							.trainers = 2,
							.slot_count = slots,
							.w_count = 48 * 16};
			stage_play(&opts, opposite_orders, NULL);
		}
	}
}

static uint64_t waits_lent; /* over all seeds */

/* Trainers do not wait for DONE: a push may be here while the last answer is still being read. */
static void
at_once(struct stage *stage)
{
	puppets_begin(stage);
	uint32_t pushed = stage_slice_count(stage, 0) - 1;
	for (uint64_t number = 1; number <= 20; number++) {
		uint32_t due = stage->puppet[0].answers + stage->puppet[1].answers + 2 * pushed;
		puppet_continue(&stage->puppet[0], number);
		puppet_continue(&stage->puppet[1], number);
		for (unsigned i = 0; i < 1000; i++) {
			if (stage->puppet[0].answers + stage->puppet[1].answers == due) {
				break;
			}
			stage_run(stage, 50 * WF_NS_PER_US);
		}
		stage_expect_step(stage, number);
		CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
		CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	}
	/* Of two pushes of a slice the first waits for the other trainer, the second for DONE. */
	const struct wf_lane *lane = stage->lane[0];
	CHECK(stage, count_of(lane, WF_LANE_WAIT_TRAINER_COUNT) == 20 * pushed);
	CHECK(stage, count_of(lane, WF_LANE_WAIT_LENT_COUNT) <= 20 * pushed);
	waits_lent += count_of(lane, WF_LANE_WAIT_LENT_COUNT);
}

static void
a_step_may_follow_the_last_at_once(void **state)
{
	(void)state;
	waits_lent = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed}, at_once, NULL);
	}
	assert_true(waits_lent > 0);
}

/* --- lost and found --- */

static void
cut_in_step(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	const struct wf_lane *lane = stage->lane[0];
	puppets_begin(stage);
	puppet_continue(one, 1);
	stage_settle(stage);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	CHECK(stage,
	      lane->peers.all[1].state == WF_PEER_LOST && lane->peers.all[1].slots.held == 0);
	CHECK(stage, wf_store_parked_bytes(&stage_dense(lane)->store) == 4 * 64);
	puppet_meet(one);
	CHECK(stage, one->peer.steps.step == 1 && one->received[0] == 1);
	CHECK(stage, one->received[stage_slice_count(stage, 0) - 1] == 0);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]) && puppet_values_are_right(one));
	CHECK(stage, count_of(lane, WF_LANE_PEER_RECONNECTED_COUNT) == 1 &&
			     wf_store_parked_bytes(&stage_dense(lane)->store) == 0);
}

static void
pushes_outlive_their_path(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, cut_in_step, NULL);
}

/* What lies in the window is copied aside when the path ends, for the slots are granted again. */
static void
cut_with_slots_to_spare(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	const struct wf_lane *lane = stage->lane[0];
	puppets_begin(stage);
	puppet_say_step(one, 1, 0);
	puppet_push(one, 0, 1);
	puppet_push(one, 2, 1);
	stage_settle(stage);
	CHECK(stage, lane->peers.all[1].slots.held == 2);
	CHECK(stage, wf_store_parked_bytes(&stage_dense(lane)->store) == 0);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	CHECK(stage, lane->peers.all[1].slots.held == 0);
	CHECK(stage, wf_store_parked_bytes(&stage_dense(lane)->store) == 2 * 64);
	CHECK(stage, count_of(lane, WF_LANE_SLICE_PARKED_COUNT) == 2);
	puppet_meet(one);
	CHECK(stage, one->received[0] == 1 && one->received[1] == 0 && one->received[2] == 1);
	puppet_continue(one, 1);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]) && puppet_values_are_right(one));
}

static void
a_window_with_slots_to_spare_is_copied_when_its_path_ends(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, cut_with_slots_to_spare, NULL);
}

static void
lost_answer(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	puppets_begin(stage);
	step(stage, 1);
	memset(puppet_values(one, 0), 0, STAGE_SLICE_FLOATS * sizeof(float));
	memset(puppet_values(one, 2), 0, 8 * sizeof(float));
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	one->have[0] = 0;
	one->have[2] = 0;
	uint32_t before = one->answers;
	puppet_meet(one);
	CHECK(stage, one->answers == before + 2);
	CHECK(stage, puppet_values_are_right(one));
}

static void
answers_that_a_trainer_lacks_are_given_again_and_no_others(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, lost_answer, NULL);
}

/* Trainer 1 is back, and its step is applied before it has said what it has. */
static void
applied_before_have(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	puppets_begin(stage);
	puppet_continue(one, 1);
	stage_settle(stage);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	puppet_grant(one, 0);
	uint32_t before = one->answers;
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]) && one->answers == before);
	puppet_have(one);
	stage_settle(stage);
	CHECK(stage, one->answers == before + 4 && puppet_values_are_right(one));
}

static void
nothing_is_answered_before_have_and_nothing_twice(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, applied_before_have, NULL);
}

static void
never_back(struct stage *stage)
{
	puppets_begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	wf_transport_disconnect(stage->puppet[1].peer.conn, WF_DISCONNECT_NOW);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, !stage->puppet[0].peer.aborted);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage,
	      stage->puppet[0].peer.aborted && stage->puppet[0].peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "trainer 1 (host puppet, pid 101)");
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "step 1");
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "not back within 3.0 s");
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_FAILED);
}

static void
a_trainer_that_stays_away_ends_the_job_by_name(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, never_back, NULL);
}

static void
never_there(struct stage *stage)
{
	puppet_meet(puppet_add(stage, 0, 0));
	stage_run(stage, 299 * WF_NS_PER_S);
	CHECK(stage, !stage->puppet[0].peer.aborted);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage,
	      stage->puppet[0].peer.aborted && stage->puppet[0].peer.abort.status == WEFT_TIMEOUT);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason,
		   "trainer 1 of 2 did not come within 300 s");
}

static void
a_trainer_that_never_comes_ends_the_job_by_name(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, never_there, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_ends_with_the_optimizers_values_and_state),
		cmocka_unit_test(a_pull_ahead_of_its_step_is_answered_when_the_step_is_applied),
		cmocka_unit_test(a_trainer_out_of_data_is_skipped_until_the_next_pass),
		cmocka_unit_test(
			a_gradient_that_is_not_finite_ends_the_job_naming_trainer_and_tensor),
		cmocka_unit_test(
			a_gradient_that_is_not_finite_is_found_beside_trainers_out_of_data),
		cmocka_unit_test(skipped_elements_keep_their_value_and_are_counted),
		cmocka_unit_test(a_lane_sends_what_is_due_and_works_before_it_sleeps),
		cmocka_unit_test(a_sum_that_overflows_is_not_blamed_on_a_trainer),
		cmocka_unit_test(opposite_orders_do_not_block_each_other),
		cmocka_unit_test(a_step_may_follow_the_last_at_once),
		cmocka_unit_test(pushes_outlive_their_path),
		cmocka_unit_test(a_window_with_slots_to_spare_is_copied_when_its_path_ends),
		cmocka_unit_test(answers_that_a_trainer_lacks_are_given_again_and_no_others),
		cmocka_unit_test(nothing_is_answered_before_have_and_nothing_twice),
		cmocka_unit_test(a_trainer_that_stays_away_ends_the_job_by_name),
		cmocka_unit_test(a_trainer_that_never_comes_ends_the_job_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
