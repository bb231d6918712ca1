/* SPDX-License-Identifier: Apache-2.0 */
/* wide: the kernels on WIDTH f32 at a time, with the bits of ref.c, written once for all forms.
 * Thread: any.
 *
 * A form's file defines INLINE, WIDTH, the types vec (f32), ivec (int32) and mask, and operations
 * on them; it then includes this file and fills its table with WIDE_TABLE. Alone this file is
 * empty. What the operations have to do beyond their names: vec_load and vec_store take any
 * address; vec_min(a, b) is a < b ? a : b, vec_max likewise; a mask from a comparison with NaN is
 * clear; mask_bits gives one bit a lane; vec_select takes the first where the mask is set.
 * vec_exponent and vec_mantissa take a normal number apart into e and 1 <= m < 2; of others they
 * make rubbish, but nothing worse.
 *
 * Each lane computes what ref.c computes for one element, operation by operation. Loads and stores
 * are unaligned: on processors this wide they cost nothing extra where the address happens to be
 * aligned. What is left after the last whole vector goes to ref.c.
 *
 * The number of gradients and the kind of optimizer are constants wherever it matters: the
 * functions marked INLINE are copied into each caller, and the compiler removes what that caller
 * never uses. */
#pragma once

#ifdef WIDTH

#include "kernels/kernels.h"

#include <float.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "kernels/forms.h"

#define MANY 0 /* a number of inputs that is not a constant */

/* Several arrays that are added in order. The first four have names, so that they stay in
 * registers. */
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
INLINE vec
sum_at(const struct inputs *in, unsigned fixed, size_t i)
{
	vec sum = vec_load(in->a + i);
	if (fixed == 2 || fixed == 4) {
		sum = vec_add(sum, vec_load(in->b + i));
	}
	if (fixed == 4) {
		sum = vec_add(sum, vec_load(in->c + i));
		sum = vec_add(sum, vec_load(in->d + i));
	}
	for (unsigned n = 1; fixed == MANY && n < in->count; n++) {
		sum = vec_add(sum, vec_load(in->all[n] + i));
	}
	return sum;
}

INLINE size_t
count_clear(mask m)
{
	return WIDTH - (size_t)__builtin_popcount(mask_bits(m));
}

/* wf_apply's scalars, broadcast to vectors. */
struct scalars {
	vec divisor, low, high, rate, plain_rate, decay, momentum;
	vec beta1, rest1, beta2, rest2, epsilon, rho, rest_rho, square_share, drop;
	vec torch_rest1, torch_rest2, root_share, kept; /* torch's adams only */
	bool drops; /* of plain_rate * l1; a constant but for MANY inputs */
};

INLINE struct scalars
open_scalars(const struct wf_apply *apply, bool drops)
{
	/* Clipping to infinity leaves a finite number unchanged. */
	float clip = apply->clip > 0.0f ? apply->clip : __builtin_inff();
	return (struct scalars){
		.divisor = vec_set(apply->divisor),
		.low = vec_set(-clip),
		.high = vec_set(clip),
		.rate = vec_set(apply->rate),
		.plain_rate = vec_set(apply->plain_rate),
		.decay = vec_set(apply->decay),
		.momentum = vec_set(apply->momentum),
		.beta1 = vec_set(apply->beta1),
		.rest1 = vec_set(1.0f - apply->beta1),
		.beta2 = vec_set(apply->beta2),
		.rest2 = vec_set(1.0f - apply->beta2),
		.epsilon = vec_set(apply->epsilon),
		.rho = vec_set(apply->rho),
		.rest_rho = vec_set(1.0f - apply->rho),
		.square_share = vec_set(apply->square_share),
		.drop = vec_set(apply->plain_rate * apply->l1),
		.torch_rest1 = vec_set(apply->rest1),
		.torch_rest2 = vec_set(apply->rest2),
		.root_share = vec_set(apply->root_share),
		.kept = vec_set(wf_apply_kept(apply)),
		.drops = drops,
	};
}

/* Elements for which `keep` is clear are not changed in memory. */
INLINE void
store_some(float *at, vec before, vec after, mask keep)
{
	vec_store(at, vec_select(keep, after, before));
}

