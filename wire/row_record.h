/* SPDX-License-Identifier: Apache-2.0 */
/* row_record: a row of a sparse table as it is saved and moved from one lane to another: its
 * complete state, so that the new lane continues with the same bits. Thread: any; pure functions.
 *
 * Little-endian, without gaps:
 *
 *	u64 key, u32 stamp, u32 born, [f32 show, f32 click], f32 values [dim], f32 state
 *
 * Values are f32, whatever their format at rest: f32 holds 16-bit values exactly. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values, two arrays of state and one scalar at most. */
#define WF_ROW_RECORD_DIM_MAX 4096u
#define WF_ROW_RECORD_FLOATS_MAX (3u * WF_ROW_RECORD_DIM_MAX + 1u)
#define WF_ROW_RECORD_BYTES_MAX (24u + 4u * WF_ROW_RECORD_FLOATS_MAX)

/* The sizes that all rows of a table share. */
struct wf_row_shape {
	uint32_t dim;          /* values, 1 .. WF_ROW_RECORD_DIM_MAX */
	uint32_t state_floats; /* at most 2 dim + 1 */
	bool has_score;
};

struct wf_row_record {
	uint64_t key;
	uint32_t stamp;      /* step of the last update, 0: none */
	uint32_t born;       /* step after which it was born */
	float show, click;   /* 0 without scores */
	const float *floats; /* [dim + state_floats] */
};

/* Whether a table can have such rows. */
bool wf_row_shape_is_valid(const struct wf_row_shape *shape);
size_t wf_row_record_bytes(const struct wf_row_shape *shape);
/* `out` is [wf_row_record_bytes]. */
void wf_row_record_put(const struct wf_row_shape *shape, const struct wf_row_record *row,
		       uint8_t *out);
/* `floats` is [dim + state_floats]; `out` refers to it. Any bytes are a valid row. */
void wf_row_record_get(const struct wf_row_shape *shape, const uint8_t *bytes, float *floats,
		       struct wf_row_record *out);
