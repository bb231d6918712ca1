/* SPDX-License-Identifier: Apache-2.0 */
/* wide: the kernels on WIDTH f32 at a time, with the bits of ref.c, written once for all forms.
 * Thread: any.
 *
 * A form's file defines INLINE, WIDTH, the types vec (f32), ivec (int32) and mask, and operations
 * on them; it then includes this file and fills its table with WIDE_TABLE. Alone this file is
 * empty. What the operations have to do beyond their names: vec_load and vec_store take any
 * address; vec_min(a, b) is a < b ? a : b, vec_max likewise; a mask from a comparison with NaN is
 * clear; mask_bits gives one bit a lane; vec_select takes the first where the mask is set.
 * ivec_magnitude is the bits of an f32 without its sign; ivec_max the larger of two such;
 * ivec_has_above says whether a lane is above these bits.
 * vec_exponent and vec_mantissa take a normal number apart into e and 1 <= m < 2; of others they
 * make rubbish, but nothing worse.
 *
 * Optimizers are those of methods.h. In the rest each lane computes what ref.c computes for one
 * element, operation by operation. Loads and stores are unaligned: on processors this wide they
 * cost nothing extra where the address happens to be aligned. What is left after the last whole
 * line (of an optimizer's pass) or vector goes to ref.c.
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
#include <stdint.h>

#include "base/assert.h"
#include "kernels/forms.h"
#include "kernels/methods.h"

#define MANY 0          /* a number of inputs that is not a constant */
#define LINE_FLOATS 16u /* of a cache line: one look and one branch for each decides on the check */
#define LINE_BYTES (LINE_FLOATS * sizeof(float))
#define AHEAD_FLOATS 512u         /* how far ahead lines are prefetched */
#define BLOCK_FLOATS (8u * WIDTH) /* that plain SGD looks at as one */
#define LARGEST_BITS 0x7f7fffff   /* of FLT_MAX */

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

/* What the compiler has to know of a pass. */
struct pass {
	enum wf_optimizer kind;
	unsigned states; /* of the kind */
	unsigned fixed;  /* the number of inputs, or MANY */
	bool copies;     /* with a copy; with MANY inputs wf_apply says so, while it runs */
	bool plain;      /* the divisor is 1, and nothing is clipped */
	bool divides;    /* the divisor has no exact reciprocal */
	bool undecayed;  /* of blocks: decay is 0 */
	bool is_far;     /* of blocks: wf_apply's */
};

/* The summed gradients of the elements from i on, divided but not clipped. */
INLINE vec
gradients(const struct pass *pass, const struct scalars *k, const struct inputs *in, size_t i)
{
	vec sum = sum_at(in, pass->fixed, i);
	if (pass->plain) {
		return sum;
	}
	return pass->divides ? vec_div(sum, k->divisor) : vec_mul(sum, k->reciprocal);
}

/* The new parameters from i on, a second time. */
INLINE void
store_copy(const struct wf_apply *apply, size_t i, vec w)
{
	if (apply->copy_past) {
		vec_stream(apply->copy + i, w);
	} else {
		vec_store(apply->copy + i, w);
	}
}

/* Stores the new parameters from i on. */
INLINE void
store_param(const struct pass *pass, const struct wf_apply *apply, size_t i, vec w)
{
	vec_store(apply->param + i, w);
	if (pass->fixed == MANY ? apply->copy != NULL : pass->copies) {
		store_copy(apply, i, w);
	}
}

/* Updates the elements from i on, whose parameters are w, with their gradients g. */
INLINE void
update(const struct pass *pass, const struct scalars *k, const struct wf_apply *apply, size_t i,
       vec w, vec g)
{
	const vec none = vec_set(0.0f);
	struct element e = {.w = w};
	e.s = pass->states > 0 ? vec_load(apply->state[0] + i) : none;
	e.t = pass->states > 1 ? vec_load(apply->state[1] + i) : none;
	g = pass->plain ? g : vec_min(vec_max(g, k->low), k->high);
	e = next_of_kind(pass->kind, k, e, g);
	e.w = k->drops ? vec_soft(e.w, k->drop) : e.w;
	store_param(pass, apply, i, e.w);
	if (pass->states > 0) {
		vec_store(apply->state[0] + i, e.s);
	}
	if (pass->states > 1) {
		vec_store(apply->state[1] + i, e.t);
	}
}

