/* SPDX-License-Identifier: Apache-2.0 */
/* rows_wide: the row kernels on WIDTH f32 at a time, with the bits of rows_ref.c, written once for
 * all forms. Thread: any.
 *
 * Included by a form's file after wide.h, whose operations it uses; alone it is empty. Beyond those
 * a form gives: ivec_set, ivec_load, ivec_xor; ivec_multiply, both halves of products with a
 * constant; vec_of_high_bits, the upper 24 bits of each lane as a number; vec_load_bf16,
 * vec_load_f16, vec_store_bf16 and vec_store_f16, as half.h defines them.
 *
 * A row whose gradients are not all calm is left to wf_ref_row: nothing here needs a mask. What
 * is left after the last whole vector goes through the definitions in rows_forms.h. `plain` says
 * that no divisor, clip, decay, l1 or l2 is in play, and is a constant wherever it matters. */
#pragma once

#ifdef WIDTH

#include <string.h>

#include "kernels/half.h"
#include "kernels/prefetch.h"
#include "kernels/rows_forms.h"

/* How many rows are prefetched ahead of the current one. */
#define ROWS_AHEAD 6u

struct row_vecs {
	const struct wf_row_scalars *k;
	vec rate, decay, momentum, beta1, rest1, beta2, rest2, rho, rest_rho, epsilon;
	vec square_share, drop, shrink, l1, l2, ftrl_beta;
};

INLINE struct row_vecs
open_row_vecs(const struct wf_row_scalars *k)
{
	return (struct row_vecs){
		.k = k,
		.rate = vec_set(k->rate),
		.decay = vec_set(k->decay),
		.momentum = vec_set(k->momentum),
		.beta1 = vec_set(k->beta1),
		.rest1 = vec_set(1.0f - k->beta1),
		.beta2 = vec_set(k->beta2),
		.rest2 = vec_set(1.0f - k->beta2),
		.rho = vec_set(k->rho),
		.rest_rho = vec_set(1.0f - k->rho),
		.epsilon = vec_set(k->epsilon),
		.square_share = vec_set(k->square_share),
		.drop = vec_set(k->drop),
		.shrink = vec_set(k->shrink),
		.l1 = vec_set(k->l1),
		.l2 = vec_set(k->l2),
		.ftrl_beta = vec_set(k->ftrl_beta),
	};
}

INLINE bool
is_plain(const struct wf_row_scalars *k)
{
	return k->divisor == 1.0f && !(k->clip > 0.0f) && !(k->decay > 0.0f) && !(k->drop > 0.0f) &&
	       !(k->shrink < 1.0f);
}

INLINE vec
row_decayed(const struct row_vecs *v, bool plain, vec w, vec g)
{
	if (plain || !(v->k->decay > 0.0f)) {
		return g;
	}
	return vec_add(g, vec_mul(v->decay, w));
}

INLINE vec
row_regular(const struct row_vecs *v, bool plain, vec w)
{
	if (!plain && v->k->drop > 0.0f) {
		w = vec_soft(w, v->drop);
	}
	if (!plain && v->k->shrink < 1.0f) {
		w = vec_mul(w, v->shrink);
	}
	return w;
}

INLINE void
row_sgd(const struct row_vecs *v, bool plain, float *w, vec g)
{
	vec x = vec_load(w);
	vec d = row_decayed(v, plain, x, g);
	vec_store(w, row_regular(v, plain, vec_sub(x, vec_mul(v->rate, d))));
}

INLINE void
row_momentum(const struct row_vecs *v, bool plain, float *w, float *m, vec g)
{
	vec x = vec_load(w);
	vec d = row_decayed(v, plain, x, g);
	vec next = vec_sub(vec_mul(v->momentum, vec_load(m)), vec_mul(v->rate, d));
	vec_store(m, next);
	vec_store(w, row_regular(v, plain, vec_add(x, next)));
}

INLINE void
row_adagrad(const struct row_vecs *v, bool plain, float *w, float *a, vec g)
{
	vec x = vec_load(w);
	vec next = vec_add(vec_load(a), vec_mul(g, g));
	vec root = vec_sqrt(vec_add(next, v->epsilon));
	vec step = vec_div(vec_mul(v->rate, row_decayed(v, plain, x, g)), root);
	vec_store(a, next);
	vec_store(w, row_regular(v, plain, vec_sub(x, step)));
}

