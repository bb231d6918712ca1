/* SPDX-License-Identifier: Apache-2.0 */
/* Row optimizers: one step of each computed by hand, settings and what they refuse, and steps
 * without a gradient against the steps themselves. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "kernels/kernels.h"

#define DIM 2

static struct wf_row_opts
opts_of(enum wf_row_optimizer kind)
{
	struct wf_row_opts opts = wf_row_defaults();
	opts.kind = kind;
	opts.set.learning_rate = 0.5;
	opts.set.momentum = 0.5;
	opts.set.beta1 = 0.5;
	opts.set.beta2 = 0.75;
	opts.set.rho = 0.5;
	opts.set.epsilon = 0x1p-20;
	return opts;
}

/* One step on a row of two by ref. */
static size_t
step(const struct wf_row_opts *opts, float *row, const float *const *grad, uint32_t count,
     uint64_t updates)
{
	struct wf_row_scalars scalars;
	const uint32_t first[2] = {0, count};
	struct wf_row_batch batch = {
		.row = &row, .count = 1, .dim = DIM, .grad = grad, .first = first};

	wf_row_scalars_fill(opts, opts->set.learning_rate, 1.0f, updates, &scalars);
	return wf_kernels_ref()->rows->apply[opts->kind](&scalars, &batch);
}

static void
expect(const float *row, const double *want, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double error = fabs((double)row[i] - want[i]);
		if (!(error <= 1e-6 * (1.0 + fabs(want[i])))) {
			fail_msg("element %zu is %.9g, not %.9g", i, (double)row[i], want[i]);
		}
	}
}

static const float grad_a[DIM] = {1.0f, -2.0f};
static const float *const one_grad[] = {grad_a};

static void
sgd_takes_a_step_against_the_gradient(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_SGD);
	float row[DIM] = {1.0f, 2.0f};
	assert_int_equal(step(&opts, row, one_grad, 1, 1), 0);
	expect(row, (double[]){0.5, 3.0}, 2);
}

static void
gradients_of_a_row_are_summed_in_order(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_SGD);
	const float large[DIM] = {0x1p24f, 0x1p24f};
	const float minus[DIM] = {-0x1p24f, -0x1p24f};
	const float one[DIM] = {1.0f, 1.0f};
	const float *const lost[] = {one, large, minus};
	const float *const kept[] = {large, minus, one};
	float row[DIM] = {0.0f, 0.0f};

	(void)step(&opts, row, lost, 3, 1);
	expect(row, (double[]){0.0, 0.0}, 2);
	(void)step(&opts, row, kept, 3, 1);
	expect(row, (double[]){-0.5, -0.5}, 2);
}

/* The first is copied with all its bits, and the sums have those of that order. */
static void
rows_of_a_batch_are_summed_in_their_order(void **state)
{
	const float grad[][DIM] = {{1.0f, -0.0f}, {0x1p24f, 2.0f}, {-0x1p24f, 3.0f}};
	const uint32_t place[] = {1, 2, 0, 0, 1, 2, 0};
	const uint32_t first[] = {0, 3, 6, 7};
	const float want[][DIM] = {{1.0f, 5.0f}, {0.0f, 5.0f}, {1.0f, -0.0f}};
	float out[3][DIM];
	const struct wf_row_sums sums = {
		.grad = grad[0], .place = place, .first = first, .count = 3, .dim = DIM};
	wf_kernels_ref()->rows->sum(out[0], &sums);
	assert_memory_equal(out, want, sizeof(want));
	wf_kernels_best()->rows->sum(out[0], &sums);
	assert_memory_equal(out, want, sizeof(want));
}

static void
l1_then_l2_act_after_the_step(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_SGD);
	float row[DIM] = {1.0f, -1.125f};
	opts.set.l1 = 0.25;
	opts.set.l2 = 2.0;
	/* 1 - 0.5 = 0.5; -0.125 = 0.375; / (1 + 1). -1.125 + 1 = -0.125; + 0.125 = 0. */
	(void)step(&opts, row, one_grad, 1, 1);
	expect(row, (double[]){0.1875, 0.0}, 2);
}

