/* SPDX-License-Identifier: Apache-2.0 */
/* typed: sums and means of arrays whose elements have any type of weft_all_reduce. Each addition is
 * rounded to the type, to nearest with ties to even: the bits are those of adding the arrays one
 * after the other, as NumPy and PyTorch do. Thread: any; nothing allocates, and nothing fails. */
#pragma once

#include <stddef.h>

#include "base/type.h"
#include "kernels/kernels.h"

/* out = ((in[0] + in[1]) + in[2]) + ... over [count] elements; out may be in[0]. Sums of two f16 or
 * bf16 are exact in f32, or rounded there so that the second rounding changes nothing: f32 has more
 * than twice their digits and two. Integers wrap. All arrays are aligned for the type. */
void wf_typed_sum(const struct wf_kernels *kernels, enum weft_type type, void *out,
		  const void *const *in, unsigned in_count, size_t count);

/* array = array / divisor, in f64 for f64, in f32 for the others, then rounded to the type. Not for
 * integers. `divisor` is a whole number that an f32 holds exactly. */
void wf_typed_divide(const struct wf_kernels *kernels, enum weft_type type, void *array,
		     double divisor, size_t count);
