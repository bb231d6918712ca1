/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log and pow against the C library in the next wider type. Only this test uses libm: the
 * kernels do not. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernels/kernels.h"

#define ULP_LIMIT 2.0

/* |got - want| in units of the last place that `want` has in a type of `digits` bits. */
static double
ulps(long double got, long double want, int digits, int min_exponent)
{
	int exponent = 0;
	(void)frexpl(want, &exponent);
	exponent = exponent < min_exponent ? min_exponent : exponent;
	return (double)fabsl((got - want) / ldexpl(1.0L, exponent - digits));
}

static void
expect_f32(const char *what, float x, float got, double want)
{
	if (isinf(got) && (float)want == got) {
		return;
	}
	double error = ulps((long double)got, (long double)want, FLT_MANT_DIG, FLT_MIN_EXP);
	if (!(error <= ULP_LIMIT)) {
		fail_msg("%s(%a) is %a, %.3f ulp from %a", what, (double)x, (double)got, error,
			 want);
	}
}

static void
expect_f64(const char *what, double x, double y, double got, long double want)
{
	if (isinf(got) && (double)want == got) {
		return;
	}
	double error = ulps((long double)got, want, DBL_MANT_DIG, DBL_MIN_EXP);
	if (!(error <= ULP_LIMIT)) {
		fail_msg("%s(%a, %a) is %a, %.3f ulp from %La", what, x, y, got, error, want);
	}
}

/* Every 1,009th f32 there is: 4.2 million, all exponents, both signs. */
static void
exp_and_log_in_f32_are_within_2_ulp_over_all_exponents(void **state)
{
	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1009) {
		uint32_t low = (uint32_t)bits;
		float x = 0.0f;
		memcpy(&x, &low, sizeof(x));
		if (isnan(x)) {
			assert_true(isnan(wf_exp_f32(x)) && isnan(wf_log_f32(x)));
			continue;
		}
		double want = exp((double)x);
		float got = wf_exp_f32(x);
		if (want < (double)FLT_MIN && got == 0.0f) {
			continue; /* flushed */
		}
		expect_f32("exp", x, got, want);
		assert_true(got >= FLT_MIN);
		if (x < 0.0f) {
			assert_true(isnan(wf_log_f32(x)));
		} else if (x > 0.0f) {
			expect_f32("log", x, wf_log_f32(x), log((double)x));
		}
	}
}

static void
log_in_f32_is_within_2_ulp_near_one_and_in_subnormals(void **state)
{
	float x = 0.999f;
	while (x < 1.001f) {
		expect_f32("log", x, wf_log_f32(x), log((double)x));
		x = nextafterf(x, 2.0f);
	}
	for (uint32_t bits = 1; bits < 0x800000; bits += 101) {
		memcpy(&x, &bits, sizeof(x));
		expect_f32("log", x, wf_log_f32(x), log((double)x));
	}
}

static void
special_values_in_f32(void **state)
{
	assert_true(wf_exp_f32(0.0f) == 1.0f && wf_exp_f32(-0.0f) == 1.0f);
	assert_true(wf_exp_f32(INFINITY) == INFINITY && wf_exp_f32(FLT_MAX) == INFINITY);
	assert_true(wf_exp_f32(0x1.62e42ep6f) < INFINITY);  /* the last below 128 ln 2 */
	assert_true(wf_exp_f32(0x1.62e430p6f) == INFINITY); /* the first above */
	assert_true(wf_exp_f32(-INFINITY) == 0.0f && !signbit(wf_exp_f32(-INFINITY)));
	assert_true(wf_exp_f32(-FLT_MAX) == 0.0f && wf_exp_f32(-100.0f) == 0.0f);
	assert_true(wf_exp_f32(-87.34f) == 0.0f);   /* subnormal: flushed */
	assert_true(wf_exp_f32(-87.33f) > FLT_MIN); /* still normal */
	assert_true(wf_exp_f32(FLT_MIN) == 1.0f && wf_exp_f32(-0x1p-149f) == 1.0f);

	assert_true(wf_log_f32(1.0f) == 0.0f && !signbit(wf_log_f32(1.0f)));
	assert_true(wf_log_f32(0.0f) == -INFINITY && wf_log_f32(-0.0f) == -INFINITY);
	assert_true(wf_log_f32(INFINITY) == INFINITY);
	assert_true(isnan(wf_log_f32(-INFINITY)) && isnan(wf_log_f32(-0x1p-149f)));
}

