/* SPDX-License-Identifier: Apache-2.0 */
/* rest: how rows are stored: values in f32 or in 16 bits, then the state in f32. A row whose values
 * have 16 bits is widened into scratch, updated there as any other, and rounded once when it
 * is stored, so that its bits depend on its own steps only. Rows of f32 pass through here too,
 * without a copy. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "sparse/table/budget.h"
#include "sparse/table/motions.h"

/* Keys that are looked up together: their buckets, then their rows, are prefetched while others are
 * searched. */
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
void wf_rest_free(struct wf_rest *rest, struct wf_budget *budget); /* accepts a zeroed struct */

static inline bool
wf_rest_is_half(const struct wf_rest *rest)
{
	return rest->half != NULL;
}

/* Values and state of a row as f32: where they lie, or in scratch until the next call. */
const float *wf_rest_widen(const struct wf_rest *rest, const float *row);
/* Stores them again. */
void wf_rest_narrow(const struct wf_rest *rest, float *row, const float *wide);
/* Rounds values as storing them would. */
void wf_rest_round(const struct wf_rest *rest, float *values);
/* The kernels' gather, from rows as they are stored. */
void wf_rest_gather(const struct wf_rest *rest, float *out, const float *const *row, size_t count);
/* The same past the caches, if they are f32. */
void wf_rest_gather_past(const struct wf_rest *rest, float *out, const float *const *row,
			 size_t count);
/* The kernels' apply, to rows as they are stored, after `missed` is made up for; NULL: nothing. */
size_t wf_rest_apply(const struct wf_rest *rest, const struct wf_row_scalars *scalars,
		     const struct wf_row_batch *batch, const struct wf_rest_missed *missed);
