/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that begin with a state that they had, and the positions of trainers: what a lane sends
 * first, what it goes on with, what it keeps, and what it refuses. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pserver/position.h"

#define STEP 5u
#define SAMPLES 50u

/* What a lane is given, or `fails`. */
struct kept {
	struct wf_lane_source source; /* first: cast back */
	enum weft_status fails;
	const bool *is_known; /* false: it is not known yet what the job begins with; NULL: it is */
	uint64_t step, samples;
	const char *position[2]; /* of each trainer, with its pass; NULL: none */
	double rate;             /* that trainers had changed that of w to; 0: they had not */
};

static float
kept_value(uint32_t section, uint32_t ordinal, uint32_t element)
{
	return (section == 0 ? 1.0f : 0.25f) * stage_gradient(2, 3, ordinal, element);
}

static enum weft_status
load_positions(const struct kept *kept, struct wf_lane *lane)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t t = 0; t < 2 && st == WEFT_OK; t++) {
		const char *bytes = kept->position[t];
		if (bytes != NULL) {
			st = wf_position_set(lane, t, kept->step, (const uint8_t *)bytes, 7);
		}
	}
	return st;
}

static enum weft_status
load(const struct wf_lane_source *source, struct wf_lane *lane, struct wf_msg_init *out)
{
	const struct kept *kept = (const struct kept *)source;
	const struct wf_store *store = &stage_dense(lane)->store;
	if (kept->is_known != NULL && !*kept->is_known) {
		return WEFT_AGAIN;
	}
	if (kept->fails != WEFT_OK) {
		return wf_fail(kept->fails, "the part of lane 0 is damaged");
	}
	for (uint32_t i = 0; i < store->stored_count; i++) {
		const struct wf_stored *stored = &store->stored[i];
		for (uint32_t e = 0; e < stored->count; e++) {
			wf_store_param(store, stored)[e] = kept_value(0, i, e);
			if (stored->has_state && store->state_count > 0) {
				wf_store_state(store, stored, 0)[e] = kept_value(1, i, e);
			}
		}
	}
	*out = (struct wf_msg_init){.step = kept->step, .samples = kept->samples};
	struct wf_numbers numbers = {0};
	enum weft_status st = load_positions(kept, lane);
	if (st == WEFT_OK && kept->rate > 0) {
		wf_numbers_set(&numbers, WF_NUMBER_LEARNING_RATE, kept->rate, kept->step);
		st = wf_change_load(lane, 0, &numbers);
	}
	return st;
}

/* What the lane's values are then, for stage_expect_step. */
static void
expect_kept(struct stage *stage)
{
	for (uint32_t i = 0; i < stage_slice_count(stage, 0); i++) {
		for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
			stage->value[i][e] = kept_value(0, i, e);
			stage->state[0][i][e] = kept_value(1, i, e);
		}
	}
}

