/* SPDX-License-Identifier: Apache-2.0 */
/* avx2: the kernels on eight f32 at a time, with the bits of ref.c. Built with -mavx2 -mno-fma, and
 * called only where dispatch.c found AVX2. Thread: any.
 *
 * Each lane computes what ref.c computes for one element, operation by operation; MINPS, MAXPS and
 * the comparisons were chosen for what they do with NaN and zeros. Loads and stores are unaligned:
 * on processors with AVX2 they cost nothing extra where the address happens to be aligned. What is
 * left after the last whole vector goes to ref.c.
 *
 * The number of gradients and the kind of optimizer are constants wherever it matters: the
 * functions marked INLINE are copied into each caller, and the compiler removes what that caller
 * never uses. */
#include "kernels/kernels.h"

#include <float.h>
#include <immintrin.h>

#include "base/assert.h"
#include "kernels/forms.h"

#define INLINE static inline __attribute__((always_inline))
#define WIDTH 8 /* f32 in a vector */
#define MANY 0  /* a number of inputs that is not a constant */

/* Several arrays that are added up in order. The first four are named, to be held in registers. */
struct inputs {
	const float *a, *b, *c, *d;
	const float *const *all;
	unsigned count;
};

INLINE struct inputs
open_inputs(const float *const *all, unsigned count)
{
	return (struct inputs){
		.a = all[0],
		.b = count > 1 ? all[1] : NULL,
		.c = count > 2 ? all[2] : NULL,
		.d = count > 3 ? all[3] : NULL,
		.all = all,
		.count = count,
	};
}

/* ((a + b) + c) + ... at i. `fixed`: in->count where that is 1, 2 or 4, else MANY. */
INLINE __m256
sum_at(const struct inputs *in, unsigned fixed, size_t i)
{
	__m256 sum = _mm256_loadu_ps(in->a + i);
	if (fixed == 2 || fixed == 4) {
		sum = _mm256_add_ps(sum, _mm256_loadu_ps(in->b + i));
	}
	if (fixed == 4) {
		sum = _mm256_add_ps(sum, _mm256_loadu_ps(in->c + i));
		sum = _mm256_add_ps(sum, _mm256_loadu_ps(in->d + i));
	}
	for (unsigned n = 1; fixed == MANY && n < in->count; n++) {
		sum = _mm256_add_ps(sum, _mm256_loadu_ps(in->all[n] + i));
	}
	return sum;
}

/* All bits set where x is finite. */
INLINE __m256
finite_mask(__m256 x)
{
	__m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
	return _mm256_cmp_ps(magnitude, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ);
}

INLINE size_t
count_clear(__m256 mask)
{
	return WIDTH - (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(mask));
}

/* wf_apply's numbers, one copy for each lane. */
struct scalars {
	__m256 divisor, low, high, rate, decay, momentum;
	__m256 beta1, rest1, beta2, rest2, epsilon;
};

INLINE struct scalars
open_scalars(const struct wf_apply *apply)
{
	/* Clipping a finite number to infinity leaves it as it is. */
	float clip = apply->clip > 0.0f ? apply->clip : __builtin_inff();
	return (struct scalars){
		.divisor = _mm256_set1_ps(apply->divisor),
		.low = _mm256_set1_ps(-clip),
		.high = _mm256_set1_ps(clip),
		.rate = _mm256_set1_ps(apply->rate),
		.decay = _mm256_set1_ps(apply->decay),
		.momentum = _mm256_set1_ps(apply->momentum),
		.beta1 = _mm256_set1_ps(apply->beta1),
		.rest1 = _mm256_set1_ps(1.0f - apply->beta1),
		.beta2 = _mm256_set1_ps(apply->beta2),
		.rest2 = _mm256_set1_ps(1.0f - apply->beta2),
		.epsilon = _mm256_set1_ps(apply->epsilon),
	};
}

/* Where `keep` is clear memory keeps what it had. */
INLINE void
store_some(float *at, __m256 before, __m256 after, __m256 keep)
{
	_mm256_storeu_ps(at, _mm256_blendv_ps(before, after, keep));
}