INLINE void
row_rmsprop(const struct row_vecs *v, bool plain, float *w, float *const state[2], vec g)
{
	vec x = vec_load(w);
	vec square = vec_mul(v->square_share, vec_mul(g, g));
	vec mean = vec_mul(v->rest_rho, g);
	square = vec_add(vec_mul(v->rho, vec_load(state[0])), square);
	mean = vec_add(vec_mul(v->rho, vec_load(state[1])), mean);
	vec variance = vec_max(vec_sub(square, vec_mul(mean, mean)), vec_set(0.0f));
	vec root = vec_sqrt(vec_add(variance, v->epsilon));
	vec step = vec_div(vec_mul(v->rate, row_decayed(v, plain, x, g)), root);
	vec_store(state[0], square);
	vec_store(state[1], mean);
	vec_store(w, row_regular(v, plain, vec_sub(x, step)));
}

INLINE void
row_adam(const struct row_vecs *v, bool plain, float *w, float *const state[2], vec g)
{
	vec x = vec_load(w);
	vec d = row_decayed(v, plain, x, g);
	vec m = vec_mul(v->rest1, d);
	vec s = vec_mul(v->rest2, vec_mul(d, d));
	m = vec_add(vec_mul(v->beta1, vec_load(state[0])), m);
	s = vec_add(vec_mul(v->beta2, vec_load(state[1])), s);
	vec step = vec_div(vec_mul(v->rate, m), vec_add(vec_sqrt(s), v->epsilon));
	vec_store(state[0], m);
	vec_store(state[1], s);
	vec_store(w, row_regular(v, plain, vec_sub(x, step)));
}

INLINE vec
row_ftrl_state(const struct row_vecs *v, vec w, float *const state[2], vec g)
{
	vec before = vec_load(state[1]);
	vec next = vec_add(before, vec_mul(g, g));
	vec root = vec_sqrt(next);
	vec sigma = vec_div(vec_sub(root, vec_sqrt(before)), v->rate);
	vec z = vec_add(vec_load(state[0]), vec_sub(g, vec_mul(sigma, w)));
	vec_store(state[0], z);
	vec_store(state[1], next);
	return z;
}

/* (0 - y) / ((beta + sqrt(n)) / rate + l2) */
INLINE vec
row_ftrl_value(const struct row_vecs *v, vec y, vec n)
{
	vec below = vec_div(vec_add(v->ftrl_beta, vec_sqrt(n)), v->rate);
	return vec_div(vec_sub(vec_set(0.0f), y), vec_add(below, v->l2));
}

INLINE void
row_ftrl(const struct row_vecs *v, float *w, float *const state[2], vec g)
{
	vec z = row_ftrl_state(v, vec_load(w), state, g);
	vec_store(w, row_ftrl_value(v, vec_soft(z, v->l1), vec_load(state[1])));
}

/* A row and its operands; all its gradients are finite. */
struct row_work {
	float *w, *s, *t;
	const float *g;
	size_t dim, whole; /* whole: up to the last whole vector */
};

/* The value whose squares are summed over a row: WF_ROW_ADAGRAD_ROWWISE: the gradients;
 * WF_ROW_ADAM_ROWWISE: with decay; WF_ROW_FTRL_GROUP: z without l1. */
INLINE vec
row_term(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain, const struct row_work *r,
	 size_t i)
{
	if (kind == WF_ROW_FTRL_GROUP) {
		return vec_soft(vec_load(r->s + i), v->l1);
	}
	vec g = vec_load(r->g + i);
	return kind == WF_ROW_ADAGRAD_ROWWISE ? g : row_decayed(v, plain, vec_load(r->w + i), g);
}

INLINE float
row_term_one(const struct row_vecs *v, enum wf_row_optimizer kind, const struct row_work *r,
	     size_t i)
{
	if (kind == WF_ROW_FTRL_GROUP) {
		return wf_row_soft(r->s[i], v->k->l1);
	}
	return kind == WF_ROW_ADAGRAD_ROWWISE ? r->g[i] : wf_row_decayed(v->k, r->w[i], r->g[i]);
}

/* Sum of squares in the order of WF_ROW_FOLD. */
INLINE float
row_squares(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain,
	    const struct row_work *r)
{
	enum { ACCUMULATORS = WF_ROW_FOLD / WIDTH };
	float partial[WF_ROW_FOLD];
	vec sum[ACCUMULATORS];

	for (unsigned a = 0; a < ACCUMULATORS; a++) {
		sum[a] = vec_set(0.0f);
	}
	size_t i = 0;
	for (; i + WF_ROW_FOLD <= r->dim; i += WF_ROW_FOLD) {
		for (unsigned a = 0; a < ACCUMULATORS; a++) {
			vec x = row_term(v, kind, plain, r, i + a * WIDTH);
			sum[a] = vec_add(sum[a], vec_mul(x, x));
		}
	}
	for (unsigned a = 0; a < ACCUMULATORS; a++) {
		vec_store(partial + a * WIDTH, sum[a]);
	}
	for (; i < r->dim; i++) {
		float x = row_term_one(v, kind, r, i);
		partial[i % WF_ROW_FOLD] += x * x;
	}
	return wf_row_fold(partial);
}

