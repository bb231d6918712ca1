/* SPDX-License-Identifier: Apache-2.0 */
/* table: the best table of rows that is possible on this machine: open addressing with linear
 * probing in an array that is at most half full, where many keys are looked up at a time with
 * prefetch, and rows in one array, in the order in which they were inserted. It cannot evict or
 * refuse, sums no gradients and keeps no statistics.
 *
 * Its array of slots starts small and doubles when it is half full, all at once: at 10 million keys
 * that is a pause of a quarter of a second, which a lane must not have. Thread: its owner's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_limit_form;

struct wf_bare_slot {
	uint64_t key; /* 0: free; no key is 0 */
	uint64_t row;
};

struct wf_bare_table {
	const struct wf_limit_form *form;
	struct wf_bare_slot *slot; /* [slot_mask + 1], at most half of them used; NULL: none */
	uint64_t slot_mask;
	float *row; /* [row_max * 2 * dim]: values, then the accumulators of AdaGrad */
	size_t dim;
	uint64_t row_count, row_max;
};

/* Creates an empty table on untouched memory. false: no memory. */
bool wf_bare_table_open(struct wf_bare_table *table, uint64_t row_max, size_t dim);
void wf_bare_table_close(struct wf_bare_table *table); /* accepts zeros */
/* Rows for keys that are not there yet, all zeros; at most row_max in all. false: no memory. */
bool wf_bare_table_insert(struct wf_bare_table *table, const uint64_t *key, size_t count);
/* Bytes that it occupies with `rows` in it. */
uint64_t wf_bare_table_bytes(uint64_t rows, size_t dim);
