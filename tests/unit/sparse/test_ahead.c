/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a growing table is got ready by the helper: what the lane has to clear by itself in
 * one batch is counted and bounded, and nothing but that depends on how far the helper is. Thread:
 * one, and the helper's, which is mostly this test's own. */
#include "tests/unit/sparse/bed.h"

#include <stdlib.h>

#include "base/digest.h"
#include "sparse/table/index.h"
#include "tests/unit/sparse/helper.h"

#define BATCH 4096u
#define SEGMENT_BYTES (32u << 10) /* of the index */
#define BATCH_SPLITS (BATCH / WF_SPLIT_KEYS + WF_SPLITS_SAVED + 1)

static float out[BATCH * 64];

static struct wf_table_opts
large_rows(void)
{
	struct wf_table_opts opts = bed_opts();
	opts.dim = 64;
	opts.row.kind = WF_ROW_ADAGRAD;
	opts.ahead_bytes_max = 4u << 20;
	return opts;
}

/* The nth batch of new keys; returns the bytes that the lane cleared for it. */
static uint64_t
grow(struct wf_table *table, uint64_t nth)
{
	uint64_t before = bed_stat(table, WF_TABLE_CLEARED_BYTES);
	uint64_t key[BATCH];
	for (uint64_t i = 0; i < BATCH; i++) {
		key[i] = nth * BATCH + i;
	}
	assert_int_equal(bed_look(table, key, BATCH, out, true), WEFT_OK);
	return bed_stat(table, WF_TABLE_CLEARED_BYTES) - before;
}

static void
the_lane_clears_nothing_once_the_helper_goes_before_it(void **state)
{
	struct wf_table_opts opts = large_rows();
	(void)state;
	if (!system_can()) {
		skip();
	}
	struct wf_table *table = bed_table(begin(AT_ONCE), &opts);
	const uint64_t row_bytes = bed_stat(table, WF_TABLE_ROW_BYTES);
	uint64_t late = 0;
	for (uint64_t nth = 0; nth < 30; nth++) {
		uint64_t cleared = grow(table, nth);
		/* Up to 10 MB rows are the lane's own; and its index has no spare yet. */
		uint64_t most = (nth < 5 ? BATCH * row_bytes : 0) + BATCH_SPLITS * SEGMENT_BYTES;
		if (cleared > most) {
			fail_msg("batch %llu: the lane cleared %llu bytes, at most %llu expected",
				 (unsigned long long)nth, (unsigned long long)cleared,
				 (unsigned long long)most);
		}
		late += nth >= 5 ? cleared : 0;
	}
	assert_true(late <= 64 * SEGMENT_BYTES); /* segments of 30 batches */
	assert_true(bed_stat(table, WF_TABLE_READIED_BYTES) >= 20 * BATCH * row_bytes);
	assert_true(ground.submitted > 10);
	wf_table_destroy(table);
}

static void
chunks_of_the_index_are_ready_before_they_are_cut(void **state)
{
	const uint64_t batches = getenv("WEFT_LONG") != NULL ? 300 : 150;
	struct wf_table_opts opts = bed_opts();
	uint64_t late = 0;
	(void)state;
	if (!system_can()) {
		skip();
	}
	struct wf_table *table = bed_table(begin(AT_ONCE), &opts);
	for (uint64_t nth = 0; nth < batches; nth++) {
		uint64_t cleared = grow(table, nth);
		late += nth > batches / 2 ? cleared : 0;
	}
	assert_int_equal(late, 0);
	assert_true(bed_stat(table, WF_TABLE_INDEX_REBUILDS) > batches / 3);
	wf_table_destroy(table);
}

