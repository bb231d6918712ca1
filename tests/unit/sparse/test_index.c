/* SPDX-License-Identifier: Apache-2.0 */
/* The index finds every key that is in it and no other, while it grows, shrinks and runs out of
 * memory. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "sparse/table/index.h"

#define MANY 200000u

struct bed {
	struct wf_env *env;
	struct wf_budget budget;
	struct wf_rows rows;
	struct wf_index index;
};

static int
set_up(void **state)
{
	static struct bed bed;
	bed = (struct bed){.budget = {.cap_bytes = UINT64_MAX}};
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, -1, &bed.env), WEFT_OK);
	bed.budget.env = bed.env;
	const struct wf_rows_opts rows = {.value_floats = 1, .slab_bytes = 1 << 20};
	wf_rows_init(&bed.rows, &bed.budget, &rows);
	assert_true(wf_index_init(&bed.index, &bed.budget, 12345, NULL, 0));
	*state = &bed;
	return 0;
}

static int
tear_down(void **state)
{
	struct bed *bed = *state;
	wf_index_fini(&bed->index);
	wf_rows_fini(&bed->rows);
	assert_int_equal(bed->budget.used_bytes, 0);
	wf_env_system_destroy(bed->env);
	return 0;
}

/* WF_ROW_NONE: refused. */
static uint32_t
add(struct bed *bed, uint64_t key)
{
	uint32_t row = wf_rows_alloc(&bed->rows);
	if (row == WF_ROW_NONE) {
		return WF_ROW_NONE;
	}
	struct wf_row_head *head = wf_row_at(&bed->rows, row);
	head->key = key;
	head->born = 1;
	if (!wf_index_insert(&bed->index, &bed->rows, wf_index_hash(&bed->index, key), row)) {
		wf_rows_give(&bed->rows, row);
		return WF_ROW_NONE;
	}
	return row;
}

static uint32_t
find(struct bed *bed, uint64_t key)
{
	return wf_index_find(&bed->index, &bed->rows, wf_index_hash(&bed->index, key), key);
}

static void
drop(struct bed *bed, uint64_t key)
{
	uint32_t row = find(bed, key);
	assert_int_not_equal(row, WF_ROW_NONE);
	wf_index_remove(&bed->index, wf_index_hash(&bed->index, key), row);
	wf_rows_give(&bed->rows, row);
}

static void
every_value_is_a_key(void **state)
{
	static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 63, 12345};
	struct bed *bed = *state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(keys); i++) {
		assert_int_equal(find(bed, keys[i]), WF_ROW_NONE);
		uint32_t row = add(bed, keys[i]);
		assert_int_equal(find(bed, keys[i]), row);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(keys); i++) {
		drop(bed, keys[i]);
		assert_int_equal(find(bed, keys[i]), WF_ROW_NONE);
	}
}

static void
keys_are_found_while_it_grows(void **state)
{
	struct bed *bed = *state;
	for (uint64_t key = 0; key < MANY; key++) {
		assert_int_equal(add(bed, key), wf_rows_nth(&bed->rows, (uint32_t)key));
		/* One from anywhere before it, and one that is not there. */
		uint64_t before = key * 7919 % (key + 1);
		assert_int_equal(find(bed, before), wf_rows_nth(&bed->rows, (uint32_t)before));
		assert_int_equal(find(bed, key + MANY), WF_ROW_NONE);
	}
	assert_true(bed->index.rebuild_count > 50);
	assert_int_equal(bed->index.key_count, MANY);
	for (uint64_t key = 0; key < MANY; key++) {
		assert_int_equal(find(bed, key), wf_rows_nth(&bed->rows, (uint32_t)key));
	}
}

/* As many keys as a call inserts, again and again: segments are full at about the same time, and
 * split a few at a time. */