static void
momentum_keeps_half_of_its_speed(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_MOMENTUM);
	float row[2 * DIM] = {1.0f, 2.0f, 1.0f, 0.0f};
	(void)step(&opts, row, one_grad, 1, 1);
	/* m = 0.5 - 0.5 and 0 + 1 */
	expect(row, (double[]){1.0, 3.0, 0.0, 1.0}, 4);
}

static void
adagrad_divides_by_the_root_of_its_squares(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_ADAGRAD);
	float row[2 * DIM] = {1.0f, 2.0f, 3.0f, 0.0f};
	(void)step(&opts, row, one_grad, 1, 1);
	expect(row, (double[]){1.0 - 0.5 / 2.0, 2.0 + 0.5, 4.0, 4.0}, 4);
}

static void
adagrad_rowwise_has_one_mean_square(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_ADAGRAD_ROWWISE);
	float row[DIM + 1] = {1.0f, 2.0f, 1.5f};
	(void)step(&opts, row, one_grad, 1, 1);
	/* 1.5 + (1 + 4) / 2 = 4 */
	expect(row, (double[]){1.0 - 0.25, 2.0 + 0.5, 4.0}, 3);
}

static void
rmsprop_divides_by_the_deviation(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_RMSPROP);
	float row[3 * DIM] = {1.0f, 2.0f, 0.0f, 0.0f, 0.0f, 0.0f};
	(void)step(&opts, row, one_grad, 1, 1);
	/* G = 0.5 and 2, F = 0.5 and -1: variance 0.25 and 1 */
	double w0 = 1.0 - 0.5 / sqrt(0.25 + 0x1p-20);
	double w1 = 2.0 + 1.0 / sqrt(1.0 + 0x1p-20);
	expect(row, (double[]){w0, w1, 0.5, 2.0, 0.5, -1.0}, 6);
}

/* As that of tensors does in the job's first step: A counts all of it, F does not. */
static void
rmsprops_first_square_of_a_row_counts_in_full(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_RMSPROP);
	static const char *const forms[] = {"ref", "avx2", "avx512"};
	for (size_t f = 0; f < WF_ARRAY_COUNT(forms); f++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[f]);
		float old[3 * DIM] = {1.0f, 2.0f, 0.0f, 0.0f, 0.0f, 0.0f};
		float new[3 * DIM] = {1.0f, 2.0f, 0.0f, 0.0f, 0.0f, 0.0f};
		float *const rows[2] = {old, new};
		uint32_t stamp[2] = {7, 0};
		const float *const grads[2] = {grad_a, grad_a};
		struct wf_row_batch batch = {
			.row = rows, .count = 2, .dim = DIM, .grad = grads, .stamp = stamp};
		struct wf_row_scalars scalars;
		wf_row_scalars_fill(&opts, opts.set.learning_rate, 1.0f, 8, &scalars);
		if (kernels == NULL) {
			continue;
		}
		(void)kernels->rows->apply[WF_ROW_RMSPROP](&scalars, &batch);
		expect(old + DIM, (double[]){0.5, 2.0, 0.5, -1.0}, 4);
		/* G = 1 and 4, F = 0.5 and -1: variance 0.75 and 3 */
		double w0 = 1.0 - 0.5 / sqrt(0.75 + 0x1p-20);
		double w1 = 2.0 + 1.0 / sqrt(3.0 + 0x1p-20);
		expect(new, (double[]){w0, w1, 1.0, 4.0, 0.5, -1.0}, 6);
		stamp[1] = 8;
		(void)kernels->rows->apply[WF_ROW_RMSPROP](&scalars, &batch);
		expect(new + DIM, (double[]){1.0, 4.0, 0.75, -1.5}, 4); /* half and half */
		batch.stamp = NULL;
		(void)kernels->rows->apply[WF_ROW_RMSPROP](&scalars, &batch);
		expect(new + DIM, (double[]){1.0, 4.0, 0.875, -1.75}, 4);
	}
}

