/* SPDX-License-Identifier: Apache-2.0 */
/* sort: see sort.h. What moves are pairs: the 32 highest bits in which keys differ, and a place.
 *
 * Keys that are hashes are dealt to as many buckets as there are keys, by their highest bits; then
 * hardly a pair is out of order, and those that are move one by one. If that takes too many moves,
 * because keys crowd in a few buckets, a radix sort does it instead, and so it does for the lists
 * after this one for a while, because batches of a table are alike. Keys of which many agree in 32
 * bits (fields in the high bits) are sorted by their lower bits first. A few keys are inserted one
 * by one from the beginning. */
#include "sparse/client/sort.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

#define FEW 24u                 /* keys that are not worth a histogram */
#define MANY 1024u              /* keys that are worth long digits */
#define SHORT_DIGIT_BITS 8u     /* of fewer keys than that */
#define BUCKET_BITS 12u         /* at most */
#define SHORT_MOST (1u << 14)   /* keys of a short list, which is dealt to buckets */
#define DIGITS_AFTER_CROWDS 31u /* lists */

WF_STATIC_ASSERT((WF_SORT_PASS_BITS / SHORT_DIGIT_BITS) << SHORT_DIGIT_BITS <=
			 WF_SORT_DIGITS << WF_SORT_DIGIT_BITS,
		 "short digits have room, too");
WF_STATIC_ASSERT(1u << BUCKET_BITS <= WF_SORT_DIGITS << WF_SORT_DIGIT_BITS, "so have buckets");

/* Bits 0 .. end - 1 are those in which keys differ. */
static unsigned
end_of_bits(const uint64_t *key, uint32_t count)
{
	uint64_t differ = 0;
	for (uint32_t i = 1; i < count; i++) {
		differ |= key[i] ^ key[0];
	}
	return differ == 0 ? 0 : 64u - (unsigned)__builtin_clzll(differ);
}

static void
swap_pairs(struct wf_sort *sort)
{
	uint64_t *pair = sort->pair;

	sort->pair = sort->pair_other;
	sort->pair_other = pair;
}

/* ---- buckets ---- */

/* Orders pairs, which no two are equal, one by one, at most `moves_max` moves in all. False: that
 * was not enough. */
static bool
insert_pairs(uint64_t *pair, uint32_t count, uint64_t moves_max)
{
	uint64_t moves = 0;

	for (uint32_t i = 1; i < count; i++) {
		const uint64_t here = pair[i];
		uint32_t to = i;
		for (; to > 0 && pair[to - 1] > here && moves <= moves_max; to--, moves++) {
			pair[to] = pair[to - 1];
		}
		pair[to] = here;
	}
	return moves <= moves_max;
}

/* By the 32 highest of `bits` bits. */
static bool
sort_in_buckets(struct wf_sort *sort, const uint64_t *key, uint32_t count, unsigned bits)
{
	const unsigned width = bits < WF_SORT_PASS_BITS ? bits : WF_SORT_PASS_BITS;
	const unsigned from = bits - width;
	const uint64_t mask = ((uint64_t)1 << width) - 1;
	unsigned bucket_bits = SHORT_DIGIT_BITS;
	while (bucket_bits < BUCKET_BITS && 1u << bucket_bits < count) {
		bucket_bits++;
	}
	bucket_bits = bucket_bits < width ? bucket_bits : width;
	const unsigned shift = width - bucket_bits;
	uint32_t *next = sort->histogram;
	uint64_t *out = sort->pair;

	memset(next, 0, ((size_t)1 << bucket_bits) * sizeof(*next));
	for (uint32_t i = 0; i < count; i++) {
		next[(key[i] >> from & mask) >> shift]++;
	}
	wf_sort_counts_to_firsts(next, 1u << bucket_bits);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t part = key[i] >> from & mask;
		out[next[part >> shift]++] = part << 32 | i;
	}
	return insert_pairs(out, count, (uint64_t)2 * count);
}

/* ---- digits ---- */

/* A pass by one digit of the pairs, `from` bits up. `next` has counts. */
static void
sort_by_digit(struct wf_sort *sort, uint32_t count, unsigned from, unsigned bits, uint32_t *next)
{
	const uint64_t mask = ((uint64_t)1 << bits) - 1;
	const uint64_t *pair = sort->pair;
	uint64_t *out = sort->pair_other;

	if (next[pair[0] >> from & mask] == count) {
		return; /* all pairs have the same digit */
	}
	wf_sort_counts_to_firsts(next, (uint32_t)mask + 1);
	for (uint32_t i = 0; i < count; i++) {
		out[next[pair[i] >> from & mask]++] = pair[i];
	}
	swap_pairs(sort);
}

/* Stable: by `bits` bits of the keys, at most WF_SORT_PASS_BITS, from bit `from` on. The pairs are
 * in the order of the keys, or, if they are `sorted` by lower bits, in that. */