static void
a_helper_that_does_not_come_costs_what_a_batch_needs(void **state)
{
	struct wf_table_opts opts = large_rows();
	(void)state;
	for (int helper = HELD_BACK; helper <= REFUSED; helper++) {
		struct wf_table *table = bed_table(begin((enum helper)helper), &opts);
		const uint64_t row_bytes = bed_stat(table, WF_TABLE_ROW_BYTES);
		uint64_t sum = bed_stat(table, WF_TABLE_CLEARED_BYTES);
		for (uint64_t nth = 0; nth < 20; nth++) {
			uint64_t cleared = grow(table, nth);
			assert_true(cleared >= BATCH * row_bytes);
			assert_true(cleared <= BATCH * row_bytes + BATCH_SPLITS * SEGMENT_BYTES);
			sum += cleared;
		}
		assert_int_equal(bed_stat(table, WF_TABLE_READIED_BYTES), 0);
		assert_int_equal(bed_stat(table, WF_TABLE_CLEARED_BYTES), sum);
		assert_int_equal(ground.submitted, 1); /* who refuses is not asked again */
		wf_table_destroy(table);
		assert_int_equal(ground.waited, helper == HELD_BACK ? 1 : 0);
		assert_true(wf_failing_env_is_clean(&ground.failing));
	}
}

struct seen {
	uint64_t memory[40]; /* after each batch; 20 of them without WEFT_LONG */
	uint64_t born, refused;
	uint64_t rows; /* digest of all, in their order */
};

static void
see(enum helper helper, struct wf_table_opts opts, uint64_t batches, struct seen *seen)
{
	struct wf_table *table = bed_table(begin(helper), &opts);
	uint64_t cursor = 0;
	struct wf_table_row row;
	*seen = (struct seen){0};
	for (uint64_t nth = 0; nth < batches; nth++) {
		(void)grow(table, nth);
		seen->memory[nth] = bed_stat(table, WF_TABLE_MEMORY_BYTES);
		assert_int_equal(seen->memory[nth], ground.failing.live_bytes);
	}
	while (wf_table_next(table, &cursor, &row)) {
		seen->rows = seen->rows * 31 + row.key;
		seen->rows = seen->rows * 31 + wf_digest_of(row.floats, opts.dim * sizeof(float));
	}
	seen->born = bed_stat(table, WF_TABLE_ROWS_BORN);
	seen->refused = bed_stat(table, WF_TABLE_ROWS_REFUSED);
	wf_table_destroy(table);
	assert_true(wf_failing_env_is_clean(&ground.failing));
}

/* The same rows under the same numbers, and the same memory at every moment: also at a cap. */
static void
nothing_depends_on_how_far_the_helper_is(void **state)
{
	struct wf_table_opts opts = large_rows();
	static struct seen seen[4];
	const bool is_long = getenv("WEFT_LONG") != NULL;
	const uint64_t batches = WF_ARRAY_COUNT(seen->memory) / (is_long ? 1 : 2);
	(void)state;
	for (uint64_t cap = 0; cap <= (is_long ? 64u << 20 : 32u << 20); cap += 32u << 20) {
		opts.memory_cap_bytes = cap;
		for (int helper = AT_ONCE; helper <= SYSTEMS; helper++) {
			see((enum helper)helper, opts, batches, &seen[helper]);
			assert_memory_equal(&seen[helper], &seen[0], sizeof(seen[0]));
		}
		assert_int_equal(seen[0].refused > 0, cap > 0);
	}
}

static void
a_vocabulary_is_got_ready_from_its_beginning(void **state)
{
	struct wf_table_opts opts = large_rows();
	opts.vocabulary = 60u << 10;
	(void)state;
	if (!system_can()) {
		skip();
	}
	struct wf_table *table = bed_table(begin(AT_ONCE), &opts);
	const uint64_t all = opts.vocabulary * bed_stat(table, WF_TABLE_ROW_BYTES);
	uint64_t key = 0;
	for (unsigned i = 0; i < 4; i++) { /* each look asks for some more */
		assert_int_equal(bed_look(table, &key, 1, out, true), WEFT_OK);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_READIED_BYTES), all);
	for (key = 0; key < opts.vocabulary; key += 1000) {
		assert_int_equal(bed_look(table, &key, 1, out, true), WEFT_OK);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_CLEARED_BYTES), 0);
	wf_table_destroy(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_lane_clears_nothing_once_the_helper_goes_before_it),
		TEST(chunks_of_the_index_are_ready_before_they_are_cut),
		TEST(a_helper_that_does_not_come_costs_what_a_batch_needs),
		TEST(nothing_depends_on_how_far_the_helper_is),
		TEST(a_vocabulary_is_got_ready_from_its_beginning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