INLINE void
step_adagrad_rowwise(const struct row_vecs *v, bool plain, const struct row_work *r)
{
	float squares = row_squares(v, WF_ROW_ADAGRAD_ROWWISE, plain, r);
	float rate = wf_row_adagrad_rowwise_rate(v->k, r->s, squares, r->dim);
	vec rates = vec_set(rate);

	for (size_t i = 0; i < r->whole; i += WIDTH) {
		vec x = vec_load(r->w + i);
		vec d = row_decayed(v, plain, x, vec_load(r->g + i));
		vec_store(r->w + i, row_regular(v, plain, vec_sub(x, vec_mul(rates, d))));
	}
	for (size_t i = r->whole; i < r->dim; i++) {
		wf_row_adagrad_rowwise(v->k, &r->w[i], rate, r->g[i]);
	}
}

INLINE void
step_adam_rowwise(const struct row_vecs *v, bool plain, const struct row_work *r)
{
	float squares = row_squares(v, WF_ROW_ADAM_ROWWISE, plain, r);
	float rate = wf_row_adam_rowwise_rate(v->k, r->t, squares, r->dim);
	vec rates = vec_set(rate);

	for (size_t i = 0; i < r->whole; i += WIDTH) {
		vec x = vec_load(r->w + i);
		vec m = vec_mul(v->rest1, row_decayed(v, plain, x, vec_load(r->g + i)));
		m = vec_add(vec_mul(v->beta1, vec_load(r->s + i)), m);
		vec_store(r->s + i, m);
		vec_store(r->w + i, row_regular(v, plain, vec_sub(x, vec_mul(rates, m))));
	}
	for (size_t i = r->whole; i < r->dim; i++) {
		wf_row_adam_rowwise(v->k, &r->w[i], &r->s[i], rate, r->g[i]);
	}
}

INLINE void
step_ftrl_group(const struct row_vecs *v, const struct row_work *r)
{
	for (size_t i = 0; i < r->whole; i += WIDTH) {
		float *const state[2] = {r->s + i, r->t + i};
		(void)row_ftrl_state(v, vec_load(r->w + i), state, vec_load(r->g + i));
	}
	for (size_t i = r->whole; i < r->dim; i++) {
		(void)wf_row_ftrl_state(v->k, r->w[i], &r->s[i], &r->t[i], r->g[i]);
	}
	float squares = row_squares(v, WF_ROW_FTRL_GROUP, true, r);
	float share = wf_row_ftrl_group_share(v->k, squares, r->dim);
	for (size_t i = 0; i < r->whole; i += WIDTH) {
		vec y = vec_mul(vec_soft(vec_load(r->s + i), v->l1), vec_set(share));
		vec_store(r->w + i, row_ftrl_value(v, y, vec_load(r->t + i)));
	}
	for (size_t i = r->whole; i < r->dim; i++) {
		r->w[i] = wf_row_ftrl_group(v->k, r->s[i], r->t[i], share);
	}
}

INLINE void
step_vector(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain,
	    const struct row_work *r, size_t i)
{
	float *const state[2] = {r->s + i, r->t + i};
	float *w = r->w + i;
	vec g = vec_load(r->g + i);

	if (kind == WF_ROW_SGD) {
		row_sgd(v, plain, w, g);
	} else if (kind == WF_ROW_MOMENTUM) {
		row_momentum(v, plain, w, state[0], g);
	} else if (kind == WF_ROW_ADAGRAD) {
		row_adagrad(v, plain, w, state[0], g);
	} else if (kind == WF_ROW_RMSPROP) {
		row_rmsprop(v, plain, w, state, g);
	} else if (kind == WF_ROW_ADAM) {
		row_adam(v, plain, w, state, g);
	} else {
		row_ftrl(v, w, state, g);
	}
}

