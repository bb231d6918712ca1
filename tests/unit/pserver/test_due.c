/* SPDX-License-Identifier: Apache-2.0 */
/* A lane asks a peer that it owes nothing but answers for nothing else. Everything else that
 * becomes due then reaches the trainer all the same, alone and together with answers, and so does
 * what is due on its next path. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEEDS 10u /* orders in which messages of two trainers arrive */

/* What becomes due to puppet 1. Only values are owed, of a step that both have pushed. */
struct kind {
	void (*cause)(struct stage *stage);
	bool (*is_here)(const struct puppet *puppet);
	bool is_last;  /* no further step follows */
	bool is_alone; /* no trainer causes it while it waits for answers */
};

static void
check_values(struct stage *stage, uint64_t step)
{
	stage_expect_step(stage, step);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(stage, puppet_values_are_right(&stage->puppet[i]));
	}
}

static void
push_step(struct stage *stage, uint64_t step)
{
	for (uint32_t i = 0; i < 2; i++) {
		puppet_continue(&stage->puppet[i], step);
	}
}

/* Steps 1 and 2 are over, and their answers were asked for alone. */
static void
begin(struct stage *stage)
{
	puppets_begin(stage);
	for (uint64_t step = 1; step <= 2; step++) {
		push_step(stage, step);
		stage_settle(stage);
		check_values(stage, step);
	}
	for (uint32_t i = 0; i < 2; i++) {
		const struct wf_due *due = &stage->lane[0]->peers.all[i].due;
		CHECK(stage, !due->queued && !due->whole);
	}
}

/* --- kinds --- */

static void
ask_beat(struct stage *stage)
{
	peer_beat(&stage->puppet[1].peer, true, true);
}

static bool
has_beat(const struct puppet *puppet)
{
	return puppet->peer.beats == 1;
}

static void
reduce(struct stage *stage)
{
	for (uint32_t i = 0; i < 2; i++) {
		puppet_reduce(&stage->puppet[i], 1, 1, 0.5);
	}
}

static bool
has_reduced(const struct puppet *puppet)
{
	return puppet->peer.reduced_count == 1;
}

/* More pulls of a step to come than a lane keeps: the last one is refused. */
static void
pull_too_much(struct stage *stage)
{
	for (unsigned i = 0; i <= WF_PULLS_MAX; i++) {
		puppet_pull(&stage->puppet[1], 9, 0, 1);
	}
}

static bool
has_nack(const struct puppet *puppet)
{
	return puppet->nacks == 1;
}

/* All that its window has room for, so that this is parked. */
static void
fill_window(struct stage *stage)
{
	puppet_continue(&stage->puppet[1], 3);
}

static bool
has_credit(const struct puppet *puppet)
{
	return peer_free_buffer(&puppet->peer) == 0; /* though nothing was answered */
}

static void
leave(struct stage *stage)
{
	for (uint32_t i = 0; i < 2; i++) {
		peer_goodbye(&stage->puppet[i].peer);
	}
}

static bool
has_goodbye(const struct puppet *puppet)
{
	return puppet->peer.goodbye_heard;
}

static void
abort_job(struct stage *stage)
{
	struct wf_msg msg;
	wf_msg_abort_encode(&(struct wf_msg_abort){.status = WEFT_DATA, .who = "puppet 0"}, &msg);
	peer_send(&stage->puppet[0].peer, &msg);
}

static bool
has_abort(const struct puppet *puppet)
{
	return puppet->peer.aborted;
}

static const struct kind kinds[] = {
	{.cause = ask_beat, .is_here = has_beat},
	{.cause = reduce, .is_here = has_reduced},
	{.cause = pull_too_much, .is_here = has_nack},
	{.cause = fill_window, .is_here = has_credit, .is_alone = true},
	{.cause = leave, .is_here = has_goodbye, .is_last = true, .is_alone = true},
	{.cause = abort_job, .is_here = has_abort, .is_last = true},
};

/* --- alone, beside answers, after a loss --- */

static void
cause_alone(struct stage *stage)
{
	const struct kind *kind = stage->arg;
	begin(stage);
	kind->cause(stage);
	stage_settle(stage);
	CHECK(stage, kind->is_here(&stage->puppet[1]));
	if (kind->is_last) {
		return;
	}
	puppet_continue(&stage->puppet[0], 3);
	if (kind->cause != fill_window) {
		puppet_continue(&stage->puppet[1], 3);
	}
	stage_settle(stage);
	check_values(stage, 3);
}

static void
everything_that_is_due_is_sent(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		stage_play(&(struct stage_opts){.trainers = 2}, cause_alone, &kinds[i]);
	}
}

static void
cause_beside_answers(struct stage *stage)
{
	const struct kind *kind = stage->arg;
	begin(stage);
	push_step(stage, 3);
	kind->cause(stage);
	stage_settle(stage);
	CHECK(stage, kind->is_here(&stage->puppet[1]));
	if (!kind->is_last) {
		check_values(stage, 3);
	}
}

static void
so_is_what_is_due_beside_answers(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		for (uint64_t seed = 1; seed <= SEEDS && !kinds[i].is_alone; seed++) {
			stage_play(&(struct stage_opts){.trainers = 2, .seed = seed},
				   cause_beside_answers, &kinds[i]);
		}
	}
}

/* The answers become due in a turn that also brings the end of the path, or near it. */
static void
lose_path_beside_answers(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	const struct kind *kind = stage->arg;
	begin(stage);
	push_step(stage, 3);
	stage_run(stage, stage->opts.seed * 20 * WF_NS_PER_US);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_meet(one);
	CHECK(stage, one->peer.granted && one->peer.resumed);
	puppet_continue(one, 3);
	stage_settle(stage);
	check_values(stage, 3);
	push_step(stage, 4);
	stage_settle(stage);
	check_values(stage, 4);
	kind->cause(stage);
	stage_settle(stage);
	CHECK(stage, kind->is_here(one));
}

static void
so_is_what_is_due_on_the_next_path(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		for (uint64_t seed = 1; seed <= SEEDS && !kinds[i].is_alone; seed++) {
			stage_play(&(struct stage_opts){.trainers = 2, .seed = seed},
				   lose_path_beside_answers, &kinds[i]);
		}
	}
}

/* A pull that waits for its step, beside answers that do not wait. */
static void
pull_ahead(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	begin(stage);
	puppet_pull(one, 4, 0, 1);
	push_step(stage, 3);
	stage_settle(stage);
	check_values(stage, 3);
	uint32_t before = one->answers;
	push_step(stage, 4);
	stage_settle(stage);
	check_values(stage, 4);
	CHECK(stage, one->answers == before + 4 + 1); /* of the pushed slices, and of the pull */
}

static void
a_pull_that_waits_is_answered_after_its_step(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed}, pull_ahead, NULL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_that_is_due_is_sent),
		cmocka_unit_test(so_is_what_is_due_beside_answers),
		cmocka_unit_test(so_is_what_is_due_on_the_next_path),
		cmocka_unit_test(a_pull_that_waits_is_answered_after_its_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
