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
 * is left after the last whole vector is made one by zeros. The formulas are those of
 * rows_methods.h. */
#pragma once

#ifdef WIDTH

#include <string.h>

#include "kernels/half.h"
#include "kernels/prefetch.h"
#include "kernels/rows_forms.h"
#include "kernels/rows_methods.h"

/* How many rows are prefetched ahead of the current one. */
#define ROWS_AHEAD 6u

INLINE bool
is_plain(const struct wf_row_scalars *k)
{
	return k->divisor == 1.0f && !(k->clip > 0.0f) && !(k->decay > 0.0f) && !(k->drop > 0.0f) &&
	       !(k->shrink < 1.0f);
}

/* A row and its operands; all its gradients are finite. */
struct row_work {
	float *w, *s, *t;
	const float *g;
	size_t dim, whole; /* whole: up to the last whole vector */
};

INLINE struct element
load_element(const struct row_work *r, unsigned states, size_t i)
{
	const vec none = vec_set(0.0f);
	return (struct element){
		.w = vec_load(r->w + i),
		.s = states > 0 ? vec_load(r->s + i) : none,
		.t = states > 1 ? vec_load(r->t + i) : none,
	};
}

INLINE void
store_element(const struct row_work *r, unsigned states, size_t i, struct element e)
{
	vec_store(r->w + i, e.w);
	if (states > 0) {
		vec_store(r->s + i, e.s);
	}
	if (states > 1) {
		vec_store(r->t + i, e.t);
	}
}

/* The elements after the last whole vector, where they fill one with zeros behind them. */
struct row_tail {
	float w[WIDTH], s[WIDTH], t[WIDTH], g[WIDTH];
};

INLINE void
copy_tail(float *to, const float *from, const struct row_work *r)
{
	memcpy(to, from + r->whole, (r->dim - r->whole) * sizeof(*to));
}

/* `tail` becomes a row of its own, which lies in `room`. */
INLINE void
load_tail(const struct row_work *r, unsigned states, struct row_tail *room, struct row_work *tail)
{
	*room = (struct row_tail){0};
	*tail = (struct row_work){.w = room->w, .s = room->s, .t = room->t, .g = room->g};
	copy_tail(room->w, r->w, r);
	copy_tail(room->g, r->g, r);
	if (states > 0) {
		copy_tail(room->s, r->s, r);
	}
	if (states > 1) {
		copy_tail(room->t, r->t, r);
	}
}

INLINE void
store_tail(const struct row_work *r, unsigned states, const struct row_tail *room)
{
	const size_t bytes = (r->dim - r->whole) * sizeof(float);

	memcpy(r->w + r->whole, room->w, bytes);
	if (states > 0) {
		memcpy(r->s + r->whole, room->s, bytes);
	}
	if (states > 1) {
		memcpy(r->t + r->whole, room->t, bytes);
	}
}

INLINE vec
square_at(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain,
	  const struct row_work *r, size_t i)
{
	struct element e = load_element(r, row_states(kind), i);
	vec x = row_term(kind, v, plain, e, vec_load(r->g + i));
	return vec_mul(x, x);
}

/* Sum of squares in the order of WF_ROW_FOLD. The zeros behind a tail add nothing. */
INLINE float
row_squares(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain,
	    const struct row_work *r)
{
	enum { ACCUMULATORS = WF_ROW_FOLD / WIDTH };
	float partial[WF_ROW_FOLD];
	vec sum[ACCUMULATORS];
	struct row_tail room;
	struct row_work tail;

	for (unsigned a = 0; a < ACCUMULATORS; a++) {
		sum[a] = vec_set(0.0f);
	}
	if (r->whole < r->dim) {
		load_tail(r, row_states(kind), &room, &tail);
	}
	for (size_t first = 0; first < r->dim; first += WF_ROW_FOLD) {
		for (unsigned a = 0; a < ACCUMULATORS; a++) {
			const size_t i = first + a * WIDTH;
			if (i < r->whole) {
				sum[a] = vec_add(sum[a], square_at(v, kind, plain, r, i));
			} else if (i < r->dim) {
				sum[a] = vec_add(sum[a], square_at(v, kind, plain, &tail, 0));
			}
		}
	}
	for (unsigned a = 0; a < ACCUMULATORS; a++) {
		vec_store(partial + a * WIDTH, sum[a]);
	}
	return wf_row_fold(partial);
}

/* What is done to each vector of a row. */
enum row_pass {
	ROW_ELEMENTS,   /* the step of a kind whose elements do not depend on each other */
	ROW_FTRL_STATE, /* the state of WF_ROW_FTRL_GROUP */
	ROW_WHOLE,      /* the step of a kind that has a sum, with what that makes */
};

INLINE void
pass_vector(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain,
	    const struct row_work *r, size_t i, enum row_pass pass, vec share)
{
	struct element e = load_element(r, row_states(kind), i);
	vec g = vec_load(r->g + i);

	if (pass == ROW_ELEMENTS) {
		e = next_of_row_kind(kind, v, plain, e, g);
	} else if (pass == ROW_FTRL_STATE) {
		e = next_row_ftrl_state(v, e, g);
	} else {
		e = next_of_whole_row(kind, v, plain, e, g, share);
	}
	store_element(r, row_states(kind), i, e);
}

INLINE void
pass_row(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain, const struct row_work *r,
	 enum row_pass pass, vec share)
{
	size_t i = 0;

