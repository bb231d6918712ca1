/* SPDX-License-Identifier: Apache-2.0 */
/* Averages: when a window is over, against the rule step by step, and the sums, against means in
 * f64 of the values themselves. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "kernels/average.h"

#define COUNT 19 /* a vector and a rest */

static struct wf_optimizer_opts
opts_of(double window, uint64_t longest)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.set.average_window = window;
	opts.set.max_average_window = longest;
	assert_int_equal(wf_optimizer_check(&opts), WEFT_OK);
	return opts;
}

/* The rule as the original states it: a window ends when it has 10,000 steps, or the greatest
 * number, and the share of all steps, or the greatest number. */
static void
windows_end_by_the_rule(void **state)
{
	const struct {
		double window;
		uint64_t longest;
	} cases[] = {
		{0.5, UINT64_MAX}, {0.15, UINT64_MAX}, {1.0, UINT64_MAX}, {0.5, 12345},
		{0.5, 7},          {1e-3, 10001},      {0.9, 1},          {0.3, 40000},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_optimizer_opts opts = opts_of(cases[i].window, cases[i].longest);
		const uint64_t least = cases[i].longest < 10000 ? cases[i].longest : 10000;
		uint64_t count = 0;
		uint64_t before = 0;
		struct wf_average average;
		wf_average_begin(&opts, 0, &average);
		for (uint64_t step = 1; step <= 150000; step++) {
			wf_average_next(&average);
			count++;
			bool share = (double)count >= cases[i].window * (double)step;
			bool over = count >= least && (count >= cases[i].longest || share);
			before = over ? count : before;
			count = over ? 0 : count;
			assert_true(average.step == step && average.turns == over);
			assert_true(average.folds == (step % 16384 == 0));
			assert_true(average.count == count && average.before == before);
		}
		assert_true(before > 0);
	}
}

/* A job that goes on needs no record of its windows. */
static void
where_a_window_stands_follows_from_the_number_of_steps(void **state)
{
	const struct {
		double window;
		uint64_t longest;
	} cases[] = {
		{0.5, UINT64_MAX}, {0.25, 20000}, {1.0, 15000}, {0.003, 60000},
		{0.1, 13},         {1e-3, 10000}, {0.01, 1},    {0.75, 1000000},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_optimizer_opts opts = opts_of(cases[i].window, cases[i].longest);
		struct wf_average walked;
		wf_average_begin(&opts, 0, &walked);
		for (uint64_t step = 1; step <= 400000; step++) {
			wf_average_next(&walked);
			if (step % 997 != 0 && !walked.turns && step > 100) {
				continue;
			}
			struct wf_average begun;
			wf_average_begin(&opts, step, &begun);
			if (begun.count != walked.count || begun.before != walked.before) {
				fail_msg("window %g, longest %llu, step %llu: %llu and %llu, "
					 "not %llu and %llu",
					 cases[i].window, (unsigned long long)cases[i].longest,
					 (unsigned long long)step, (unsigned long long)begun.count,
					 (unsigned long long)begun.before,
					 (unsigned long long)walked.count,
					 (unsigned long long)walked.before);
			}
		}
	}
}

/* A peer may claim any number of steps: it costs time in proportion to no such number. */
static void
the_largest_step_is_found_at_once(void **state)
{
	const double windows[] = {1e-3, 0.5, 1.0};
	const uint64_t longest[] = {1, 10000, 1ull << 40, UINT64_MAX};
	for (size_t i = 0; i < 12; i++) {
		struct wf_optimizer_opts opts = opts_of(windows[i % 3], longest[i / 3]);
		struct wf_average average;
		wf_average_begin(&opts, INT64_MAX, &average);
		assert_true(average.step == INT64_MAX && average.before > 0);
		wf_average_next(&average);
		assert_true(average.count <= opts.set.max_average_window);
	}
}

static float
value_at(uint64_t step, size_t element)
{
	return 1.0f + (float)((step * 7919 + element * 104729) % 1000) / 1000.0f;
}

