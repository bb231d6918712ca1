/* SPDX-License-Identifier: Apache-2.0 */
/* What comes back: values after some steps, beside a computation by hand in the same arithmetic.
 * Formulas: kernels/formulas.md. */
#include <math.h>

#include "tests/unit/trainer/fabric.h"

#define TENSORS_MAX 6
#define STEPS_MAX 8

/* A job: its tensors, and what every trainer does in every step. */
struct plan {
	struct weft_tensor_opts tensor[TENSORS_MAX];
	unsigned tensor_count;
	unsigned steps;
	uint64_t samples[2]; /* of each trainer, in each step */
	bool one_at_a_time;  /* push, wait, push, wait, instead of an exchange */
};

/* Tensor, element, step (from 1) and trainer to a gradient; all exact in f32. */
static float
gradient(unsigned tensor, uint64_t at, unsigned step, unsigned trainer)
{
	return (float)(int)((tensor + 2 * at + 3 * step + 5 * trainer) % 11) - 4.75f;
}

static float
initial(unsigned tensor, uint64_t at)
{
	return 0.5f * (float)(tensor + 1) + 0.125f * (float)(at % 8);
}

static enum weft_status
declare(const struct plan *plan, struct weft_session *session, struct weft_tensor **tensor)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < plan->tensor_count && st == WEFT_OK; i++) {
		st = weft_tensor_add(session, &plan->tensor[i], &tensor[i]);
	}
	return st != WEFT_OK ? st : weft_session_seal(session);
}

static void
fill(const struct member *member, struct weft_tensor **tensor, unsigned step)
{
	const struct plan *plan = member->arg;
	for (unsigned i = 0; i < plan->tensor_count; i++) {
		float *param = weft_tensor_param(tensor[i]);
		float *grad = weft_tensor_grad(tensor[i]);
		for (uint64_t at = 0; at < weft_tensor_count(tensor[i]); at++) {
			if (step == 0) { /* trainer 0's values are everybody's */
				param[at] = member->id == 0 ? initial(i, at) : -77;
			} else if (grad != NULL) {
				grad[at] = gradient(i, at, step, member->id);
			}
		}
	}
}

static enum weft_status
take_step(const struct member *member, struct weft_session *session, struct weft_tensor **tensor)
{
	const struct plan *plan = member->arg;
	uint64_t samples = plan->samples[member->id];
	if (!plan->one_at_a_time) {
		return weft_exchange(session, samples, 0.25);
	}
	enum weft_status st = weft_step(session, samples, 0.25);
	for (unsigned i = plan->tensor_count; i-- > 0 && st == WEFT_OK;) {
		if (!plan->tensor[i].is_static) {
			st = weft_push(tensor[i]);
			st = st != WEFT_OK ? st : weft_wait(tensor[i]);
		}
	}
	return st;
}

