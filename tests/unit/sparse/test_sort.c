/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of every kind are sorted, with the numbers that go with them. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sparse/client/sort.h"

#define MOST 17000u /* so many are sorted by 32 bits at once, fewer by 22 */

static uint64_t key[MOST], key_other[MOST], pair[MOST], pair_other[MOST], sorted[MOST];
static uint32_t number[MOST], number_other[MOST];
static uint64_t given[MOST]; /* by number */
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

static void
sorts(enum kind kind, uint32_t count)
{
	struct wf_sort_list list = {key, key_other, number, number_other, count};
	sort.pair = pair;
	sort.pair_other = pair_other;
	for (uint32_t i = 0; i < count; i++) {
		key[i] = key_of(kind, i, count);
		given[i] = key[i];
		number[i] = i;
	}
	memcpy(sorted, key, count * sizeof(*key));
	qsort(sorted, count, sizeof(*sorted), compare);
	wf_sort_keys(&sort, &list);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(kind >= REPEATED || i == 0 || sorted[i] > sorted[i - 1]);
		assert_true(i == 0 || sorted[i] > sorted[i - 1] ||
			    list.number[i] > list.number[i - 1]);
		assert_true(list.key[i] == sorted[i]);
		assert_true(list.number[i] < count && given[list.number[i]] == sorted[i]);
	}
	assert_int_equal(list.count, count);
	assert_true(list.key == key ? list.key_other == key_other : list.key_other == key);
	assert_true(list.number == number ? list.number_other == number_other
					  : list.number_other == number);
}

static void
keys_of_every_kind_are_sorted_with_their_numbers(void **state)
{
	static const uint32_t counts[] = {0,   1,    2,    3,    24,   25,  26,
					  255, 1023, 1024, 1025, 5000, MOST};
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			sorts((enum kind)kind, counts[c]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_every_kind_are_sorted_with_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
