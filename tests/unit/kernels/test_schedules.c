/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: each against its formula with the C library's pow, by hand where the numbers are
 * round, and what their arguments may be. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
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

static struct wf_optimizer_opts
opts_of(enum wf_schedule schedule, double a, double b)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.set.learning_rate = 0.5;
	opts.method.schedule = schedule;
	opts.set.schedule_a = a;
	opts.set.schedule_b = b;
	return opts;
}

static double
rate_at(const struct wf_optimizer_opts *opts, uint64_t n)
{
	return wf_learning_rate(opts, n, 64, 0);
}

static void
constant_linear_and_warmup_follow_their_formulas(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_SCHEDULE_CONSTANT, 0, 0);
	expect_near(rate_at(&opts, 0), 0.5, 0);
	expect_near(rate_at(&opts, UINT64_MAX), 0.5, 0);

	opts = opts_of(WF_SCHEDULE_LINEAR, 0.001, 0.125); /* max(0.5 - 0.001 n, 0.125) */
	expect_near(rate_at(&opts, 0), 0.5, 0);
	expect_near(rate_at(&opts, 100), 0.4, 1e-15);
	expect_near(rate_at(&opts, 374), 0.126, 1e-15);
	expect_near(rate_at(&opts, 375), 0.125, 1e-15);
	expect_near(rate_at(&opts, 1000000), 0.125, 0);

	opts = opts_of(WF_SCHEDULE_WARMUP, 1000, 0); /* 0.5 min(1, (n + samples) / 1000) */
	expect_near(wf_learning_rate(&opts, 0, 10, 0), 0.005, 1e-15);
	expect_near(wf_learning_rate(&opts, 490, 10, 0), 0.25, 1e-15);
	expect_near(wf_learning_rate(&opts, 990, 10, 0), 0.5, 0);
	expect_near(wf_learning_rate(&opts, 5000, 10, 0), 0.5, 0);
}

static void
schedules_with_powers_have_round_values_where_the_formula_has(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_SCHEDULE_POLY, 0.03, 0.5);
	expect_near(rate_at(&opts, 0), 0.5, 0);
	expect_near(rate_at(&opts, 100), 0.25, 1e-15); /* (1 + 3)^-0.5 */
	expect_near(rate_at(&opts, 500), 0.125, 1e-15);

	opts = opts_of(WF_SCHEDULE_CAFFE_POLY, 1000, 2);
	expect_near(rate_at(&opts, 0), 0.5, 0);
	expect_near(rate_at(&opts, 500), 0.125, 1e-15);
	assert_true(rate_at(&opts, 1000) == 0.0 && rate_at(&opts, 5000) == 0.0);

	opts = opts_of(WF_SCHEDULE_EXP, 0.25, 1000);
	expect_near(rate_at(&opts, 0), 0.5, 0);
	expect_near(rate_at(&opts, 500), 0.25, 1e-15);
	expect_near(rate_at(&opts, 2000), 0.03125, 1e-15);

	opts = opts_of(WF_SCHEDULE_DISCEXP, 0.25, 1000);
	expect_near(rate_at(&opts, 999), 0.5, 0);
	expect_near(rate_at(&opts, 1000), 0.125, 1e-15);
	expect_near(rate_at(&opts, 1999), 0.125, 1e-15);
	expect_near(rate_at(&opts, 2000), 0.03125, 1e-15);
}

static void
schedules_with_powers_equal_their_formulas_everywhere(void **state)
{
	const double as[] = {1e-7, 1e-5, 0.0123};
	const double bs[] = {0.25, 0.5, 0.75, 3.0};
	for (size_t i = 0; i < WF_ARRAY_COUNT(as) * WF_ARRAY_COUNT(bs); i++) {
		double a = as[i / WF_ARRAY_COUNT(bs)];
		double b = bs[i % WF_ARRAY_COUNT(bs)];
		struct wf_optimizer_opts poly = opts_of(WF_SCHEDULE_POLY, a, b);
		struct wf_optimizer_opts caffe = opts_of(WF_SCHEDULE_CAFFE_POLY, 1.0 / a, b);
		struct wf_optimizer_opts exp = opts_of(WF_SCHEDULE_EXP, 1.0 - b / 4, 1.0 / a);
		struct wf_optimizer_opts discexp = exp;
		discexp.method.schedule = WF_SCHEDULE_DISCEXP;
		for (uint64_t n = 0; n < 100000000; n = n * 5 / 4 + 7) {
			double x = (double)n;
			expect_near(rate_at(&poly, n), 0.5 * pow(1.0 + a * x, -b), 1e-14);
			double left = x < 1.0 / a ? 0.5 * pow(1.0 - x / (1.0 / a), b) : 0.0;
			expect_near(rate_at(&caffe, n), left, 1e-14);
			double power = x / (1.0 / a);
			double base = 1.0 - b / 4;
			expect_near(rate_at(&exp, n), 0.5 * pow(base, power), 1e-13);
			expect_near(rate_at(&discexp, n), 0.5 * pow(base, floor(power)), 1e-13);
		}
	}
}