static void
come_back(struct puppet *puppet)
{
	wf_transport_disconnect(puppet->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(puppet->stage);
	puppet_meet(puppet);
}

static void
pull_all(struct puppet *puppet)
{
	puppet_pull(puppet, 0, 0, stage_slice_count(puppet->stage, 0));
	stage_settle(puppet->stage);
}

/* It was told where the job begins, before RESUME, which has that step for all slices. */
static bool
began_well(const struct puppet *puppet, uint32_t paths)
{
	bool all = true;
	for (uint32_t i = 0; i < stage_slice_count(puppet->stage, 0); i++) {
		all = all && puppet->received[i] == STEP;
	}
	return all && puppet->inits == paths && puppet->positions == paths &&
	       puppet->init.step == STEP && puppet->init.samples == SAMPLES &&
	       puppet->init.sections == 1 && puppet->peer.steps.initialised &&
	       puppet->peer.steps.step == STEP;
}

/* Trainer 0 comes last, and trainer 1 twice. */
static void
begin_and_step(struct stage *stage)
{
	struct puppet *one = puppet_add(stage, 1, 0);
	expect_kept(stage);
	puppet_meet(one);
	CHECK(stage, began_well(one, 1));
	pull_all(one);
	come_back(one);
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_meet(zero);
	pull_all(zero);
	CHECK(stage, began_well(one, 2) && began_well(zero, 1));
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
	CHECK(stage,
	      zero->position.count == 7 && memcmp(zero->position.bytes, "\3\0\0\0abc", 7) == 0);
	CHECK(stage, one->position.count == 4 && memcmp(one->position.bytes, "\3\0\0\0", 4) == 0);
	CHECK(stage, zero->position.step == STEP && one->position.step == STEP);
	puppet_continue(zero, STEP + 1);
	puppet_continue(one, STEP + 1);
	stage_settle(stage);
	stage_expect_step(stage, STEP + 1);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
	CHECK(stage, stage->lane[0]->order.sum.samples_before ==
			     SAMPLES + stage_samples(0) + stage_samples(1));
	come_back(one); /* it has made a step: its data is further */
	CHECK(stage, one->positions == 2 && one->inits == 3);
	CHECK(stage, !zero->peer.down && !one->peer.down);
}

static void
a_lane_that_has_a_state_begins_with_it_and_nobody_sends_values(void **state)
{
	const struct kept kept = {
		.source.load = load,
		.step = STEP,
		.samples = SAMPLES,
		.position = {"\3\0\0\0abc", NULL},
	};
	const struct stage_opts opts = {
		.trainers = 2, .optimizer = WF_MOMENTUM, .source = &kept.source};
	(void)state;
	stage_play(&opts, begin_and_step, NULL);
}

/* The rate of w is 0 from the state on, that of b is the job's. */
static void
step_with_changed_rate(struct stage *stage)
{
	expect_kept(stage);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_meet(puppet_add(stage, t, 0));
		pull_all(&stage->puppet[t]);
	}
	for (uint32_t t = 0; t < 2; t++) {
		puppet_continue(&stage->puppet[t], STEP + 1);
	}
	stage_settle(stage);
	stage->opts.learning_rate = 0.125;
	stage_expect_step(stage, STEP + 1);
	for (uint32_t i = 0; i < stage_slice_count(stage, 0); i++) {
		bool is_w = stage_slice(stage, 0, i)->tensor == 0;
		size_t bytes = stage_slice(stage, 0, i)->count * sizeof(float);
		bool moved =
			memcmp(puppet_values(&stage->puppet[0], i), stage->value[i], bytes) != 0;
		CHECK(stage, stage_is_static(stage, 0, i) || moved != is_w);
	}
}

static void
numbers_that_trainers_had_changed_stay_in_force(void **state)
{
	const struct kept kept = {
		.source.load = load, .step = STEP, .samples = SAMPLES, .rate = 0.125};
	const struct stage_opts opts = {.trainers = 2, .source = &kept.source};
	(void)state;
	stage_play(&opts, step_with_changed_rate, NULL);
}

static void
begin_as_ever(struct stage *stage)
{
	puppets_begin(stage);
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
	CHECK(stage, stage->puppet[0].inits == 0 && stage->puppet[0].positions == 0);
}

static void
a_lane_without_a_state_begins_with_the_values_of_trainer_0(void **state)
{
	const struct kept kept = {.source.load = load, .fails = WEFT_CLOSED};
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2, .source = &kept.source}, begin_as_ever,
		   NULL);
}

