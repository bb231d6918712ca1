/* SPDX-License-Identifier: Apache-2.0 */
/* forms: what the forms of the kernels share. Private to this folder. Thread: any.
 *
 * Every function of ref.c has an index at which it begins, so that a wide form passes its last few
 * elements to the code that defines the result. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

/* Each method that a form has a pass for: its function's name, its kind, and the number of its
 * arrays of state, which optimizer.c has too. torch_momentum is applied as momentum: only the rate
 * differs. */
/* clang-format off */
#define WF_OPTIMIZERS(each)                                                                        \
	each(sgd, WF_SGD, 0)                                                                       \
	each(momentum, WF_MOMENTUM, 1)                                                             \
	each(adam, WF_ADAM, 2)                                                                     \
	each(nesterov, WF_NESTEROV, 1)                                                             \
	each(adagrad, WF_ADAGRAD, 1)                                                               \
	each(adamw, WF_ADAMW, 2)                                                                   \
	each(decayed_adagrad, WF_DECAYED_ADAGRAD, 1)                                               \
	each(rmsprop, WF_RMSPROP, 2)                                                               \
	each(adadelta, WF_ADADELTA, 2)                                                             \
	each(adamax, WF_ADAMAX, 2)                                                                 \
	each(torch_momentum, WF_TORCH_MOMENTUM, 1)                                                 \
	each(torch_adam, WF_TORCH_ADAM, 2)                                                         \
	each(torch_adamw, WF_TORCH_ADAMW, 2)                                                       \
	each(torch_sgd, WF_TORCH_SGD, 1)
/* clang-format on */

/* The method's place in a form's table. */
#define WF_OPTIMIZER_ENTRY(name, kind, states) [kind] = apply_##name,

#define WF_CALM_BITS 0x53800000 /* of 2^40 */

/* The magnitude, as bits, up to which gradient and parameter of an element are calm: with these
 * settings no step takes it, its squares or its state out of f32, so nobody looks at the outcome. A
 * square of at most 2^98 is less than half of the last bit of the largest f32. -1: with these
 * settings nothing is calm. */
static inline int
wf_calm_bits(const struct wf_apply *apply)
{
	const bool calm = apply->rate >= -0x1p30f && apply->rate <= 0x1p30f &&
			  apply->plain_rate >= -0x1p30f && apply->plain_rate <= 0x1p30f &&
			  apply->decay <= 0x1p8f;
	return calm ? WF_CALM_BITS : -1;
}

/* Whether decay is 0, and not -0. Then a step of SGD without it has the same bits: for a finite
 * parameter w, g + 0 w is g, or a zero of another sign if g is -0 and w is not below 0, and
 * w - rate (+-0) is w for all of these. */
static inline bool
wf_is_undecayed(const struct wf_apply *apply)
{
	uint32_t bits;
	memcpy(&bits, &apply->decay, sizeof(bits));
	return bits == 0;
}

/* The reciprocal of a divisor that is a power of two up to 2^126: to multiply by it gives the bits
 * of the division in a fifth of its time. 0: of any other divisor, which has no exact one. */
static inline float
wf_exact_reciprocal(float divisor)
{
	uint32_t bits;
	memcpy(&bits, &divisor, sizeof(bits));
	const bool has = (bits & 0x807fffffu) == 0 && bits != 0 && bits <= 0x7e800000u;
	bits = has ? 0x7f000000u - bits : 0;
	memcpy(&divisor, &bits, sizeof(bits));
	return divisor;
}

/* Elements [first, apply->count). Returns how many were left as they are. */
size_t wf_ref_apply(enum wf_optimizer kind, const struct wf_apply *apply, size_t first);
/* out[first, count) = in[0] + in[1] + ... */
void wf_ref_sum(float *out, const float *const *in, unsigned in_count, size_t first, size_t count);
/* The inputs of a sum, and its divisor. */
struct wf_mean {
	const float *const *in;
	unsigned in_count;
	float divisor;
};
/* out[first, count) = (in[0] + in[1] + ...) / divisor */
void wf_ref_mean(float *out, const struct wf_mean *mean, size_t first, size_t count);
/* out[i] = in[0][first + i] + in[1][first + i] + ... */
void wf_ref_sum_bf16(float *out, const uint16_t *const *in, unsigned in_count, size_t first,
		     size_t count);
void wf_ref_sum_f16(float *out, const uint16_t *const *in, unsigned in_count, size_t first,
		    size_t count);

#if WF_HAVE_AVX2
/* Only for a processor with AVX2. */
const struct wf_kernels *wf_kernels_avx2(void);
#endif
#if WF_HAVE_AVX512
/* Only for a processor with AVX-512F. */
const struct wf_kernels *wf_kernels_avx512(void);
#endif

/* Constants of exp and log in f32; every form computes with these, in the order of math.c. */

/* 1.5 * 2^23: adding and subtracting it rounds to the nearest integer, ties to even. */
#define WF_F32_ROUND 0x1.8p23f
#define WF_F32_LOG2E 0x1.715476p0f /* 1 / ln 2 */
/* ln 2 in two parts (Cody and Waite): the first has 15 bits, so that its product with any exponent
 * of an f32 is exact. */
#define WF_F32_LN2_HI 0x1.62e4p-1f
#define WF_F32_LN2_LO 0x1.7f7d1cp-20f
/* Beyond these exp is certainly infinite or below the smallest normal number. */
#define WF_F32_EXP_MAX 89.0f
#define WF_F32_EXP_MIN (-88.0f)
/* exp: 1 / k! for k = 2 .. 7. */
#define WF_F32_EXP_C2 0x1p-1f
#define WF_F32_EXP_C3 0x1.555556p-3f
#define WF_F32_EXP_C4 0x1.555556p-5f
#define WF_F32_EXP_C5 0x1.111112p-7f
#define WF_F32_EXP_C6 0x1.6c16c2p-10f
#define WF_F32_EXP_C7 0x1.a01a02p-13f
/* log: 2 / (2k + 1) for k = 1 .. 4. */
#define WF_F32_LOG_C1 0x1.555556p-1f
#define WF_F32_LOG_C2 0x1.99999ap-2f
#define WF_F32_LOG_C3 0x1.24924ap-2f
#define WF_F32_LOG_C4 0x1.c71c72p-3f
#define WF_F32_SQRT2 0x1.6a09e6p0f
/* A subnormal argument of log is multiplied by 2^24 first. */
#define WF_F32_LOG_SCALE 0x1p24f
#define WF_F32_LOG_SCALE_EXPONENT 24.0f
