/* SPDX-License-Identifier: Apache-2.0 */
/* one: the operations of methods.h and rows_methods.h on a vector of one f32, for the files that
 * define results. Private to this folder. Thread: any. */
#pragma once

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline))
typedef float vec;
typedef bool mask;

INLINE vec
vec_load(const float *from)
{
	return *from;
}

INLINE void
vec_store(float *to, vec x)
{
	*to = x;
}

INLINE vec
vec_set(float x)
{
	return x;
}

INLINE vec
vec_add(vec a, vec b)
{
	return a + b;
}

INLINE vec
vec_sub(vec a, vec b)
{
	return a - b;
}

INLINE vec
vec_mul(vec a, vec b)
{
	return a * b;
}

INLINE vec
vec_div(vec a, vec b)
{
	return a / b;
}

/* IEEE's: correctly rounded. */
INLINE vec
vec_sqrt(vec x)
{
	return __builtin_sqrtf(x);
}

INLINE vec
vec_min(vec a, vec b)
{
	return a < b ? a : b;
}

INLINE vec
vec_max(vec a, vec b)
{
	return a > b ? a : b;
}

INLINE mask
mask_less(vec a, vec b)
{
	return a < b;
}

INLINE vec
vec_select(mask m, vec yes, vec no)
{
	return m ? yes : no;
}
