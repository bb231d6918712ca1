/* SPDX-License-Identifier: Apache-2.0 */
/* rows_ref: the definition of the row kernels, one element after the other; the formulas are those
 * of rows_methods.h. Where another form differs from this one in one bit, the other form is wrong.
 * Thread: any. */
#include <string.h>

#include "base/assert.h"
#include "base/philox.h"
#include "kernels/half.h"
#include "kernels/one.h"
#include "kernels/rows_forms.h"

#include "kernels/rows_methods.h"

/* A row and its summed, divided and clipped gradients. Where one is not finite, g holds it as it
 * is. */
struct ready {
	float *w, *s, *t; /* values, first and second array of state */
	float g[WF_ROW_DIM_MAX];
	size_t dim;
	bool calm; /* all gradients are, so that nobody looks at the outcome */
};

static float
clipped(float g, float clip)
{
	if (!(clip > 0.0f) || !wf_row_is_finite(g)) {
		return g;
	}
	g = g > -clip ? g : -clip;
	return g < clip ? g : clip;
}

/* Returns how many are not finite. */
static size_t
prepare(const struct wf_row_scalars *k, const float *const *grad, unsigned grad_count,
	struct ready *r)
{
	const int calm_bits = wf_row_calm_bits(k);
	size_t skipped = 0;

	r->calm = true;
	for (size_t i = 0; i < r->dim; i++) {
		float sum = grad[0][i];
		for (unsigned n = 1; n < grad_count; n++) {
			sum = sum + grad[n][i];
		}
		sum = sum / k->divisor;
		skipped += !wf_row_is_finite(sum);
		r->calm = r->calm && wf_row_is_calm(sum, calm_bits);
		r->g[i] = clipped(sum, k->clip);
	}
	return skipped;
}

static struct element
element_at(const struct ready *r, unsigned states, size_t i)
{
	return (struct element){
		.w = r->w[i],
		.s = states > 0 ? r->s[i] : 0.0f,
		.t = states > 1 ? r->t[i] : 0.0f,
	};
}

/* false: the element stays as it was, with its state, because some of it would not be finite. */
static bool
put_element(const struct ready *r, unsigned states, size_t i, struct element e)
{
	if (!r->calm &&
	    !(wf_row_is_finite(e.w) && wf_row_is_finite(e.s) && wf_row_is_finite(e.t))) {
		return false;
	}
	r->w[i] = e.w;
	if (states > 0) {
		r->s[i] = e.s;
	}
	if (states > 1) {
		r->t[i] = e.t;
	}
	return true;
}

/* In the functions below: the number of elements that are left, of those whose gradients are
 * finite. */

static size_t
step_elements(enum wf_row_optimizer kind, const struct row_vecs *v, const struct ready *r)
{
	const unsigned states = row_states(kind);
	size_t left = 0;

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			struct element e = element_at(r, states, i);
			e = next_of_row_kind(kind, v, false, e, r->g[i]);
			left += !put_element(r, states, i, e);
		}
	}
	return left;
}

static size_t
count_finite(const struct ready *r)
{
	size_t found = 0;
	for (size_t i = 0; i < r->dim; i++) {
		found += wf_row_is_finite(r->g[i]);
	}
	return found;
}

static float
sum_squares(enum wf_row_optimizer kind, const struct row_vecs *v, const struct ready *r)
{
	const unsigned states = row_states(kind);
	float partial[WF_ROW_FOLD] = {0};

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			struct element e = element_at(r, states, i);
			float x = row_term(kind, v, false, e, r->g[i]);
			partial[i % WF_ROW_FOLD] += x * x;
		}
	}
	return wf_row_fold(partial);
}

/* An element whose state would not be finite is left, as if its gradient were not. */
static size_t
step_ftrl_state(const struct row_vecs *v, struct ready *r)
{
	const unsigned states = row_states(WF_ROW_FTRL_GROUP);
	size_t left = 0;

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			struct element e = element_at(r, states, i);
			e = next_row_ftrl_state(v, e, r->g[i]);
			if (!put_element(r, states, i, e)) {
				r->g[i] = __builtin_inff();
				left++;
			}
		}
	}
	return left;
}

static size_t
step_whole_row(enum wf_row_optimizer kind, const struct row_vecs *v, struct ready *r)
{
	const unsigned states = row_states(kind);
	size_t left = kind == WF_ROW_FTRL_GROUP ? step_ftrl_state(v, r) : 0;
	float none = 0.0f;
	float *accumulator = row_accumulator(kind, r->s, r->t, &none);
	const float before = *accumulator;

	float squares = sum_squares(kind, v, r);
	float share = wf_row_share(kind, v->k, accumulator, squares, r->dim);
	if (!r->calm && !wf_row_is_finite(*accumulator)) {
		*accumulator = before;
		return count_finite(r);
	}
	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			struct element e = element_at(r, states, i);
			e = next_of_whole_row(kind, v, false, e, r->g[i], share);
			left += !put_element(r, states, i, e);
		}
	}
	return left;
}

