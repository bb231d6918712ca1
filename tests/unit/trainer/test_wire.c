/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that travel in 16 bits, through the public interface: what trainers get, and what the
 * pservers keep. Thread: the test's, and one of each trainer. */
#include "kernels/half.h"
#include "tests/unit/trainer/fabric.h"

#include <math.h>

#define ROWS 100u
#define STEPS 12u
#define TRAINERS 2u
#define MOVE 0x1p-10f /* of a step by one trainer: a quarter of what bf16 tells apart at 1 */

struct fixture {
	struct fabric fabric;
	struct member member[TRAINERS];
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fabric_start(&f->fabric, 2, 2, 0);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		member_init(&f->member[i], &f->fabric, i, TRAINERS);
		f->member[i].opts.slice_bytes = 64;
		f->member[i].opts.keep_state = i == 0;
		f->member[i].opts.optimizer.learning_rate = 1;
		f->member[i].opts.dense_wire = WEFT_WIRE_BF16;
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

/* Every element is what it should be, or -1. */
static float
value_of(const float *array)
{
	for (unsigned i = 1; array != NULL && i < ROWS; i++) {
		if (array[i] != array[0]) {
			return -1;
		}
	}
	return array != NULL ? array[0] : -1;
}

/* value[step]: parameters after it; [STEPS + 1]: the pservers'; [STEPS + 2]: the gradient. */
static enum weft_status
follow(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1 + 0x1p-20f, &session, &tensor);
	for (unsigned step = 0; step <= STEPS && st == WEFT_OK; step++) {
		for (unsigned i = 0; i < ROWS; i++) {
			weft_tensor_grad(tensor)[i] = MOVE + 0x1p-30f;
		}
		st = step > 0 ? weft_exchange(session, 1, 0) : WEFT_OK;
		member->value[step] = value_of(weft_tensor_param(tensor));
		member->value[STEPS + 2] = value_of(weft_tensor_grad(tensor));
	}
	if (st == WEFT_OK) {
		st = weft_pass_end(session);
	}
	if (st == WEFT_OK && member->opts.keep_state) {
		st = weft_pull_state(session);
		member->value[STEPS + 1] = value_of(weft_tensor_exact(tensor));
	} else if (st == WEFT_OK) {
		member->value[STEPS + 1] = weft_tensor_exact(tensor) == NULL ? 1 : 0;
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
run_all(struct fixture *f)
{
	for (uint32_t i = 0; i < TRAINERS; i++) {
		f->member[i].run = follow;
	}
	members_run(f->member, TRAINERS);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		assert_ended(&f->member[i], WEFT_OK, "");
	}
}

static void
what_is_too_small_to_be_seen_adds_up_at_the_pservers(void **state)
{
	struct fixture *f = *state;
	float exact = 1 + 0x1p-20f;
	run_all(f);
	for (unsigned step = 0; step <= STEPS; step++) {
		for (uint32_t i = 0; i < TRAINERS; i++) {
			assert_true(f->member[i].value[step] == wf_f32_of_bf16(wf_bf16_of(exact)));
		}
		exact -= step < STEPS ? TRAINERS * MOVE : 0; /* the gradient was rounded, too */
	}
	assert_true(f->member[0].value[STEPS] == wf_f32_of_bf16(wf_bf16_of(exact)));
	assert_true(f->member[0].value[STEPS + 1] == exact);
	assert_true(f->member[0].value[STEPS + 2] == MOVE + 0x1p-30f); /* the caller's own stays */
	assert_true(f->member[1].value[STEPS + 1] == 1);
}

static void
every_mode_goes_over_it(void **state)
{
	struct fixture *f = *state;
	static const struct {
		enum weft_dense_mode mode;
		uint32_t staleness, local_steps;
	} modes[] = {
		{WEFT_DENSE_ASYNC, 0, 0},
		{WEFT_DENSE_BOUNDED, 2, 0},
		{WEFT_DENSE_LOCAL, 0, 1},
		{WEFT_DENSE_LOCAL, 0, 5},
	};
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		for (uint32_t i = 0; i < TRAINERS; i++) {
			f->member[i].opts.dense_mode = modes[m].mode;
			f->member[i].opts.dense_staleness = modes[m].staleness;
			f->member[i].opts.local_steps = modes[m].local_steps;
		}
		run_all(f);
		/* Local steps are made with the gradient as it is, and their sum is rounded. */
		float exact = 1 + 0x1p-20f - STEPS * TRAINERS * MOVE;
		float off = f->member[0].value[STEPS + 1] - exact;
		assert_true(modes[m].local_steps == 5 ? off > -1e-4f && off < 1e-4f : off == 0);
	}
}

