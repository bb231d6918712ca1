/* SPDX-License-Identifier: Apache-2.0 */
/* Clipping by the norm of the whole gradient, through the public interface: what comes out,
 * whatever the lanes and slots, and how waits go with it. Thread: the test's, and one of each
 * trainer. */
#include <math.h>

#include "tests/unit/trainer/fabric.h"

#define TENSORS 3u
#define STEPS 4u
#define RATE 0.125

static const uint64_t rows[TENSORS] = {100, 7, 33};

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
		f->member[i].opts.optimizer.learning_rate = RATE;
		f->member[i].opts.optimizer.clip_norm = 3.0;
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

/* Short in the first step, long in the others. */
static float
gradient(unsigned tensor, uint64_t at, unsigned step, unsigned trainer)
{
	float size = step == 1 ? 0.001f : 1.0f;
	return size * ((float)((tensor + 2 * at + 3 * step + 5 * trainer) % 11) - 4.75f);
}

static enum weft_status
declare(struct weft_session *session, struct weft_tensor **tensor)
{
	enum weft_status st = WEFT_OK;
	for (unsigned t = 0; t < TENSORS && st == WEFT_OK; t++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", t);
		const struct weft_tensor_opts opts = {.name = name, .rows = rows[t]};
		st = weft_tensor_add(session, &opts, &tensor[t]);
	}
	return st != WEFT_OK ? st : weft_session_seal(session);
}

/* arg_count 1: the second trainer ends its pass after the second step. */
static bool
takes_part(const struct member *member, unsigned id, unsigned step)
{
	return member->arg_count == 0 || id == 0 || step <= 2;
}

static enum weft_status
take_steps(struct member *member, struct weft_session *session, struct weft_tensor **tensor)
{
	enum weft_status st = WEFT_OK;
	for (unsigned step = 1; step <= STEPS && st == WEFT_OK; step++) {
		if (!takes_part(member, member->id, step)) {
			break;
		}
		for (unsigned t = 0; t < TENSORS; t++) {
			for (uint64_t i = 0; i < rows[t]; i++) {
				weft_tensor_grad(tensor[t])[i] = gradient(t, i, step, member->id);
			}
		}
		st = weft_exchange(session, 1, 0);
	}
	return st != WEFT_OK ? st : weft_pass_end(session);
}