static void
adam_corrects_its_first_step(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_ADAM);
	float row[3 * DIM] = {1.0f, 2.0f, 0.0f, 0.0f, 0.0f, 0.0f};
	(void)step(&opts, row, one_grad, 1, 1);
	/* Corrected, the first step is the rate against the sign. */
	double near = 0.5 / (1.0 + 2e-6);
	expect(row, (double[]){1.0 - near, 2.0 + near, 0.5, -1.0, 0.25, 1.0}, 6);
}

static void
adam_rowwise_has_one_second_moment(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_ADAM_ROWWISE);
	float row[2 * DIM + 1] = {1.0f, 2.0f, 0.0f, 0.0f, 0.0f};
	(void)step(&opts, row, one_grad, 1, 1);
	/* v = 0.25 * 2.5; rate 0.5 sqrt(0.25) / 0.5 = 0.5 */
	double rate = 0.5 / (sqrt(0.625) + 0x1p-20);
	expect(row, (double[]){1.0 - rate * 0.5, 2.0 + rate, 0.5, -1.0, 0.625}, 5);
}

static void
ftrl_sets_small_weights_to_zero(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_FTRL);
	float row[3 * DIM] = {0};
	opts.set.l1 = 1.5;
	opts.set.l2 = 1.0;
	(void)step(&opts, row, one_grad, 1, 1);
	/* z = 1 and -2; n = 1 and 4; w = 0 and (2 - 1.5) / ((1 + 2) / 0.5 + 1) */
	expect(row, (double[]){0.0, 0.5 / 7.0, 1.0, -2.0, 1.0, 4.0}, 6);
}

static void
ftrl_group_sets_whole_rows_to_zero(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_FTRL_GROUP);
	float row[3 * DIM] = {0};
	opts.set.l21 = 2.0;
	/* Norm sqrt(5), below 2 sqrt(2). */
	(void)step(&opts, row, one_grad, 1, 1);
	expect(row, (double[]){0.0, 0.0, 1.0, -2.0, 1.0, 4.0}, 6);
	(void)step(&opts, row, one_grad, 1, 2);
	/* z = 2 and -4, norm sqrt(20): the share left is 1 - sqrt(8 / 20). */
	double share = 1.0 - sqrt(8.0 / 20.0);
	double w0 = -2.0 * share / ((1.0 + sqrt(2.0)) / 0.5);
	double w1 = 4.0 * share / ((1.0 + sqrt(8.0)) / 0.5);
	expect(row, (double[]){w0, w1, 2.0, -4.0, 2.0, 8.0}, 6);
}

static void
an_element_without_a_number_stays_and_is_counted(void **state)
{
	const float bad[DIM] = {(float)NAN, 1.0f};
	const float *const grad[] = {grad_a, bad};

	for (unsigned kind = 0; kind < WF_ROW_OPTIMIZER_COUNT; kind++) {
		struct wf_row_opts opts = opts_of((enum wf_row_optimizer)kind);
		float row[3 * DIM] = {7.0f, 7.0f};
		assert_int_equal(step(&opts, row, grad, 2, 1), 1);
		assert_true(row[0] == 7.0f);
		assert_true(row[1] != 7.0f);
	}
}

static void
expect_refused(const struct wf_row_opts *opts, enum weft_status want, const char *text)
{
	assert_int_equal(wf_row_check(opts), want);
	if (strstr(weft_last_error(), text) == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", weft_last_error(), text);
	}
}

