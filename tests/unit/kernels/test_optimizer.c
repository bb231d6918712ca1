/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of an optimizer: names, limits, Adam's bias correction. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/status.h"
#include "kernels/kernels.h"

static void
expect_near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want))) {
		fail_msg("got %.17g, want %.17g within %g", got, want, relative);
	}
}

static void
names_parse_to_what_they_name(void **state)
{
	for (unsigned i = 0; i < WF_OPTIMIZER_COUNT; i++) {
		enum wf_optimizer kind = WF_OPTIMIZER_COUNT;
		assert_int_equal(wf_optimizer_parse(wf_optimizer_name((enum wf_optimizer)i), &kind),
				 WEFT_OK);
		assert_int_equal(kind, i);
	}
	for (unsigned i = 0; i < WF_SCHEDULE_COUNT; i++) {
		enum wf_schedule schedule = WF_SCHEDULE_COUNT;
		assert_int_equal(
			wf_schedule_parse(wf_schedule_name((enum wf_schedule)i), &schedule),
			WEFT_OK);
		assert_int_equal(schedule, i);
	}
	assert_string_equal(wf_optimizer_name(WF_MOMENTUM), "momentum");
	assert_string_equal(wf_optimizer_name(WF_NESTEROV), "nesterov");
	assert_string_equal(wf_optimizer_name(WF_ADAGRAD), "adagrad");
	assert_string_equal(wf_optimizer_name(WF_ADAMW), "adamw");
	assert_string_equal(wf_schedule_name(WF_SCHEDULE_WARMUP), "warmup");
}

static void
an_unknown_name_is_refused_with_the_names_there_are(void **state)
{
	const char *const bad[] = {"rprop", "", "SGD", "sgd ", NULL};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		enum wf_optimizer kind = WF_ADAM;
		assert_int_equal(wf_optimizer_parse(bad[i], &kind), WEFT_INVALID);
		assert_int_equal(kind, WF_ADAM);
		assert_non_null(
			strstr(weft_last_error(),
			       "sgd, torch_sgd, momentum, torch_momentum, nesterov, adagrad, "
			       "decayed_adagrad, rmsprop, adadelta, adam, torch_adam, adamw, "
			       "torch_adamw or adamax"));
		assert_non_null(strstr(weft_last_error(), bad[i] == NULL ? "\"\"" : bad[i]));
	}
	enum wf_schedule schedule = WF_SCHEDULE_LINEAR;
	assert_int_equal(wf_schedule_parse("cosine", &schedule), WEFT_INVALID);
	assert_int_equal(schedule, WF_SCHEDULE_LINEAR);
	assert_non_null(strstr(weft_last_error(), "\"cosine\""));
	assert_non_null(strstr(weft_last_error(),
			       "constant, linear, warmup, poly, caffe_poly, exp, "
			       "discexp, manual or pass_manual"));
}

static void
the_number_of_state_arrays_is_that_of_the_formula(void **state)
{
	assert_int_equal(wf_optimizer_state_count(WF_SGD), 0);
	assert_int_equal(wf_optimizer_state_count(WF_MOMENTUM), 1);
	assert_int_equal(wf_optimizer_state_count(WF_ADAM), 2);
	assert_int_equal(wf_optimizer_state_count(WF_NESTEROV), 1);
	assert_int_equal(wf_optimizer_state_count(WF_ADAGRAD), 1);
	assert_int_equal(wf_optimizer_state_count(WF_ADAMW), 2);
	assert_int_equal(wf_optimizer_state_count(WF_DECAYED_ADAGRAD), 1);
	assert_int_equal(wf_optimizer_state_count(WF_RMSPROP), 2);
	assert_int_equal(wf_optimizer_state_count(WF_ADADELTA), 2);
	assert_int_equal(wf_optimizer_state_count(WF_ADAMAX), 2);
	assert_int_equal(wf_optimizer_state_count(WF_TORCH_MOMENTUM), 1);
	assert_int_equal(wf_optimizer_state_count(WF_TORCH_ADAM), 2);
	assert_int_equal(wf_optimizer_state_count(WF_TORCH_ADAMW), 2);
	assert_int_equal(wf_optimizer_state_count(WF_TORCH_SGD), 1);
}

static void
defaults_pass_the_check(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	assert_int_equal(opts.method.kind, WF_SGD);
	assert_true(opts.set.learning_rate == 1e-3);
	assert_true(opts.set.beta1 == 0.9 && opts.set.beta2 == 0.999 && opts.set.epsilon == 1e-8);
	assert_true(opts.set.rho == 0.95 && opts.set.l1 == 0.0);
	for (unsigned i = 0; i < WF_OPTIMIZER_COUNT; i++) {
		opts.method.kind = (enum wf_optimizer)i;
		assert_int_equal(wf_optimizer_check(&opts), WEFT_OK);
	}
}