/* Prefetches what a line of elements needs, a way ahead of i: from memory a pass is faster by a
 * tenth and more then, while from near caches it is slower by as much. Parameters are prefetched to
 * be written: the core that has read the last answer shares their lines, and each store would wait
 * until it has given them up. */
INLINE void
prefetch(const struct pass *pass, const struct wf_apply *apply, const struct inputs *in, size_t i)
{
	const size_t at = i + AHEAD_FLOATS;
	__builtin_prefetch(apply->param + at, 1);
	if (pass->states > 0) {
		__builtin_prefetch(apply->state[0] + at);
	}
	if (pass->states > 1) {
		__builtin_prefetch(apply->state[1] + at);
	}
	__builtin_prefetch(in->a + at);
	if (pass->fixed == 2 || pass->fixed == 4) {
		__builtin_prefetch(in->b + at);
	}
	if (pass->fixed == 4) {
		__builtin_prefetch(in->c + at);
		__builtin_prefetch(in->d + at);
	}
	for (unsigned n = 1; pass->fixed == MANY && n < in->count; n++) {
		__builtin_prefetch(in->all[n] + at);
	}
}

/* Updates a line of elements from i on, of one vector or two, if all are calm. */
INLINE bool
step(const struct pass *pass, const struct scalars *k, const struct wf_apply *apply,
     const struct inputs *in, size_t i)
{
	const bool two = WIDTH < LINE_FLOATS;
	const size_t j = two ? i + WIDTH : i;
	const vec w = vec_load(apply->param + i);
	const vec g = gradients(pass, k, in, i);
	const vec next_w = two ? vec_load(apply->param + j) : w;
	const vec next_g = two ? gradients(pass, k, in, j) : g;
	ivec largest = ivec_max(ivec_magnitude(g), ivec_magnitude(w));
	if (two) {
		ivec next = ivec_max(ivec_magnitude(next_g), ivec_magnitude(next_w));
		largest = ivec_max(largest, next);
	}
	if (ivec_has_above(largest, k->calm_bits)) {
		return false;
	}
	update(pass, k, apply, i, w, g);
	if (two) {
		update(pass, k, apply, j, next_w, next_g);
	}
	return true;
}

/* A copy that no store can reach: the pointers stay in registers. */
INLINE struct wf_apply
open_arrays(const struct wf_apply *apply)
{
	struct wf_apply arrays = *apply;
	arrays.copy_past = arrays.copy_past && (uintptr_t)arrays.copy % LINE_BYTES == 0;
	return arrays;
}

/* One pass over [first, whole) of every array, both multiples of WIDTH, which ends before the first
 * line that is not calm, or not whole. Returns where it ended. With `fixed` MANY the scalars decide
 * whether L1 is on; otherwise it is off. */
INLINE size_t
run(const struct wf_apply *apply, struct pass pass, size_t first, size_t whole)
{
	const struct inputs in = open_inputs(apply->grad, apply->grad_count);
	const struct scalars k =
		open_scalars(apply, pass.fixed == MANY && apply->plain_rate * apply->l1 > 0.0f);
	const struct wf_apply arrays = open_arrays(apply);
	size_t i = first;

	for (; i + LINE_FLOATS <= whole; i += LINE_FLOATS) {
		if (arrays.is_far) {
			prefetch(&pass, &arrays, &in, i);
		}
		if (!step(&pass, &k, &arrays, &in, i)) {
			break;
		}
	}
	if ((pass.fixed == MANY || pass.copies) && arrays.copy_past) {
		stream_end(); /* whoever learns of the copy later finds it */
	}
	return i;
}

INLINE size_t
whole_vectors(size_t count)
{
	return count - count % WIDTH;
}

/* The number of inputs of the pass, or MANY: L1, and a copy of a sum, are of that one. */
INLINE unsigned
inputs_of_pass(const struct wf_apply *apply)
{
	const bool any = apply->plain_rate * apply->l1 > 0.0f ||
			 (apply->copy != NULL && apply->grad_count > 1);
	return any ? MANY : apply->grad_count;
}

