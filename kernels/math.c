/* SPDX-License-Identifier: Apache-2.0 */
/* math: exp, log and pow out of IEEE additions, multiplications and divisions, so that a
 * parameter's bits do not depend on the C library. Thread: any.
 *
 * Methods (kernels/README.md names the books): Cody and Waite's two-part reduction by ln 2;
 * Taylor's series of exp and of the area hyperbolic tangent, cut where the next term is below the
 * rounding error; for pow, Dekker's pairs of f64, whose sum carries about 100 bits. */
#include "kernels/kernels.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/forms.h"

#define INF_F32 __builtin_inff()
#define NAN_F32 __builtin_nanf("")
#define INF_F64 __builtin_inf()
#define NAN_F64 __builtin_nan("")

WF_STATIC_ASSERT(FLT_EVAL_METHOD == 0, "every operation has to round to its own type");

static uint32_t
f32_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float
f32_of_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static uint64_t
f64_bits(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static double
f64_of_bits(uint64_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* 2^n, -126 <= n <= 127. */
static float
f32_power_of_2(int n)
{
	return f32_of_bits((uint32_t)(n + 127) << 23);
}

/* 2^n, -1022 <= n <= 1023. */
static double
f64_power_of_2(int n)
{
	return f64_of_bits((uint64_t)(n + 1023) << 52);
}

/* exp(x) = 2^n exp(r), |r| <= ln 2 / 2. */
float
wf_exp_f32(float x)
{
	/* In this order a NaN becomes EXP_MAX; it is put back at the end. */
	float a = x < WF_F32_EXP_MAX ? x : WF_F32_EXP_MAX;
	a = a > WF_F32_EXP_MIN ? a : WF_F32_EXP_MIN;

	float n = (a * WF_F32_LOG2E + WF_F32_ROUND) - WF_F32_ROUND;
	float r = (a - n * WF_F32_LN2_HI) - n * WF_F32_LN2_LO;
	float q = WF_F32_EXP_C7;
	q = WF_F32_EXP_C6 + r * q;
	q = WF_F32_EXP_C5 + r * q;
	q = WF_F32_EXP_C4 + r * q;
	q = WF_F32_EXP_C3 + r * q;
	q = WF_F32_EXP_C2 + r * q;
	float y = 1.0f + (r + r * r * q);

	/* In two steps: n may be 128, for which there is no f32. */
	int half = (int)n / 2;
	y = y * f32_power_of_2(half) * f32_power_of_2((int)n - half);
	y = y < FLT_MIN ? 0.0f : y;
	return x != x ? x : y;
}

/* log(2^e m) = e ln 2 + log(1 + f), f = m - 1, sqrt(1/2) < m <= sqrt(2). With s = f / (2 + f),
 * log(1 + f) = 2 artanh(s) = 2 s + s R(s^2), and 2 s = f - (f^2 / 2 - s f^2 / 2), where f is exact.
 */
float
wf_log_f32(float x)
{
	float scaled = x < FLT_MIN ? x * WF_F32_LOG_SCALE : x;
	float scaled_by = x < FLT_MIN ? WF_F32_LOG_SCALE_EXPONENT : 0.0f;
	uint32_t bits = f32_bits(scaled);
	float e = (float)((int)(bits >> 23 & 0xff) - 127) - scaled_by;
	float m = f32_of_bits((bits & 0x7fffff) | 0x3f800000);
	e = m > WF_F32_SQRT2 ? e + 1.0f : e;
	m = m > WF_F32_SQRT2 ? m * 0.5f : m;

	float f = m - 1.0f;
	float s = f / (2.0f + f);
	float z = s * s;
	float t = WF_F32_LOG_C4;
	t = WF_F32_LOG_C3 + z * t;
	t = WF_F32_LOG_C2 + z * t;
	t = WF_F32_LOG_C1 + z * t;
	t = z * t;
	float h = 0.5f * f * f;
	float y = e * WF_F32_LN2_HI + (f - (h - (s * (h + t) + e * WF_F32_LN2_LO)));

	y = x < INF_F32 ? y : x; /* infinity and NaN stay */
	y = x < 0.0f ? NAN_F32 : y;
	return x == 0.0f ? -INF_F32 : y;
}

/* The same in f64. */
#define F64_ROUND 0x1.8p52 /* 1.5 * 2^52, as WF_F32_ROUND */
#define F64_LOG2E 0x1.71547652b82fep0
#define F64_LN2_HI 0x1.62e42fefa38p-1 /* 42 bits: exact times any exponent */
#define F64_LN2_LO 0x1.ef35793c7673p-45

/* exp(hi + lo), |lo| far below |hi| or both 0. Gradual underflow. */
static double
exp_pair(double hi, double lo)
{
	if (hi != hi) {
		return hi;
	}
	if (hi > 710.0) {
		return INF_F64;
	}
	if (hi < -746.0) {
		return 0.0;
	}
	double n = (hi * F64_LOG2E + F64_ROUND) - F64_ROUND;
	double exact = hi - n * F64_LN2_HI;
	double rest = lo - n * F64_LN2_LO;
	double r = exact + rest;
	double r_lo = (exact - r) + rest; /* what the line above rounded away */

	double q = 1.0;
	for (int k = 13; k >= 3; k--) { /* 1 + r/3 (1 + r/4 (1 + ... r/13)) */
		q = 1.0 + r * q / k;
	}
	double y = 1.0 + (r + (r_lo + 0.5 * r * r * q));
	int half = (int)n / 2;
	return y * f64_power_of_2(half) * f64_power_of_2((int)n - half);
}

double
wf_exp_f64(double x)
{
	return exp_pair(x, 0.0);
}

/* x = 2^e (1 + f), sqrt(1/2) < 1 + f <= sqrt(2). x: finite, above 0. */
static void
split_f64(double x, double *e, double *f)
{
	double scaled_by = 0.0;
	if (x < DBL_MIN) {
		x = x * 0x1p54;
		scaled_by = 54.0;
	}
	uint64_t bits = f64_bits(x);
	double m = f64_of_bits((bits & 0xfffffffffffff) | 0x3ff0000000000000);
	*e = (double)((int)(bits >> 52 & 0x7ff) - 1023) - scaled_by;
	if (m > 0x1.6a09e667f3bcdp0) {
		m = 0.5 * m;
		*e += 1.0;
	}
	*f = m - 1.0;
}

/* 2/(2k+1) + z (2/(2k+3) + ...), up to 2/29. z <= 0.0295: what is cut off is below 2^-74 of the
 * logarithm; wf_log_f64 would do with less, log_pair would not. */
static double
artanh_series(int k, double z)
{
	double t = 0.0;
	for (int j = 14; j >= k; j--) {
		t = 2.0 / (2 * j + 1) + z * t;
	}
	return t;
}

double
wf_log_f64(double x)
{
	if (x == 0.0) {
		return -INF_F64;
	}
	if (x < 0.0) {
		return NAN_F64;
	}
	if (!(x <= DBL_MAX)) {
		return x;
	}
	double e;
	double f;
	split_f64(x, &e, &f);
	double s = f / (2.0 + f);
	double z = s * s;
	double t = z * artanh_series(1, z);
	double h = 0.5 * f * f;
	return e * F64_LN2_HI + (f - (h - (s * (h + t) + e * F64_LN2_LO)));
}

/* hi + lo is the value; lo is below half a unit in the last place of hi. */
struct pair {
	double hi, lo;
};

/* Knuth: exact. */
static struct pair
two_sum(double a, double b)
{
	double hi = a + b;
	double a_part = hi - b;
	double b_part = hi - a_part;
	return (struct pair){hi, (a - a_part) + (b - b_part)};
}

/* Veltkamp and Dekker: exact where nothing over- or underflows. */
static struct pair
two_product(double a, double b)
{
	const double splitter = 0x1p27 + 1.0;
	double a_big = a * splitter;
	double a_hi = a_big - (a_big - a);
	double a_lo = a - a_hi;
	double b_big = b * splitter;
	double b_hi = b_big - (b_big - b);
	double b_lo = b - b_hi;
	double hi = a * b;
	return (struct pair){hi, ((a_hi * b_hi - hi) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo};
}

static struct pair
pair_product(struct pair a, struct pair b)
{
	struct pair p = two_product(a.hi, b.hi);
	return two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static struct pair
pair_sum(struct pair a, struct pair b)
{
	struct pair s = two_sum(a.hi, b.hi);
	return two_sum(s.hi, s.lo + (a.lo + b.lo));
}

/* log x within 2^-63 of itself: pow multiplies its relative error by up to 745. */
static struct pair
log_pair(double x)
{
	const struct pair two_thirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
	double e;
	double f;
	split_f64(x, &e, &f);

	/* s = f / (2 + f), with the remainder of the division. */
	struct pair below = two_sum(2.0, f);
	struct pair s;
	s.hi = f / below.hi;
	struct pair back = two_product(s.hi, below.hi);
	s.lo = ((f - back.hi) - back.lo - s.hi * below.lo) / below.hi;

	/* 2 s + (2/3) s^3 in pairs; the rest is small enough for f64. */
	struct pair z = pair_product(s, s);
	struct pair cubic = pair_product(pair_product(s, z), two_thirds);
	cubic.lo += s.hi * z.hi * z.hi * artanh_series(2, z.hi);
	struct pair sum = pair_sum((struct pair){2.0 * s.hi, 2.0 * s.lo}, cubic);
	return pair_sum((struct pair){e * F64_LN2_HI, e * F64_LN2_LO}, sum);
}

double
wf_pow_f64(double x, double y)
{
	if (y == 0.0 || x == 1.0) {
		return 1.0;
	}
	if (x != x || y != y || x < 0.0) {
		return NAN_F64;
	}
	if (x == 0.0 || x > DBL_MAX) {
		return (x > 0.0) == (y > 0.0) ? INF_F64 : 0.0;
	}
	struct pair log = log_pair(x);
	/* Beyond this the result is 0 or infinite, and two_product might overflow. */
	if (!(log.hi * y < 800.0)) {
		return INF_F64;
	}
	if (!(log.hi * y > -800.0)) {
		return 0.0;
	}
	struct pair product = two_product(log.hi, y);
	product = two_sum(product.hi, product.lo + log.lo * y);
	return exp_pair(product.hi, product.lo);
}