INLINE void
step_one(const struct row_vecs *v, enum wf_row_optimizer kind, const struct row_work *r, size_t i)
{
	if (kind == WF_ROW_SGD) {
		wf_row_sgd(v->k, &r->w[i], r->g[i]);
	} else if (kind == WF_ROW_MOMENTUM) {
		wf_row_momentum(v->k, &r->w[i], &r->s[i], r->g[i]);
	} else if (kind == WF_ROW_ADAGRAD) {
		wf_row_adagrad(v->k, &r->w[i], &r->s[i], r->g[i]);
	} else if (kind == WF_ROW_RMSPROP) {
		wf_row_rmsprop(v->k, &r->w[i], &r->s[i], &r->t[i], r->g[i]);
	} else if (kind == WF_ROW_ADAM) {
		wf_row_adam(v->k, &r->w[i], &r->s[i], &r->t[i], r->g[i]);
	} else {
		wf_row_ftrl(v->k, &r->w[i], &r->s[i], &r->t[i], r->g[i]);
	}
}

INLINE void
step_row(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain, const struct row_work *r)
{
	if (kind == WF_ROW_ADAGRAD_ROWWISE) {
		step_adagrad_rowwise(v, plain, r);
	} else if (kind == WF_ROW_ADAM_ROWWISE) {
		step_adam_rowwise(v, plain, r);
	} else if (kind == WF_ROW_FTRL_GROUP) {
		step_ftrl_group(v, r);
	} else {
		size_t i = 0;
		for (; i + 2 * WIDTH <= r->whole; i += 2 * WIDTH) {
			step_vector(v, kind, plain, r, i);
			step_vector(v, kind, plain, r, i + WIDTH);
		}
		for (; i < r->whole; i += WIDTH) {
			step_vector(v, kind, plain, r, i);
		}
		for (; i < r->dim; i++) {
			step_one(v, kind, r, i);
		}
	}
}

/* Whether all of g is calm: one or two operations per vector, one branch per row. */
INLINE bool
row_is_calm(const float *g, size_t dim, size_t whole, int calm_bits)
{
	ivec most = ivec_magnitude(vec_set(0.0f));
	bool calm = true;
	size_t i = 0;

	for (; i + 4 * WIDTH <= whole; i += 4 * WIDTH) {
		most = ivec_max(most, ivec_magnitude(vec_load(g + i)));
		most = ivec_max(most, ivec_magnitude(vec_load(g + i + WIDTH)));
		most = ivec_max(most, ivec_magnitude(vec_load(g + i + 2 * WIDTH)));
		most = ivec_max(most, ivec_magnitude(vec_load(g + i + 3 * WIDTH)));
	}
	for (; i < whole; i += WIDTH) {
		most = ivec_max(most, ivec_magnitude(vec_load(g + i)));
	}
	for (; i < dim; i++) {
		calm = calm && wf_row_is_calm(g[i], calm_bits);
	}
	return calm && !ivec_has_above(most, calm_bits);
}

/* Sums, divides and clips the gradients of a row into `room`. Returns false if one is not calm.
 */
static bool
sum_row(const struct wf_row_scalars *k, const float *const *grad, unsigned count, float *room,
	size_t dim)
{
	const struct inputs in = open_inputs(grad, count);
	size_t whole = dim - dim % WIDTH;
	vec divisor = vec_set(k->divisor);

	for (size_t i = 0; i < whole; i += WIDTH) {
		vec sum = count == 2 ? sum_at(&in, 2, i) : sum_at(&in, MANY, i);
		vec_store(room + i, vec_div(sum, divisor));
	}
	wf_ref_sum(room, grad, count, whole, dim);
	for (size_t i = whole; i < dim; i++) {
		room[i] = room[i] / k->divisor;
	}
	if (!row_is_calm(room, dim, whole, wf_row_calm_bits(k))) {
		return false;
	}
	if (k->clip > 0.0f) {
		for (size_t i = 0; i < dim; i++) {
			float g = room[i] > -k->clip ? room[i] : -k->clip;
			room[i] = g < k->clip ? g : k->clip;
		}
	}
	return true;
}