static void
a_call_moves_a_bounded_number_of_keys(void **state)
{
	const uint64_t call = 4096;
	const uint64_t most = call / WF_SPLIT_KEYS + WF_SPLITS_SAVED + 1;
	struct bed *bed = *state;
	uint64_t longest = 0;
	for (uint64_t key = 0; key < 2 * MANY; key += call) {
		uint64_t before = bed->index.rebuild_count;
		for (uint64_t i = 0; i < call; i++) {
			assert_int_not_equal(add(bed, key + i), WF_ROW_NONE);
		}
		uint64_t splits = bed->index.rebuild_count - before;
		assert_true(splits <= most);
		longest = splits > longest ? splits : longest;
	}
	assert_true(longest > most / 2); /* there were storms to hold back */
	assert_in_range(bed->index.segment_count, 2 * MANY / 4700, 2 * MANY / 2000);
}

static void
removing_leaves_the_others(void **state)
{
	struct bed *bed = *state;
	for (uint64_t key = 0; key < MANY; key++) {
		(void)add(bed, key);
	}
	for (uint64_t key = 0; key < MANY; key += 2) {
		drop(bed, key);
	}
	for (uint64_t key = 0; key < MANY; key++) {
		uint32_t row = wf_rows_nth(&bed->rows, (uint32_t)key);
		assert_int_equal(find(bed, key), key % 2 == 0 ? WF_ROW_NONE : row);
	}
	/* Rows given back are used again: nothing is taken for them. */
	uint64_t used_bytes = bed->budget.used_bytes;
	for (uint64_t key = 0; key < MANY; key += 2) {
		assert_in_range(add(bed, key), 0, wf_rows_nth(&bed->rows, MANY - 1));
	}
	assert_int_equal(bed->budget.used_bytes, used_bytes);
	assert_int_equal(bed->index.key_count, MANY);
}

/* Nothing of a removed key is left behind: a segment filled and emptied often does not decay. */
static void
coming_and_going_leaves_no_trace(void **state)
{
	struct bed *bed = *state;
	for (uint64_t round = 0; round < 50; round++) {
		for (uint64_t i = 0; i < 4000; i++) {
			(void)add(bed, round << 32 | i);
		}
		for (uint64_t i = 0; i < 4000; i++) {
			drop(bed, round << 32 | i);
		}
	}
	assert_int_equal(bed->index.key_count, 0);
	const struct wf_bucket *bucket = wf_index_bucket(&bed->index, 0);
	for (unsigned i = 0; i < 512; i++) {
		assert_int_equal(bucket[i].overflow, 0);
	}
}

static void
without_memory_keys_are_refused_and_none_is_lost(void **state)
{
	struct bed *bed = *state;
	bed->budget.cap_bytes = bed->budget.used_bytes + (4u << 20);
	uint64_t kept = 0;
	uint64_t refused = 0;
	for (uint64_t key = 0; key < 4 * MANY; key++) {
		uint32_t row = add(bed, key);
		kept += row != WF_ROW_NONE;
		refused += row == WF_ROW_NONE;
		assert_true(bed->budget.used_bytes <= bed->budget.cap_bytes);
	}
	assert_true(kept > 1000 && refused > 1000);
	assert_int_equal(bed->index.key_count, kept);
	for (uint64_t key = 0; key < 4 * MANY; key++) {
		kept -= find(bed, key) != WF_ROW_NONE;
	}
	assert_int_equal(kept, 0);
}

static void
buckets_match_tags_in_every_slot(void **state)
{
	_Alignas(64) struct wf_bucket bucket = {.overflow = 77, .spare = 77};
	for (unsigned slot = 0; slot < WF_BUCKET_SLOTS; slot++) {
		bucket.tag[slot] = 77;
		assert_int_equal(wf_bucket_match(&bucket, 77), 1u << slot);
		bucket.tag[slot] = 0xffff;
		assert_int_equal(wf_bucket_match(&bucket, 0xffff), (1u << (slot + 1)) - 1);
		assert_int_equal(wf_bucket_match(&bucket, 77), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_value_is_a_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keys_are_found_while_it_grows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_call_moves_a_bounded_number_of_keys, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(removing_leaves_the_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(coming_and_going_leaves_no_trace, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_memory_keys_are_refused_and_none_is_lost,
						set_up, tear_down),
		cmocka_unit_test(buckets_match_tags_in_every_slot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