/* No overflow, no NaN, whatever the numbers. */
static void
rates_stay_between_zero_and_the_base_rate(void **state)
{
	const double a[] = {1e-30, 1e-3, 0.5, 1.0};
	const double b[] = {1e-30, 1.0, 1e30};
	const uint64_t n[] = {0, 1, 1ull << 53, UINT64_MAX};
	for (int schedule = WF_SCHEDULE_POLY; schedule <= WF_SCHEDULE_DISCEXP; schedule++) {
		for (size_t i = 0; i < 4 * 3 * 4; i++) {
			struct wf_optimizer_opts opts =
				opts_of((enum wf_schedule)schedule, a[i % 4], b[i / 4 % 3]);
			assert_int_equal(wf_optimizer_check(&opts), WEFT_OK);
			double rate = rate_at(&opts, n[i / 12]);
			if (!(rate >= 0.0 && rate <= 0.5)) {
				fail_msg("%s a %g b %g n %llu: %g",
					 wf_schedule_name(opts.method.schedule),
					 opts.set.schedule_a, opts.set.schedule_b,
					 (unsigned long long)n[i / 12], rate);
			}
		}
	}
}

static struct wf_optimizer_opts
manual(enum wf_schedule schedule, const char *text)
{
	struct wf_optimizer_opts opts = opts_of(schedule, 0, 0);
	assert_int_equal(wf_segments_parse(text, opts.method.segment, &opts.method.segment_count),
			 WEFT_OK);
	assert_int_equal(wf_optimizer_check(&opts), WEFT_OK);
	return opts;
}

static void
manual_takes_the_first_segment_that_has_not_ended(void **state)
{
	struct wf_optimizer_opts opts = manual(WF_SCHEDULE_MANUAL, "1000:1.0,2000:0.5,3000:2e-1");
	expect_near(rate_at(&opts, 0), 0.5, 0);
	expect_near(rate_at(&opts, 1000), 0.5, 0); /* a segment has its end */
	expect_near(rate_at(&opts, 1001), 0.25, 0);
	expect_near(rate_at(&opts, 2000), 0.25, 0);
	expect_near(rate_at(&opts, 2001), 0.1, 1e-15);
	expect_near(rate_at(&opts, 3001), 0.1, 1e-15); /* the last one stays */
	expect_near(rate_at(&opts, UINT64_MAX), 0.1, 1e-15);
}

static void
pass_manual_counts_passes_also_of_a_job_that_goes_on(void **state)
{
	struct wf_optimizer_opts opts = manual(WF_SCHEDULE_PASS_MANUAL, "0:1,2:0.5,5:0");
	const double want[] = {0.5, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0};
	for (uint64_t pass = 0; pass < WF_ARRAY_COUNT(want); pass++) {
		expect_near(wf_learning_rate(&opts, 1000000, 64, pass), want[pass], 0);
	}
	opts.set.first_pass = 2;
	for (uint64_t pass = 0; pass + 2 < WF_ARRAY_COUNT(want); pass++) {
		expect_near(wf_learning_rate(&opts, 1000000, 64, pass), want[pass + 2], 0);
	}
}

static void
segments_are_read_as_they_are_written(void **state)
{
	struct wf_segment segment[WF_SEGMENTS_MAX];
	uint32_t count = 99;
	assert_int_equal(wf_segments_parse("", segment, &count), WEFT_OK);
	assert_int_equal(count, 0);
	assert_int_equal(wf_segments_parse("7:.5", segment, &count), WEFT_OK);
	assert_true(count == 1 && segment[0].until == 7 && segment[0].factor == 0.5);
	assert_int_equal(wf_segments_parse("0:1,9999999999999999999:1e-3", segment, &count),
			 WEFT_OK);
	assert_true(count == 2 && segment[1].until == 9999999999999999999u);
	assert_true(segment[1].factor == 1e-3);
}

static void
segments_that_are_none_are_refused_where_they_go_wrong(void **state)
{
	const char *const bad[] = {
		"1000",   "1000:",   ":1",       "a:1",   "1:a",   "1:1,",
		"1:1,,2", "1:1;2:1", "-1:1",     "1:-1",  " 1:1",  "1: 1",
		"1.5:1",  "1:1 ",    "1:inf",    "1:nan", "1:1:1", "99999999999999999999:1",
		"1e3:1",  "+1:1",    "1:1,2:1x",
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		struct wf_segment segment[WF_SEGMENTS_MAX];
		uint32_t count = 99;
		if (wf_segments_parse(bad[i], segment, &count) != WEFT_INVALID || count != 99) {
			fail_msg("\"%s\" is taken", bad[i]);
		}
		assert_non_null(strstr(weft_last_error(), bad[i]));
		assert_non_null(strstr(weft_last_error(), "give up to 32 of until:factor"));
	}
	char many[WF_SEGMENTS_MAX * 8 + 16] = "";
	for (int i = 0; i <= WF_SEGMENTS_MAX; i++) {
		size_t used = strlen(many);
		(void)snprintf(many + used, sizeof(many) - used, "%s%d:1", i > 0 ? "," : "", i);
	}
	struct wf_segment segment[WF_SEGMENTS_MAX];
	uint32_t count = 99;
	assert_int_equal(wf_segments_parse(many, segment, &count), WEFT_INVALID);
	assert_int_equal(count, 99);
}