/* ---- plain SGD, in blocks ----
 *
 * It has no state, clips nothing, and makes nothing finite out of what was not. So it looks at the
 * sum of what becomes of a block: that is finite only if each term is. */

/* Half a block of parameters. */
struct half_block {
	vec a, b, c, d;
};

/* What becomes of the parameters from i on. */
INLINE vec
next_param(const struct pass *pass, const struct scalars *k, const struct wf_apply *apply,
	   const struct inputs *in, size_t i)
{
	const struct element e = {.w = vec_load(apply->param + i)};
	const vec g = sum_at(in, pass->fixed, i);
	return (pass->undecayed ? move_by(k, e, g) : next_sgd(k, e, g)).w;
}

INLINE struct half_block
next_half(const struct pass *pass, const struct scalars *k, const struct wf_apply *apply,
	  const struct inputs *in, size_t i)
{
	struct half_block half;
	half.a = next_param(pass, k, apply, in, i);
	half.b = next_param(pass, k, apply, in, i + WIDTH);
	half.c = next_param(pass, k, apply, in, i + 2 * WIDTH);
	half.d = next_param(pass, k, apply, in, i + 3 * WIDTH);
	return half;
}

INLINE vec
sum_half(struct half_block half)
{
	return vec_add(vec_add(half.a, half.b), vec_add(half.c, half.d));
}

INLINE void
store_half(const struct pass *pass, const struct wf_apply *apply, size_t i, struct half_block half)
{
	store_param(pass, apply, i, half.a);
	store_param(pass, apply, i + WIDTH, half.b);
	store_param(pass, apply, i + 2 * WIDTH, half.c);
	store_param(pass, apply, i + 3 * WIDTH, half.d);
}

/* Updates a block of elements from i on, if all that becomes of it is finite. */
INLINE bool
step_block(const struct pass *pass, const struct scalars *k, const struct wf_apply *apply,
	   const struct inputs *in, size_t i)
{
	const struct half_block first = next_half(pass, k, apply, in, i);
	const struct half_block second = next_half(pass, k, apply, in, i + BLOCK_FLOATS / 2);
	const vec sum = vec_add(sum_half(first), sum_half(second));
	if (ivec_has_above(ivec_magnitude(sum), LARGEST_BITS)) {
		return false;
	}
	store_half(pass, apply, i, first);
	store_half(pass, apply, i + BLOCK_FLOATS / 2, second);
	return true;
}

/* As many blocks of [first, whole) as become finite. Returns where they end. */
INLINE size_t
run_blocks(const struct wf_apply *apply, struct pass pass, size_t first, size_t whole)
{
	const struct inputs in = open_inputs(apply->grad, apply->grad_count);
	const struct scalars k = open_scalars(apply, false);
	const struct wf_apply arrays = open_arrays(apply);
	size_t i = first;

	for (; i + BLOCK_FLOATS <= whole; i += BLOCK_FLOATS) {
		for (size_t at = i; pass.is_far && at < i + BLOCK_FLOATS; at += LINE_FLOATS) {
			prefetch(&pass, &arrays, &in, at);
		}
		if (!step_block(&pass, &k, &arrays, &in, i)) {
			break;
		}
	}
	return i;
}

INLINE size_t
run_far_or_near(const struct wf_apply *apply, struct pass pass, size_t first, size_t whole)
{
	if (apply->is_far) {
		pass.is_far = true;
		return run_blocks(apply, pass, first, whole);
	}
	return run_blocks(apply, pass, first, whole);
}

INLINE size_t
run_by_decay(const struct wf_apply *apply, struct pass pass, size_t first, size_t whole)
{
	if (wf_is_undecayed(apply)) {
		pass.undecayed = true;
		return run_far_or_near(apply, pass, first, whole);
	}
	return run_far_or_near(apply, pass, first, whole);
}

/* The blocks of a pass with divisor 1, without L1, and with a number of inputs that is a constant;
 * of others none. Not inlined: the passes of all methods would get it, and gcc needs twice the time
 * to find out that they do not use it. */
