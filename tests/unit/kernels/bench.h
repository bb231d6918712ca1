/* SPDX-License-Identifier: Apache-2.0 */
/* bench: arrays for one apply, and what is asked of them afterwards. Arrays have COUNT elements, so
 * that forms of eight and of sixteen lanes meet whole vectors and a rest. Thread: one. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"

#define COUNT 37 /* four vectors of eight or two of sixteen, and five */
#define GRADS 9

/* Every element of an array begins with the same value. */
struct bench {
	float param[COUNT], m[COUNT], v[COUNT], grad[GRADS][COUNT];
	const float *grads[GRADS];
	struct wf_apply apply;
};

static inline void
fill(float *array, float value)
{
	for (size_t i = 0; i < COUNT; i++) {
		array[i] = value;
	}
}

/* param `w`, states 0, the gradients in `grad`; divisor 1, nothing else switched on. */
static inline void
bench_init(struct bench *b, float w, const float *grad, unsigned grad_count)
{
	memset(b, 0, sizeof(*b));
	fill(b->param, w);
	for (unsigned n = 0; n < grad_count; n++) {
		fill(b->grad[n], grad[n]);
		b->grads[n] = b->grad[n];
	}
	b->apply = (struct wf_apply){
		.param = b->param,
		.state = {b->m, b->v},
		.grad = b->grads,
		.grad_count = grad_count,
		.count = COUNT,
		.divisor = 1.0f,
	};
}

static inline void
expect_all(const float *array, double want, double tolerance)
{
	for (size_t i = 0; i < COUNT; i++) {
		if (!(fabs((double)array[i] - want) <= tolerance)) {
			fail_msg("element %zu is %.9g, not %.9g", i, (double)array[i], want);
		}
	}
}

static inline const struct wf_kernels *
form(void **state)
{
	return (const struct wf_kernels *)*state;
}