static enum weft_status
follow(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor[TENSORS];
	enum weft_status st = weft_session_open(&member->opts, &session);
	st = st != WEFT_OK ? st : declare(session, tensor);
	st = st != WEFT_OK ? st : weft_session_start(session); /* from zeros */
	st = st != WEFT_OK ? st : take_steps(member, session, tensor);
	for (unsigned t = 0; t < TENSORS && st == WEFT_OK; t++) {
		member->value[2 * t] = weft_tensor_param(tensor[t])[0];
		member->value[2 * t + 1] = weft_tensor_param(tensor[t])[rows[t] - 1];
	}
	st = st != WEFT_OK ? st : weft_digest(session, &member->digest);
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

/* By the definition, in f64: SGD from 0. */
static double
expected(const struct member *member, unsigned tensor, uint64_t at)
{
	double value = 0;
	for (unsigned step = 1; step <= STEPS; step++) {
		double squares = 0;
		double own = 0;
		for (unsigned t = 0; t < TENSORS; t++) {
			for (uint64_t i = 0; i < rows[t]; i++) {
				double g = (double)gradient(t, i, step, 0);
				if (takes_part(member, 1, step)) {
					g += (double)gradient(t, i, step, 1);
				}
				squares += g * g;
				own = t == tensor && i == at ? g : own;
			}
		}
		double norm = sqrt(squares);
		value -= RATE * own * (norm > 3.0 ? 3.0 / norm : 1.0);
	}
	return value;
}

static void
run(struct fixture *f)
{
	f->member[0].run = f->member[1].run = follow;
	members_run(f->member, 2);
	assert_ended(&f->member[0], WEFT_OK, "");
	assert_ended(&f->member[1], WEFT_OK, "");
	assert_true(f->member[0].digest == f->member[1].digest);
	for (unsigned v = 0; v < 2 * TENSORS; v++) {
		uint64_t at = v % 2 == 0 ? 0 : rows[v / 2] - 1;
		double want = expected(&f->member[0], v / 2, at);
		double got = (double)f->member[0].value[v];
		if (!(fabs(got - want) <= 1e-6 + 1e-6 * fabs(want))) {
			fail_msg("value %u is %.9g, not %.9g", v, got, want);
		}
	}
}

static void
a_long_gradient_is_shortened_and_a_short_one_is_not(void **state)
{
	run(*state);
}

static void
lanes_change_no_bit(void **state)
{
	struct fixture *f = *state;
	run(f);
	uint64_t spread = f->member[0].digest;
	fabric_stop(&f->fabric);
	fabric_start(&f->fabric, 1, 1, 0);
	for (uint32_t i = 0; i < 2; i++) {
		f->member[i].opts.pservers = f->fabric.pservers;
		f->member[i].opts.ports_num = 1;
	}
	run(f);
	assert_true(f->member[0].digest == spread);
}

static void
the_norm_is_of_those_who_take_part(void **state)
{
	struct fixture *f = *state;
	f->member[0].arg_count = f->member[1].arg_count = 1;
	run(f);
}

static enum weft_status
wait_too_soon(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor[TENSORS];
	enum weft_status st = weft_session_open(&member->opts, &session);
	st = st != WEFT_OK ? st : declare(session, tensor);
	st = st != WEFT_OK ? st : weft_session_start(session);
	st = st != WEFT_OK ? st : weft_step(session, 1, 0);
	st = st != WEFT_OK ? st : weft_push(tensor[0]);
	if (st == WEFT_OK) {
		bool one = weft_wait(tensor[0]) == WEFT_INVALID;
		bool all = weft_wait_all(session) == WEFT_INVALID;
		bool says = strstr(weft_last_error(), "with clip_norm the gradient is of ") &&
			    strstr(weft_last_error(), "in one step: tensor t1 was not pushed") &&
			    strstr(weft_last_error(), "push all tensors first");
		member->value[0] = one && all && says;
		st = weft_wait(tensor[1]); /* nothing of it is under way */
	}
	for (unsigned t = 1; t < TENSORS && st == WEFT_OK; t++) {
		st = weft_push(tensor[t]);
	}
	st = st != WEFT_OK ? st : weft_wait(tensor[0]);
	st = st != WEFT_OK ? st : weft_wait_all(session);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
a_wait_before_all_is_pushed_is_refused_and_goes_well_after(void **state)
{
	struct fixture *f = *state;
	f->member[0].run = f->member[1].run = wait_too_soon;
	members_run(f->member, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(f->member[i].status, WEFT_OK);
		assert_true(f->member[i].value[0] == 1);
	}
}

static void
norms_that_are_none_are_refused(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session = NULL;
	struct weft_session_opts opts = f->member[0].opts;
	opts.dense_mode = WEFT_DENSE_ASYNC;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "clip_norm=3");
	opts = f->member[0].opts;
	opts.optimizer.clip_norm = -1;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "clip_norm -1");
	opts.optimizer.clip_norm = (double)NAN;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "clip_norm nan");
	opts.optimizer.clip_norm = 1e-60;
	assert_refused(weft_session_open(&opts, &session), WEFT_INVALID, "clip_norm 1e-60");
	assert_null(session);
}

#define norm(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		norm(a_long_gradient_is_shortened_and_a_short_one_is_not),
		norm(lanes_change_no_bit),
		norm(the_norm_is_of_those_who_take_part),
		norm(a_wait_before_all_is_pushed_is_refused_and_goes_well_after),
		norm(norms_that_are_none_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