INLINE size_t
run_rows(enum wf_row_optimizer kind, bool plain, const struct wf_row_scalars *k,
	 const struct wf_row_batch *b)
{
	const struct row_vecs v = open_row_vecs(k);
	const struct wf_row_scalars first_k = wf_row_first_scalars(k);
	const size_t floats = b->dim + wf_row_state_floats(kind, b->dim);
	const unsigned lines = wf_prefetch_lines(floats * sizeof(float));
	const size_t whole = b->dim - b->dim % WIDTH;
	const int calm_bits = wf_row_calm_bits(k);
	float room[WF_ROW_DIM_MAX];
	size_t skipped = 0;

	const size_t send_for = b->is_near ? 0 : b->count;

	for (size_t i = 0; i < ROWS_AHEAD && i < send_for; i++) {
		wf_prefetch(b->row[i], lines);
	}
	for (size_t i = 0; i < b->count; i++) {
		size_t first = b->first == NULL ? i : b->first[i];
		unsigned count = b->first == NULL ? 1 : (unsigned)(b->first[i + 1] - first);
		const float *const *grad = b->grad + first;
		struct row_work r = {.w = b->row[i],
				     .s = b->row[i] + b->dim,
				     .t = b->row[i] + 2 * b->dim,
				     .g = room,
				     .dim = b->dim,
				     .whole = whole};
		const bool is_first = wf_row_is_first(kind, b, i);
		bool calm = false;

		if (i + ROWS_AHEAD < send_for) {
			wf_prefetch(b->row[i + ROWS_AHEAD], lines);
		}
		if (is_first) {
			calm = false; /* once in a row's life, so left to ref */
		} else if (plain && count == 1) {
			r.g = grad[0];
			calm = row_is_calm(r.g, b->dim, whole, calm_bits);
		} else {
			calm = sum_row(k, grad, count, room, b->dim);
		}
		if (calm) {
			step_row(&v, kind, plain, &r);
		} else {
			skipped +=
				wf_ref_row(kind, is_first ? &first_k : k, r.w, grad, count, b->dim);
		}
	}
	return skipped;
}

#define WIDE_ROWS_APPLY(name, kind)                                                                \
	static size_t rows_##name(const struct wf_row_scalars *k, const struct wf_row_batch *b)    \
	{                                                                                          \
		return is_plain(k) ? run_rows(kind, true, k, b) : run_rows(kind, false, k, b);     \
	}

WIDE_ROWS_APPLY(sgd, WF_ROW_SGD)
WIDE_ROWS_APPLY(momentum, WF_ROW_MOMENTUM)
WIDE_ROWS_APPLY(adagrad, WF_ROW_ADAGRAD)
WIDE_ROWS_APPLY(adagrad_rowwise, WF_ROW_ADAGRAD_ROWWISE)
WIDE_ROWS_APPLY(rmsprop, WF_ROW_RMSPROP)
WIDE_ROWS_APPLY(adam, WF_ROW_ADAM)
WIDE_ROWS_APPLY(adam_rowwise, WF_ROW_ADAM_ROWWISE)
WIDE_ROWS_APPLY(ftrl, WF_ROW_FTRL)
WIDE_ROWS_APPLY(ftrl_group, WF_ROW_FTRL_GROUP)

static void
rows_gather(float *out, const float *const *row, size_t count, size_t dim)
{
	const size_t blocks = dim / (4 * WIDTH);
	const size_t rest = dim % (4 * WIDTH);

	for (size_t n = 0; n < count; n++) {
		const float *from = row[n];
		for (size_t left = blocks; left > 0; left--) {
			vec a = vec_load(from);
			vec b = vec_load(from + WIDTH);
			vec c = vec_load(from + 2 * WIDTH);
			vec d = vec_load(from + 3 * WIDTH);
			vec_store(out, a);
			vec_store(out + WIDTH, b);
			vec_store(out + 2 * WIDTH, c);
			vec_store(out + 3 * WIDTH, d);
			from += 4 * WIDTH;
			out += 4 * WIDTH;
		}
		size_t i = 0;
		for (; i + WIDTH <= rest; i += WIDTH) {
			vec_store(out + i, vec_load(from + i));
		}
		for (; i < rest; i++) {
			out[i] = from[i];
		}
		out += rest;
	}
}