/* wf_row_soft. */
INLINE vec
vec_soft(vec w, vec drop)
{
	vec rest = vec_select(mask_less(w, vec_sub(vec_set(0.0f), drop)), vec_add(w, drop),
			      vec_mul(w, vec_set(0.0f)));
	return vec_select(mask_less(drop, w), vec_sub(w, drop), rest);
}

/* Stores the parameter after its step and after that of L1. */
INLINE void
store_param(const struct scalars *k, float *param, vec before, vec after, mask keep)
{
	store_some(param, before, k->drops ? vec_soft(after, k->drop) : after, keep);
}

INLINE void
step_sgd(const struct scalars *k, float *param, vec g, mask finite)
{
	vec w = vec_load(param);
	vec d = vec_add(g, vec_mul(k->decay, w));
	store_param(k, param, w, vec_sub(w, vec_mul(k->rate, d)), finite);
}

INLINE void
step_momentum(const struct scalars *k, float *param, float *state, vec g, mask finite)
{
	vec w = vec_load(param);
	vec m = vec_load(state);
	vec d = vec_add(g, vec_mul(k->decay, w));
	vec next = vec_sub(vec_mul(k->momentum, m), vec_mul(k->rate, d));
	store_some(state, m, next, finite);
	store_param(k, param, w, vec_add(w, next), finite);
}

INLINE void
step_nesterov(const struct scalars *k, float *param, float *state, vec g, mask finite)
{
	vec w = vec_load(param);
	vec m = vec_load(state);
	vec step = vec_mul(k->rate, vec_add(g, vec_mul(k->decay, w)));
	vec next = vec_sub(vec_mul(k->momentum, m), step);
	vec ahead = vec_sub(vec_mul(k->momentum, next), step);
	store_some(state, m, next, finite);
	store_param(k, param, w, vec_add(w, ahead), finite);
}

INLINE void
step_adagrad(const struct scalars *k, float *param, float *state, vec g, mask finite)
{
	vec w = vec_load(param);
	vec a = vec_load(state);
	vec next = vec_add(a, vec_mul(g, g));
	vec root = vec_sqrt(vec_add(next, k->epsilon));
	vec d = vec_add(g, vec_mul(k->decay, w));
	vec step = vec_div(vec_mul(k->rate, d), root);
	store_some(state, a, next, finite);
	store_param(k, param, w, vec_sub(w, step), finite);
}

/* rate d / sqrt(square + epsilon). */
INLINE vec
step_over_root(const struct scalars *k, vec w, vec g, vec square)
{
	vec d = vec_add(g, vec_mul(k->decay, w));
	return vec_div(vec_mul(k->rate, d), vec_sqrt(vec_add(square, k->epsilon)));
}

INLINE void
step_decayed_adagrad(const struct scalars *k, float *param, float *state, vec g, mask finite)
{
	vec w = vec_load(param);
	vec a = vec_load(state);
	vec next = vec_add(vec_mul(k->rho, a), vec_mul(k->square_share, vec_mul(g, g)));
	store_some(state, a, next, finite);
	store_param(k, param, w, vec_sub(w, step_over_root(k, w, g, next)), finite);
}

INLINE void
step_rmsprop(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec a = vec_load(state[0]);
	vec f = vec_load(state[1]);
	vec next_a = vec_add(vec_mul(k->rho, a), vec_mul(k->square_share, vec_mul(g, g)));
	vec next_f = vec_add(vec_mul(k->rho, f), vec_mul(k->rest_rho, g));
	vec variance = vec_max(vec_sub(next_a, vec_mul(next_f, next_f)), vec_set(0.0f));
	store_some(state[0], a, next_a, finite);
	store_some(state[1], f, next_f, finite);
	store_param(k, param, w, vec_sub(w, step_over_root(k, w, g, variance)), finite);
}

INLINE void
step_adadelta(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec a = vec_load(state[0]);
	vec s = vec_load(state[1]);
	vec next_a = vec_add(vec_mul(k->rho, a), vec_mul(k->rest_rho, vec_mul(g, g)));
	vec below = vec_add(next_a, k->epsilon);
	vec ratio = vec_sqrt(vec_div(vec_add(s, k->epsilon), below));
	vec move = vec_mul(g, ratio);
	vec next_s = vec_add(vec_mul(k->rho, s), vec_mul(k->rest_rho, vec_mul(move, move)));
	vec d = vec_add(g, vec_mul(k->decay, w));
	store_some(state[0], a, next_a, finite);
	store_some(state[1], s, next_s, finite);
	store_param(k, param, w, vec_sub(w, vec_mul(vec_mul(k->rate, d), ratio)), finite);
}