/* One setting out of its limits; `text` is in the message. */
struct bad_setting {
	size_t offset; /* of the f64 in wf_optimizer_opts */
	double value;
	const char *text;
};

#define BAD(field, value, text)                                                                    \
	{                                                                                          \
		offsetof(struct wf_optimizer_opts, set.field), value, text                         \
	}

static void
a_setting_out_of_its_limits_is_refused_by_name_and_value(void **state)
{
	const struct bad_setting bad[] = {
		BAD(learning_rate, -0.5, "learning_rate -0.5"),
		BAD(learning_rate, 1e300, "learning_rate 1e+300"),
		BAD(learning_rate, (double)NAN, "learning_rate "),
		BAD(momentum, 1.0, "momentum 1"),
		BAD(momentum, -0.1, "momentum -0.1"),
		BAD(momentum, (double)NAN, "momentum "),
		BAD(beta1, 1.0, "beta1 1"),
		BAD(beta1, -1e-9, "beta1 -1e-09"),
		/* Below 1 as f64, but 1 as f32: bias correction would divide by 0. */
		BAD(beta2, 0.99999999, "beta2 0.99999999"),
		BAD(beta2, (double)INFINITY, "beta2 inf"),
		BAD(rho, 1.0, "rho 1"),
		BAD(rho, -0.25, "rho -0.25"),
		BAD(rho, (double)NAN, "rho "),
		BAD(l1, -1e-3, "l1 -0.001"),
		BAD(l1, 1e-60, "l1 1e-60"),
		BAD(l1, (double)INFINITY, "l1 inf"),
		BAD(epsilon, 0.0, "epsilon 0"),
		BAD(epsilon, 1e-50, "epsilon 1e-50"), /* 0 as f32 */
		BAD(decay, -1e-4, "decay -0.0001"),
		BAD(decay, (double)INFINITY, "decay inf"),
		BAD(clip, -1.0, "clip -1"),
		BAD(clip, 1e-60, "clip 1e-60"), /* 0 as f32: off, which nobody asked for */
		BAD(clip, (double)NAN, "clip "),
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		struct wf_optimizer_opts opts = wf_optimizer_defaults();
		memcpy((char *)&opts + bad[i].offset, &bad[i].value, sizeof(double));
		assert_int_equal(wf_optimizer_check(&opts), WEFT_INVALID);
		if (strstr(weft_last_error(), bad[i].text) == NULL) {
			fail_msg("\"%s\" does not say \"%s\"", weft_last_error(), bad[i].text);
		}
		assert_non_null(strstr(weft_last_error(), "give "));
	}
}

/* A scheduler may begin or end with it. */
static void
a_learning_rate_of_zero_is_one(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct wf_apply apply = {0};
	opts.set.learning_rate = 0.0;
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		for (unsigned s = 0; s < WF_SCHEDULE_COUNT; s++) {
			opts.method.kind = (enum wf_optimizer)kind;
			opts.method.schedule = (enum wf_schedule)s;
			opts.method.segment_count = 1;
			opts.method.segment[0] = (struct wf_segment){.until = 1, .factor = 2.0};
			opts.set.schedule_a = 0.5;
			opts.set.schedule_b = s == WF_SCHEDULE_LINEAR ? 0.0 : 2.0;
			assert_int_equal(wf_optimizer_check(&opts), WEFT_OK);
			wf_apply_scalars(&opts, wf_learning_rate(&opts, 3, 1, 0), 2, &apply);
			assert_true(apply.rate == 0.0f && apply.plain_rate == 0.0f);
		}
	}
}

static void
an_enum_out_of_range_is_refused(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.method.kind = WF_OPTIMIZER_COUNT;
	assert_int_equal(wf_optimizer_check(&opts), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "optimizer 14"));

	opts = wf_optimizer_defaults();
	opts.method.schedule = (enum wf_schedule)9;
	assert_int_equal(wf_optimizer_check(&opts), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "schedule 9"));
}