/* wf_philox of WIDTH counters at once. */
INLINE void
philox_blocks(ivec c[4], uint64_t key)
{
	uint32_t k0 = (uint32_t)key;
	uint32_t k1 = (uint32_t)(key >> 32);

	for (unsigned round = 0; round < 10; round++) {
		ivec a_high;
		ivec a_low;
		ivec b_high;
		ivec b_low;
		ivec_multiply(c[0], 0xd2511f53u, &a_high, &a_low);
		ivec_multiply(c[2], 0xcd9e8d57u, &b_high, &b_low);
		c[0] = ivec_xor(ivec_xor(b_high, c[1]), ivec_set(k0));
		c[1] = b_low;
		c[2] = ivec_xor(ivec_xor(a_high, c[3]), ivec_set(k1));
		c[3] = a_low;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
}

/* Blocks of Philox that are drawn together, for one row or for several short ones. */
struct draws {
	uint32_t low[WIDTH], high[WIDTH], block[WIDTH]; /* of the counters */
	float *to[WIDTH];                               /* four columns each */
	size_t count;
};

INLINE void
draw_blocks(const struct wf_row_uniform *draw, struct draws *draws)
{
	const vec low = vec_set(draw->low);
	const vec span = vec_set(draw->span);
	float word[4][WIDTH];
	ivec c[4] = {ivec_load(draws->low), ivec_load(draws->high), ivec_load(draws->block),
		     ivec_set(draw->table)};

	philox_blocks(c, draw->seed);
	for (unsigned j = 0; j < 4; j++) {
		vec share = vec_mul(vec_of_high_bits(c[j]), vec_set(0x1p-24f));
		vec_store(word[j], vec_add(low, vec_mul(span, share)));
	}
	for (size_t n = 0; n < draws->count; n++) {
		draws->to[n][0] = word[0][n];
		draws->to[n][1] = word[1][n];
		draws->to[n][2] = word[2][n];
		draws->to[n][3] = word[3][n];
	}
	draws->count = 0;
}

static void
rows_uniform(const struct wf_row_uniform *draw, const uint64_t *key, float *const *out,
	     size_t count, size_t dim)
{
	struct draws draws = {0};

	for (size_t i = 0; i < count; i++) {
		for (size_t at = 0; at + 4 <= dim; at += 4) {
			const size_t n = draws.count++;
			draws.low[n] = (uint32_t)key[i];
			draws.high[n] = (uint32_t)(key[i] >> 32);
			draws.block[n] = (uint32_t)(at / 4);
			draws.to[n] = out[i] + at;
			if (draws.count == WIDTH) {
				draw_blocks(draw, &draws);
			}
		}
		wf_ref_uniform(draw, key[i], out[i], dim - dim % 4, dim);
	}
	if (draws.count > 0) {
		draw_blocks(draw, &draws);
	}
}

static void
rows_widen_bf16(float *out, const uint16_t *in, size_t count)
{
	size_t i = 0;
	for (; i + WIDTH <= count; i += WIDTH) {
		vec_store(out + i, vec_load_bf16(in + i));
	}
	for (; i < count; i++) {
		out[i] = wf_f32_of_bf16(in[i]);
	}
}

static void
rows_narrow_bf16(uint16_t *out, const float *in, size_t count)
{
	size_t i = 0;
	for (; i + WIDTH <= count; i += WIDTH) {
		vec_store_bf16(out + i, vec_load(in + i));
	}
	for (; i < count; i++) {
		out[i] = wf_bf16_of(in[i]);
	}
}

static void
rows_widen_f16(float *out, const uint16_t *in, size_t count)
{
	size_t i = 0;
	for (; i + WIDTH <= count; i += WIDTH) {
		vec_store(out + i, vec_load_f16(in + i));
	}
	for (; i < count; i++) {
		out[i] = wf_f32_of_f16(in[i]);
	}
}

static void
rows_narrow_f16(uint16_t *out, const float *in, size_t count)
{
	size_t i = 0;
	for (; i + WIDTH <= count; i += WIDTH) {
		vec_store_f16(out + i, vec_load(in + i));
	}
	for (; i < count; i++) {
		out[i] = wf_f16_of(in[i]);
	}
}

static const struct wf_row_kernels wide_rows = {
	.apply =
		{
			[WF_ROW_SGD] = rows_sgd,
			[WF_ROW_MOMENTUM] = rows_momentum,
			[WF_ROW_SPARSE_MOMENTUM] = rows_momentum,
			[WF_ROW_ADAGRAD] = rows_adagrad,
			[WF_ROW_ADAGRAD_ROWWISE] = rows_adagrad_rowwise,
			[WF_ROW_RMSPROP] = rows_rmsprop,
			[WF_ROW_ADAM] = rows_adam,
			[WF_ROW_ADAM_ROWWISE] = rows_adam_rowwise,
			[WF_ROW_FTRL] = rows_ftrl,
			[WF_ROW_FTRL_GROUP] = rows_ftrl_group,
		},
	.gather = rows_gather,
	.uniform = rows_uniform,
	.half =
		{
			[WEFT_VALUES_BF16] = {rows_widen_bf16, rows_narrow_bf16},
			[WEFT_VALUES_F16] = {rows_widen_f16, rows_narrow_f16},
		},
};

#endif