INLINE void
step_adamax(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec m = vec_load(state[0]);
	vec u = vec_load(state[1]);
	vec d = vec_add(g, vec_mul(k->decay, w));
	vec next_m = vec_add(vec_mul(k->beta1, m), vec_mul(k->rest1, d));
	vec size = vec_max(d, vec_sub(vec_set(0.0f), d));
	vec next_u = vec_max(vec_mul(k->beta2, u), size);
	vec step = vec_div(vec_mul(k->rate, next_m), vec_add(next_u, k->epsilon));
	store_some(state[0], m, next_m, finite);
	store_some(state[1], u, next_u, finite);
	store_param(k, param, w, vec_sub(w, step), finite);
}

/* Updates both means of adam and adamw from d. Returns rate m / (sqrt(v) + epsilon). */
INLINE vec
step_of_means(const struct scalars *k, float *const state[2], vec d, mask finite)
{
	vec m = vec_load(state[0]);
	vec v = vec_load(state[1]);
	vec next_m = vec_add(vec_mul(k->beta1, m), vec_mul(k->rest1, d));
	vec next_v = vec_add(vec_mul(k->beta2, v), vec_mul(k->rest2, vec_mul(d, d)));
	vec below = vec_add(vec_sqrt(next_v), k->epsilon);
	store_some(state[0], m, next_m, finite);
	store_some(state[1], v, next_v, finite);
	return vec_div(vec_mul(k->rate, next_m), below);
}

INLINE void
step_adam(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec d = vec_add(g, vec_mul(k->decay, w));
	vec step = step_of_means(k, state, d, finite);
	store_param(k, param, w, vec_sub(w, step), finite);
}

INLINE void
step_adamw(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec step = step_of_means(k, state, g, finite);
	vec decayed = vec_mul(k->plain_rate, vec_mul(k->decay, w));
	store_param(k, param, w, vec_sub(w, vec_add(step, decayed)), finite);
}

/* Updates both means of torch's adams from d. Returns rate m / (sqrt(v) / share + epsilon). */
INLINE vec
step_of_torch(const struct scalars *k, float *const state[2], vec d, mask finite)
{
	vec m = vec_load(state[0]);
	vec v = vec_load(state[1]);
	vec next_m = vec_add(vec_mul(k->beta1, m), vec_mul(k->torch_rest1, d));
	vec square = vec_mul(vec_mul(k->torch_rest2, d), d);
	vec next_v = vec_add(vec_mul(k->beta2, v), square);
	vec below = vec_add(vec_div(vec_sqrt(next_v), k->root_share), k->epsilon);
	store_some(state[0], m, next_m, finite);
	store_some(state[1], v, next_v, finite);
	return vec_div(vec_mul(k->rate, next_m), below);
}

INLINE void
step_torch_adam(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec d = vec_add(g, vec_mul(k->decay, w));
	vec step = step_of_torch(k, state, d, finite);
	store_param(k, param, w, vec_sub(w, step), finite);
}

INLINE void
step_torch_adamw(const struct scalars *k, float *param, float *const state[2], vec g, mask finite)
{
	vec w = vec_load(param);
	vec step = step_of_torch(k, state, g, finite);
	store_param(k, param, w, vec_sub(vec_mul(w, k->kept), step), finite);
}

/* Updates the elements from i on with their gradients g, not clipped yet. Returns how many were
 * skipped. */
