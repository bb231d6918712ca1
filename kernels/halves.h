/* SPDX-License-Identifier: Apache-2.0 */
/* halves: gradients and values of tensors that travel in 16 bits. All arithmetic is f32: a gradient
 * is widened when it is summed, a parameter is rounded when it is sent. Formats and the rounding of
 * one element: half.h. Thread: any; nothing allocates. */
#pragma once

#include "base/assert.h"
#include "kernels/kernels.h"

/* Formats of tensors and of values share one numbering. */
WF_STATIC_ASSERT((int)WEFT_WIRE_BF16 == (int)WEFT_VALUES_BF16, "one numbering");
WF_STATIC_ASSERT((int)WEFT_WIRE_F16 == (int)WEFT_VALUES_F16, "one numbering");

/* The gradients of a wf_apply in 16 bits. */
struct wf_halves {
	enum weft_value_format form; /* WEFT_VALUES_BF16 or WEFT_VALUES_F16 */
	const uint16_t *const *grad; /* [grad_count] arrays of [apply->count] */
	unsigned grad_count;         /* >= 1 */
	uint16_t *value;             /* [apply->count] out: the parameters, rounded to nearest */
};

/* One fused pass, over parts that fit the cache: widens and sums, applies, and rounds the result.
 * `apply->grad` and its count are ignored. The bits are those of widening everything first. Returns
 * how many elements were left as they are. */
size_t wf_halves_apply(const struct wf_kernels *kernels, enum wf_optimizer kind,
		       const struct wf_apply *apply, const struct wf_halves *halves);
/* wf_norm_squares of the widened gradients; `halves->value` is ignored. */
double wf_halves_squares(const struct wf_kernels *kernels, const struct wf_halves *halves,
			 size_t count);

/* The number of elements that are NaN or infinite. */
size_t wf_halves_count_nonfinite(enum weft_value_format form, const uint16_t *in, size_t count);
/* The number of elements that are finite in f32 but too large for 16 bits. */
size_t wf_halves_overflows(const struct wf_kernels *kernels, enum weft_value_format form,
			   const uint16_t *half, const float *in, size_t count);

/* A gradient, or a part of one, to be rounded at random. */
struct wf_halves_draw {
	enum weft_value_format form;
	const float *in; /* [count] */
	size_t count;
	uint64_t seed;
	uint32_t trainer; /* below 2^16, as */
	uint32_t tensor;
	uint64_t step;
	uint64_t first; /* index of in[0] in the tensor */
};

/* Rounds at random: up with a probability proportional to the distance from the lower of the two
 * neighbours, so that the expected value is the value itself. Element e uses word e / 16 % 4 of
 * Philox's block (e / 64 * 16 + e % 16, tensor, step) under a key of seed and trainer, whatever
 * part is rounded: so a vector of blocks serves vectors of elements. */
void wf_halves_draw(const struct wf_kernels *kernels, const struct wf_halves_draw *draw,
		    uint16_t *out);
