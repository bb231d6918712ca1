/* SPDX-License-Identifier: Apache-2.0 */
/* sort: the ascending order of keys, and the place that each of them had; equal keys stay in their
 * order. Thread: the caller's. */
#pragma once

#include <stdint.h>

#define WF_SORT_DIGIT_BITS 11u /* of a radix; a short list uses shorter digits */
#define WF_SORT_PASS_BITS 32u  /* of a key, that are sorted by at a time */
#define WF_SORT_DIGITS ((WF_SORT_PASS_BITS + WF_SORT_DIGIT_BITS - 1) / WF_SORT_DIGIT_BITS)

/* Scratch, zeroed before its first use. The arrays are the caller's. */
struct wf_sort {
	uint64_t *pair, *pair_other; /* [as many as there are keys]: 32 bits of a key, its place */
	uint32_t histogram[WF_SORT_DIGITS << WF_SORT_DIGIT_BITS];
	unsigned by_digits; /* so many lists to come are not dealt to buckets */
};

/* key[place_out[i]] is key_out[i], which ascend. `count` keys; the rooms overlap nothing. Keys that
 * are spread evenly over many bits cost one pass, more than 16,384 of them three; the worst ones
 * cost four times as much. What was sorted before changes the cost, but no result. */
void wf_sort_keys(struct wf_sort *sort, const uint64_t *key, uint32_t count, uint64_t *key_out,
		  uint32_t *place_out);

/* For sorting by counting: turns counts into places of first entries. */
static inline void
wf_sort_counts_to_firsts(uint32_t *count, uint32_t length)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < length; i++) {
		uint32_t here = count[i];
		count[i] = before;
		before += here;
	}
}
