/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: keys spread evenly, lanes own ranges that fit together, and the mapping is the one
 * that was promised. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "wire/partition.h"

/* What saved tables rest on: these never change. */
static void
the_partition_of_a_key_is_a_promise(void **state)
{
	static const struct {
		uint64_t key;
		uint32_t partition, fixed;
	} known[] = {
		{0, 0, 0},
		{1, 346, 512},
		{2, 879, 256},
		{1023, 7, 1023},
		{1024, 449, 0},
		{UINT64_MAX, 723, 1023},
		{(uint64_t)1 << 63, 151, 0},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(known); i++) {
		assert_int_equal(wf_partition_of(known[i].key), known[i].partition);
		assert_int_equal(wf_partition_of_fixed(known[i].key), known[i].fixed);
	}
}

static void
lanes_own_ranges_that_fit_together(void **state)
{
	for (uint32_t lanes = 1; lanes <= 1100; lanes++) {
		uint32_t least = UINT32_MAX;
		uint32_t most = 0;
		assert_int_equal(wf_partition_first(0, lanes), 0);
		assert_int_equal(wf_partition_first(lanes, lanes), WF_PARTITION_COUNT);
		for (uint32_t lane = 0; lane < lanes; lane++) {
			uint32_t first = wf_partition_first(lane, lanes);
			uint32_t end = wf_partition_first(lane + 1, lanes);
			assert_true(first <= end);
			least = end - first < least ? end - first : least;
			most = end - first > most ? end - first : most;
			for (uint32_t p = first; p < end; p++) {
				assert_int_equal(wf_partition_lane(p, lanes), lane);
			}
		}
		assert_true(most - least <= 1);
	}
}

static void
keys_in_a_row_spread_evenly(void **state)
{
	enum { KEYS = 1 << 20 };
	static uint32_t count[2][WF_PARTITION_COUNT];
	memset(count, 0, sizeof(count));
	for (uint64_t key = 0; key < KEYS; key++) {
		count[0][wf_partition_of(key)]++;
		count[1][wf_partition_of_fixed(key)]++;
	}
	for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
		/* Mean 1,024, deviation 32. */
		assert_in_range(count[0][p], 1024 - 6 * 32, 1024 + 6 * 32);
		assert_int_equal(count[1][p], 1024);
	}
}

static void
neighbours_in_a_vocabulary_go_to_lanes_far_apart(void **state)
{
	for (uint64_t key = 0; key + 1 < 4096; key += 2) {
		uint32_t a = wf_partition_lane(wf_partition_of_fixed(key), 2);
		uint32_t b = wf_partition_lane(wf_partition_of_fixed(key + 1), 2);
		assert_int_not_equal(a, b);
	}
}

static void
partitions_of_a_vocabulary_hold_it_exactly(void **state)
{
	static const uint64_t sizes[] = {1, 2, 1023, 1024, 1025, 5000, 123456};
	for (size_t i = 0; i < WF_ARRAY_COUNT(sizes); i++) {
		static uint64_t count[WF_PARTITION_COUNT];
		memset(count, 0, sizeof(count));
		for (uint64_t key = 0; key < sizes[i]; key++) {
			count[wf_partition_of_fixed(key)]++;
		}
		for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
			assert_int_equal(wf_partition_keys(p, sizes[i]), count[p]);
		}
	}
}

static void
mixing_keys_loses_none(void **state)
{
	/* Undo the mixing, step by step. */
	uint64_t key = 1;
	for (unsigned i = 0; i < 10000; i++) {
		key = key * 6364136223846793005u + 1442695040888963407u;
		uint64_t x = wf_key_mix(key);
		x = x ^ x >> 31 ^ x >> 62;
		x = (x * 0x319642b2d24d8ec3u);
		x = x ^ x >> 27 ^ x >> 54;
		x = (x * 0x96de1b173f119089u);
		x = x ^ x >> 30 ^ x >> 60;
		assert_true(x == key);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_partition_of_a_key_is_a_promise),
		cmocka_unit_test(lanes_own_ranges_that_fit_together),
		cmocka_unit_test(keys_in_a_row_spread_evenly),
		cmocka_unit_test(neighbours_in_a_vocabulary_go_to_lanes_far_apart),
		cmocka_unit_test(partitions_of_a_vocabulary_hold_it_exactly),
		cmocka_unit_test(mixing_keys_loses_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