static enum weft_status
follow(struct member *member)
{
	const struct plan *plan = member->arg;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor[TENSORS_MAX];
	enum weft_status st = weft_session_open(&member->opts, &session);
	st = st != WEFT_OK ? st : declare(plan, session, tensor);
	if (st == WEFT_OK) {
		fill(member, tensor, 0);
		st = weft_session_start(session);
	}
	for (unsigned step = 1; step <= plan->steps && st == WEFT_OK; step++) {
		fill(member, tensor, step);
		st = take_step(member, session, tensor);
	}
	for (unsigned i = 0; i < plan->tensor_count && st == WEFT_OK; i++) {
		uint64_t last = weft_tensor_count(tensor[i]) - 1;
		member->value[2 * i] = weft_tensor_param(tensor[i])[0];
		member->value[2 * i + 1] = weft_tensor_param(tensor[i])[last];
	}
	st = st != WEFT_OK ? st : weft_digest(session, &member->digest);
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

struct fixture {
	struct fabric fabric;
	struct member member[2];
	struct plan plan;
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
		f->member[i].run = follow;
		f->member[i].arg = &f->plan;
	}
	f->plan = (struct plan){
		.tensor = {{.name = "w", .rows = 50, .cols = 2}},
		.tensor_count = 1,
		.steps = 5,
		.samples = {3, 5},
	};
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

/* Both trainers follow the plan and end with the same bits. */
static void
run_plan(struct fixture *f)
{
	f->member[1].opts.optimizer = f->member[0].opts.optimizer;
	f->member[1].opts.grad_reduce = f->member[0].opts.grad_reduce;
	f->member[1].opts.skip_nonfinite = f->member[0].opts.skip_nonfinite;
	members_run(f->member, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_ended(&f->member[i], WEFT_OK, "");
	}
	assert_true(f->member[0].digest == f->member[1].digest);
}

static uint64_t
last_of(const struct weft_tensor_opts *tensor)
{
	return tensor->rows * (tensor->cols == 0 ? 1 : tensor->cols) - 1;
}

static void
assert_value(const struct fixture *f, unsigned tensor, unsigned which, double expected,
	     double tolerance)
{
	for (unsigned i = 0; i < 2; i++) {
		double got = (double)f->member[i].value[2 * tensor + which];
		if (!(fabs(got - expected) <= tolerance * fabs(expected))) {
			fail_msg("trainer %u, %s: %.9g, not %.9g", i, f->plan.tensor[tensor].name,
				 got, expected);
		}
	}
}

/* SGD by hand in f32: w = w - rate (clip(s / divisor) + decay w), then by rate l1 towards 0. */
static float
sgd(unsigned tensor, uint64_t at, unsigned steps, const float *rate, const float setting[4])
{
	float w = initial(tensor, at);
	const float divisor = setting[0], decay = setting[1], clip = setting[2];
	for (unsigned step = 1; step <= steps; step++) {
		float g = gradient(tensor, at, step, 0) + gradient(tensor, at, step, 1);
		g = g / divisor;
		g = clip > 0 && g > clip ? clip : g;
		g = clip > 0 && g < -clip ? -clip : g;
		w = w - rate[step - 1] * (g + decay * w);
		float drop = rate[step - 1] * setting[3];
		w = w > drop ? w - drop : w < -drop ? w + drop : drop > 0 ? 0 : w;
	}
	return w;
}

static void
sums_are_not_divided_and_means_are_by_the_samples(void **state)
{
	struct fixture *f = *state;
	for (unsigned mean = 0; mean < 2; mean++) {
		const float rate[5] = {0.125f, 0.125f, 0.125f, 0.125f, 0.125f};
		const float setting[4] = {mean == 1 ? 8 : 1, 0, 0, 0};
		f->member[0].opts.optimizer.learning_rate = 0.125;
		f->member[0].opts.grad_reduce = mean == 1 ? WEFT_REDUCE_MEAN : WEFT_REDUCE_SUM;
		run_plan(f);
		assert_value(f, 0, 0, (double)sgd(0, 0, 5, rate, setting), 0);
		assert_value(f, 0, 1, (double)sgd(0, 99, 5, rate, setting), 0);
	}
}

static void
tensors_have_settings_of_their_own(void **state)
{
	struct fixture *f = *state;
	f->plan = (struct plan){
		.tensor = {{.name = "of_the_job", .rows = 40},
			   {.name = "faster", .rows = 20, .rate_multiplier = 3},
			   {.name = "decayed", .rows = 17, .decay = 0.25},
			   {.name = "clipped", .rows = 100, .clip = 0.5, .l1 = 0.25},
			   {.name = "free", .rows = 1, .decay = -1, .clip = -1, .l1 = -1},
			   {.name = "fixed", .rows = 33, .is_static = 1}},
		.tensor_count = 6,
		.steps = 4,
		.samples = {1, 1},
	};
	f->member[0].opts.optimizer.learning_rate = 0.0625;
	f->member[0].opts.optimizer.decay = 0.5;
	f->member[0].opts.optimizer.clip = 2;
	f->member[0].opts.optimizer.l1 = 0.5;
	run_plan(f);
	static const float setting[5][5] = {/* rate, divisor, decay, clip, l1 */
					    {0.0625f, 1, 0.5f, 2, 0.5f},
					    {0.1875f, 1, 0.5f, 2, 0.5f},
					    {0.0625f, 1, 0.25f, 2, 0.5f},
					    {0.0625f, 1, 0.5f, 0.5f, 0.25f},
					    {0.0625f, 1, 0, 0, 0}};
	for (unsigned t = 0; t < 5; t++) {
		uint64_t last = last_of(&f->plan.tensor[t]);
		const float rate[4] = {setting[t][0], setting[t][0], setting[t][0], setting[t][0]};
		assert_value(f, t, 0, (double)sgd(t, 0, 4, rate, &setting[t][1]), 0);
		assert_value(f, t, 1, (double)sgd(t, last, 4, rate, &setting[t][1]), 0);
	}
	assert_value(f, 5, 0, (double)initial(5, 0), 0); /* given by trainer 0, never changed */
	assert_value(f, 5, 1, (double)initial(5, 32), 0);
}

static void
schedules_count_the_samples_of_all_trainers(void **state)
{
	struct fixture *f = *state;
	const float setting[4] = {1, 0, 0, 0};
	const float manual[5] = {0.5f, 0.5f, 0.5f, 0.125f, 0.125f}; /* 0, 8, 16, 24, 32 before */
	float linear[5], warmup[5], poly[5];
	for (unsigned i = 0; i < 5; i++) { /* eight samples a step */
		poly[i] = (float)(0.5 / (1 + 0.125 * 8 * i));
		linear[i] = (float)fmax(0.5 - 0.015625 * 8 * i, 0.0625);
		warmup[i] = (float)(0.5 * fmin(1, 8.0 * (i + 1) / 32));
	}
	struct weft_optimizer_opts *optimizer = &f->member[0].opts.optimizer;
	optimizer->learning_rate = 0.5;
	optimizer->schedule = "linear";
	optimizer->schedule_a = 0.015625;
	optimizer->schedule_b = 0.0625;
	run_plan(f);
	assert_value(f, 0, 1, (double)sgd(0, 99, 5, linear, setting), 0);
	optimizer->schedule = "warmup";
	optimizer->schedule_a = 32;
	optimizer->schedule_b = 0;
	run_plan(f);
	assert_value(f, 0, 1, (double)sgd(0, 99, 5, warmup, setting), 0);
	optimizer->schedule = "poly";
	optimizer->schedule_a = 0.125;
	optimizer->schedule_b = 1;
	run_plan(f);
	assert_value(f, 0, 1, (double)sgd(0, 99, 5, poly, setting), 1e-6);
	optimizer->schedule = "manual";
	optimizer->schedule_args = "16:1,24:0.25";
	run_plan(f);
	assert_value(f, 0, 1, (double)sgd(0, 99, 5, manual, setting), 0);
}

static void
momentum_is_kept_across_steps(void **state)
{
	struct fixture *f = *state;
	f->member[0].opts.optimizer.method = "momentum";
	f->member[0].opts.optimizer.momentum = 0.75;
	f->member[0].opts.optimizer.learning_rate = 0.125;
	run_plan(f);
	float w = initial(0, 99), m = 0;
	for (unsigned step = 1; step <= 5; step++) {
		float g = gradient(0, 99, step, 0) + gradient(0, 99, step, 1);
		m = 0.75f * m - 0.125f * (g + 0 * w);
		w = w + m;
	}
	assert_value(f, 0, 1, (double)w, 0);
}

/* In f64; the pservers have f32, so within what eight of its steps may lose. */
static void
adam_keeps_both_moments_and_corrects_their_bias(void **state)
{
	struct fixture *f = *state;
	struct weft_optimizer_opts *optimizer = &f->member[0].opts.optimizer;
	optimizer->method = "adam";
	optimizer->learning_rate = 0.05;
	f->plan.steps = STEPS_MAX;
	run_plan(f);
	double w = (double)initial(0, 99), m = 0, v = 0;
	double b1 = (double)(float)optimizer->beta1, b2 = (double)(float)optimizer->beta2;
	for (unsigned t = 1; t <= STEPS_MAX; t++) {
		double g = (double)(gradient(0, 99, t, 0) + gradient(0, 99, t, 1));
		m = b1 * m + (1 - b1) * g;
		v = b2 * v + (1 - b2) * g * g;
		double rate = optimizer->learning_rate * sqrt(1 - pow(b2, t)) / (1 - pow(b1, t));
		w -= rate * m / (sqrt(v) + optimizer->epsilon);
	}
	assert_value(f, 0, 1, w, 1e-5);
}

static void
how_tensors_are_pushed_and_cut_changes_no_bit(void **state)
{
	struct fixture *f = *state;
	uint64_t digest[6];
	static const uint64_t slice[6] = {64, 64, 128, 1024, 262144, 64};
	f->plan.tensor[1] = (struct weft_tensor_opts){.name = "b", .rows = 37};
	f->plan.tensor[2] = (struct weft_tensor_opts){.name = "c", .rows = 3, .is_static = 1};
	f->plan.tensor_count = 3;
	f->member[0].opts.optimizer.method = "adam";
	for (unsigned i = 0; i < 6; i++) {
		f->plan.one_at_a_time = i % 2 == 1;
		for (unsigned t = 0; t < 2; t++) {
			f->member[t].opts.slice_bytes = slice[i];
			f->member[t].opts.progress =
				i == 5 ? WEFT_PROGRESS_CALLER : WEFT_PROGRESS_THREAD;
		}
		run_plan(f);
		digest[i] = f->member[0].digest;
		assert_true(digest[i] == digest[0]);
	}
}

/* Beside a tensor that is updated, over every transport of one host: the last step's sum or mean.
 */
static void
what_is_only_reduced_is_answered_with_its_sum_or_mean(void **state)
{
	static const char *const transport[] = {"tcp", "shm"};
	struct fixture *f = *state;
	const float rate[5] = {0.125f, 0.125f, 0.125f, 0.125f, 0.125f};
	f->plan.tensor[1] = (struct weft_tensor_opts){.name = "r", .rows = 90, .is_reduced = 1};
	f->plan.tensor_count = 2;
	f->member[0].opts.optimizer.learning_rate = 0.125;
	f->member[0].opts.optimizer.clip = 1; /* of the other one alone */
	for (unsigned i = 0; i < 4; i++) {
		const float divisor = i % 2 == 1 ? 8 : 1;
		const float setting[4] = {divisor, 0, 1, 0};
		f->member[0].opts.transport = f->member[1].opts.transport = transport[i / 2];
		f->member[0].opts.grad_reduce = i % 2 == 1 ? WEFT_REDUCE_MEAN : WEFT_REDUCE_SUM;
		run_plan(f);
		assert_value(f, 0, 1, (double)sgd(0, 99, 5, rate, setting), 0);
		for (unsigned which = 0; which < 2; which++) {
			uint64_t at = which == 0 ? 0 : 89;
			float sum = gradient(1, at, 5, 0) + gradient(1, at, 5, 1);
			assert_value(f, 1, which, (double)(sum / divisor), 0);
		}
	}
}

/* One step in which trainer 1 hands in a NaN. */
static enum weft_status
push_nan(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, 100, 1, &session, &tensor);
	if (st == WEFT_OK) {
		for (unsigned i = 0; i < 100; i++) {
			weft_tensor_grad(tensor)[i] = 1;
		}
		weft_tensor_grad(tensor)[70] = member->id == 1 ? NAN : 1;
		st = weft_exchange(session, 1, 0);
		member->value[0] = weft_tensor_param(tensor)[70];
		member->value[1] = weft_tensor_param(tensor)[71];
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
a_nan_ends_the_job_naming_trainer_tensor_and_step(void **state)
{
	struct fixture *f = *state;
	f->member[0].run = f->member[1].run = push_nan;
	members_run(f->member, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_ended(&f->member[i], WEFT_DATA, "gradient of w from trainer 1");
		assert_text(f->member[i].text, "step 1");
	}
}

static void
a_nan_may_be_skipped_element_by_element(void **state)
{
	struct fixture *f = *state;
	f->member[0].run = f->member[1].run = push_nan;
	f->member[0].opts.skip_nonfinite = 1;
	f->member[0].opts.optimizer.learning_rate = 0.25;
	f->member[1].opts.optimizer.learning_rate = 0.25;
	f->member[1].opts.skip_nonfinite = 1;
	members_run(f->member, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_ended(&f->member[i], WEFT_OK, "");
		assert_true(f->member[i].value[0] == 1);
		assert_true(f->member[i].value[1] == 0.5f);
	}
}

#define value(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		value(sums_are_not_divided_and_means_are_by_the_samples),
		value(tensors_have_settings_of_their_own),
		value(schedules_count_the_samples_of_all_trainers),
		value(momentum_is_kept_across_steps),
		value(adam_keeps_both_moments_and_corrects_their_bias),
		value(how_tensors_are_pushed_and_cut_changes_no_bit),
		value(what_is_only_reduced_is_answered_with_its_sum_or_mean),
		value(a_nan_ends_the_job_naming_trainer_tensor_and_step),
		value(a_nan_may_be_skipped_element_by_element),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