/* The formula by repeated multiplication, with the betas as the kernels have them. */
static void
bias_correction_equals_the_naive_formula_up_to_a_million(void **state)
{
	const double betas[][2] = {
		{0.9, 0.999}, {0.0, 0.0}, {0.9, 0.9999999}, {0.5, 0.99}, {0.9999, 0.9}};
	for (size_t i = 0; i < WF_ARRAY_COUNT(betas); i++) {
		struct wf_optimizer_opts opts = wf_optimizer_defaults();
		opts.method.kind = WF_ADAM;
		opts.set.beta1 = betas[i][0];
		opts.set.beta2 = betas[i][1];
		long double power1 = 1.0L;
		long double power2 = 1.0L;
		for (uint64_t t = 1; t <= 1000000; t++) {
			power1 *= (long double)(float)opts.set.beta1;
			power2 *= (long double)(float)opts.set.beta2;
			if (t > 2000 && t % 997 != 0 && t != 1000000) {
				continue;
			}
			struct wf_apply apply = {0};
			wf_apply_scalars(&opts, 0.25, t, &apply);
			long double want = 0.25L * sqrtl(1.0L - power2) / (1.0L - power1);
			expect_near((double)apply.rate, (double)want, (double)FLT_EPSILON / 2);
		}
	}
}

static void
bias_correction_of_the_largest_step_is_one(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct wf_apply apply = {0};
	opts.method.kind = WF_ADAM;
	wf_apply_scalars(&opts, 0.25, UINT64_MAX, &apply);
	assert_true(apply.rate == 0.25f);
}

/* What the rate 0.25 becomes in steps 1 and 3; the betas are as f32 leaves them. */
static void
rates_are_corrected_where_the_formula_says_so_and_the_plain_rate_never(void **state)
{
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		struct wf_optimizer_opts opts = wf_optimizer_defaults();
		struct wf_apply first = {0};
		struct wf_apply third = {0};
		double want[2] = {0.25, 0.25};
		opts.method.kind = (enum wf_optimizer)kind;
		opts.set.momentum = 0.75;
		wf_apply_scalars(&opts, 0.25, 1, &first);
		wf_apply_scalars(&opts, 0.25, 3, &third);
		assert_true(first.plain_rate == 0.25f && third.plain_rate == 0.25f);
		if (kind == WF_ADAM || kind == WF_ADAMW) {
			want[0] = 0.25 * sqrt(0.001) / 0.1;
			want[1] = 0.25 * sqrt(1.0 - 0.999 * 0.999 * 0.999) / 0.271;
		} else if (kind == WF_ADAMAX || kind == WF_TORCH_ADAM || kind == WF_TORCH_ADAMW) {
			want[0] = 0.25 / 0.1;
			want[1] = 0.25 / 0.271;
		} else if (kind == WF_TORCH_MOMENTUM) {
			want[1] = 0.25 * 0.25;
		}
		expect_near((double)first.rate, want[0], 2e-5);
		expect_near((double)third.rate, want[1], 2e-5);
	}
}

/* The first square is the whole mean, so that the first steps are not too long. */
static void
a_square_counts_in_full_in_the_first_step(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct wf_apply apply = {0};
	opts.set.rho = 0.75;
	wf_apply_scalars(&opts, 0.25, 1, &apply);
	assert_true(apply.rho == 0.75f && apply.square_share == 1.0f);
	wf_apply_scalars(&opts, 0.25, 2, &apply);
	assert_true(apply.square_share == 0.25f);
}

static void
scalars_of_a_step_leave_everything_else_alone(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct wf_apply apply = {.count = 7, .divisor = 3.0f, .clip = 2.0f, .decay = 0.5f};
	opts.method.kind = WF_MOMENTUM;
	opts.set.momentum = 0.75;
	wf_apply_scalars(&opts, 0.125, 1, &apply);
	assert_true(apply.rate == 0.125f && apply.momentum == 0.75f);
	assert_true(apply.beta1 == 0.9f && apply.beta2 == 0.999f && apply.epsilon == 1e-8f);
	assert_true(apply.divisor == 3.0f && apply.clip == 2.0f && apply.decay == 0.5f);
	assert_int_equal(apply.count, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_parse_to_what_they_name),
		cmocka_unit_test(an_unknown_name_is_refused_with_the_names_there_are),
		cmocka_unit_test(the_number_of_state_arrays_is_that_of_the_formula),
		cmocka_unit_test(defaults_pass_the_check),
		cmocka_unit_test(a_setting_out_of_its_limits_is_refused_by_name_and_value),
		cmocka_unit_test(a_learning_rate_of_zero_is_one),
		cmocka_unit_test(an_enum_out_of_range_is_refused),
		cmocka_unit_test(bias_correction_equals_the_naive_formula_up_to_a_million),
		cmocka_unit_test(bias_correction_of_the_largest_step_is_one),
		cmocka_unit_test(
			rates_are_corrected_where_the_formula_says_so_and_the_plain_rate_never),
		cmocka_unit_test(a_square_counts_in_full_in_the_first_step),
		cmocka_unit_test(scalars_of_a_step_leave_everything_else_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
