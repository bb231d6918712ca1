/* SPDX-License-Identifier: Apache-2.0 */
/* row_record: see row_record.h. Thread: any. */
#include "wire/row_record.h"

#include <string.h>

#include "base/assert.h"
#include "wire/little.h"

#define HEAD_BYTES 16u
#define SCORE_BYTES 8u

bool
wf_row_shape_is_valid(const struct wf_row_shape *shape)
{
	return shape->dim >= 1 && shape->dim <= WF_ROW_RECORD_DIM_MAX &&
	       shape->state_floats <= 2 * shape->dim + 1;
}

static size_t
floats_offset(const struct wf_row_shape *shape)
{
	return HEAD_BYTES + (shape->has_score ? SCORE_BYTES : 0);
}

size_t
wf_row_record_bytes(const struct wf_row_shape *shape)
{
	return floats_offset(shape) + ((size_t)shape->dim + shape->state_floats) * sizeof(uint32_t);
}

static void
put_f32(uint8_t *out, float value)
{
	uint32_t bits;
	WF_STATIC_ASSERT(sizeof(bits) == sizeof(value), "f32 is IEEE binary32");
	memcpy(&bits, &value, sizeof(bits));
	wf_store_u32(out, bits);
}

static float
get_f32(const uint8_t *bytes)
{
	uint32_t bits = wf_load_u32(bytes);
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

void
wf_row_record_put(const struct wf_row_shape *shape, const struct wf_row_record *row, uint8_t *out)
{
	const size_t count = (size_t)shape->dim + shape->state_floats;
	uint8_t *floats = out + floats_offset(shape);

	WF_ASSERT(wf_row_shape_is_valid(shape));
	wf_store_u64(out, row->key);
	wf_store_u32(out + 8, row->stamp);
	wf_store_u32(out + 12, row->born);
	if (shape->has_score) {
		put_f32(out + 16, row->show);
		put_f32(out + 20, row->click);
	}
	for (size_t i = 0; i < count; i++) {
		put_f32(floats + 4 * i, row->floats[i]);
	}
}

void
wf_row_record_get(const struct wf_row_shape *shape, const uint8_t *bytes, float *floats,
		  struct wf_row_record *out)
{
	const size_t count = (size_t)shape->dim + shape->state_floats;
	const uint8_t *from = bytes + floats_offset(shape);

	WF_ASSERT(wf_row_shape_is_valid(shape));
	*out = (struct wf_row_record){
		.key = wf_load_u64(bytes),
		.stamp = wf_load_u32(bytes + 8),
		.born = wf_load_u32(bytes + 12),
		.floats = floats,
	};
	if (shape->has_score) {
		out->show = get_f32(bytes + 16);
		out->click = get_f32(bytes + 20);
	}
	for (size_t i = 0; i < count; i++) {
		floats[i] = get_f32(from + 4 * i);
	}
}
