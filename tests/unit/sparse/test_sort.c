/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of every kind are sorted, with the numbers that go with them. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sparse/client/sort.h"

#define MOST 17000u /* so many are never dealt to buckets */

static uint64_t key[MOST], pair[MOST], pair_other[MOST], sorted[MOST], key_out[MOST];
static uint32_t place_out[MOST];
static struct wf_sort sort;

/* Every kind of bits in which keys may differ. Those before REPEATED are distinct. */
enum kind {
	HASHES,
	SMALL,        /* a few low bits */
	DESCENDING,   /* in the lowest bits, others are set */
	HIGH_FIELDS,  /* four values of the highest bits, and low numbers */
	SAME_HIGH,    /* the 32 highest bits that differ are the same of nearly all */
	SAME_SHORT,   /* 28 bits differ, and the 22 highest are the same of 64 each */
	HIGH_ONLY,    /* low bits are all 0 */
	NEARLY,       /* all but a few ascend */
	REPEATED,     /* some of them many times */
	REPEATED_LOW, /* the same, and the 32 highest bits that differ are the same of most */
	ALL_SAME,
	KINDS,
};

static uint64_t
key_of(enum kind kind, uint32_t i, uint32_t count)
{
	uint64_t state = i + 1;
	const uint64_t hash = wf_splitmix64(&state);
	switch (kind) {
	case HASHES:
		return hash;
	case SMALL:
		return ((uint64_t)i * 7919u) % MOST;
	case DESCENDING:
		return UINT64_MAX - i;
	case HIGH_FIELDS:
		return hash << 62 | ((uint64_t)i * 7919u) % MOST;
	case SAME_HIGH:
		return (i == 0 ? (uint64_t)1 << 63 : 0) | (hash % 1000 << 20) | i;
	case SAME_SHORT:
		return (i == 0 ? (uint64_t)1 << 27 : 0) | ((uint64_t)i * 7919u) % MOST;
	case HIGH_ONLY:
		return (uint64_t)((i * 7919u) % MOST) << 49;
	case NEARLY:
		return (uint64_t)(i % 500 == 499 ? i - 499 : i + 1) << 33 | (i % 500 == 499);
	case REPEATED:
		state = hash % (1 + i / 4);
		return wf_splitmix64(&state);
	case REPEATED_LOW:
		return (i == 0 ? (uint64_t)1 << 63 : 0) | hash % (1 + i / 4);
	case ALL_SAME:
	case KINDS:
		break;
	}
	return count;
}

static int
compare(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;
	return (*x > *y) - (*x < *y);
}

/* `by_digits`: not by buckets, because the list before crowded in a few. */
static void
sorts(enum kind kind, uint32_t count, bool by_digits)
{
	sort.by_digits = by_digits ? 1 : 0;
	sort.pair = pair;
	sort.pair_other = pair_other;
	for (uint32_t i = 0; i < count; i++) {
		key[i] = key_of(kind, i, count);
	}
	memcpy(sorted, key, count * sizeof(*key));
	qsort(sorted, count, sizeof(*sorted), compare);
	wf_sort_keys(&sort, key, count, key_out, place_out);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(kind >= REPEATED || i == 0 || sorted[i] > sorted[i - 1]);
		assert_true(i == 0 || sorted[i] > sorted[i - 1] || place_out[i] > place_out[i - 1]);
		assert_true(key_out[i] == sorted[i]);
		assert_true(place_out[i] < count && key[place_out[i]] == sorted[i]);
	}
}

static void
keys_of_every_kind_are_sorted_with_their_numbers(void **state)
{
	static const uint32_t counts[] = {0,   1,    2,    3,    24,   25,  26,
					  255, 1023, 1024, 1025, 5000, MOST};
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			sorts((enum kind)kind, counts[c], false);
			sorts((enum kind)kind, counts[c], true);
		}
	}
}

/* What a crowd costs once is not paid for each of the lists after it. */
static void
after_a_crowd_lists_are_sorted_by_digits(void **state)
{
	(void)state;
	sorts(HASHES, 5000, false);
	assert_int_equal(sort.by_digits, 0);
	sorts(SAME_SHORT, 5000, false);
	assert_true(sort.by_digits > 1);
	sorts(HASHES, 5000, true);
	assert_int_equal(sort.by_digits, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_crowd_lists_are_sorted_by_digits),
		cmocka_unit_test(keys_of_every_kind_are_sorted_with_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
