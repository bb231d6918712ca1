/* SPDX-License-Identifier: Apache-2.0 */
/* rest: see rest.h. Thread: the lane's. */
#include "sparse/table/rest.h"

#include <string.h>

#include "base/assert.h"
#include "kernels/prefetch.h"

#define ROWS_AHEAD 8u

void
wf_rest_init(struct wf_rest *rest, const struct wf_row_kernels *kernels,
	     const struct wf_row_opts *row, uint32_t dim, enum weft_value_format format)
{
	const bool is_half = format != WEFT_VALUES_F32;

	*rest = (struct wf_rest){
		.kernels = kernels,
		.half = is_half ? &kernels->half[format] : NULL,
		.kind = row->kind,
		.dim = dim,
		.wide_floats = dim + wf_row_state_floats(row->kind, dim),
		.rest_floats = is_half ? (dim + 1) / 2 : dim,
	};
}

static size_t
wide_bytes(const struct wf_rest *rest)
{
	return WF_CHUNK_KEYS * rest->wide_floats * sizeof(*rest->wide);
}

bool
wf_rest_alloc(struct wf_rest *rest, struct wf_budget *budget)
{
	if (wf_rest_is_half(rest)) {
		rest->wide = wf_budget_alloc(budget, wide_bytes(rest));
	}
	return rest->wide != NULL || !wf_rest_is_half(rest);
}

void
wf_rest_free(struct wf_rest *rest, struct wf_budget *budget)
{
	wf_budget_give(budget, rest->wide, wide_bytes(rest));
	rest->wide = NULL;
}

static size_t
state_bytes(const struct wf_rest *rest)
{
	return (rest->wide_floats - rest->dim) * sizeof(float);
}

static void
widen_to(const struct wf_rest *rest, const float *row, float *wide)
{
	rest->half->widen(wide, (const uint16_t *)(const void *)row, rest->dim);
	memcpy(wide + rest->dim, row + rest->rest_floats, state_bytes(rest));
}

const float *
wf_rest_widen(const struct wf_rest *rest, const float *row)
{
	if (!wf_rest_is_half(rest)) {
		return row;
	}
	widen_to(rest, row, rest->wide);
	return rest->wide;
}

void
wf_rest_narrow(const struct wf_rest *rest, float *row, const float *wide)
{
	if (!wf_rest_is_half(rest)) {
		memcpy(row, wide, rest->wide_floats * sizeof(float));
		return;
	}
	rest->half->narrow((uint16_t *)(void *)row, wide, rest->dim);
	memcpy(row + rest->rest_floats, wide + rest->dim, state_bytes(rest));
}

void
wf_rest_round(const struct wf_rest *rest, float *values)
{
	uint16_t half[WF_ROW_DIM_MAX];

	if (wf_rest_is_half(rest)) {
		rest->half->narrow(half, values, rest->dim);
		rest->half->widen(values, half, rest->dim);
	}
}

void
wf_rest_gather(const struct wf_rest *rest, float *out, const float *const *row, size_t count)
{
	if (!wf_rest_is_half(rest)) {
		rest->kernels->gather(out, row, count, rest->dim);
		return;
	}
	for (size_t i = 0; i < count; i++, out += rest->dim) {
		rest->half->widen(out, (const uint16_t *)(const void *)row[i], rest->dim);
	}
}

void
wf_rest_gather_past(const struct wf_rest *rest, float *out, const float *const *row, size_t count)
{
	if (wf_rest_is_half(rest)) {
		wf_rest_gather(rest, out, row, count);
	} else {
		rest->kernels->gather_past(out, row, count, rest->dim);
	}
}

/* Of up to WF_CHUNK_KEYS rows, those from `at` on of what was missed. */
static size_t
apply_chunk(const struct wf_rest *rest, const struct wf_row_scalars *scalars,
	    const struct wf_row_batch *batch, const struct wf_rest_missed *missed, size_t at)
{
	const size_t bytes = rest->rest_floats * sizeof(float) + state_bytes(rest);
	const unsigned lines = wf_prefetch_lines_anywhere(bytes);
	float *wide[WF_CHUNK_KEYS];

	WF_ASSERT(batch->count <= WF_CHUNK_KEYS);
	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->is_near && i + ROWS_AHEAD < batch->count) {
			wf_prefetch(batch->row[i + ROWS_AHEAD], lines);
		}
		wide[i] = rest->wide + i * rest->wide_floats;
		widen_to(rest, batch->row[i], wide[i]);
		if (missed != NULL) {
			uint32_t steps = missed->last - missed->stamp[at + i];
			wf_motions_move(missed->motions, steps, wide[i], rest->dim);
		}
	}
	struct wf_row_batch widened = *batch;
	widened.row = wide;
	widened.is_near = true;
	size_t nonfinite = rest->kernels->apply[rest->kind](scalars, &widened);
	for (size_t i = 0; i < batch->count; i++) {
		wf_rest_narrow(rest, batch->row[i], wide[i]);
	}
	return nonfinite;
}

/* Rows of f32 are moved where they lie. */
static void
make_up(const struct wf_rest *rest, const struct wf_row_batch *batch,
	const struct wf_rest_missed *missed)
{
	for (size_t i = 0; i < batch->count; i++) {
		wf_motions_move(missed->motions, missed->last - missed->stamp[i], batch->row[i],
				rest->dim);
	}
}

size_t
wf_rest_apply(const struct wf_rest *rest, const struct wf_row_scalars *scalars,
	      const struct wf_row_batch *batch, const struct wf_rest_missed *missed)
{
	size_t nonfinite = 0;

	if (!wf_rest_is_half(rest)) {
		if (missed != NULL) {
			make_up(rest, batch, missed);
		}
		return rest->kernels->apply[rest->kind](scalars, batch);
	}
	for (size_t at = 0; at < batch->count; at += WF_CHUNK_KEYS) {
		struct wf_row_batch chunk = *batch;
		chunk.row = batch->row + at;
		chunk.count = batch->count - at < WF_CHUNK_KEYS ? batch->count - at : WF_CHUNK_KEYS;
		chunk.grad = batch->first == NULL ? batch->grad + at : batch->grad;
		chunk.first = batch->first == NULL ? NULL : batch->first + at;
		chunk.stamp = batch->stamp == NULL ? NULL : batch->stamp + at;
		nonfinite += apply_chunk(rest, scalars, &chunk, missed, at);
	}
	return nonfinite;
}
