/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: arithmetic over arrays. ref.c is the definition; every other form gives the same bits.
 *
 * Arrays given to one call do not overlap, except that an array may be exactly one of the inputs
 * where a function says so. No alignment is required beyond an f32's own. Nothing allocates,
 * nothing fails. Where a result is NaN, which NaN it is may differ from form to form. libm is not
 * used: exp, log and pow here are plain IEEE arithmetic (sqrt is IEEE's own), so that results do
 * not depend on the C library. Thread: any. */
#pragma once

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/optimizer.h"
#include "kernels/rows.h"

/* What the methods named torch_* need besides. */
struct wf_apply_torch {
	/* torch_adam and torch_adamw: 1 - beta1 and 1 - beta2 of the settings, which is not 1 less
	 * the beta as f32; and sqrt(1 - beta2^t). */
	float rest1, rest2, root_share;
	/* torch_sgd: the weights of the old momentum and of the gradient in the new momentum, then
	 * of the gradient and of the new momentum in the step. */
	float carried, fresh, direct, onward;
};

/* One fused pass: sum gradients in order, scale, clip, update.
 *   s = ((grad[0] + grad[1]) + grad[2]) + ...      in f32, in this order
 *   g = s / divisor
 *   not finite: the element and its state stay as they are, and it is counted
 *   g = min(max(g, -clip), clip)                   when clip > 0
 * then the optimizer's formula (kernels/formulas.md) with g, rate, decay; then, where l1 > 0, the
 * parameter moves towards 0 by plain_rate * l1, and not beyond. Where g or the parameter is above
 * 2^40 and the parameter or its state would not be finite after that (a square may overflow), both
 * stay as they are too, and the element is counted. */
struct wf_apply {
	float *param; /* [count] in and out */
	float *copy;  /* [count] out: the parameters after the pass; NULL: none */
	/* [count] in and out; optimizer.c has their number, README.md their meaning. */
	float *state[WF_STATE_MAX];
	const float *const *grad; /* [grad_count] arrays of [count] */
	unsigned grad_count;      /* >= 1 */
	size_t count;
	/* A hint, without effect on any bit: some of the arrays come from memory or from another
	 * core's cache, not from a near one. */
	bool is_far;
	/* A hint, too: this core does not read the copy soon, so it is written past the caches if
	 * it begins on a cache line. */
	bool copy_past;
	float divisor; /* 1 for sum; samples of the step for mean */
	/* Above 0: takes the place of divisor, as it is too large for an f32. Then g = s /
	 * vast_divisor, computed in f64. */
	double vast_divisor;
	float clip; /* 0: off */
	/* Of this step and tensor, bias-corrected by wf_apply_scalars for the methods in README.md.
	 */
	float rate;
	float plain_rate; /* the same, never corrected: used for decoupled decay and l1 */
	float decay;      /* L2; adamw, torch_adamw: decoupled */
	float l1;         /* 0: off */
	float momentum;
	float beta1, beta2, epsilon;
	float rho;
	float square_share; /* decayed_adagrad and rmsprop: the weight of a new square */
	struct wf_apply_torch torch;
};

/* Has sums divided by `divisor`, which is at least 1. */
static inline void
wf_apply_divide_by(struct wf_apply *apply, double divisor)
{
	const bool is_vast = divisor > (double)FLT_MAX;
	apply->divisor = is_vast ? 1.0f : (float)divisor;
	apply->vast_divisor = is_vast ? divisor : 0.0;
}

/* What to set is_far to where one core alone works on arrays of so many bytes. */
static inline bool
wf_apply_is_far(uint64_t bytes)
{
	return bytes > 8u << 20; /* more than one core's share of the caches of most servers */
}

/* What torch_adamw multiplies a parameter by. As f64, for 1e-6 of it would be lost in f32. */
static inline float
wf_apply_kept(const struct wf_apply *apply)
{
	return (float)(1.0 - (double)apply->plain_rate * (double)apply->decay);
}

/* Fills in momentum, betas with their rests, epsilon, rho and torch_sgd's weights, which are the
 * same in all steps but the first. */
void wf_apply_constants(const struct wf_optimizer_opts *opts, struct wf_apply *out);

/* Fills in both rates and both shares of a step. `updates` counts applied steps including this
 * one, from 1 (t of the adams and adamax); `rate` is wf_learning_rate() times the tensor's
 * multiplier. */
void wf_apply_rates(const struct wf_optimizer_opts *opts, double rate, uint64_t updates,
		    struct wf_apply *out);

/* Fills in both. */
void wf_apply_scalars(const struct wf_optimizer_opts *opts, double rate, uint64_t updates,
		      struct wf_apply *out);

/* Blocks of Philox: their counters are (block, tensor, step), a word, half a word and two words. */
struct wf_half_blocks {
	uint64_t block; /* the first of 16, a multiple of 16 and below 2^48 */
	uint32_t tensor;
	uint64_t step;
	uint64_t key;
};

struct wf_kernels {
	const char *name; /* "ref", "avx2", "avx512" */
	/* Returns how many elements were left as they are: their summed gradients were not finite,
	 * or what would have become of them was not. */
	size_t (*apply[WF_OPTIMIZER_COUNT])(const struct wf_apply *apply);
	/* out = in[0] + in[1] + ... in order; out may be in[0]. */
	void (*sum)(float *out, const float *const *in, unsigned in_count, size_t count);
	/* out = (in[0] + in[1] + ... in order) / divisor, also if some are not finite; out is none
	 * of the inputs. For tensors that are only reduced: nothing is skipped or counted. */
	void (*mean)(float *out, const float *const *in, unsigned in_count, float divisor,
		     size_t count);
	/* out[i] = in[0][first + i] + in[1][first + i] + ... in order, each widened to f32 before.
	 * There is none for WEFT_VALUES_F32. Used by halves.h. */
	void (*sum_half[WF_VALUE_FORMAT_COUNT])(float *out, const uint16_t *const *in,
						unsigned in_count, size_t first, size_t count);
	/* Rounds 64 elements at random: element e uses word e / 16 of block at->block + e % 16. */
	void (*draw_half[WF_VALUE_FORMAT_COUNT])(uint16_t *out, const float *in,
						 const struct wf_half_blocks *at);
	/* The number of elements that are NaN or infinite. */
	size_t (*count_nonfinite)(const float *in, size_t count);
	/* out[i] = exp(in[i]), log(in[i]); within 2 ulp; out may be in. exp overflows to inf and
	 * underflows to 0 (subnormal results are flushed to 0); log(0) = -inf, log(<0) = NaN. */
	void (*exp_f32)(float *out, const float *in, size_t count);
	void (*log_f32)(float *out, const float *in, size_t count);
	const struct wf_row_kernels *rows; /* for sparse tables: rows.h */
};

const struct wf_kernels *wf_kernels_ref(void);
/* The form to use on this processor; reads CPUID on each call, which is cheap. */
const struct wf_kernels *wf_kernels_best(void);
/* The form called "auto", "ref", "avx2" or "avx512". NULL: unknown, not built, or not supported by
 * this processor. */
const struct wf_kernels *wf_kernels_by_name(const char *name);

/* Scalars in f64, for schedules and bias correction; within 2 ulp in the domains used. */
double wf_exp_f64(double x);
double wf_log_f64(double x);
double wf_pow_f64(double x, double y); /* x >= 0 */
float wf_exp_f32(float x);             /* the definition of exp_f32 */
float wf_log_f32(float x);
