/* SPDX-License-Identifier: Apache-2.0 */
/* form: the arithmetic and the copies of hand-written loops, as plain loops for the compiler to
 * optimise, built once for each kind of processor with -O3 -ffast-math. They check nothing: no NaN,
 * no bounds, no alignment. Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WF_LIMIT_SUM_GRADS 4u
#define WF_LIMIT_ROW_RATE 0.01f
#define WF_LIMIT_ROW_EPSILON 1e-6f

struct wf_bare_slot;
struct wf_bare_table;

struct wf_limit_form {
	/* param -= rate * (grad[0] + grad[1] + grad[2] + grad[3]) */
	void (*sum_sgd)(float *param, const float *const *grad, size_t count, float rate);
	/* param -= rate * grad */
	void (*sgd)(float *param, const float *grad, size_t count, float rate);

	/* sum[place[i] * dim ...] += grad[i * dim ...]: the first of each place, which ascend, is
	 * copied. */
	void (*sum_rows)(float *sum, const float *grad, const uint32_t *place, size_t count,
			 size_t dim);

	/* Functions on the rows of a table (table.h). All keys exist, except for insert, where none
	 * does. */

	/* out[i * dim ...] = values of key i. */
	void (*pull)(const struct wf_bare_table *table, const uint64_t *key, size_t count,
		     float *out);
	/* AdaGrad, each gradient to its row in place. */
	void (*push)(const struct wf_bare_table *table, const uint64_t *key, size_t count,
		     const float *grad);
	/* What push does to one row. */
	void (*update)(float *row, const float *grad, size_t dim);
	/* The next row for each key, all zeros. There is room for them. */
	void (*insert)(struct wf_bare_table *table, const uint64_t *key, size_t count);
	/* Moves all keys to `slot` [slot_count], zeroed, which becomes the table's. */
	void (*grow)(struct wf_bare_table *table, struct wf_bare_slot *slot, uint64_t slot_count);
};

extern const struct wf_limit_form wf_limit_form_plain;
extern const struct wf_limit_form wf_limit_form_avx2;
extern const struct wf_limit_form wf_limit_form_avx512;

/* The widest form that this processor has. The query takes microseconds in a virtual machine: make
 * it once. */
const struct wf_limit_form *wf_limit_form_best(void);