INLINE size_t
step_of_kind(const struct scalars *k, const struct wf_apply *apply, enum wf_optimizer kind,
	     size_t i, vec g)
{
	float *w = apply->param + i;
	float *const *state = apply->state;
	mask finite = mask_finite(g);

	g = vec_min(vec_max(g, k->low), k->high);

	switch (kind) {
	case WF_SGD:
		step_sgd(k, w, g, finite);
		break;
	case WF_MOMENTUM:
		step_momentum(k, w, state[0] + i, g, finite);
		break;
	case WF_ADAM:
		step_adam(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_NESTEROV:
		step_nesterov(k, w, state[0] + i, g, finite);
		break;
	case WF_ADAGRAD:
		step_adagrad(k, w, state[0] + i, g, finite);
		break;
	case WF_ADAMW:
		step_adamw(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_DECAYED_ADAGRAD:
		step_decayed_adagrad(k, w, state[0] + i, g, finite);
		break;
	case WF_RMSPROP:
		step_rmsprop(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_ADADELTA:
		step_adadelta(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_ADAMAX:
		step_adamax(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_TORCH_ADAM:
		step_torch_adam(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_TORCH_ADAMW:
		step_torch_adamw(k, w, (float *const[2]){state[0] + i, state[1] + i}, g, finite);
		break;
	case WF_TORCH_MOMENTUM: /* applied as momentum */
	case WF_OPTIMIZER_COUNT:
		break;
	}
	return count_clear(finite);
}

/* One pass over [0, whole) of every array, `whole` a multiple of WIDTH. With `fixed` MANY the
 * scalars decide whether L1 is on; otherwise it is off. */
INLINE size_t
run(const struct wf_apply *apply, enum wf_optimizer kind, unsigned fixed, size_t whole)
{
	const struct inputs in = open_inputs(apply->grad, apply->grad_count);
	const struct scalars k =
		open_scalars(apply, fixed == MANY && apply->plain_rate * apply->l1 > 0.0f);
	/* A copy that no store can reach: the pointers stay in registers. */
	const struct wf_apply arrays = *apply;
	size_t skipped = 0;

	for (size_t i = 0; i < whole; i += WIDTH) {
		vec g = vec_div(sum_at(&in, fixed, i), k.divisor);
		skipped += step_of_kind(&k, &arrays, kind, i, g);
	}
	return skipped;
}

INLINE size_t
run_any(const struct wf_apply *apply, enum wf_optimizer kind, size_t whole)
{
	WF_ASSERT(apply->grad_count >= 1);
	switch (apply->plain_rate * apply->l1 > 0.0f ? MANY : apply->grad_count) {
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

INLINE size_t
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

static size_t
apply_nesterov(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_NESTEROV, whole);
	return skipped + wf_ref_apply_nesterov(apply, whole);
}

static size_t
apply_adagrad(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_ADAGRAD, whole);
	return skipped + wf_ref_apply_adagrad(apply, whole);
}

static size_t
apply_adamw(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_ADAMW, whole);
	return skipped + wf_ref_apply_adamw(apply, whole);
}

static size_t
apply_decayed_adagrad(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_DECAYED_ADAGRAD, whole);
	return skipped + wf_ref_apply_decayed_adagrad(apply, whole);
}

static size_t
apply_rmsprop(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_RMSPROP, whole);
	return skipped + wf_ref_apply_rmsprop(apply, whole);
}

static size_t
apply_adadelta(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_ADADELTA, whole);
	return skipped + wf_ref_apply_adadelta(apply, whole);
}

static size_t
apply_adamax(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_ADAMAX, whole);
	return skipped + wf_ref_apply_adamax(apply, whole);
}

static size_t
apply_torch_adam(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_TORCH_ADAM, whole);
	return skipped + wf_ref_apply_torch_adam(apply, whole);
}

static size_t
apply_torch_adamw(const struct wf_apply *apply)
{
	size_t whole = whole_vectors(apply->count);
	size_t skipped = run_any(apply, WF_TORCH_ADAMW, whole);
	return skipped + wf_ref_apply_torch_adamw(apply, whole);
}