static __attribute__((noinline)) size_t
run_sgd(const struct wf_apply *apply, size_t first, size_t whole)
{
	struct pass pass = {.kind = WF_SGD, .plain = true};
	switch (inputs_of_pass(apply)) {
	case 1:
		pass.fixed = 1;
		if (apply->copy != NULL) {
			pass.copies = true;
			return run_by_decay(apply, pass, first, whole);
		}
		return run_by_decay(apply, pass, first, whole);
	case 2:
		pass.fixed = 2;
		return run_by_decay(apply, pass, first, whole);
	case 4:
		pass.fixed = 4;
		return run_by_decay(apply, pass, first, whole);
	default:
		return first;
	}
}

/* The divisor is 1, and nothing is clipped. */
INLINE size_t
run_plain(const struct wf_apply *apply, struct pass pass, size_t first, size_t whole)
{
	pass.plain = true;
	if (pass.kind == WF_SGD && whole - first >= BLOCK_FLOATS) {
		first = run_sgd(apply, first, whole);
	}
	switch (inputs_of_pass(apply)) {
	case 1:
		pass.fixed = 1;
		if (apply->copy != NULL) {
			pass.copies = true;
			return run(apply, pass, first, whole);
		}
		return run(apply, pass, first, whole);
	case 2:
		pass.fixed = 2;
		return run(apply, pass, first, whole);
	case 4:
		pass.fixed = 4;
		return run(apply, pass, first, whole);
	default:
		return run(apply, pass, first, whole);
	}
}

/* What is plain first, as part of the cost of a small step. */
INLINE size_t
run_any(const struct wf_apply *apply, enum wf_optimizer kind, unsigned states, size_t first,
	size_t whole)
{
	struct pass pass = {.kind = kind, .states = states, .fixed = MANY};
	if (apply->divisor == 1.0f && !(apply->clip > 0.0f)) {
		return run_plain(apply, pass, first, whole);
	}
	if (wf_exact_reciprocal(apply->divisor) == 0.0f) {
		pass.divides = true;
		return run(apply, pass, first, whole);
	}
	return run(apply, pass, first, whole);
}

/* The vector that begins at `first`, by ref. */
static __attribute__((noinline)) size_t
run_one(const struct wf_apply *apply, enum wf_optimizer kind, size_t first)
{
	struct wf_apply part = *apply;
	part.count = first + WIDTH;
	return wf_ref_apply(kind, &part, first);
}

/* A vector that is not calm is left to ref, with what is less than a line at the end; and so is all
 * where the divisor is vast. */
INLINE size_t
run_all(const struct wf_apply *apply, enum wf_optimizer kind, unsigned states)
{
	const size_t whole = apply->vast_divisor > 0.0 ? 0 : whole_vectors(apply->count);
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = 0; (i = run_any(apply, kind, states, i, whole)) < whole; i += WIDTH) {
		skipped += run_one(apply, kind, i);
	}
	return whole < apply->count ? skipped + wf_ref_apply(kind, apply, whole) : skipped;
}

#define WIDE_APPLY(name, kind, states)                                                             \
	static size_t apply_##name(const struct wf_apply *apply)                                   \
	{                                                                                          \
		WF_SLOW_ASSERT(wf_optimizer_state_count(kind) == (states));                        \
		return run_all(apply, kind, states);                                               \
	}

WF_OPTIMIZERS(WIDE_APPLY)

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
		.name = (form_name), .apply = {WF_OPTIMIZERS(WF_OPTIMIZER_ENTRY)}, .sum = sum,     \
		.mean = mean,                                                                      \
		.sum_half = {[WEFT_VALUES_BF16] = sum_bf16, [WEFT_VALUES_F16] = sum_f16},          \
		.draw_half = {[WEFT_VALUES_BF16] = draw_bf16, [WEFT_VALUES_F16] = draw_f16},       \
		.count_nonfinite = count_nonfinite, .exp_f32 = exp_f32, .log_f32 = log_f32,        \
		.rows = &wide_rows,                                                                \
	}

#endif
