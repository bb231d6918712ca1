/* SPDX-License-Identifier: Apache-2.0 */
/* rows_forms: what the forms of the row kernels share: the definition of each optimizer, for one
 * element, and of the sums over a row. Private to this folder. Thread: any.
 *
 * rows_ref.c runs these over all elements, a wide form over those after its last whole vector. */
#pragma once

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/forms.h"
#include "kernels/rows.h"

/* Sums over a row have this many partial sums: element i goes into i % FOLD, in order; then they
 * are folded in halves. So the result does not depend on how wide a form is. */
#define WF_ROW_FOLD 16u

typedef size_t wf_row_apply_fn(const struct wf_row_scalars *k, const struct wf_row_batch *batch);

/* Updates one row, whose gradients need not be finite. Returns how many elements were skipped. */
size_t wf_ref_row(enum wf_row_optimizer kind, const struct wf_row_scalars *k, float *row,
		  const float *const *grad, unsigned grad_count, size_t dim);

/* Whether row i of the batch is in its first step with rmsprop, where that makes a difference. */
static inline bool
wf_row_is_first(enum wf_row_optimizer kind, const struct wf_row_batch *batch, size_t i)
{
	return kind == WF_ROW_RMSPROP && batch->stamp != NULL && batch->stamp[i] == 0;
}

/* The scalars of such a step: those of tensors in the job's first step. */
static inline struct wf_row_scalars
wf_row_first_scalars(const struct wf_row_scalars *k)
{
	struct wf_row_scalars first = *k;
	first.square_share = 1.0f;
	return first;
}

/* Elements from `first` on, a multiple of 4. */
void wf_ref_uniform(const struct wf_row_uniform *draw, uint64_t key, float *out, size_t first,
		    size_t dim);

extern const struct wf_row_kernels wf_row_kernels_ref;

static inline bool
wf_row_is_finite(float x)
{
	return x >= -FLT_MAX && x <= FLT_MAX;
}

/* The magnitude, as bits, up to which gradients of a row are calm, as wf_calm_bits. */
static inline int
wf_row_calm_bits(const struct wf_row_scalars *k)
{
	return k->rate <= 0x1p30f && k->decay <= 0x1p8f ? WF_CALM_BITS : -1;
}

static inline bool
wf_row_is_calm(float g, int calm_bits)
{
	int bits;
	memcpy(&bits, &g, sizeof(bits));
	return (bits & 0x7fffffff) <= calm_bits;
}

static inline float
wf_row_fold(float partial[WF_ROW_FOLD])
{
	for (unsigned half = WF_ROW_FOLD / 2; half > 0; half /= 2) {
		for (unsigned i = 0; i < half; i++) {
			partial[i] = partial[i] + partial[i + half];
		}
	}
	return partial[0];
}

/* Moves w towards 0 by `drop`, and not beyond. NaN stays NaN. */
static inline float
wf_row_soft(float w, float drop)
{
	float rest = w < -drop ? w + drop : w * 0.0f;
	return w > drop ? w - drop : rest;
}

/* The gradient with the decay term. */
static inline float
wf_row_decayed(const struct wf_row_scalars *k, float w, float g)
{
	return k->decay > 0.0f ? g + k->decay * w : g;
}

/* L1 and L2 after the step. */
static inline float
wf_row_regular(const struct wf_row_scalars *k, float w)
{
	w = k->drop > 0.0f ? wf_row_soft(w, k->drop) : w;
	return k->shrink < 1.0f ? w * k->shrink : w;
}

/* In the functions below w, s and t are element i of values and state arrays; g is its gradient,
 * finite. */

static inline void
wf_row_sgd(const struct wf_row_scalars *k, float *w, float g)
{
	*w = wf_row_regular(k, *w - k->rate * wf_row_decayed(k, *w, g));
}

static inline void
wf_row_momentum(const struct wf_row_scalars *k, float *w, float *m, float g)
{
	*m = k->momentum * *m - k->rate * wf_row_decayed(k, *w, g);
	*w = wf_row_regular(k, *w + *m);
}