INLINE void
sum_whole(float *out, const struct inputs *in, unsigned fixed, size_t whole)
{
	for (size_t i = 0; i < whole; i += WIDTH) {
		vec_store(out + i, sum_at(in, fixed, i));
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

INLINE void
mean_whole(float *out, const struct inputs *in, unsigned fixed, vec divisor, size_t whole)
{
	for (size_t i = 0; i < whole; i += WIDTH) {
		vec_store(out + i, vec_div(sum_at(in, fixed, i), divisor));
	}
}

static void
mean(float *out, const float *const *in, unsigned in_count, float divisor, size_t count)
{
	size_t whole = whole_vectors(count);
	WF_ASSERT(in_count >= 1);
	const struct inputs inputs = open_inputs(in, in_count);
	const vec by = vec_set(divisor);

	switch (in_count) {
	case 1:
		mean_whole(out, &inputs, 1, by, whole);
		break;
	case 2:
		mean_whole(out, &inputs, 2, by, whole);
		break;
	case 4:
		mean_whole(out, &inputs, 4, by, whole);
		break;
	default:
		mean_whole(out, &inputs, MANY, by, whole);
		break;
	}
	wf_ref_mean(out, &(struct wf_mean){in, in_count, divisor}, whole, count);
}

static void
sum_bf16(float *out, const uint16_t *const *in, unsigned in_count, size_t first, size_t count)
{
	size_t whole = whole_vectors(count);
	WF_ASSERT(in_count >= 1);

	for (size_t i = 0; i < whole; i += WIDTH) {
		vec all = vec_load_bf16(in[0] + first + i);
		for (unsigned n = 1; n < in_count; n++) {
			all = vec_add(all, vec_load_bf16(in[n] + first + i));
		}
		vec_store(out + i, all);
	}
	wf_ref_sum_bf16(out + whole, in, in_count, first + whole, count - whole);
}

static void
sum_f16(float *out, const uint16_t *const *in, unsigned in_count, size_t first, size_t count)
{
	size_t whole = whole_vectors(count);
	WF_ASSERT(in_count >= 1);

	for (size_t i = 0; i < whole; i += WIDTH) {
		vec all = vec_load_f16(in[0] + first + i);
		for (unsigned n = 1; n < in_count; n++) {
			all = vec_add(all, vec_load_f16(in[n] + first + i));
		}
		vec_store(out + i, all);
	}
	wf_ref_sum_f16(out + whole, in, in_count, first + whole, count - whole);
}

static size_t
count_nonfinite(const float *in, size_t count)
{
	size_t whole = whole_vectors(count);
	size_t found = 0;

	for (size_t i = 0; i < whole; i += WIDTH) {
		found += count_clear(mask_finite(vec_load(in + i)));
	}
	return found + wf_kernels_ref()->count_nonfinite(in + whole, count - whole);
}

/* c + r * q */
INLINE vec
horner(float c, vec r, vec q)
{
	return vec_add(vec_set(c), vec_mul(r, q));
}

/* wf_exp_f32 line by line. */
INLINE vec
exp_vector(vec x)
{
	vec a = vec_min(x, vec_set(WF_F32_EXP_MAX));
	a = vec_max(a, vec_set(WF_F32_EXP_MIN));

	const vec round = vec_set(WF_F32_ROUND);
	vec n = vec_mul(a, vec_set(WF_F32_LOG2E));
	n = vec_sub(vec_add(n, round), round);
	vec r = vec_sub(a, vec_mul(n, vec_set(WF_F32_LN2_HI)));
	r = vec_sub(r, vec_mul(n, vec_set(WF_F32_LN2_LO)));
	vec q = vec_set(WF_F32_EXP_C7);
	q = horner(WF_F32_EXP_C6, r, q);
	q = horner(WF_F32_EXP_C5, r, q);
	q = horner(WF_F32_EXP_C4, r, q);
	q = horner(WF_F32_EXP_C3, r, q);
	q = horner(WF_F32_EXP_C2, r, q);
	vec y = vec_add(r, vec_mul(vec_mul(r, r), q));
	y = vec_add(vec_set(1.0f), y);

	/* Truncated as C's integer division is. */
	ivec half = ivec_truncate(vec_mul(n, vec_set(0.5f)));
	y = vec_mul(y, vec_power_of_2(half));
	y = vec_mul(y, vec_power_of_2(ivec_sub(ivec_truncate(n), half)));
	y = vec_select(mask_less(y, vec_set(FLT_MIN)), vec_set(0.0f), y);
	return vec_select(mask_equal(x, x), y, x); /* NaN is not equal to itself */
}

static void
exp_f32(float *out, const float *in, size_t count)
{
	size_t whole = whole_vectors(count);
	for (size_t i = 0; i < whole; i += WIDTH) {
		vec_store(out + i, exp_vector(vec_load(in + i)));
	}
	wf_kernels_ref()->exp_f32(out + whole, in + whole, count - whole);
}

/* x = 2^e (1 + f), as the first lines of wf_log_f32; undefined unless x is above 0 and finite. */
INLINE void
split_vector(vec x, vec *e, vec *f)
{
	mask tiny = mask_less(x, vec_set(FLT_MIN));
	vec scaled = vec_select(tiny, vec_mul(x, vec_set(WF_F32_LOG_SCALE)), x);
	vec scaled_by = vec_select(tiny, vec_set(WF_F32_LOG_SCALE_EXPONENT), vec_set(0.0f));

	*e = vec_sub(vec_exponent(scaled), scaled_by);
	vec m = vec_mantissa(scaled);
	const vec one = vec_set(1.0f);
	mask large = mask_less(vec_set(WF_F32_SQRT2), m);
	*e = vec_select(large, vec_add(*e, one), *e);
	m = vec_select(large, vec_mul(m, vec_set(0.5f)), m);
	*f = vec_sub(m, one);
}

/* wf_log_f32 line by line. */
INLINE vec
log_vector(vec x)
{
	vec e;
	vec f;
	split_vector(x, &e, &f);

	vec s = vec_div(f, vec_add(vec_set(2.0f), f));
	vec z = vec_mul(s, s);
	vec t = vec_set(WF_F32_LOG_C4);
	t = horner(WF_F32_LOG_C3, z, t);
	t = horner(WF_F32_LOG_C2, z, t);
	t = horner(WF_F32_LOG_C1, z, t);
	t = vec_mul(z, t);
	vec h = vec_mul(vec_mul(vec_set(0.5f), f), f);
	vec y = vec_mul(s, vec_add(h, t));
	y = vec_add(y, vec_mul(e, vec_set(WF_F32_LN2_LO)));
	y = vec_sub(f, vec_sub(h, y));
	y = vec_add(vec_mul(e, vec_set(WF_F32_LN2_HI)), y);

	const vec zero = vec_set(0.0f);
	y = vec_select(mask_less(x, vec_set(__builtin_inff())), y, x);
	y = vec_select(mask_less(x, zero), vec_set(__builtin_nanf("")), y);
	return vec_select(mask_equal(x, zero), vec_set(-__builtin_inff()), y);
}

static void
log_f32(float *out, const float *in, size_t count)
{
	size_t whole = whole_vectors(count);
	for (size_t i = 0; i < whole; i += WIDTH) {
		vec_store(out + i, log_vector(vec_load(in + i)));
	}
	wf_kernels_ref()->log_f32(out + whole, in + whole, count - whole);
}

#define WIDE_TABLE(form_name)                                                                      \
	{                                                                                          \
		.name = (form_name),                                                               \
		.apply =                                                                           \
			{                                                                          \
				[WF_SGD] = apply_sgd,                                              \
				[WF_MOMENTUM] = apply_momentum,                                    \
				[WF_ADAM] = apply_adam,                                            \
				[WF_NESTEROV] = apply_nesterov,                                    \
				[WF_ADAGRAD] = apply_adagrad,                                      \
				[WF_ADAMW] = apply_adamw,                                          \
				[WF_DECAYED_ADAGRAD] = apply_decayed_adagrad,                      \
				[WF_RMSPROP] = apply_rmsprop,                                      \
				[WF_ADADELTA] = apply_adadelta,                                    \
				[WF_ADAMAX] = apply_adamax,                                        \
				[WF_TORCH_MOMENTUM] = apply_momentum,                              \
				[WF_TORCH_ADAM] = apply_torch_adam,                                \
				[WF_TORCH_ADAMW] = apply_torch_adamw,                              \
			},                                                                         \
		.sum = sum, .mean = mean,                                                          \
		.sum_half = {[WEFT_VALUES_BF16] = sum_bf16, [WEFT_VALUES_F16] = sum_f16},          \
		.draw_half = {[WEFT_VALUES_BF16] = draw_bf16, [WEFT_VALUES_F16] = draw_f16},       \
		.count_nonfinite = count_nonfinite, .exp_f32 = exp_f32, .log_f32 = log_f32,        \
		.rows = &wide_rows,                                                                \
	}

#endif