/* Trainer 0 gives more than f16 holds. */
static enum weft_status
begin_large(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 70000, &session, &tensor);
	(void)member_note(member, st);
	(void)weft_session_close(session);
	return st;
}

static void
values_too_large_for_f16_end_the_job(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 0; i < TRAINERS; i++) {
		f->member[i].opts.dense_wire = WEFT_WIRE_F16;
		f->member[i].run = begin_large;
	}
	members_run(f->member, TRAINERS);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		assert_ended(&f->member[i], WEFT_DATA, "values of w are too large for f16");
		assert_text(f->member[i].text, "--dense_wire=bf16");
	}
}

enum { LARGE, NOT_A_NUMBER, BEYOND, SMALL }; /* elements of f16's gradient */

/* One step. value[]: each kind of element after it; [4]: gradients_overflowed. */
static enum weft_status
push_what_is_not_finite(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned i = 0; i < ROWS && st == WEFT_OK; i++) {
		weft_tensor_grad(tensor)[i] = MOVE;
	}
	if (st == WEFT_OK && member->opts.trainer_id == 1) {
		weft_tensor_grad(tensor)[LARGE] = 70000;
		weft_tensor_grad(tensor)[NOT_A_NUMBER] = NAN;
		weft_tensor_grad(tensor)[BEYOND] = -INFINITY;
	}
	st = st == WEFT_OK ? weft_exchange(session, 1, 0) : st;
	st = st == WEFT_OK ? weft_session_stats(session, &stats) : st;
	for (unsigned i = LARGE; i <= SMALL && st == WEFT_OK; i++) {
		member->value[i] = weft_tensor_param(tensor)[i];
	}
	member->value[SMALL + 1] = (float)stats.gradients_overflowed;
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
gradients_too_large_for_f16_are_as_those_that_are_infinite(void **state)
{
	struct fixture *f = *state;
	for (int skip = 1; skip >= 0; skip--) {
		for (uint32_t i = 0; i < TRAINERS; i++) {
			f->member[i].opts.dense_wire = WEFT_WIRE_F16;
			f->member[i].opts.dense_rounding = (enum weft_rounding)skip;
			f->member[i].opts.skip_nonfinite = skip;
			f->member[i].run = push_what_is_not_finite;
		}
		members_run(f->member, TRAINERS);
		for (uint32_t i = 0; i < TRAINERS && skip == 0; i++) {
			assert_ended(&f->member[i], WEFT_DATA, "NaN or infinite");
			assert_text(f->member[i].text, "trainer 1");
			assert_text(f->member[i].text, "f16 on the wire ends at 65,504");
		}
		for (uint32_t i = 0; i < TRAINERS && skip == 1; i++) {
			assert_ended(&f->member[i], WEFT_OK, "");
			for (unsigned e = LARGE; e < SMALL; e++) {
				assert_true(f->member[i].value[e] == 1);
			}
			assert_true(f->member[i].value[SMALL] ==
				    wf_f32_of_f16(wf_f16_of(1 - TRAINERS * MOVE)));
			assert_true(f->member[i].value[SMALL + 1] == (float)i);
		}
	}
}

#define wire(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		wire(what_is_too_small_to_be_seen_adds_up_at_the_pservers),
		wire(every_mode_goes_over_it),
		wire(values_too_large_for_f16_end_the_job),
		wire(gradients_too_large_for_f16_are_as_those_that_are_infinite),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
