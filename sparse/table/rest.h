/* SPDX-License-Identifier: Apache-2.0 */
/* rest: how rows lie: values in f32 or in 16 bits, then the state in f32. A row whose values are in
 * 16 bits at rest is widened into scratch, worked on there as any other, and rounded once when it
 * goes back: so its bits depend on its own steps only. Rows of f32 come through here too, and go on
 * at once. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "sparse/table/budget.h"
#include "sparse/table/motions.h"

/* Keys that are worked on together: their buckets, then their rows, are on their way from memory
 * while others are looked at. */
#define WF_CHUNK_KEYS 64u

struct wf_rest {
	const struct wf_row_kernels *kernels;
	const struct wf_row_half *half; /* of the values' format; NULL: f32 */
	enum wf_row_optimizer kind;
	size_t dim;
	size_t wide_floats; /* of a row whose values are f32: dim and state */
	size_t rest_floats; /* room of the values in a row, in f32 */
	float *wide;        /* [WF_CHUNK_KEYS * wide_floats] scratch; NULL: values are f32 */
};

/* What rows have missed before a step is applied to them. */
struct wf_rest_missed {
	const struct wf_motions *motions;
	const uint32_t *stamp; /* of each row: its last step */
	uint32_t last;         /* step before the one applied */
};

void wf_rest_init(struct wf_rest *rest, const struct wf_row_kernels *kernels,
		  const struct wf_row_opts *row, uint32_t dim, enum weft_value_format format);
/* Allocates the scratch. false: no memory; nothing is allocated. */
bool wf_rest_alloc(struct wf_rest *rest, struct wf_budget *budget);
void wf_rest_free(struct wf_rest *rest, struct wf_budget *budget); /* accepts zeroed */

static inline bool
wf_rest_is_half(const struct wf_rest *rest)
{
	return rest->half != NULL;
}

/* Values and state of a row as f32: where they lie, or in scratch until the next call. */
const float *wf_rest_widen(const struct wf_rest *rest, const float *row);
/* Back again. */
void wf_rest_narrow(const struct wf_rest *rest, float *row, const float *wide);
/* Values as they are after they have been at rest. */
void wf_rest_round(const struct wf_rest *rest, float *values);
/* As the kernels' gather, from rows at rest. */
void wf_rest_gather(const struct wf_rest *rest, float *out, const float *const *row, size_t count);
/* As the kernels' apply, to rows at rest. `missed`: what is made up for first; NULL: nothing. */
size_t wf_rest_apply(const struct wf_rest *rest, const struct wf_row_scalars *scalars,
		     const struct wf_row_batch *batch, const struct wf_rest_missed *missed);
