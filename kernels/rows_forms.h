/* SPDX-License-Identifier: Apache-2.0 */
/* rows_forms: what the forms of the row kernels share beyond the formulas of rows_methods.h, and
 * what is computed once for a row. Private to this folder. Thread: any. */
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

/* What follows from the sum of squares of a row (row_term in rows_methods.h) for all its elements:
 * the rate of a rowwise kind, whose accumulator is updated, or the factor that the norm of a row
 * leaves with WF_ROW_FTRL_GROUP: 0, or at most 1. */
static inline float
wf_row_share(enum wf_row_optimizer kind, const struct wf_row_scalars *k, float *accumulator,
	     float squares, size_t dim)
{
	if (kind == WF_ROW_ADAGRAD_ROWWISE) {
		*accumulator = *accumulator + squares / (float)dim;
		return k->rate / __builtin_sqrtf(*accumulator + k->epsilon);
	}
	if (kind == WF_ROW_ADAM_ROWWISE) {
		*accumulator = k->beta2 * *accumulator + (1.0f - k->beta2) * (squares / (float)dim);
		return k->rate / (__builtin_sqrtf(*accumulator) + k->epsilon);
	}
	float norm = __builtin_sqrtf(squares);
	float least = k->l21 * __builtin_sqrtf((float)dim);
	return norm > least ? 1.0f - least / norm : 0.0f;
}