static void
settings_outside_their_limits_are_refused(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_SGD);
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts.set.l1 = -1.0;
	expect_refused(&opts, WEFT_INVALID, "l1 -1");
	opts = opts_of(WF_ROW_RMSPROP);
	opts.set.rho = 1.0;
	expect_refused(&opts, WEFT_INVALID, "rho 1");
	opts = opts_of(WF_ROW_SGD);
	opts.set.learning_rate = (double)NAN;
	expect_refused(&opts, WEFT_INVALID, "learning_rate");
	opts = opts_of(WF_ROW_SGD);
	opts.set.learning_rate = 0.0;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts = opts_of(WF_ROW_FTRL_GROUP);
	opts.set.learning_rate = 0.0;
	expect_refused(&opts, WEFT_INVALID, "learning_rate 0 of ftrl_group: it divides");
	opts = opts_of(WF_ROW_FTRL);
	opts.set.decay = 0.1;
	expect_refused(&opts, WEFT_INVALID, "ftrl has l2");
	opts = opts_of(WF_ROW_SGD);
	opts.set.l21 = 0.1;
	expect_refused(&opts, WEFT_INVALID, "only ftrl_group");
	opts.kind = WF_ROW_OPTIMIZER_COUNT;
	expect_refused(&opts, WEFT_INVALID, "row optimizer 10");
}

static void
schedules_that_tables_do_not_have_are_refused(void **state)
{
	struct wf_row_opts opts = wf_row_defaults();
	opts.schedule = WF_SCHEDULE_MANUAL;
	expect_refused(&opts, WEFT_UNSUPPORTED, "schedule manual: rows of tables");
	opts.schedule = WF_SCHEDULE_PASS_MANUAL;
	expect_refused(&opts, WEFT_UNSUPPORTED, "schedule pass_manual: rows of tables");
	opts.schedule = WF_SCHEDULE_CAFFE_POLY; /* ends at 0 */
	opts.set.schedule_a = 1000;
	opts.set.schedule_b = 1;
	opts.kind = WF_ROW_FTRL;
	expect_refused(&opts, WEFT_UNSUPPORTED, "ftrl would divide");
	opts.schedule = WF_SCHEDULE_LINEAR;
	opts.set.schedule_b = 0; /* this too */
	expect_refused(&opts, WEFT_UNSUPPORTED, "give a schedule_b above 0");
	opts.set.schedule_b = 1e-4;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts.schedule = WF_SCHEDULE_CAFFE_POLY;
	opts.set.schedule_b = 1;
	opts.kind = WF_ROW_ADAM;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	assert_true(wf_row_rate(&opts, 500, 1) == opts.set.learning_rate * 0.5);
}

static void
what_has_no_closed_form_is_refused(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_ADAM);
	opts.set.dense_equivalent = true;
	expect_refused(&opts, WEFT_UNSUPPORTED, "no closed form");
	opts.kind = WF_ROW_ADAM_ROWWISE;
	expect_refused(&opts, WEFT_UNSUPPORTED, "no closed form");
	opts = opts_of(WF_ROW_ADAGRAD);
	opts.set.dense_equivalent = true;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts.set.l1 = 0.1;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts.set.decay = 0.1;
	expect_refused(&opts, WEFT_UNSUPPORTED, "decay 0 or l1 0");
	opts.set.l1 = 0.0;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts.schedule = WF_SCHEDULE_WARMUP;
	opts.set.schedule_a = 10.0;
	expect_refused(&opts, WEFT_UNSUPPORTED, "decay 0 or schedule constant");
	opts = opts_of(WF_ROW_RMSPROP);
	opts.set.dense_equivalent = true;
	opts.set.l2 = 0.1;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	opts.set.decay = 0.1;
	expect_refused(&opts, WEFT_UNSUPPORTED, "decay 0");
	opts = opts_of(WF_ROW_SPARSE_MOMENTUM);
	opts.set.l1 = 0.1;
	expect_refused(&opts, WEFT_UNSUPPORTED, "l1 0");
	opts.set.l1 = 0.0;
	opts.set.decay = 0.1;
	opts.schedule = WF_SCHEDULE_WARMUP;
	opts.set.schedule_a = 10.0;
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	assert_true(wf_row_motion_varies(&opts));
	opts = opts_of(WF_ROW_SGD);
	opts.set.dense_equivalent = true;
	opts.set.decay = 2.0;
	expect_refused(&opts, WEFT_UNSUPPORTED, "decay below");
}