static void
special_values_in_f64(void **state)
{
	const double inf = (double)INFINITY;
	const double nan = (double)NAN;

	assert_true(wf_exp_f64(0.0) == 1.0 && wf_exp_f64(-0.0) == 1.0);
	assert_true(wf_exp_f64(inf) == inf && wf_exp_f64(-inf) == 0.0 && isnan(wf_exp_f64(nan)));
	assert_true(wf_exp_f64(709.0) < inf && wf_exp_f64(709.79) == inf &&
		    wf_exp_f64(DBL_MAX) == inf);
	assert_true(wf_exp_f64(-745.0) > 0.0 && wf_exp_f64(-745.2) == 0.0 &&
		    wf_exp_f64(-DBL_MAX) == 0.0);

	assert_true(wf_log_f64(1.0) == 0.0 && wf_log_f64(0.0) == -inf && wf_log_f64(-0.0) == -inf);
	assert_true(wf_log_f64(inf) == inf && isnan(wf_log_f64(nan)));
	assert_true(isnan(wf_log_f64(-1.0)) && isnan(wf_log_f64(-inf)));

	assert_true(wf_pow_f64(0.0, 2.0) == 0.0 && wf_pow_f64(0.0, -2.0) == inf);
	assert_true(wf_pow_f64(0.0, 0.0) == 1.0 && wf_pow_f64(inf, 0.0) == 1.0);
	assert_true(wf_pow_f64(inf, 0.5) == inf && wf_pow_f64(inf, -0.5) == 0.0);
	assert_true(wf_pow_f64(1.0, inf) == 1.0 && wf_pow_f64(1.0, nan) == 1.0);
	assert_true(wf_pow_f64(0.5, inf) == 0.0 && wf_pow_f64(0.5, -inf) == inf);
	assert_true(wf_pow_f64(2.0, inf) == inf && wf_pow_f64(2.0, -inf) == 0.0);
	assert_true(wf_pow_f64(2.0, 1e300) == inf && wf_pow_f64(2.0, -1e300) == 0.0);
	assert_true(wf_pow_f64(1.0 + DBL_EPSILON, DBL_MAX) == inf);
	assert_true(isnan(wf_pow_f64(nan, 1.0)) && isnan(wf_pow_f64(2.0, nan)));
	assert_true(isnan(wf_pow_f64(-1.0, 2.0)));
	assert_true(wf_pow_f64(7.0, 1.0) == 7.0 && wf_pow_f64(2.0, 10.0) == 1024.0);
	assert_true(wf_pow_f64(2.0, -1074.0) == 0x1p-1074);
}

static void
exp_and_log_in_f64_are_within_2_ulp(void **state)
{
	struct wf_rng rng;
	wf_rng_init(&rng, 1, 0);
	for (int i = 0; i < 200000; i++) {
		double near = (wf_rng_f64(&rng) - 0.5) * 4.0;
		double far = (wf_rng_f64(&rng) - 0.5) * 1490.0;
		expect_f64("exp", near, 0, wf_exp_f64(near), expl((long double)near));
		expect_f64("exp", far, 0, wf_exp_f64(far), expl((long double)far));

		double around_one = 0.5 + 1.5 * wf_rng_f64(&rng);
		uint64_t bits = wf_rng_u64(&rng) >> 1;
		double any = 0.0;
		memcpy(&any, &bits, sizeof(any));
		expect_f64("log", around_one, 0, wf_log_f64(around_one),
			   logl((long double)around_one));
		if (isfinite(any)) {
			expect_f64("log", any, 0, wf_log_f64(any), logl((long double)any));
		}
	}
}

/* Exponents such that the result takes all magnitudes a f64 has. */
static void
pow_is_within_2_ulp(void **state)
{
	struct wf_rng rng;
	wf_rng_init(&rng, 2, 0);
	for (int i = 0; i < 200000; i++) {
		double x = 0.25 + 2.0 * wf_rng_f64(&rng);
		if (i % 2 == 0) {
			uint64_t bits = wf_rng_u64(&rng) >> 1;
			memcpy(&x, &bits, sizeof(x));
		}
		if (!isfinite(x) || x == 0.0) {
			continue;
		}
		double y = (wf_rng_f64(&rng) - 0.5) * 1400.0 / fabs(log(x));
		if (isfinite(y)) {
			expect_f64("pow", x, y, wf_pow_f64(x, y),
				   powl((long double)x, (long double)y));
		}
	}
}

static void
powers_of_betas_are_within_2_ulp_for_all_steps(void **state)
{
	const double betas[] = {0.9, 0.999, 0.99, 0.9999999, 0.5, 1e-3};
	for (size_t i = 0; i < sizeof(betas) / sizeof(betas[0]); i++) {
		for (uint64_t t = 1; t <= 1000000; t += 1 + t / 50) {
			long double want = powl((long double)betas[i], (long double)t);
			expect_f64("pow", betas[i], (double)t, wf_pow_f64(betas[i], (double)t),
				   want);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exp_and_log_in_f32_are_within_2_ulp_over_all_exponents),
		cmocka_unit_test(log_in_f32_is_within_2_ulp_near_one_and_in_subnormals),
		cmocka_unit_test(special_values_in_f32),
		cmocka_unit_test(special_values_in_f64),
		cmocka_unit_test(exp_and_log_in_f64_are_within_2_ulp),
		cmocka_unit_test(pow_is_within_2_ulp),
		cmocka_unit_test(powers_of_betas_are_within_2_ulp_for_all_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
