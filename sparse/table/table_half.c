/* SPDX-License-Identifier: Apache-2.0 */
/* table_half: rows whose values are in 16 bits at rest. Values lie first in a row, two to a word,
 * then the state in f32. A row is widened into scratch, worked on there as any other, and rounded
 * once when it goes back: so its bits depend on its own steps only. Tables of f32 come through here
 * too, and go on at once. Thread: the lane's. */
#include <string.h>

#include "base/assert.h"
#include "kernels/prefetch.h"
#include "sparse/table/table_internal.h"

#define ROWS_AHEAD 8u

static size_t
state_bytes(const struct wf_table *t)
{
	return (t->wide_floats - t->opts.dim) * sizeof(float);
}

static const struct wf_row_half *
half_of(const struct wf_table *t)
{
	return &t->kernels->half[t->opts.value_rest];
}

void
wf_table_widen(const struct wf_table *t, const float *row, float *wide)
{
	const size_t dim = t->opts.dim;

	WF_ASSERT(wf_table_is_half(t));
	half_of(t)->widen(wide, (const uint16_t *)(const void *)row, dim);
	memcpy(wide + dim, row + t->rest_floats, state_bytes(t));
}

void
wf_table_narrow(const struct wf_table *t, float *row, const float *wide)
{
	const size_t dim = t->opts.dim;

	if (!wf_table_is_half(t)) {
		memcpy(row, wide, t->wide_floats * sizeof(float));
		return;
	}
	half_of(t)->narrow((uint16_t *)(void *)row, wide, dim);
	memcpy(row + t->rest_floats, wide + dim, state_bytes(t));
}

void
wf_table_round(const struct wf_table *t, float *values)
{
	uint16_t half[WF_ROW_DIM_MAX];

	if (wf_table_is_half(t)) {
		half_of(t)->narrow(half, values, t->opts.dim);
		half_of(t)->widen(values, half, t->opts.dim);
	}
}

void
wf_table_gather(const struct wf_table *t, float *out, const float *const *row, size_t count)
{
	const size_t dim = t->opts.dim;

	if (!wf_table_is_half(t)) {
		t->kernels->gather(out, row, count, dim);
		return;
	}
	for (size_t i = 0; i < count; i++, out += dim) {
		half_of(t)->widen(out, (const uint16_t *)(const void *)row[i], dim);
	}
}

/* Make up for the steps that a row has missed. */
static void
bring_up(const struct wf_table *t, uint32_t stamp, float *wide)
{
	wf_motions_move(&t->motions, t->push_step - 1 - stamp, wide, t->opts.dim);
}

/* Of up to WF_CHUNK_KEYS rows. */
static size_t
apply_chunk(struct wf_table *t, const struct wf_row_scalars *scalars,
	    const struct wf_row_batch *batch, const uint32_t *stamp)
{
	const unsigned lines = wf_prefetch_lines(t->rows.slabs.row_bytes);
	float *wide[WF_CHUNK_KEYS];

	WF_ASSERT(batch->count <= WF_CHUNK_KEYS);
	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->is_near && i + ROWS_AHEAD < batch->count) {
			wf_prefetch(batch->row[i + ROWS_AHEAD], lines);
		}
		wide[i] = t->wide + i * t->wide_floats;
		wf_table_widen(t, batch->row[i], wide[i]);
		if (stamp != NULL && !wf_motions_are_still(&t->motions)) {
			bring_up(t, stamp[i], wide[i]);
		}
	}
	struct wf_row_batch widened = *batch;
	widened.row = wide;
	widened.is_near = true;
	size_t nonfinite = t->kernels->apply[t->opts.row.kind](scalars, &widened);
	for (size_t i = 0; i < batch->count; i++) {
		wf_table_narrow(t, batch->row[i], wide[i]);
	}
	return nonfinite;
}

size_t
wf_table_apply(struct wf_table *t, const struct wf_row_scalars *scalars,
	       const struct wf_row_batch *batch, const uint32_t *stamp)
{
	size_t nonfinite = 0;

	if (!wf_table_is_half(t)) {
		return t->kernels->apply[t->opts.row.kind](scalars, batch);
	}
	for (size_t at = 0; at < batch->count; at += WF_CHUNK_KEYS) {
		struct wf_row_batch chunk = *batch;
		chunk.row = batch->row + at;
		chunk.count = batch->count - at < WF_CHUNK_KEYS ? batch->count - at : WF_CHUNK_KEYS;
		chunk.grad = batch->first == NULL ? batch->grad + at : batch->grad;
		chunk.first = batch->first == NULL ? NULL : batch->first + at;
		chunk.stamp = batch->stamp == NULL ? NULL : batch->stamp + at;
		nonfinite += apply_chunk(t, scalars, &chunk, stamp == NULL ? NULL : stamp + at);
	}
	return nonfinite;
}
