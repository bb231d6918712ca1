/* SPDX-License-Identifier: Apache-2.0 */
/* typed: see typed.h. Thread: any. */
#include "kernels/typed.h"

#include <string.h>

#include "base/assert.h"
#include "kernels/rows.h"

#define PART 1024u /* 16-bit elements at a time, widened: 4 KiB each */

/* Adds [count] elements of `in` to `out`. The compiler makes vectors of a loop whose length it
 * knows. */
#define TOGETHER 64u
#define DEFINE_ADD(name, element)                                                                  \
	static void name(element *restrict out, const element *restrict in, size_t count)          \
	{                                                                                          \
		size_t first = 0;                                                                  \
		for (; first + TOGETHER <= count; first += TOGETHER) {                             \
			for (size_t i = first; i < first + TOGETHER; i++) {                        \
				out[i] += in[i];                                                   \
			}                                                                          \
		}                                                                                  \
		for (size_t i = first; i < count; i++) {                                           \
			out[i] += in[i];                                                           \
		}                                                                                  \
	}
DEFINE_ADD(add_f64, double)
DEFINE_ADD(add_i32, uint32_t)
DEFINE_ADD(add_i64, uint64_t)
#undef DEFINE_ADD

static void
add(enum weft_type type, void *out, const void *in, size_t count)
{
	if (type == WEFT_TYPE_F64) {
		add_f64(out, in, count);
	} else if (type == WEFT_TYPE_I32) {
		add_i32(out, in, count);
	} else {
		add_i64(out, in, count);
	}
}

/* Between 16 bits and f32. */
static const struct wf_row_half *
half_of(const struct wf_kernels *kernels, enum weft_type type)
{
	return &kernels->rows->half[type == WEFT_TYPE_BF16 ? WEFT_VALUES_BF16 : WEFT_VALUES_F16];
}

static inline size_t
part_of(size_t count, size_t first)
{
	return count - first < PART ? count - first : PART;
}

static void
sum_halves(const struct wf_kernels *kernels, enum weft_type type, uint16_t *out,
	   const void *const *in, unsigned in_count, size_t count)
{
	const struct wf_row_half *half = half_of(kernels, type);
	float sum[PART], next[PART];
	const float *const both[] = {sum, next};
	for (size_t first = 0; first < count; first += PART) {
		size_t here = part_of(count, first);
		half->widen(sum, (const uint16_t *)in[0] + first, here);
		for (unsigned t = 1; t < in_count; t++) {
			half->widen(next, (const uint16_t *)in[t] + first, here);
			kernels->sum(sum, both, 2, here);
			half->narrow(out + first, sum, here);
			if (t + 1 < in_count) {
				half->widen(sum, out + first, here);
			}
		}
		if (in_count == 1) {
			memcpy(out + first, (const uint16_t *)in[0] + first, here * sizeof(*out));
		}
	}
}

void
wf_typed_sum(const struct wf_kernels *kernels, enum weft_type type, void *out,
	     const void *const *in, unsigned in_count, size_t count)
{
	WF_ASSERT(in_count >= 1);
	if (type == WEFT_TYPE_F32) {
		kernels->sum(out, (const float *const *)in, in_count, count);
		return;
	}
	if (type == WEFT_TYPE_BF16 || type == WEFT_TYPE_F16) {
		sum_halves(kernels, type, out, in, in_count, count);
		return;
	}
	if (out != in[0]) {
		memcpy(out, in[0], count * wf_type_bytes(type));
	}
	for (unsigned t = 1; t < in_count; t++) {
		add(type, out, in[t], count);
	}
}

static void
divide_halves(const struct wf_kernels *kernels, enum weft_type type, uint16_t *array, float divisor,
	      size_t count)
{
	const struct wf_row_half *half = half_of(kernels, type);
	float wide[PART];
	for (size_t first = 0; first < count; first += PART) {
		size_t here = part_of(count, first);
		half->widen(wide, array + first, here);
		for (size_t i = 0; i < here; i++) {
			wide[i] /= divisor;
		}
		half->narrow(array + first, wide, here);
	}
}

void
wf_typed_divide(const struct wf_kernels *kernels, enum weft_type type, void *array, double divisor,
		size_t count)
{
	WF_ASSERT(!wf_type_is_integer(type));
	if (type == WEFT_TYPE_F64) {
		double *wide = array;
		for (size_t i = 0; i < count; i++) {
			wide[i] /= divisor;
		}
	} else if (type == WEFT_TYPE_F32) {
		float *single = array;
		for (size_t i = 0; i < count; i++) {
			single[i] /= (float)divisor;
		}
	} else {
		divide_halves(kernels, type, array, (float)divisor, count);
	}
}