static void
names_are_understood_and_others_refused(void **state)
{
	for (unsigned kind = 0; kind < WF_ROW_OPTIMIZER_COUNT; kind++) {
		const char *name = wf_row_optimizer_name((enum wf_row_optimizer)kind);
		enum wf_row_optimizer got = WF_ROW_OPTIMIZER_COUNT;
		assert_int_equal(wf_row_optimizer_parse(name, &got), WEFT_OK);
		assert_int_equal(got, kind);
	}
	enum wf_row_optimizer got;
	assert_int_equal(wf_row_optimizer_parse("adamx", &got), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "adagrad_rowwise"));
}

/* As many single steps with a gradient of zero. */
static void
expect_motion(const struct wf_row_opts *opts, uint64_t steps)
{
	const float zeros[DIM] = {0.0f, 0.0f};
	const float *const grad[] = {zeros};
	float slow[3 * DIM] = {0.75f, -0.5f, 0.25f, 0.125f, 0.0f, 0.0f};
	float fast[3 * DIM];
	float seen[DIM];
	struct wf_row_motion once = wf_row_motion_of(opts);
	struct wf_row_motion many = wf_row_motion_power(&once, steps);

	memcpy(fast, slow, sizeof(fast));
	wf_row_look(&many, seen, fast, DIM);
	wf_row_move(&many, fast, DIM);
	assert_memory_equal(seen, fast, sizeof(seen));
	for (uint64_t i = 0; i < steps; i++) {
		(void)step(opts, slow, grad, 1, i + 1);
	}
	size_t floats = DIM + wf_row_state_floats(opts->kind, DIM);
	for (size_t i = 0; i < floats; i++) {
		double error = fabs((double)slow[i] - (double)fast[i]);
		/* The stated tolerance: what steps one by one lose, half a unit in the last place
		 * each, which momentum carries on 1 / (1 - mu) times. Numbers are below 32. */
		double carried = opts->kind == WF_ROW_SGD ? 1.0 : 1.0 / (1.0 - opts->set.momentum);
		if (error > 0x1p-20 * (double)(steps + 2) * carried) {
			fail_msg("%s, %llu steps: element %zu is %.9g, not %.9g",
				 wf_row_optimizer_name(opts->kind), (unsigned long long)steps, i,
				 (double)fast[i], (double)slow[i]);
		}
	}
}

static void
steps_missed_are_made_up_for_in_closed_form(void **state)
{
	static const uint64_t steps[] = {0, 1, 2, 3, 7, 64, 255, 256, 1000, 3000};
	struct wf_row_opts cases[9];

	cases[0] = opts_of(WF_ROW_SGD);
	cases[0].set.decay = 0.01;
	cases[1] = opts_of(WF_ROW_SGD);
	cases[1].set.l1 = 1e-3;
	cases[1].set.l2 = 1e-2;
	cases[1].set.decay = 1e-3;
	cases[2] = opts_of(WF_ROW_MOMENTUM);
	cases[2].set.momentum = 0.9;
	cases[2].set.decay = 0.01;
	cases[3] = opts_of(WF_ROW_SPARSE_MOMENTUM);
	cases[3].set.momentum = 0.99;
	cases[3].set.l2 = 1e-3;
	cases[4] = opts_of(WF_ROW_RMSPROP);
	cases[4].set.rho = 0.95;
	cases[4].set.l1 = 1e-3;
	cases[4].set.l2 = 1e-3;
	cases[5] = opts_of(WF_ROW_ADAGRAD);
	cases[6] = opts_of(WF_ROW_ADAGRAD);
	cases[6].set.l1 = 1e-3;
	cases[6].set.l2 = 1e-3;
	cases[7] = opts_of(WF_ROW_ADAGRAD);
	cases[7].set.decay = 1e-3;
	cases[7].set.l2 = 1e-3;
	cases[8] = opts_of(WF_ROW_ADAGRAD_ROWWISE);
	cases[8].set.decay = 1e-3;
	for (size_t c = 0; c < WF_ARRAY_COUNT(cases); c++) {
		cases[c].set.dense_equivalent = true;
		cases[c].set.learning_rate = 0.1;
		assert_int_equal(wf_row_check(&cases[c]), WEFT_OK);
		for (size_t i = 0; i < WF_ARRAY_COUNT(steps); i++) {
			expect_motion(&cases[c], steps[i]);
		}
	}
}

