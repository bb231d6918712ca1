/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of parameters, through the public interface: what they are of, whatever the lanes, and
 * when there are none. Thread: the test's, and one of each trainer. */
#include <math.h>

#include "tests/unit/trainer/fabric.h"

#define ROWS 100u
#define STEPS 9u
#define LONGEST 4u /* so two windows are over, and a step of the third is in */

struct fixture {
	struct fabric fabric;
	struct member member[2];
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fabric_start(&f->fabric, 2, 2, 0);
	for (uint32_t i = 0; i < 2; i++) {
		member_init(&f->member[i], &f->fabric, i, 2);
		f->member[i].opts.slice_bytes = 64;
		f->member[i].opts.keep_state = i == 0;
		f->member[i].opts.optimizer.method = "momentum";
		f->member[i].opts.optimizer.momentum = 0.5;
		f->member[i].opts.optimizer.learning_rate = 0.125;
		f->member[i].opts.optimizer.average_window = 0.5;
		f->member[i].opts.optimizer.max_average_window = LONGEST;
	}
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	fabric_stop(&f->fabric);
	free(f);
	return 0;
}

/* A step of both trainers, with gradients that differ by trainer, element and step. */
static enum weft_status
take_step(const struct member *member, struct weft_session *session, struct weft_tensor *tensor,
	  unsigned step)
{
	float *grad = weft_tensor_grad(tensor);
	for (unsigned i = 0; i < ROWS; i++) {
		grad[i] = (float)((7 * i + 3 * step + member->id) % 11) - 4.75f;
	}
	return weft_exchange(session, 1, 0);
}

/* Trainer 0: value[0] is how far averages are from the means of what it saw, at most; value[1] and
 * [2] the first and the last. */
static enum weft_status
compare(struct member *member, struct weft_session *session, struct weft_tensor *tensor,
	float (*seen)[ROWS])
{
	float average[ROWS];
	enum weft_status st = weft_pull_state(session);
	if (st == WEFT_OK) {
		st = weft_tensor_average(tensor, average);
	}
	for (unsigned i = 0; i < ROWS && st == WEFT_OK; i++) {
		double want = 0;
		for (unsigned step = STEPS - LONGEST; step <= STEPS; step++) {
			want += (double)seen[step][i] / (LONGEST + 1);
		}
		double off = fabs((double)average[i] - want);
		member->value[0] = fmaxf(member->value[0], (float)off);
	}
	member->value[1] = average[0];
	member->value[2] = average[ROWS - 1];
	return st;
}

static enum weft_status
follow(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	float seen[STEPS + 1][ROWS];
	enum weft_status st = one_tensor(&member->opts, ROWS, 0.5f, &session, &tensor);
	for (unsigned step = 1; step <= STEPS && st == WEFT_OK; step++) {
		st = take_step(member, session, tensor, step);
		memcpy(seen[step], weft_tensor_param(tensor), sizeof(seen[step]));
	}
	if (st == WEFT_OK) {
		st = weft_pass_end(session);
	}
	if (st == WEFT_OK && member->id == 0) {
		st = compare(member, session, tensor, seen);
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
averages_are_means_of_the_last_values(void **state)
{
	struct fixture *f = *state;
	float found[2][2];
	for (unsigned i = 0; i < 2; i++) {
		/* One lane has it all, or each has some of 7 slices. */
		f->member[0].opts.slice_bytes = f->member[1].opts.slice_bytes = i == 0 ? 65536 : 64;
		f->member[0].run = f->member[1].run = follow;
		f->member[0].value[0] = 0;
		members_run(f->member, 2);
		assert_ended(&f->member[0], WEFT_OK, "");
		assert_ended(&f->member[1], WEFT_OK, "");
		if (!(f->member[0].value[0] < 1e-5f)) {
			fail_msg("averages are %g off", (double)f->member[0].value[0]);
		}
		memcpy(found[i], &f->member[0].value[1], sizeof(found[i]));
	}
	assert_memory_equal(found[0], found[1], sizeof(found[0]));
}

/* Without a pull of the state; or, arg_count 1, after one. */
static enum weft_status
ask(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	float average[ROWS];
	enum weft_status st = one_tensor(&member->opts, ROWS, 0.5f, &session, &tensor);
	if (st == WEFT_OK && member->arg_count == 1) {
		st = weft_pull_state(session);
	}
	if (st == WEFT_OK && member->id == 0) {
		st = member_note(member, weft_tensor_average(tensor, average));
		member->value[0] = average[0];
	}
	(void)weft_session_close(session);
	return st;
}

static void
an_average_that_is_not_there_is_refused(void **state)
{
	struct fixture *f = *state;
	f->member[0].run = f->member[1].run = ask;
	members_run(f->member, 2);
	assert_ended(&f->member[0], WEFT_INVALID, "call weft_pull_state first");
	for (unsigned i = 0; i < 2; i++) {
		f->member[i].opts.keep_state = 1;
		f->member[i].arg_count = 1;
		f->member[i].opts.optimizer.average_window = 0;
	}
	members_run(f->member, 2);
	assert_ended(&f->member[0], WEFT_INVALID, "set average_window");
}

static void
before_the_first_step_an_average_is_the_initial_value(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 2; i++) {
		f->member[i].run = ask;
		f->member[i].opts.keep_state = 1;
		f->member[i].arg_count = 1;
	}
	members_run(f->member, 2);
	assert_ended(&f->member[0], WEFT_OK, "");
	assert_true(f->member[0].value[0] == 0.5f);
}

static void
averages_of_other_modes_and_windows_are_refused(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session = NULL;
	struct weft_session_opts opts = f->member[0].opts;
	opts.dense_mode = WEFT_DENSE_ASYNC;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "synchronous mode only");
	opts = f->member[0].opts;
	opts.optimizer.average_window = 2;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "average_window 2");
	opts.optimizer.average_window = (double)NAN;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "average_window nan");
	assert_null(session);
}

#define averages(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		averages(averages_are_means_of_the_last_values),
		averages(an_average_that_is_not_there_is_refused),
		averages(before_the_first_step_an_average_is_the_initial_value),
		averages(averages_of_other_modes_and_windows_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