INLINE void
step_sgd(const struct scalars *k, float *param, __m256 g, __m256 finite)
{
	__m256 w = _mm256_loadu_ps(param);
	__m256 d = _mm256_add_ps(g, _mm256_mul_ps(k->decay, w));
	store_some(param, w, _mm256_sub_ps(w, _mm256_mul_ps(k->rate, d)), finite);
}

INLINE void
step_momentum(const struct scalars *k, float *param, float *state, __m256 g, __m256 finite)
{
	__m256 w = _mm256_loadu_ps(param);
	__m256 m = _mm256_loadu_ps(state);
	__m256 d = _mm256_add_ps(g, _mm256_mul_ps(k->decay, w));
	__m256 next = _mm256_sub_ps(_mm256_mul_ps(k->momentum, m), _mm256_mul_ps(k->rate, d));
	store_some(state, m, next, finite);
	store_some(param, w, _mm256_add_ps(w, next), finite);
}

INLINE void
step_adam(const struct scalars *k, float *param, float *const state[2], __m256 g, __m256 finite)
{
	__m256 w = _mm256_loadu_ps(param);
	__m256 m = _mm256_loadu_ps(state[0]);
	__m256 v = _mm256_loadu_ps(state[1]);
	__m256 d = _mm256_add_ps(g, _mm256_mul_ps(k->decay, w));
	__m256 next_m = _mm256_add_ps(_mm256_mul_ps(k->beta1, m), _mm256_mul_ps(k->rest1, d));
	__m256 next_v = _mm256_add_ps(_mm256_mul_ps(k->beta2, v),
				      _mm256_mul_ps(k->rest2, _mm256_mul_ps(d, d)));
	__m256 below = _mm256_add_ps(_mm256_sqrt_ps(next_v), k->epsilon);
	__m256 step = _mm256_div_ps(_mm256_mul_ps(k->rate, next_m), below);
	store_some(state[0], m, next_m, finite);
	store_some(state[1], v, next_v, finite);
	store_some(param, w, _mm256_sub_ps(w, step), finite);
}

/* One pass over [0, whole) of every array, `whole` a multiple of WIDTH. */
INLINE size_t
run(const struct wf_apply *apply, enum wf_optimizer kind, unsigned fixed, size_t whole)
{
	const struct inputs in = open_inputs(apply->grad, apply->grad_count);
	const struct scalars k = open_scalars(apply);
	float *w = apply->param;
	float *m = apply->state[0];
	float *v = apply->state[1];
	size_t skipped = 0;

	for (size_t i = 0; i < whole; i += WIDTH) {
		__m256 g = _mm256_div_ps(sum_at(&in, fixed, i), k.divisor);
		__m256 finite = finite_mask(g);
		skipped += count_clear(finite);
		g = _mm256_min_ps(_mm256_max_ps(g, k.low), k.high);
		if (kind == WF_SGD) {
			step_sgd(&k, w + i, g, finite);
		} else if (kind == WF_MOMENTUM) {
			step_momentum(&k, w + i, m + i, g, finite);
		} else {
			step_adam(&k, w + i, (float *const[2]){m + i, v + i}, g, finite);
		}
	}
	return skipped;
}

INLINE size_t
run_any(const struct wf_apply *apply, enum wf_optimizer kind, size_t whole)
{
	WF_ASSERT(apply->grad_count >= 1);
	switch (apply->grad_count) {
	case 1:
		return run(apply, kind, 1, whole);
	case 2:
		return run(apply, kind, 2, whole);
	case 4:
		return run(apply, kind, 4, whole);
	default:
		return run(apply, kind, MANY, whole);
	}
}

static size_t
whole_vectors(size_t count)
{
	return count - count % WIDTH;
}

static size_t
apply_sgd(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_SGD, whole);
	return skipped + wf_ref_apply_sgd(apply, whole);
}

static size_t
apply_momentum(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_MOMENTUM, whole);
	return skipped + wf_ref_apply_momentum(apply, whole);
}

static size_t
apply_adam(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_ADAM, whole);
	return skipped + wf_ref_apply_adam(apply, whole);
}