static void
l1_leaves_zero_and_not_its_other_side(void **state)
{
	struct wf_row_opts opts = opts_of(WF_ROW_SGD);
	float row[DIM] = {0.5f, -0.5f};
	opts.set.l1 = 0.01;
	opts.set.dense_equivalent = true;
	struct wf_row_motion once = wf_row_motion_of(&opts);
	struct wf_row_motion many = wf_row_motion_power(&once, UINT32_MAX);
	wf_row_move(&many, row, DIM);
	assert_true(row[0] == 0.0f && row[1] == 0.0f);
}

/* The squares of 2e19 and 3e38 are beyond f32; every form leaves what would not be finite. */
static void
a_row_never_becomes_infinite_from_finite_gradients(void **state)
{
	enum { WIDE = 37 };
	const char *const forms[] = {"ref", "avx2", "avx512"};
	for (unsigned kind = 0; kind < 3 * WF_ROW_OPTIMIZER_COUNT; kind++) {
		struct wf_row_opts opts = opts_of((enum wf_row_optimizer)(kind / 3));
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[kind % 3]);
		const bool has_squares = opts.kind >= WF_ROW_ADAGRAD;
		struct wf_row_scalars scalars;
		float row[3 * WIDE + 1];
		float grad[WIDE];
		float *at = row;
		const float *from = grad;
		const struct wf_row_batch batch = {
			.row = &at, .count = 1, .dim = WIDE, .grad = &from};
		for (size_t i = 0; i < WF_ARRAY_COUNT(row); i++) {
			row[i] = i < WIDE ? 1.0f : 0.25f;
		}
		for (size_t i = 0; i < WIDE; i++) {
			grad[i] = i == 3 ? 2e19f : i == 36 ? -3e38f : 0.5f;
		}
		wf_row_scalars_fill(&opts, 0.5, 1.0f, 2, &scalars);
		if (kernels != NULL) {
			size_t left = kernels->rows->apply[opts.kind](&scalars, &batch);
			assert_int_equal(kernels->count_nonfinite(row, 3 * WIDE + 1), 0);
			assert_true(has_squares ? left >= 2 : left == 0);
			assert_true(!has_squares || (row[3] == 1.0f && row[36] == 1.0f));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sgd_takes_a_step_against_the_gradient),
		cmocka_unit_test(gradients_of_a_row_are_summed_in_order),
		cmocka_unit_test(rows_of_a_batch_are_summed_in_their_order),
		cmocka_unit_test(l1_then_l2_act_after_the_step),
		cmocka_unit_test(momentum_keeps_half_of_its_speed),
		cmocka_unit_test(adagrad_divides_by_the_root_of_its_squares),
		cmocka_unit_test(adagrad_rowwise_has_one_mean_square),
		cmocka_unit_test(rmsprop_divides_by_the_deviation),
		cmocka_unit_test(rmsprops_first_square_of_a_row_counts_in_full),
		cmocka_unit_test(adam_corrects_its_first_step),
		cmocka_unit_test(adam_rowwise_has_one_second_moment),
		cmocka_unit_test(ftrl_sets_small_weights_to_zero),
		cmocka_unit_test(ftrl_group_sets_whole_rows_to_zero),
		cmocka_unit_test(an_element_without_a_number_stays_and_is_counted),
		cmocka_unit_test(settings_outside_their_limits_are_refused),
		cmocka_unit_test(what_has_no_closed_form_is_refused),
		cmocka_unit_test(schedules_that_tables_do_not_have_are_refused),
		cmocka_unit_test(names_are_understood_and_others_refused),
		cmocka_unit_test(steps_missed_are_made_up_for_in_closed_form),
		cmocka_unit_test(l1_leaves_zero_and_not_its_other_side),
		cmocka_unit_test(a_row_never_becomes_infinite_from_finite_gradients),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
