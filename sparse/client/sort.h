/* SPDX-License-Identifier: Apache-2.0 */
/* sort: keys in ascending order, each with a number that goes with it; equal keys stay in their
 * order. Thread: the caller's. */
#pragma once

#include <stdint.h>

#define WF_SORT_DIGIT_BITS 11u /* of a radix; a short list uses shorter digits */
#define WF_SORT_PASS_BITS 32u  /* of a key, that are sorted by at a time */
#define WF_SORT_DIGITS ((WF_SORT_PASS_BITS + WF_SORT_DIGIT_BITS - 1) / WF_SORT_DIGIT_BITS)

/* Scratch. The arrays are the caller's. */
struct wf_sort {
	uint64_t *pair, *pair_other; /* [as many as there are keys]: 32 bits of a key, its place */
	uint32_t histogram[WF_SORT_DIGITS << WF_SORT_DIGIT_BITS];
};

/* What is sorted, and room for as much. */
struct wf_sort_list {
	uint64_t *key, *key_other;       /* [count] */
	uint32_t *number, *number_other; /* [count]: number[i] goes with key[i] */
	uint32_t count;
};

/* Sorts the list; the keys and the rooms may have changed places afterwards. Keys that are spread
 * evenly over many bits cost two passes, more than 16,384 of them three; the worst ones cost four
 * times as much. */
void wf_sort_keys(struct wf_sort *sort, struct wf_sort_list *list);
/* The keys and numbers that were written into the rooms take the place of the others. */
void wf_sort_swap(struct wf_sort_list *list);
