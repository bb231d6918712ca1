/* SPDX-License-Identifier: Apache-2.0 */
/* sort: see sort.h. A radix sort of pairs, the 22 or 32 highest bits in which keys differ and a
 * place: so a pass moves 8 bytes a key, and keys and numbers move once. Of a few thousand keys that
 * are hashes, hardly two agree in 22 bits; those that do are put in order one by one. Keys of which
 * many agree (fields in the high bits) are sorted by their lower bits first. A few keys are
 * inserted one by one from the beginning. */
#include "sparse/client/sort.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

#define FEW 24u                    /* keys that are not worth a histogram */
#define MANY 1024u                 /* keys that are worth long digits */
#define TWO_DIGITS_MOST (1u << 14) /* keys of which few agree in two long digits */
#define SHORT_DIGIT_BITS 8u        /* of fewer keys than that */

WF_STATIC_ASSERT((WF_SORT_PASS_BITS / SHORT_DIGIT_BITS) << SHORT_DIGIT_BITS <=
			 WF_SORT_DIGITS << WF_SORT_DIGIT_BITS,
		 "short digits have room, too");

/* Bits 0 .. end - 1 are those in which keys differ. */
static unsigned
end_of_bits(const struct wf_sort_list *list)
{
	uint64_t differ = 0;
	for (uint32_t i = 1; i < list->count; i++) {
		differ |= list->key[i] ^ list->key[0];
	}
	return differ == 0 ? 0 : 64u - (unsigned)__builtin_clzll(differ);
}

void
wf_sort_swap(struct wf_sort_list *list)
{
	uint64_t *key = list->key;
	uint32_t *number = list->number;

	list->key = list->key_other;
	list->key_other = key;
	list->number = list->number_other;
	list->number_other = number;
}

/* A pass by one digit of the pairs, `from` bits up. `next` has counts. */
static void
sort_by_digit(struct wf_sort *sort, uint32_t count, unsigned from, unsigned bits, uint32_t *next)
{
	const uint64_t mask = ((uint64_t)1 << bits) - 1;
	const uint64_t *pair = sort->pair;
	uint64_t *out = sort->pair_other;
	uint32_t before = 0;

	if (next[pair[0] >> from & mask] == count) {
		return; /* all pairs have the same digit */
	}
	for (uint64_t digit = 0; digit <= mask; digit++) {
		uint32_t here = next[digit];
		next[digit] = before;
		before += here;
	}
	for (uint32_t i = 0; i < count; i++) {
		out[next[pair[i] >> from & mask]++] = pair[i];
	}
	sort->pair_other = sort->pair;
	sort->pair = out;
}

/* Stable: by `bits` bits of the keys, at most WF_SORT_PASS_BITS, from bit `from` on. */
static void
sort_by_bits(struct wf_sort *sort, struct wf_sort_list *list, unsigned from, unsigned bits)
{
	const unsigned digit_bits = list->count < MANY ? SHORT_DIGIT_BITS : WF_SORT_DIGIT_BITS;
	const unsigned digits = (bits + digit_bits - 1) / digit_bits;
	const uint64_t mask = ((uint64_t)1 << bits) - 1;
	const uint32_t digit_mask = (1u << digit_bits) - 1;

	memset(sort->histogram, 0, ((size_t)digits << digit_bits) * sizeof(sort->histogram[0]));
	for (uint32_t i = 0; i < list->count; i++) {
		const uint64_t part = list->key[i] >> from & mask;
		sort->pair[i] = part << 32 | i;
		for (unsigned d = 0; d < digits; d++) {
			const uint32_t digit = (uint32_t)(part >> (d * digit_bits)) & digit_mask;
			sort->histogram[(d << digit_bits) + digit]++;
		}
	}
	for (unsigned d = 0; d < digits; d++) {
		sort_by_digit(sort, list->count, 32 + d * digit_bits, digit_bits,
			      sort->histogram + (d << digit_bits));
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const uint32_t place = (uint32_t)sort->pair[i];
		list->key_other[i] = list->key[place];
		list->number_other[i] = list->number[place];
	}
	wf_sort_swap(list);
}

/* Moves keys one by one, at most `moves_max` times in all. False: that was not enough. */
static bool
insert_all(const struct wf_sort_list *list, uint64_t moves_max)
{
	uint64_t *key = list->key;
	uint32_t *number = list->number;
	uint64_t moves = 0;

	for (uint32_t i = 1; i < list->count; i++) {
		const uint64_t at_key = key[i];
		const uint32_t at_number = number[i];
		uint32_t to = i;
		for (; to > 0 && key[to - 1] > at_key && moves <= moves_max; to--, moves++) {
			key[to] = key[to - 1];
			number[to] = number[to - 1];
		}
		key[to] = at_key;
		number[to] = at_number;
	}
	return moves <= moves_max;
}

void
wf_sort_keys(struct wf_sort *sort, struct wf_sort_list *list)
{
	const unsigned bits = end_of_bits(list);
	const unsigned some =
		list->count <= TWO_DIGITS_MOST ? 2 * WF_SORT_DIGIT_BITS : WF_SORT_PASS_BITS;

	if (list->count <= FEW) {
		(void)insert_all(list, (uint64_t)FEW * FEW);
		return;
	}
	const unsigned high = bits < some ? bits : some;
	sort_by_bits(sort, list, bits - high, high);
	if (bits == high || insert_all(list, list->count)) {
		return;
	}
	if (bits > WF_SORT_PASS_BITS) {
		sort_by_bits(sort, list, 0, bits - WF_SORT_PASS_BITS);
	}
	const unsigned low = bits < WF_SORT_PASS_BITS ? bits : WF_SORT_PASS_BITS;
	sort_by_bits(sort, list, bits - low, low);
}