/* The trainers are connected before the state is known, and nothing begins. */
static void
begin_later(struct stage *stage)
{
	bool *const *is_known = stage->arg;
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	expect_kept(stage);
	puppet_connect(zero);
	stage_settle(stage);
	puppet_send_job(zero);
	puppet_connect(one);
	stage_settle(stage);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, (one->peer.welcome.flags & WF_WELCOME_SEND_JOB) == 0);
	CHECK(stage, !zero->peer.granted && !zero->peer.resumed && zero->inits == 0);
	CHECK(stage, !one->peer.granted && !one->peer.resumed && one->inits == 0);
	stage_check_waits(stage, WF_LANE_AWAITS_START,
			  "the job waits for the state with which it begins");
	**is_known = true;
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, !zero->peer.down && !one->peer.down);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_grant(&stage->puppet[t], 0);
		puppet_have(&stage->puppet[t]);
	}
	stage_settle(stage);
	CHECK(stage, began_well(zero, 1) && began_well(one, 1));
	pull_all(zero);
	pull_all(one);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
	puppet_continue(zero, STEP + 1);
	puppet_continue(one, STEP + 1);
	stage_settle(stage);
	stage_expect_step(stage, STEP + 1);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
}

static void
trainers_are_connected_while_the_state_is_not_known(void **state)
{
	bool is_known = false;
	bool *const known = &is_known;
	const struct kept kept = {.source.load = load,
				  .is_known = &is_known,
				  .step = STEP,
				  .samples = SAMPLES,
				  .position = {"\3\0\0\0abc", NULL}};
	const struct stage_opts opts = {
		.trainers = 2, .optimizer = WF_MOMENTUM, .source = &kept.source};
	(void)state;
	stage_play(&opts, begin_later, &known);
}

static void
fail_to_begin(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_connect(zero);
	stage_settle(stage);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_DATA);
	CHECK_SAYS(stage, zero->peer.abort.reason, stage->arg);
}

static void
a_state_that_cannot_be_ends_the_job_by_name(void **state)
{
	static const struct {
		struct kept kept;
		const char *says;
	} bad[] = {
		{{.fails = WEFT_DATA}, "the part of lane 0 is damaged"},
		{{.step = 0}, "a state after step 0 over 0 samples"},
		{{.step = 1ull << 62}, "a state after step 4611686018427387904"},
		{{.step = 1, .samples = 1ull << 63}, "over 9223372036854775808 samples"},
		{{.step = 1, .position = {"\0\0\0\0abc"}}, "position of trainer 0: 7 bytes after"},
		{{.step = 1, .rate = 1e300 * 1e300}, "changes of w: "},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kept kept = bad[i].kept;
		kept.source.load = load;
		stage_play(&(struct stage_opts){.trainers = 2, .source = &kept.source},
			   fail_to_begin, bad[i].says);
	}
}

/* --- positions --- */

static void
send_position(struct puppet *puppet, uint64_t step, const char *bytes)
{
	struct wf_msg out;
	struct wf_msg_position msg = {.step = step, .count = 6};
	memcpy(msg.bytes, bytes, msg.count);
	wf_msg_position_encode(&msg, &out);
	peer_send(&puppet->peer, &out);
	stage_settle(puppet->stage);
}

static bool
is_at(const struct stage *stage, uint32_t trainer, uint64_t step, const char *bytes)
{
	const uint8_t *at = NULL;
	uint32_t count = 0;
	bool known = wf_position_at(stage->lane[0], trainer, step, &at, &count);
	return bytes == NULL ? !known : known && count == 6 && memcmp(at, bytes, 6) == 0;
}

static void
both_step(struct stage *stage, uint64_t step)
{
	puppet_continue(&stage->puppet[0], step);
	puppet_continue(&stage->puppet[1], step);
	stage_settle(stage);
}

