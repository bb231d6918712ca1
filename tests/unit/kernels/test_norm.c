/* SPDX-License-Identifier: Apache-2.0 */
/* The norm of a gradient in parts: exact, so that order and parts change no bit, and right, against
 * f64 and long double. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/norm.h"

#define PARTS 64

static void
expect_near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want))) {
		fail_msg("got %.17g, want %.17g within %g", got, want, relative);
	}
}

static double
squares_of(const float *grad, size_t count)
{
	return wf_norm_squares(&grad, 1, count);
}

static void
squares_are_of_the_sums_over_trainers(void **state)
{
	float a[35];
	float b[35];
	double want = 0.0;
	for (int i = 0; i < 35; i++) {
		a[i] = (float)i * 0.25f - 3.0f;
		b[i] = 1.0f - (float)i * 0.5f;
		want += (double)(a[i] + b[i]) * (double)(a[i] + b[i]);
	}
	expect_near(wf_norm_squares((const float *const[]){a, b}, 2, 35), want, 0); /* exact */
	assert_true(wf_norm_squares((const float *const[]){a, b}, 2, 0) == 0.0);
}

/* 1e8 + 1 is 1e8 in f32. */
static void
sums_over_trainers_are_in_order(void **state)
{
	const float a[1] = {1e8f};
	const float b[1] = {1.0f};
	const float c[1] = {-1e8f};
	assert_true(wf_norm_squares((const float *const[]){a, b, c}, 3, 1) == 0.0);
	assert_true(wf_norm_squares((const float *const[]){a, c, b}, 3, 1) == 1.0);
}

static void
what_is_not_finite_is_left_out(void **state)
{
	const float grad[6] = {3.0f, NAN, INFINITY, -4.0f, -INFINITY, 3e38f};
	assert_true(squares_of(grad, 5) == 25.0);
	const float *const twice[] = {grad, grad}; /* 6e38 is infinite */
	assert_true(wf_norm_squares(twice, 2, 6) == 100.0);
}

/* From the square of the least f32 to sums of squares of the largest. */
static void
sums_in_any_order_and_parts_have_the_same_bits(void **state)
{
	struct wf_rng rng;
	wf_rng_init(&rng, 7, 0);
	for (int round = 0; round < 200; round++) {
		double part[PARTS];
		struct wf_norm forward = {0};
		struct wf_norm backward = {0};
		struct wf_norm lane[3] = {{{0}}};
		long double want = 0.0L;
		for (int i = 0; i < PARTS; i++) {
			float grad = (float)ldexp(wf_rng_f64(&rng) + 0.5,
						  (int)wf_rng_below(&rng, 275) - 148);
			part[i] = squares_of(&grad, 1);
			want += (long double)part[i];
		}
		for (int i = 0; i < PARTS; i++) {
			wf_norm_add(&forward, part[i]);
			wf_norm_add(&backward, part[PARTS - 1 - i]);
			wf_norm_add(&lane[wf_rng_below(&rng, 3)], part[i]);
		}
		wf_norm_merge(&lane[2], &lane[0]);
		wf_norm_merge(&lane[2], &lane[1]);
		assert_memory_equal(&forward, &backward, sizeof(forward));
		assert_memory_equal(&forward, &lane[2], sizeof(forward));
		expect_near(wf_norm_root(&forward), (double)sqrtl(want), 1e-15);
	}
}

static void
the_least_and_the_largest_gradients_have_norms(void **state)
{
	const float least = 0x1p-149f;
	struct wf_norm norm = {0};
	assert_true(wf_norm_root(&norm) == 0.0);
	wf_norm_add(&norm, squares_of(&least, 1));
	assert_true(wf_norm_root(&norm) == 0x1p-149);
	const float largest = FLT_MAX;
	double one = squares_of(&largest, 1);
	for (int i = 0; i < 1000; i++) {
		wf_norm_add(&norm, one * 0x1p20); /* slices of so many */
	}
	expect_near(wf_norm_root(&norm), (double)FLT_MAX * sqrt(1000.0) * 0x1p10, 1e-15);
	/* What a peer may say: the root is a number all the same. */
	struct wf_norm all;
	memset(&all, 0xff, sizeof(all));
	assert_true(wf_norm_root(&all) > 0.0 && wf_norm_root(&all) <= DBL_MAX);
	wf_norm_merge(&all, &norm);
	assert_true(wf_norm_root(&all) <= DBL_MAX);
}

static void
a_gradient_within_the_limit_is_divided_as_before(void **state)
{
	struct wf_norm norm = {0};
	wf_norm_add(&norm, 25.0);
	assert_true(wf_norm_divisor(&norm, 1.0, 5.0) == 1.0);
	assert_true(wf_norm_divisor(&norm, 10.0, 0.5) == 10.0);
	assert_true(wf_norm_divisor(&norm, 3.0, 2.0) == 3.0);
}

static void
a_longer_one_ends_at_the_limit(void **state)
{
	struct wf_norm norm = {0};
	wf_norm_add(&norm, 9.0);
	wf_norm_add(&norm, 16.0);
	assert_true(wf_norm_divisor(&norm, 1.0, 2.5) == 2.0);
	/* The mean of 10 has norm 0.5, and is to have 0.125. */
	assert_true(wf_norm_divisor(&norm, 10.0, 0.125) == 40.0);
	/* What an f32 can hold is one. */
	assert_true(wf_norm_divisor(&norm, 1.0, 3.0) == (double)(5.0f / 3.0f));
}

/* 100 elements of 3e38 have a norm of 3e39, which is no f32. */
static void
a_norm_beyond_f32_ends_at_the_limit_too(void **state)
{
	float grad[100];
	struct wf_norm norm = {0};
	for (unsigned i = 0; i < 100; i++) {
		grad[i] = i % 2 == 0 ? 3e38f : -3e38f;
	}
	wf_norm_add(&norm, squares_of(grad, 100));
	expect_near(wf_norm_root(&norm), 3e39, 1e-7);
	expect_near(wf_norm_divisor(&norm, 1.0, 2.0), 1.5e39, 1e-7);
	expect_near(wf_norm_divisor(&norm, 8.0, 1e-38), 3e77, 1e-7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(squares_are_of_the_sums_over_trainers),
		cmocka_unit_test(sums_over_trainers_are_in_order),
		cmocka_unit_test(what_is_not_finite_is_left_out),
		cmocka_unit_test(sums_in_any_order_and_parts_have_the_same_bits),
		cmocka_unit_test(the_least_and_the_largest_gradients_have_norms),
		cmocka_unit_test(a_gradient_within_the_limit_is_divided_as_before),
		cmocka_unit_test(a_longer_one_ends_at_the_limit),
		cmocka_unit_test(a_norm_beyond_f32_ends_at_the_limit_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