static void
expect_refused(const struct wf_optimizer_opts *opts, const char *part)
{
	assert_int_equal(wf_optimizer_check(opts), WEFT_INVALID);
	if (strstr(weft_last_error(), part) == NULL || strstr(weft_last_error(), "give ") == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", weft_last_error(), part);
	}
}

static void
arguments_are_checked_where_a_schedule_has_them(void **state)
{
	const struct {
		enum wf_schedule schedule;
		double a, b;
		const char *part; /* NULL: taken */
	} cases[] = {
		{WF_SCHEDULE_CONSTANT, -1, -1, NULL},
		{WF_SCHEDULE_LINEAR, -1, 0, "schedule_a"},
		{WF_SCHEDULE_LINEAR, 0, -1, "schedule_b"},
		{WF_SCHEDULE_LINEAR, 0, 0, NULL},
		{WF_SCHEDULE_WARMUP, 0, 0, "schedule_a"}, /* would divide by 0 */
		{WF_SCHEDULE_WARMUP, 100, -1, NULL},
		{WF_SCHEDULE_POLY, -1e-3, 1, "of schedule poly: growth"},
		{WF_SCHEDULE_POLY, 1e-3, -1, "of schedule poly: the exponent"},
		{WF_SCHEDULE_POLY, 0, 0, NULL}, /* the original's default: constant */
		{WF_SCHEDULE_CAFFE_POLY, 0, 1, "of schedule caffe_poly: samples"},
		{WF_SCHEDULE_CAFFE_POLY, 10, -1, "of schedule caffe_poly: the exponent"},
		{WF_SCHEDULE_EXP, 0, 1, "schedule_a"},
		{WF_SCHEDULE_EXP, 1.5, 1, "at most 1"},
		{WF_SCHEDULE_EXP, 0.5, 0, "schedule_b"},
		{WF_SCHEDULE_DISCEXP, 2, 1, "of schedule discexp"},
		{WF_SCHEDULE_DISCEXP, 0.5, (double)NAN, "schedule_b"},
		{WF_SCHEDULE_DISCEXP, 1, 10, NULL},
		{WF_SCHEDULE_MANUAL, 0, 0, "has 0 segments"},
		{WF_SCHEDULE_PASS_MANUAL, 0, 0, "schedule pass_manual has 0 segments"},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_optimizer_opts opts = opts_of(cases[i].schedule, cases[i].a, cases[i].b);
		if (cases[i].part == NULL) {
			assert_int_equal(wf_optimizer_check(&opts), WEFT_OK);
		} else {
			expect_refused(&opts, cases[i].part);
		}
	}
}

static void
segments_are_in_order_and_their_rates_finite(void **state)
{
	struct wf_optimizer_opts opts = manual(WF_SCHEDULE_MANUAL, "10:1,20:1");
	opts.method.segment[1].until = 10;
	expect_refused(&opts, "a segment until 10 follows one until 10");
	opts.method.segment[1].until = 20;
	opts.method.segment[1].factor = -0.5;
	expect_refused(&opts, "factor of a segment -0.5");
	opts.method.segment[1].factor = (double)NAN;
	expect_refused(&opts, "factor of a segment");
	opts.method.segment[1].factor = 3e38;
	opts.set.learning_rate = 10;
	expect_refused(&opts, "give a smaller one");
	opts.method.segment_count = WF_SEGMENTS_MAX + 1;
	expect_refused(&opts, "has 33 segments");
	opts = manual(WF_SCHEDULE_PASS_MANUAL, "1:1");
	opts.set.first_pass = 1ull << 32;
	expect_refused(&opts, "first_pass 4294967296");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constant_linear_and_warmup_follow_their_formulas),
		cmocka_unit_test(schedules_with_powers_have_round_values_where_the_formula_has),
		cmocka_unit_test(schedules_with_powers_equal_their_formulas_everywhere),
		cmocka_unit_test(rates_stay_between_zero_and_the_base_rate),
		cmocka_unit_test(manual_takes_the_first_segment_that_has_not_ended),
		cmocka_unit_test(pass_manual_counts_passes_also_of_a_job_that_goes_on),
		cmocka_unit_test(segments_are_read_as_they_are_written),
		cmocka_unit_test(segments_that_are_none_are_refused_where_they_go_wrong),
		cmocka_unit_test(arguments_are_checked_where_a_schedule_has_them),
		cmocka_unit_test(segments_are_in_order_and_their_rates_finite),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