static void
sort_by_bits(struct wf_sort *sort, const uint64_t *key, uint32_t count, bool sorted, unsigned from,
	     unsigned bits)
{
	const unsigned digit_bits = count < MANY ? SHORT_DIGIT_BITS : WF_SORT_DIGIT_BITS;
	const unsigned digits = (bits + digit_bits - 1) / digit_bits;
	const uint64_t mask = ((uint64_t)1 << bits) - 1;
	const uint32_t digit_mask = (1u << digit_bits) - 1;

	memset(sort->histogram, 0, ((size_t)digits << digit_bits) * sizeof(sort->histogram[0]));
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t place = sorted ? (uint32_t)sort->pair[i] : i;
		const uint64_t part = key[place] >> from & mask;
		sort->pair[i] = part << 32 | place;
		for (unsigned d = 0; d < digits; d++) {
			const uint32_t digit = (uint32_t)(part >> (d * digit_bits)) & digit_mask;
			sort->histogram[(d << digit_bits) + digit]++;
		}
	}
	for (unsigned d = 0; d < digits; d++) {
		sort_by_digit(sort, count, 32 + d * digit_bits, digit_bits,
			      sort->histogram + (d << digit_bits));
	}
}

/* By all `bits` bits. */
static void
sort_by_all_bits(struct wf_sort *sort, const uint64_t *key, uint32_t count, unsigned bits)
{
	const unsigned high = bits < WF_SORT_PASS_BITS ? bits : WF_SORT_PASS_BITS;

	if (bits > high) {
		sort_by_bits(sort, key, count, false, 0, bits - high);
	}
	sort_by_bits(sort, key, count, bits > high, bits - high, high);
}

/* ---- results ---- */

/* Lists what the pairs say. False: keys that agree in the bits of the pairs are out of order. */
static bool
list_pairs(const struct wf_sort *sort, const uint64_t *key, uint32_t count, uint64_t *key_out,
	   uint32_t *place_out)
{
	const uint64_t *pair = sort->pair;
	uint64_t last = 0;
	bool ascend = true;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t place = (uint32_t)pair[i];
		const uint64_t here = key[place];
		ascend &= here >= last;
		last = here;
		key_out[i] = here;
		place_out[i] = place;
	}
	return ascend;
}

/* Moves keys one by one, at most `moves_max` times in all. False: that was not enough. */
static bool
insert_keys(uint64_t *key, uint32_t *place, uint32_t count, uint64_t moves_max)
{
	uint64_t moves = 0;

	for (uint32_t i = 1; i < count; i++) {
		const uint64_t at_key = key[i];
		const uint32_t at_place = place[i];
		uint32_t to = i;
		for (; to > 0 && key[to - 1] > at_key && moves <= moves_max; to--, moves++) {
			key[to] = key[to - 1];
			place[to] = place[to - 1];
		}
		key[to] = at_key;
		place[to] = at_place;
	}
	return moves <= moves_max;
}

static void
sort_few(const uint64_t *key, uint32_t count, uint64_t *key_out, uint32_t *place_out)
{
	for (uint32_t i = 0; i < count; i++) {
		key_out[i] = key[i];
		place_out[i] = i;
	}
	(void)insert_keys(key_out, place_out, count, (uint64_t)FEW * FEW);
}

/* By the highest bits that differ: by 32, or by two digits of a short list, in which few keys agree
 * in so many. */
static void
sort_by_high_bits(struct wf_sort *sort, const uint64_t *key, uint32_t count, unsigned bits)
{
	const unsigned some = count <= SHORT_MOST ? 2 * WF_SORT_DIGIT_BITS : WF_SORT_PASS_BITS;
	const unsigned high = bits < some ? bits : some;

	if (count <= SHORT_MOST && sort->by_digits == 0) {
		if (sort_in_buckets(sort, key, count, bits)) {
			return;
		}
		sort->by_digits = DIGITS_AFTER_CROWDS;
	} else if (sort->by_digits > 0) {
		sort->by_digits--;
	}
	sort_by_bits(sort, key, count, false, bits - high, high);
}

void
wf_sort_keys(struct wf_sort *sort, const uint64_t *key, uint32_t count, uint64_t *key_out,
	     uint32_t *place_out)
{
	if (count <= FEW) {
		sort_few(key, count, key_out, place_out);
		return;
	}
	const unsigned bits = end_of_bits(key, count);
	sort_by_high_bits(sort, key, count, bits);
	if (list_pairs(sort, key, count, key_out, place_out) ||
	    insert_keys(key_out, place_out, count, count)) {
		return;
	}
	sort_by_all_bits(sort, key, count, bits);
	(void)list_pairs(sort, key, count, key_out, place_out);
}