size_t
wf_ref_row(enum wf_row_optimizer kind, const struct wf_row_scalars *k, float *row,
	   const float *const *grad, unsigned grad_count, size_t dim)
{
	const struct row_vecs v = open_row_vecs(k);
	struct ready r;

	WF_ASSERT(grad_count >= 1);
	WF_ASSERT(dim >= 1 && dim <= WF_ROW_DIM_MAX);
	r.w = row;
	r.s = row + dim;
	r.t = row + 2 * dim;
	r.dim = dim;
	size_t skipped = prepare(k, grad, grad_count, &r);
	skipped += row_is_whole(kind) ? step_whole_row(kind, &v, &r) : step_elements(kind, &v, &r);
	return skipped;
}

static size_t
apply(enum wf_row_optimizer kind, const struct wf_row_scalars *k, const struct wf_row_batch *b)
{
	const struct wf_row_scalars first_k = wf_row_first_scalars(k);
	size_t skipped = 0;

	for (size_t i = 0; i < b->count; i++) {
		size_t first = b->first == NULL ? i : b->first[i];
		size_t end = b->first == NULL ? i + 1 : b->first[i + 1];
		skipped += wf_ref_row(kind, wf_row_is_first(kind, b, i) ? &first_k : k, b->row[i],
				      b->grad + first, (unsigned)(end - first), b->dim);
	}
	return skipped;
}

#define REF_APPLY(name, kind)                                                                      \
	static size_t apply_##name(const struct wf_row_scalars *k, const struct wf_row_batch *b)   \
	{                                                                                          \
		return apply(kind, k, b);                                                          \
	}

REF_APPLY(sgd, WF_ROW_SGD)
REF_APPLY(momentum, WF_ROW_MOMENTUM)
REF_APPLY(adagrad, WF_ROW_ADAGRAD)
REF_APPLY(adagrad_rowwise, WF_ROW_ADAGRAD_ROWWISE)
REF_APPLY(rmsprop, WF_ROW_RMSPROP)
REF_APPLY(adam, WF_ROW_ADAM)
REF_APPLY(adam_rowwise, WF_ROW_ADAM_ROWWISE)
REF_APPLY(ftrl, WF_ROW_FTRL)
REF_APPLY(ftrl_group, WF_ROW_FTRL_GROUP)

static void
gather(float *out, const float *const *row, size_t count, size_t dim)
{
	for (size_t i = 0; i < count; i++) {
		memcpy(out + i * dim, row[i], dim * sizeof(*out));
	}
}

static void
sum(float *out, const struct wf_row_sums *sums)
{
	const size_t dim = sums->dim;

	for (size_t i = 0; i < sums->count; i++, out += dim) {
		uint32_t j = sums->first[i];
		memcpy(out, sums->grad + sums->place[j] * dim, dim * sizeof(*out));
		for (j++; j < sums->first[i + 1]; j++) {
			const float *more = sums->grad + sums->place[j] * dim;
			for (size_t d = 0; d < dim; d++) {
				out[d] = out[d] + more[d];
			}
		}
	}
}

void
wf_ref_uniform(const struct wf_row_uniform *draw, uint64_t key, float *out, size_t first,
	       size_t dim)
{
	for (size_t i = first; i < dim; i += 4) {
		struct wf_philox counter = {
			{(uint32_t)key, (uint32_t)(key >> 32), (uint32_t)(i / 4), draw->table}};
		struct wf_philox bits = wf_philox(counter, draw->seed);
		for (size_t j = i; j < i + 4 && j < dim; j++) {
			float share = (float)(bits.word[j - i] >> 8) * 0x1p-24f;
			out[j] = draw->low + draw->span * share;
		}
	}
}

static void
uniform(const struct wf_row_uniform *draw, const uint64_t *key, float *const *out, size_t count,
	size_t dim)
{
	for (size_t i = 0; i < count; i++) {
		wf_ref_uniform(draw, key[i], out[i], 0, dim);
	}
}

static void
widen_bf16(float *out, const uint16_t *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_f32_of_bf16(in[i]);
	}
}

static void
narrow_bf16(uint16_t *out, const float *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_bf16_of(in[i]);
	}
}

static void
widen_f16(float *out, const uint16_t *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_f32_of_f16(in[i]);
	}
}

static void
narrow_f16(uint16_t *out, const float *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_f16_of(in[i]);
	}
}

const struct wf_row_kernels wf_row_kernels_ref = {
	.apply =
		{
			[WF_ROW_SGD] = apply_sgd,
			[WF_ROW_MOMENTUM] = apply_momentum,
			[WF_ROW_SPARSE_MOMENTUM] = apply_momentum,
			[WF_ROW_ADAGRAD] = apply_adagrad,
			[WF_ROW_ADAGRAD_ROWWISE] = apply_adagrad_rowwise,
			[WF_ROW_RMSPROP] = apply_rmsprop,
			[WF_ROW_ADAM] = apply_adam,
			[WF_ROW_ADAM_ROWWISE] = apply_adam_rowwise,
			[WF_ROW_FTRL] = apply_ftrl,
			[WF_ROW_FTRL_GROUP] = apply_ftrl_group,
		},
	.gather = gather,
	.gather_past = gather,
	.sum = sum,
	.uniform = uniform,
	.half =
		{
			[WEFT_VALUES_BF16] = {widen_bf16, narrow_bf16},
			[WEFT_VALUES_F16] = {widen_f16, narrow_f16},
		},
};