INLINE void
sum_whole(float *out, const struct inputs *in, unsigned fixed, size_t whole)
{
	for (size_t i = 0; i < whole; i += WIDTH) {
		_mm256_storeu_ps(out + i, sum_at(in, fixed, i));
	}
}

static void
sum(float *out, const float *const *in, unsigned in_count, size_t count)
{
	size_t whole = whole_vectors(count);
	WF_ASSERT(in_count >= 1);
	const struct inputs inputs = open_inputs(in, in_count);

	if (in_count == 2) {
		sum_whole(out, &inputs, 2, whole);
	} else if (in_count == 4) {
		sum_whole(out, &inputs, 4, whole);
	} else {
		sum_whole(out, &inputs, MANY, whole);
	}
	wf_ref_sum(out, in, in_count, whole, count);
}

static size_t
count_nonfinite(const float *in, size_t count)
{
	size_t whole = whole_vectors(count);
	size_t found = 0;

	for (size_t i = 0; i < whole; i += WIDTH) {
		found += count_clear(finite_mask(_mm256_loadu_ps(in + i)));
	}
	return found + wf_kernels_ref()->count_nonfinite(in + whole, count - whole);
}

/* c + r * q */
INLINE __m256
horner(float c, __m256 r, __m256 q)
{
	return _mm256_add_ps(_mm256_set1_ps(c), _mm256_mul_ps(r, q));
}

/* 2^n in each lane, -126 <= n <= 127. */
INLINE __m256
power_of_2(__m256i n)
{
	n = _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23);
	return _mm256_castsi256_ps(n);
}

/* wf_exp_f32 line by line. */
INLINE __m256
exp_vector(__m256 x)
{
	__m256 a = _mm256_min_ps(x, _mm256_set1_ps(WF_F32_EXP_MAX));
	a = _mm256_max_ps(a, _mm256_set1_ps(WF_F32_EXP_MIN));

	const __m256 round = _mm256_set1_ps(WF_F32_ROUND);
	__m256 n = _mm256_mul_ps(a, _mm256_set1_ps(WF_F32_LOG2E));
	n = _mm256_sub_ps(_mm256_add_ps(n, round), round);
	__m256 r = _mm256_sub_ps(a, _mm256_mul_ps(n, _mm256_set1_ps(WF_F32_LN2_HI)));
	r = _mm256_sub_ps(r, _mm256_mul_ps(n, _mm256_set1_ps(WF_F32_LN2_LO)));
	__m256 q = _mm256_set1_ps(WF_F32_EXP_C7);
	q = horner(WF_F32_EXP_C6, r, q);
	q = horner(WF_F32_EXP_C5, r, q);
	q = horner(WF_F32_EXP_C4, r, q);
	q = horner(WF_F32_EXP_C3, r, q);
	q = horner(WF_F32_EXP_C2, r, q);
	__m256 y = _mm256_add_ps(r, _mm256_mul_ps(_mm256_mul_ps(r, r), q));
	y = _mm256_add_ps(_mm256_set1_ps(1.0f), y);

	/* Truncated as C's integer division is. */
	__m256i half = _mm256_cvttps_epi32(_mm256_mul_ps(n, _mm256_set1_ps(0.5f)));
	y = _mm256_mul_ps(y, power_of_2(half));
	y = _mm256_mul_ps(y, power_of_2(_mm256_sub_epi32(_mm256_cvttps_epi32(n), half)));
	__m256 normal = _mm256_cmp_ps(y, _mm256_set1_ps(FLT_MIN), _CMP_NLT_UQ);
	y = _mm256_and_ps(y, normal);
	return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static void
exp_f32(float *out, const float *in, size_t count)
{
	size_t whole = whole_vectors(count);
	for (size_t i = 0; i < whole; i += WIDTH) {
		_mm256_storeu_ps(out + i, exp_vector(_mm256_loadu_ps(in + i)));
	}
	wf_kernels_ref()->exp_f32(out + whole, in + whole, count - whole);
}

/* x = 2^e (1 + f), as the first lines of wf_log_f32; rubbish where x is not above 0 and finite. */
INLINE void
split_vector(__m256 x, __m256 *e, __m256 *f)
{
	__m256 tiny = _mm256_cmp_ps(x, _mm256_set1_ps(FLT_MIN), _CMP_LT_OQ);
	__m256 scaled = _mm256_mul_ps(x, _mm256_set1_ps(WF_F32_LOG_SCALE));
	scaled = _mm256_blendv_ps(x, scaled, tiny);
	__m256 scaled_by = _mm256_and_ps(_mm256_set1_ps(WF_F32_LOG_SCALE_EXPONENT), tiny);

	__m256i bits = _mm256_castps_si256(scaled);
	__m256i exponent = _mm256_and_si256(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(0xff));
	exponent = _mm256_sub_epi32(exponent, _mm256_set1_epi32(127));
	*e = _mm256_sub_ps(_mm256_cvtepi32_ps(exponent), scaled_by);
	bits = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff));
	bits = _mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000));
	__m256 m = _mm256_castsi256_ps(bits);

	const __m256 one = _mm256_set1_ps(1.0f);
	__m256 large = _mm256_cmp_ps(m, _mm256_set1_ps(WF_F32_SQRT2), _CMP_GT_OQ);
	*e = _mm256_blendv_ps(*e, _mm256_add_ps(*e, one), large);
	m = _mm256_blendv_ps(m, _mm256_mul_ps(m, _mm256_set1_ps(0.5f)), large);
	*f = _mm256_sub_ps(m, one);
}