	for (; i + 2 * WIDTH <= r->whole; i += 2 * WIDTH) {
		pass_vector(v, kind, plain, r, i, pass, share);
		pass_vector(v, kind, plain, r, i + WIDTH, pass, share);
	}
	for (; i < r->whole; i += WIDTH) {
		pass_vector(v, kind, plain, r, i, pass, share);
	}
	if (r->whole < r->dim) {
		struct row_tail room;
		struct row_work tail;
		load_tail(r, row_states(kind), &room, &tail);
		pass_vector(v, kind, plain, &tail, 0, pass, share);
		store_tail(r, row_states(kind), &room);
	}
}

INLINE void
step_row(const struct row_vecs *v, enum wf_row_optimizer kind, bool plain, const struct row_work *r)
{
	const vec none = vec_set(0.0f);
	float no_accumulator = 0.0f;

	if (!row_is_whole(kind)) {
		pass_row(v, kind, plain, r, ROW_ELEMENTS, none);
		return;
	}
	if (kind == WF_ROW_FTRL_GROUP) {
		pass_row(v, kind, plain, r, ROW_FTRL_STATE, none);
	}
	float squares = row_squares(v, kind, plain, r);
	float *accumulator = row_accumulator(kind, r->s, r->t, &no_accumulator);
	float share = wf_row_share(kind, v->k, accumulator, squares, r->dim);
	pass_row(v, kind, plain, r, ROW_WHOLE, vec_set(share));
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
	const unsigned lines = wf_prefetch_lines_anywhere(floats * sizeof(float));
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

static void
rows_gather_past(float *out, const float *const *row, size_t count, size_t dim)
{
	if ((uintptr_t)out % LINE_BYTES != 0 || dim % LINE_FLOATS != 0) {
		rows_gather(out, row, count, dim);
		return;
	}
	for (size_t n = 0; n < count; n++, out += dim) {
		for (size_t i = 0; i < dim; i += WIDTH) {
			vec_stream(out + i, vec_load(row[n] + i));
		}
	}
	stream_end();
}

#define GRADS_AHEAD 8u

/* Columns i to i + 4 WIDTH of a row whose gradients are at `place`. Four sums at once: an addition
 * takes as long as four others. */
INLINE void
sum_columns(float *out, const struct wf_row_sums *sums, const uint32_t *place, const uint32_t *end,
	    size_t i)
{
	const float *g = sums->grad + *place * sums->dim + i;
	vec a = vec_load(g);
	vec b = vec_load(g + WIDTH);
	vec c = vec_load(g + 2 * WIDTH);
	vec d = vec_load(g + 3 * WIDTH);

	for (place++; place < end; place++) {
		g = sums->grad + *place * sums->dim + i;
		a = vec_add(a, vec_load(g));
		b = vec_add(b, vec_load(g + WIDTH));
		c = vec_add(c, vec_load(g + 2 * WIDTH));
		d = vec_add(d, vec_load(g + 3 * WIDTH));
	}
	vec_store(out + i, a);
	vec_store(out + i + WIDTH, b);
	vec_store(out + i + 2 * WIDTH, c);
	vec_store(out + i + 3 * WIDTH, d);
}

/* The same from column i to the row's last. */
INLINE void
sum_rest(float *out, const struct wf_row_sums *sums, const uint32_t *place, const uint32_t *end,
	 size_t i)
{
	for (; i + WIDTH <= sums->dim; i += WIDTH) {
		vec sum = vec_load(sums->grad + *place * sums->dim + i);
		for (const uint32_t *next = place + 1; next < end; next++) {
			sum = vec_add(sum, vec_load(sums->grad + *next * sums->dim + i));
		}
		vec_store(out + i, sum);
	}
	for (; i < sums->dim; i++) {
		float sum = sums->grad[*place * sums->dim + i];
		for (const uint32_t *next = place + 1; next < end; next++) {
			sum = sum + sums->grad[*next * sums->dim + i];
		}
		out[i] = sum;
	}
}

static void
rows_sum(float *out, const struct wf_row_sums *given)
{
	const struct wf_row_sums sums = *given; /* what is stored might else alias it */
	const size_t dim = sums.dim;
	const size_t whole = dim - dim % (4 * WIDTH);
	const unsigned lines = wf_prefetch_lines_anywhere(dim * sizeof(float));
	const size_t last = sums.first[sums.count];
	size_t sent_for = sums.first[0] + GRADS_AHEAD;

	for (size_t n = 0; n < sums.count; n++, out += dim) {
		const uint32_t *place = sums.place + sums.first[n];
		const uint32_t *end = sums.place + sums.first[n + 1];
		for (; sent_for < sums.first[n + 1] + GRADS_AHEAD && sent_for < last; sent_for++) {
			wf_prefetch(sums.grad + sums.place[sent_for] * dim, lines);
		}
		for (size_t i = 0; i < whole; i += 4 * WIDTH) {
			sum_columns(out, &sums, place, end, i);
		}
		sum_rest(out, &sums, place, end, whole);
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
	.gather_past = rows_gather_past,
	.sum = rows_sum,
	.uniform = rows_uniform,
	.half =
		{
			[WEFT_VALUES_BF16] = {rows_widen_bf16, rows_narrow_bf16},
			[WEFT_VALUES_F16] = {rows_widen_f16, rows_narrow_f16},
		},
};

#endif