/* `steps` steps; the values of all are in value_at. */
static void
expect_mean(const struct wf_kernels *kernels, double window, uint64_t longest, uint64_t steps)
{
	struct wf_optimizer_opts opts = opts_of(window, longest);
	float array[WF_AVERAGE_SUMS][COUNT] = {{0}};
	float *const sum[WF_AVERAGE_SUMS] = {array[0], array[1], array[2]};
	float value[COUNT];
	float mean[COUNT];
	struct wf_average average;

	wf_average_begin(&opts, 0, &average);
	for (uint64_t step = 1; step <= steps; step++) {
		for (size_t i = 0; i < COUNT; i++) {
			value[i] = value_at(step, i);
		}
		wf_average_next(&average);
		wf_average_add(kernels, &average, value, sum, COUNT);
	}
	wf_average_begin(&opts, steps, &average); /* as whoever takes it knows it */
	wf_average_value(&average, value, (const float *const *)sum, mean, COUNT);
	const uint64_t used = average.count + average.before;
	assert_true(used >= 1 && used <= steps);
	for (size_t i = 0; i < COUNT; i++) {
		double want = 0.0;
		for (uint64_t step = steps - used + 1; step <= steps; step++) {
			want += (double)value_at(step, i) / (double)used;
		}
		if (!(fabs((double)mean[i] - want) < 1e-4 * want)) {
			fail_msg("%g, %llu steps: %.9g, not %.9g", window,
				 (unsigned long long)steps, (double)mean[i], want);
		}
	}
}

static void
an_average_is_the_mean_of_the_last_values(void **state)
{
	const char *const forms[] = {"ref", "avx2", "avx512"};
	for (size_t f = 0; f < WF_ARRAY_COUNT(forms); f++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[f]);
		if (kernels == NULL) {
			print_message("form %s is not offered here\n", forms[f]);
			continue;
		}
		for (uint64_t steps = 1; steps <= 25; steps++) {
			expect_mean(kernels, 0.5, 5, steps);
			expect_mean(kernels, 1.0, UINT64_MAX, steps);
		}
		expect_mean(kernels, 0.5, UINT64_MAX, 16384);
		expect_mean(kernels, 0.5, UINT64_MAX, 40001);
		expect_mean(kernels, 1.0, 20000, 70000);
	}
}

static void
before_the_first_step_the_average_is_the_value(void **state)
{
	struct wf_optimizer_opts opts = opts_of(0.5, UINT64_MAX);
	const float value[2] = {0.25f, -7.0f};
	const float zero[2] = {0};
	float out[2];
	struct wf_average average;
	wf_average_begin(&opts, 0, &average);
	wf_average_value(&average, value, (const float *const[]){zero, zero, zero}, out, 2);
	assert_memory_equal(out, value, sizeof(out));
}

static void
windows_that_are_none_are_refused(void **state)
{
	const double bad[] = {-0.5, 1e-4, 1.5, (double)NAN, (double)INFINITY};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		struct wf_optimizer_opts opts = wf_optimizer_defaults();
		opts.set.average_window = bad[i];
		assert_int_equal(wf_optimizer_check(&opts), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), "average_window"));
		assert_non_null(strstr(weft_last_error(), "from 0.001 to 1"));
	}
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.set.max_average_window = 0;
	assert_int_equal(wf_optimizer_check(&opts), WEFT_OK); /* there are none */
	opts.set.average_window = 0.5;
	assert_int_equal(wf_optimizer_check(&opts), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "max_average_window 0"));
}

static void
averages_take_three_arrays_behind_the_optimizers(void **state)
{
	struct wf_optimizer_opts opts = opts_of(0.5, UINT64_MAX);
	opts.method.kind = WF_ADAM;
	assert_int_equal(wf_state_count(&opts), 5);
	opts.set.average_window = 0.0;
	assert_int_equal(wf_state_count(&opts), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_end_by_the_rule),
		cmocka_unit_test(where_a_window_stands_follows_from_the_number_of_steps),
		cmocka_unit_test(the_largest_step_is_found_at_once),
		cmocka_unit_test(an_average_is_the_mean_of_the_last_values),
		cmocka_unit_test(before_the_first_step_the_average_is_the_value),
		cmocka_unit_test(windows_that_are_none_are_refused),
		cmocka_unit_test(averages_take_three_arrays_behind_the_optimizers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
