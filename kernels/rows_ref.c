/* SPDX-License-Identifier: Apache-2.0 */
/* rows_ref: the definition of the row kernels, one element after the other. Where another form
 * differs from this one in one bit, the other form is wrong. Thread: any. */
#include <string.h>

#include "base/assert.h"
#include "base/philox.h"
#include "kernels/half.h"
#include "kernels/rows_forms.h"

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

static void
elementwise(enum wf_row_optimizer kind, const struct wf_row_scalars *k, const struct ready *r,
	    size_t i)
{
	float *w = &r->w[i];

	switch (kind) {
	case WF_ROW_SGD:
		wf_row_sgd(k, w, r->g[i]);
		break;
	case WF_ROW_MOMENTUM:
	case WF_ROW_SPARSE_MOMENTUM:
		wf_row_momentum(k, w, &r->s[i], r->g[i]);
		break;
	case WF_ROW_ADAGRAD:
		wf_row_adagrad(k, w, &r->s[i], r->g[i]);
		break;
	case WF_ROW_RMSPROP:
		wf_row_rmsprop(k, w, &r->s[i], &r->t[i], r->g[i]);
		break;
	case WF_ROW_ADAM:
		wf_row_adam(k, w, &r->s[i], &r->t[i], r->g[i]);
		break;
	case WF_ROW_FTRL:
		wf_row_ftrl(k, w, &r->s[i], &r->t[i], r->g[i]);
		break;
	case WF_ROW_ADAGRAD_ROWWISE:
	case WF_ROW_ADAM_ROWWISE:
	case WF_ROW_FTRL_GROUP:
	case WF_ROW_OPTIMIZER_COUNT:
		WF_ASSERT(false && "not element by element");
	}
}

/* *x becomes `before` again if it is not finite, and is not known to be. */
static bool
is_kept(const struct ready *r, float *x, float before)
{
	if (r->calm || wf_row_is_finite(*x)) {
		return true;
	}
	*x = before;
	return false;
}

/* One element and its `states` values of state; where one would not be finite all stay. */
static size_t
step_element(enum wf_row_optimizer kind, const struct wf_row_scalars *k, const struct ready *r,
	     size_t i, size_t states)
{
	float *const at[3] = {&r->w[i], &r->s[i], &r->t[i]};
	float before[3] = {0};
	bool kept = true;

	for (size_t n = 0; n <= states; n++) {
		before[n] = *at[n];
	}
	elementwise(kind, k, r, i);
	for (size_t n = 0; n <= states; n++) {
		kept = kept && (r->calm || wf_row_is_finite(*at[n]));
	}
	for (size_t n = 0; n <= states && !kept; n++) {
		*at[n] = before[n];
	}
	return kept ? 0 : 1;
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

/* The number of elements that are left, of those whose gradients are finite. */
static size_t
adagrad_rowwise(const struct wf_row_scalars *k, const struct ready *r)
{
	float partial[WF_ROW_FOLD] = {0};
	size_t left = 0;

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			partial[i % WF_ROW_FOLD] += r->g[i] * r->g[i];
		}
	}
	float before = r->s[0];
	float rate = wf_row_adagrad_rowwise_rate(k, r->s, wf_row_fold(partial), r->dim);
	if (!is_kept(r, r->s, before)) {
		return count_finite(r);
	}
	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			before = r->w[i];
			wf_row_adagrad_rowwise(k, &r->w[i], rate, r->g[i]);
			left += !is_kept(r, &r->w[i], before);
		}
	}
	return left;
}

static size_t
adam_rowwise(const struct wf_row_scalars *k, const struct ready *r)
{
	float partial[WF_ROW_FOLD] = {0};
	size_t left = 0;

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			float d = wf_row_decayed(k, r->w[i], r->g[i]);
			partial[i % WF_ROW_FOLD] += d * d;
		}
	}
	float before = r->t[0];
	float rate = wf_row_adam_rowwise_rate(k, r->t, wf_row_fold(partial), r->dim);
	if (!is_kept(r, r->t, before)) {
		return count_finite(r);
	}
	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			before = r->w[i];
			float mean = r->s[i];
			wf_row_adam_rowwise(k, &r->w[i], &r->s[i], rate, r->g[i]);
			if (!is_kept(r, &r->w[i], before)) {
				r->s[i] = mean;
				left++;
			}
		}
	}
	return left;
}

/* An element whose state would not be finite is left, as if its gradient were not. */
static size_t
ftrl_group_state(const struct wf_row_scalars *k, struct ready *r)
{
	size_t left = 0;

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			float z = r->s[i];
			float n = r->t[i];
			(void)wf_row_ftrl_state(k, r->w[i], &r->s[i], &r->t[i], r->g[i]);
			if (!is_kept(r, &r->s[i], z) || !is_kept(r, &r->t[i], n)) {
				r->s[i] = z;
				r->t[i] = n;
				r->g[i] = __builtin_inff();
				left++;
			}
		}
	}
	return left;
}

static size_t
ftrl_group(const struct wf_row_scalars *k, struct ready *r)
{
	float partial[WF_ROW_FOLD] = {0};
	size_t left = ftrl_group_state(k, r);

	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			float z = wf_row_soft(r->s[i], k->l1);
			partial[i % WF_ROW_FOLD] += z * z;
		}
	}
	float share = wf_row_ftrl_group_share(k, wf_row_fold(partial), r->dim);
	for (size_t i = 0; i < r->dim; i++) {
		if (wf_row_is_finite(r->g[i])) {
			float before = r->w[i];
			r->w[i] = wf_row_ftrl_group(k, r->s[i], r->t[i], share);
			left += !is_kept(r, &r->w[i], before);
		}
	}
	return left;
}

size_t
wf_ref_row(enum wf_row_optimizer kind, const struct wf_row_scalars *k, float *row,
	   const float *const *grad, unsigned grad_count, size_t dim)
{
	struct ready r;

	WF_ASSERT(grad_count >= 1);
	WF_ASSERT(dim >= 1 && dim <= WF_ROW_DIM_MAX);
	r.w = row;
	r.s = row + dim;
	r.t = row + 2 * dim;
	r.dim = dim;
	size_t skipped = prepare(k, grad, grad_count, &r);
	switch (kind) {
	case WF_ROW_ADAGRAD_ROWWISE:
		return skipped + adagrad_rowwise(k, &r);
	case WF_ROW_ADAM_ROWWISE:
		return skipped + adam_rowwise(k, &r);
	case WF_ROW_FTRL_GROUP:
		return skipped + ftrl_group(k, &r);
	case WF_ROW_SGD:
	case WF_ROW_MOMENTUM:
	case WF_ROW_SPARSE_MOMENTUM:
	case WF_ROW_ADAGRAD:
	case WF_ROW_RMSPROP:
	case WF_ROW_ADAM:
	case WF_ROW_FTRL:
	case WF_ROW_OPTIMIZER_COUNT:
		break;
	}
	const size_t states = wf_row_state_floats(kind, dim) / dim;
	for (size_t i = 0; i < dim; i++) {
		if (wf_row_is_finite(r.g[i])) {
			skipped += step_element(kind, k, &r, i, states);
		}
	}
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
	.uniform = uniform,
	.half =
		{
			[WEFT_VALUES_BF16] = {widen_bf16, narrow_bf16},
			[WEFT_VALUES_F16] = {widen_f16, narrow_f16},
		},
};
