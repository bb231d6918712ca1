/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors wait for the only slot of a lane: that of the highest priority is answered before one
 * that was pushed earlier, and after it without priorities; the values are the same. Thread: one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/crew.h"
#include "weft/weft.h"
#include "base/settings.h"

#define TENSORS 3u
#define ROWS 160u /* ten slices */
#define SLICE_BYTES 64u

struct run {
	int32_t priority[TENSORS];
	uint64_t inbox_bytes; /* of the lane */

	/* When the last tensor was answered, was that of the first, pushed before? */
	bool first_was_answered;
	uint64_t digest;
};

/* All are pushed before the session has sent any of it; then the last is waited for. */
static enum weft_status
train(struct run *run, struct weft_session *session, struct weft_tensor *const tensor[TENSORS])
{
	enum weft_status st = weft_session_start(session);
	for (uint32_t t = 0; t < TENSORS; t++) {
		for (uint32_t i = 0; i < ROWS; i++) {
			weft_tensor_grad(tensor[t])[i] = (float)(t + 1) * 0.1f;
		}
	}
	st = st == WEFT_OK ? weft_step(session, 1, 0) : st;
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		st = weft_push(tensor[t]);
	}
	st = st == WEFT_OK ? weft_wait(tensor[TENSORS - 1]) : st;
	run->first_was_answered = weft_tensor_param(tensor[0])[ROWS - 1] != 0;
	st = st == WEFT_OK ? weft_wait_all(session) : st;
	return st == WEFT_OK ? weft_digest(session, &run->digest) : st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct run *run = seat->crew->run;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor[TENSORS];
	struct weft_session_opts opts;
	crew_fill_opts(seat->crew, seat->idx, &opts);
	opts.slice_bytes = SLICE_BYTES;
	opts.optimizer.learning_rate = 1;
	enum weft_status st = wf_session_open_in(env, &opts, &session);
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", t);
		const struct weft_tensor_opts declared = {
			.name = name, .rows = ROWS, .priority = run->priority[t]};
		st = weft_tensor_add(session, &declared, &tensor[t]);
	}
	st = st == WEFT_OK ? weft_session_seal(session) : st;
	st = st == WEFT_OK ? train(run, session, tensor) : st;
	if (st != WEFT_OK) {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	enum weft_status end = weft_session_close(session);
	seat->crew->ended += st == WEFT_OK && end == WEFT_OK ? 1 : 0;
	return 0;
}

static void
play(struct run *run)
{
	struct crew crew = {
		.seed = 1,
		.world = {.seed = 1,
			  .delay_min_ns = WF_NS_PER_MS,
			  .delay_max_ns = WF_NS_PER_MS,
			  .log_fd = -1},
		.transport = "sim",
		.pservers = 1,
		.trainers = 1,
		.lanes = 1,
		.slot_count = 1,
		.inbox_bytes = run->inbox_bytes,
		.run_trainer = run_trainer,
		.run = run,
	};
	struct wf_world_stats stats;
	enum weft_status st = crew_play(&crew, &stats);
	assert_string_equal(crew.why, "");
	assert_int_equal(st, WEFT_OK);
	assert_int_equal(crew.ended, 1);
}

static void
higher_priorities_are_answered_first_with_the_same_values(void **state)
{
	(void)state;
	struct run plain = {0};
	struct run first = {.priority = {2, 1, 0}};
	struct run last = {.priority = {-1, 0, 3}};
	struct run narrow = {.priority = {-1, 0, 3}, .inbox_bytes = 2 * SLICE_BYTES};
	play(&plain);
	play(&first);
	play(&last);
	play(&narrow);
	assert_true(plain.first_was_answered && first.first_was_answered);
	assert_false(last.first_was_answered);
	assert_false(narrow.first_was_answered);
	assert_true(first.digest == plain.digest && last.digest == plain.digest);
	assert_true(narrow.digest == plain.digest && plain.digest != 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(higher_priorities_are_answered_first_with_the_same_values),
	};
	return cmocka_run_group_tests_name("cluster priority", tests, NULL, NULL);
}
