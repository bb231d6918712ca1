/* SPDX-License-Identifier: Apache-2.0 */
/* table: what a table of rows could be at most on this machine: open addressing with linear
 * probing in an array that is at most half full, looked into many keys at a time with
 * prefetch, rows in one array. It cannot evict or refuse, sums nobody's gradients, keeps no
 * books, and takes the compiler's -ffast-math. Built once for each form of the kernels. Thread: the
 * worker's.
 *
 * Only inserting is another matter: a table that is told beforehand how many keys will come need
 * not move any, so its array starts small and doubles when it is half full, all at once: at 10
 * million keys that is a pause of a quarter of a second, which a lane must not have. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wf_bare_slot {
	uint64_t key; /* 0: free; no key is 0 */
	uint64_t row;
};

struct wf_bare_table {
	struct wf_bare_slot *slot; /* [slot_mask + 1], at most half of them used */
	uint64_t slot_mask;
	float *row; /* [rows * 2 * dim]: values, then the accumulators of AdaGrad */
	size_t dim;
	uint64_t row_count;
};

/* All keys are in the table, but for insert, where none is. */
struct wf_bare_table_form {
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
	/* Move all to `slot` [slot_count], zeroed, which becomes the table's. */
	void (*grow)(struct wf_bare_table *table, struct wf_bare_slot *slot, uint64_t slot_count);
};

#define WF_BARE_TABLE_RATE 0.01f
#define WF_BARE_TABLE_EPSILON 1e-6f

extern const struct wf_bare_table_form wf_bare_table_plain;
extern const struct wf_bare_table_form wf_bare_table_avx2;
extern const struct wf_bare_table_form wf_bare_table_avx512;