/* Trainer 0 has one in steps 1, 2 and 4, trainer 1 never. */
static void
keep_two(struct stage *stage)
{
	puppets_begin(stage);
	struct puppet *zero = &stage->puppet[0];
	CHECK(stage, is_at(stage, 0, UINT64_MAX, NULL));
	send_position(zero, 1, "\1\0\0\0a1");
	CHECK(stage, is_at(stage, 0, 1, "\1\0\0\0a1") && is_at(stage, 0, 0, NULL));
	come_back(zero); /* before its STEP: sent again */
	send_position(zero, 1, "\1\0\0\0b1");
	both_step(stage, 1);
	send_position(zero, 2, "\1\0\0\0a2"); /* and the state after step 1 is not kept yet */
	CHECK(stage, is_at(stage, 0, 1, "\1\0\0\0b1") && is_at(stage, 0, 2, "\1\0\0\0a2"));
	both_step(stage, 2);
	both_step(stage, 3);
	CHECK(stage, is_at(stage, 0, 3, "\1\0\0\0a2"));
	send_position(zero, 4, "\1\0\0\0a4");
	CHECK(stage, is_at(stage, 0, 3, "\1\0\0\0a2") && is_at(stage, 0, 4, "\1\0\0\0a4"));
	CHECK(stage, is_at(stage, 0, 1, NULL) && is_at(stage, 1, 4, NULL));
	CHECK(stage, is_at(stage, 2, 4, NULL) && zero->positions == 0);
	CHECK(stage, !zero->peer.down && !stage->puppet[1].peer.down);
}

static void
the_positions_of_the_two_newest_steps_are_kept(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, keep_two, NULL);
}

/* Each trainer has its own steps: trainer 0 is two ahead. */
static void
keep_of_own_steps(struct stage *stage)
{
	puppets_begin(stage);
	for (uint64_t step = 1; step <= 3; step++) {
		send_position(&stage->puppet[0], step, "\1\0\0\0zz");
		puppet_continue(&stage->puppet[0], step);
		stage_settle(stage);
	}
	send_position(&stage->puppet[1], 1, "\1\0\0\0oo");
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	CHECK(stage, is_at(stage, 0, 3, "\1\0\0\0zz") && is_at(stage, 0, 1, NULL));
	CHECK(stage, is_at(stage, 1, 1, "\1\0\0\0oo"));
	CHECK(stage, !stage->puppet[0].peer.down && !stage->puppet[1].peer.down);
}

static void
positions_are_of_each_trainers_own_steps_in_the_asynchronous_mode(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2, .mode = WEFT_DENSE_ASYNC}, keep_of_own_steps,
		   NULL);
}

struct offence {
	uint64_t step;
	uint32_t lane;
	bool early; /* before the initial values */
	bool late;  /* after the STEP of step 1 */
	const char *says;
};

static void
offend(struct stage *stage)
{
	const struct offence *offence = stage->arg;
	struct puppet *zero = puppet_add(stage, 0, offence->lane);
	puppet_meet(zero);
	if (!offence->early) {
		puppet_initialise(zero);
		stage_settle(stage);
	}
	if (offence->late) {
		puppet_say_step(zero, 1, 0);
	}
	send_position(zero, offence->step, "\1\0\0\0xx");
	CHECK(stage, zero->peer.down);
	CHECK_SAYS(stage, stage->lane[offence->lane]->peers.all[0].lost.why, offence->says);
}

static void
a_position_that_no_trainer_sends_costs_the_connection(void **state)
{
	static const struct offence offences[] = {
		{.step = 1, .early = true, .says = "POSITION: of step 1, the lane is in step 1"},
		{.step = 1, .late = true, .says = "and waits for step 2 of this trainer"},
		{.step = 2, .says = "POSITION: of step 2, the lane is in step 1"},
		{.step = 1, .lane = 1, .says = "this lane has no positions of trainers, which"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(offences) / sizeof(offences[0]); i++) {
		stage_play(&(struct stage_opts){.trainers = 1, .lanes = 2}, offend, &offences[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_that_has_a_state_begins_with_it_and_nobody_sends_values),
		cmocka_unit_test(numbers_that_trainers_had_changed_stay_in_force),
		cmocka_unit_test(a_lane_without_a_state_begins_with_the_values_of_trainer_0),
		cmocka_unit_test(trainers_are_connected_while_the_state_is_not_known),
		cmocka_unit_test(a_state_that_cannot_be_ends_the_job_by_name),
		cmocka_unit_test(the_positions_of_the_two_newest_steps_are_kept),
		cmocka_unit_test(positions_are_of_each_trainers_own_steps_in_the_asynchronous_mode),
		cmocka_unit_test(a_position_that_no_trainer_sends_costs_the_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