/* wf_log_f32 line by line. */
INLINE __m256
log_vector(__m256 x)
{
	__m256 e;
	__m256 f;
	split_vector(x, &e, &f);

	__m256 s = _mm256_div_ps(f, _mm256_add_ps(_mm256_set1_ps(2.0f), f));
	__m256 z = _mm256_mul_ps(s, s);
	__m256 t = _mm256_set1_ps(WF_F32_LOG_C4);
	t = horner(WF_F32_LOG_C3, z, t);
	t = horner(WF_F32_LOG_C2, z, t);
	t = horner(WF_F32_LOG_C1, z, t);
	t = _mm256_mul_ps(z, t);
	__m256 h = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), f), f);
	__m256 y = _mm256_mul_ps(s, _mm256_add_ps(h, t));
	y = _mm256_add_ps(y, _mm256_mul_ps(e, _mm256_set1_ps(WF_F32_LN2_LO)));
	y = _mm256_sub_ps(f, _mm256_sub_ps(h, y));
	y = _mm256_add_ps(_mm256_mul_ps(e, _mm256_set1_ps(WF_F32_LN2_HI)), y);

	const __m256 zero = _mm256_setzero_ps();
	const __m256 inf = _mm256_set1_ps(__builtin_inff());
	y = _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, inf, _CMP_LT_OQ));
	y = _mm256_blendv_ps(y, _mm256_set1_ps(__builtin_nanf("")),
			     _mm256_cmp_ps(x, zero, _CMP_LT_OQ));
	return _mm256_blendv_ps(y, _mm256_set1_ps(-__builtin_inff()),
				_mm256_cmp_ps(x, zero, _CMP_EQ_OQ));
}

static void
log_f32(float *out, const float *in, size_t count)
{
	size_t whole = whole_vectors(count);
	for (size_t i = 0; i < whole; i += WIDTH) {
		_mm256_storeu_ps(out + i, log_vector(_mm256_loadu_ps(in + i)));
	}
	wf_kernels_ref()->log_f32(out + whole, in + whole, count - whole);
}

static const struct wf_kernels avx2 = {
	.name = "avx2",
	.apply =
		{
			[WF_SGD] = apply_sgd,
			[WF_MOMENTUM] = apply_momentum,
			[WF_ADAM] = apply_adam,
		},
	.sum = sum,
	.count_nonfinite = count_nonfinite,
	.exp_f32 = exp_f32,
	.log_f32 = log_f32,
};

const struct wf_kernels *
wf_kernels_avx2(void)
{
	return &avx2;
}