static inline void
wf_row_adagrad(const struct wf_row_scalars *k, float *w, float *a, float g)
{
	*a = *a + g * g;
	float root = __builtin_sqrtf(*a + k->epsilon);
	*w = wf_row_regular(k, *w - k->rate * wf_row_decayed(k, *w, g) / root);
}

/* Adds a row's sum of squares to its accumulator, and returns the row's rate. */
static inline float
wf_row_adagrad_rowwise_rate(const struct wf_row_scalars *k, float *a, float squares, size_t dim)
{
	*a = *a + squares / (float)dim;
	return k->rate / __builtin_sqrtf(*a + k->epsilon);
}

static inline void
wf_row_adagrad_rowwise(const struct wf_row_scalars *k, float *w, float row_rate, float g)
{
	*w = wf_row_regular(k, *w - row_rate * wf_row_decayed(k, *w, g));
}

/* The argument of the root may fall below 0 by rounding. */
static inline void
wf_row_rmsprop(const struct wf_row_scalars *k, float *w, float *square, float *mean, float g)
{
	*square = k->rho * *square + k->square_share * (g * g);
	*mean = k->rho * *mean + (1.0f - k->rho) * g;
	float variance = *square - *mean * *mean;
	variance = variance > 0.0f ? variance : 0.0f;
	float root = __builtin_sqrtf(variance + k->epsilon);
	*w = wf_row_regular(k, *w - k->rate * wf_row_decayed(k, *w, g) / root);
}

static inline void
wf_row_adam(const struct wf_row_scalars *k, float *w, float *m, float *v, float g)
{
	float d = wf_row_decayed(k, *w, g);
	*m = k->beta1 * *m + (1.0f - k->beta1) * d;
	*v = k->beta2 * *v + (1.0f - k->beta2) * (d * d);
	float root = __builtin_sqrtf(*v);
	*w = wf_row_regular(k, *w - k->rate * *m / (root + k->epsilon));
}

/* `squares`: sum over the gradients with decay. */
static inline float
wf_row_adam_rowwise_rate(const struct wf_row_scalars *k, float *v, float squares, size_t dim)
{
	*v = k->beta2 * *v + (1.0f - k->beta2) * (squares / (float)dim);
	return k->rate / (__builtin_sqrtf(*v) + k->epsilon);
}

static inline void
wf_row_adam_rowwise(const struct wf_row_scalars *k, float *w, float *m, float row_rate, float g)
{
	*m = k->beta1 * *m + (1.0f - k->beta1) * wf_row_decayed(k, *w, g);
	*w = wf_row_regular(k, *w - row_rate * *m);
}

/* Updates z and n of FTRL-proximal. Returns the divisor in the formula of w. */
static inline float
wf_row_ftrl_state(const struct wf_row_scalars *k, float w, float *z, float *n, float g)
{
	float next = *n + g * g;
	float root = __builtin_sqrtf(next);
	float sigma = (root - __builtin_sqrtf(*n)) / k->rate;
	*z = *z + (g - sigma * w);
	*n = next;
	return (k->ftrl_beta + root) / k->rate + k->l2;
}

static inline void
wf_row_ftrl(const struct wf_row_scalars *k, float *w, float *z, float *n, float g)
{
	float below = wf_row_ftrl_state(k, *w, z, n, g);
	*w = (0.0f - wf_row_soft(*z, k->l1)) / below;
}

/* The factor that the norm of a row leaves: 0, or at most 1. */
static inline float
wf_row_ftrl_group_share(const struct wf_row_scalars *k, float squares, size_t dim)
{
	float norm = __builtin_sqrtf(squares);
	float least = k->l21 * __builtin_sqrtf((float)dim);
	return norm > least ? 1.0f - least / norm : 0.0f;
}

/* After wf_row_ftrl_state of the whole row. */
static inline float
wf_row_ftrl_group(const struct wf_row_scalars *k, float z, float n, float share)
{
	float below = (k->ftrl_beta + __builtin_sqrtf(n)) / k->rate + k->l2;
	return (0.0f - wf_row_soft(z, k->l1) * share) / below;
}
