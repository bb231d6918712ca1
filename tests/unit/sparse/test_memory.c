/* SPDX-License-Identifier: Apache-2.0 */
/* A table's memory is counted to the byte, stays under its cap, is given back, and running out of
 * it costs new rows only. Thread: one. */
#include "tests/unit/sparse/bed.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/table/rows.h"

#define MANY 60000u

static struct wf_failing_env failing;
static struct wf_env *inner;

static int
set_up(void **state)
{
	if (wf_env_system_create(WF_LOG_WARN, -1, &inner) != WEFT_OK) {
		return -1;
	}
	wf_failing_env_init(&failing, inner);
	return 0;
}

static int
tear_down(void **state)
{
	bool clean = wf_failing_env_is_clean(&failing);
	wf_env_system_destroy(inner);
	return clean ? 0 : -1;
}

static struct wf_table_opts
opts_with_all(void)
{
	struct wf_table_opts opts = bed_opts();
	opts.row.kind = WF_ROW_SPARSE_MOMENTUM;
	opts.row.set.momentum = 0.5;
	opts.admit.count = 2;
	opts.admit.slot_count = 64;
	return opts;
}

static void
creating_fails_cleanly_wherever_memory_ends(void **state)
{
	struct wf_table_opts both[2] = {opts_with_all(), bed_opts()};
	both[1].vocabulary = 1000000;
	for (size_t which = 0; which < 2; which++) {
		uint64_t nth = 1;
		for (;; nth++) {
			struct wf_table *table = NULL;
			wf_failing_env_fail(&failing, nth, false);
			enum weft_status st = wf_table_create(&failing.env, &both[which], &table);
			if (failing.failed == 0) {
				assert_int_equal(st, WEFT_OK);
				wf_table_destroy(table);
				break;
			}
			assert_int_equal(st, WEFT_NOMEM);
			assert_true(wf_failing_env_is_clean(&failing));
		}
		assert_true(nth > 10);
	}
}

/* Look keys up one by one; returns how many rows were born. */
static uint64_t
grow(struct wf_table *table, uint64_t first, uint64_t count)
{
	uint64_t before = bed_stat(table, WF_TABLE_ROWS_BORN);
	float out[4];
	for (uint64_t key = first; key < first + count; key++) {
		assert_int_equal(bed_look(table, &key, 1, out, true), WEFT_OK);
	}
	return bed_stat(table, WF_TABLE_ROWS_BORN) - before;
}

static void
all_memory_is_counted(void **state)
{
	struct wf_table_opts opts = bed_opts();
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	for (uint64_t key = 0; key < MANY; key += 1000) {
		assert_int_equal(bed_stat(table, WF_TABLE_MEMORY_BYTES), failing.live_bytes);
		assert_int_equal(grow(table, key, 1000), 1000);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_ROW_BYTES), 16 + 4 * sizeof(float));
	wf_table_destroy(table);
}

static void
lookups_and_pushes_of_known_keys_take_no_memory(void **state)
{
	struct wf_table_opts opts = bed_opts();
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	static uint64_t key[1000];
	static float row[1000][4];
	for (uint64_t i = 0; i < 1000; i++) {
		key[i] = i;
	}
	assert_int_equal(bed_look(table, key, 1000, row[0], true), WEFT_OK);
	wf_failing_env_fail(&failing, 1, true);
	for (uint64_t step = 1; step < 20; step++) {
		assert_int_equal(bed_push(table, step, key, 1000, row[0]), WEFT_OK);
		assert_int_equal(bed_look(table, key, 1000, row[0], true), WEFT_OK);
	}
	assert_int_equal(failing.asked, 0);
	wf_table_destroy(table);
}

static void
under_a_cap_new_rows_are_refused_and_counted(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.memory_cap_bytes = 2u << 20;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	uint64_t born = grow(table, 0, MANY);
	float out[4];
	float want[4];
	const float grad[4] = {1, 1, 1, 1};
	const uint64_t refused = MANY - 1;

	assert_true(born > 10000 && born < MANY);
	assert_int_equal(born + bed_stat(table, WF_TABLE_ROWS_REFUSED), MANY);
	assert_true(failing.live_bytes <= opts.memory_cap_bytes);
	/* It reads as its first values, and its gradient is lost with a count. */
	assert_int_equal(bed_push(table, 1, &refused, 1, grad), WEFT_OK);
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_LOST), 1);
	assert_int_equal(bed_look(table, &refused, 1, out, false), WEFT_OK);
	wf_init_values(&opts.init, refused, want, 4);
	assert_memory_equal(out, want, sizeof(want));
	wf_table_destroy(table);
}

/* Whole chunks of a push find no memory, and those behind them are known. */
static void
keys_that_are_refused_do_not_cost_others_their_gradients(void **state)
{
	enum { NEW = 300, KNOWN = 500 };
	struct wf_table_opts opts = bed_opts();
	opts.memory_cap_bytes = 2u << 20;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	static uint64_t key[NEW + KNOWN];
	static float grad[NEW + KNOWN][4];
	static float out[2][NEW + KNOWN][4];

	for (uint64_t i = 0; i < NEW + KNOWN; i++) {
		key[i] = i;
		grad[i][0] = 1.0f;
	}
	assert_int_equal(grow(table, NEW, KNOWN), KNOWN);
	(void)grow(table, 1000000, MANY); /* up to the cap */
	assert_int_equal(bed_look(table, key, NEW + KNOWN, out[0][0], false), WEFT_OK);
	assert_int_equal(bed_push(table, 1, key, NEW + KNOWN, grad[0]), WEFT_OK);
	assert_int_equal(bed_look(table, key, NEW + KNOWN, out[1][0], false), WEFT_OK);
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_LOST), NEW);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_UPDATED), KNOWN);
	for (uint64_t i = 0; i < NEW + KNOWN; i++) {
		float step = i < NEW ? 0.0f : 1.0f;
		assert_true(out[1][i][0] == out[0][i][0] - step);
	}
	wf_table_destroy(table);
}

static void
at_the_cap_old_rows_make_room(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.memory_cap_bytes = 2u << 20;
	opts.evict.at_cap = true;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	static float grad[4];
	const uint64_t kept = 7;

	for (uint64_t step = 1; step <= 60; step++) {
		/* Touched often, so there are always older ones. */
		assert_int_equal(bed_push(table, step, &kept, 1, grad), WEFT_OK);
		assert_int_equal(grow(table, step * 1000000, 1000), 1000);
		assert_true(failing.live_bytes <= opts.memory_cap_bytes);
	}
	assert_true(bed_stat(table, WF_TABLE_EVICTED_AT_CAP) > 1000);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_REFUSED), 0);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_BORN),
			 bed_stat(table, WF_TABLE_ROWS_LIVE) +
				 bed_stat(table, WF_TABLE_EVICTED_AT_CAP));
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_LOST), 0);
	wf_table_destroy(table);
}

/* rmsprop tells a row's first step from others, whatever becomes of rows before it in a push: new
 * ones that are born at the cap, for which the rest is spared ahead of its turn, or that are lost.
 * In a table without a cap there is neither. */
static void
first_steps_are_told_in_a_full_table(bool at_cap)
{
	enum { NEW = 300, OLD = 300, HALF = OLD / 2 };
	struct wf_table_opts opts = bed_opts();
	opts.row.kind = WF_ROW_RMSPROP;
	struct wf_table *table[2] = {bed_table(&failing.env, &opts), NULL};
	opts.memory_cap_bytes = 1u << 20;
	opts.evict.at_cap = at_cap;
	table[1] = bed_table(&failing.env, &opts);
	static float grad[NEW + OLD][4];
	static float out[2][OLD][4];
	uint64_t key[NEW + OLD];
	uint64_t other[HALF];

	for (uint64_t i = 0; i < NEW + OLD; i++) { /* those that are there come last */
		key[i] = 1000 + i;
		grad[i][0] = 1.0f + (float)i;
	}
	for (uint64_t i = 0; i < HALF; i++) {
		other[i] = key[NEW + 2 * i];
	}
	(void)grow(table[1], 1ull << 40, at_cap ? MANY : 0);
	for (unsigned t = 0; t < 2; t++) {
		const uint64_t marked = 7;
		assert_int_equal(bed_push(table[t], 1, &marked, 1, grad[0]), WEFT_OK);
		assert_int_equal(grow(table[t], key[NEW], OLD), OLD);
		(void)grow(table[t], 1ull << 41, at_cap || t == 0 ? 0 : MANY);
		/* Half of the old ones take their first step before the others. */
		assert_int_equal(bed_push(table[t], 2, other, HALF, grad[0]), WEFT_OK);
		assert_int_equal(bed_push(table[t], 3, key, NEW + OLD, grad[0]), WEFT_OK);
		assert_int_equal(bed_look(table[t], key + NEW, OLD, out[t][0], false), WEFT_OK);
	}
	assert_int_equal(bed_stat(table[1], WF_TABLE_PUSHES_LOST), at_cap ? 0 : NEW);
	assert_true((bed_stat(table[1], WF_TABLE_EVICTED_AT_CAP) > NEW) == at_cap);
	assert_memory_equal(out[0], out[1], sizeof(out[0]));
	wf_table_destroy(table[0]);
	wf_table_destroy(table[1]);
}

static void
a_rows_first_step_is_told_where_rows_before_it_are_new_or_lost(void **state)
{
	wf_failing_env_fail(&failing, 0, false);
	first_steps_are_told_in_a_full_table(true);
	first_steps_are_told_in_a_full_table(false);
}

/* The rows of a push never make room for each other. */
static void
a_push_of_new_keys_at_the_cap_keeps_them_all(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.memory_cap_bytes = 1u << 20;
	opts.evict.at_cap = true;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	static uint64_t key[1000];
	static float grad[1000][4];
	static float out[1000][4];

	(void)grow(table, 0, MANY);
	for (uint64_t step = 1; step <= 30; step++) {
		for (uint64_t i = 0; i < 1000; i++) {
			/* In ascending order and not: two ways through a push. */
			key[i] = step << 40 | (step % 2 == 0 ? i : 999 - i);
			grad[i][0] = (float)step;
		}
		assert_int_equal(bed_push(table, step, key, 1000, grad[0]), WEFT_OK);
		assert_int_equal(bed_look(table, key, 1000, out[0], false), WEFT_OK);
		for (uint64_t i = 0; i < 1000; i++) {
			float want[4];
			wf_init_values(&opts.init, key[i], want, 4);
			assert_true(out[i][0] == want[0] - (float)step);
		}
	}
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_LOST), 0);
	wf_table_destroy(table);
}

static int
least_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;
	return x < y ? -1 : x > y ? 1 : 0;
}

/* Of the keys from `from` on that have rows, some from all over the table, in ascending order. */
static void
keys_with_rows(struct wf_table *table, uint64_t from, uint64_t *out, size_t count)
{
	static uint64_t key[MANY];
	uint64_t cursor = 0;
	size_t live = 0;
	struct wf_table_row row;

	while (wf_table_next(table, &cursor, &row)) {
		key[live] = row.key;
		live += row.key >= from ? 1 : 0;
	}
	assert_true(live >= count);
	for (size_t i = 0; i < count; i++) {
		out[i] = key[i * (live / count)];
	}
	qsort(out, count, sizeof(*out), least_first);
}

/* New keys come before known ones, in one batch or of two that are merged. */
static void
rows_of_a_push_never_go_for_its_new_keys(void **state)
{
	enum { NEW = 500, KNOWN = 500, ALL = NEW + KNOWN, FILL = MANY / ALL };
	struct wf_table_opts opts = bed_opts();
	opts.memory_cap_bytes = 1u << 20;
	opts.evict.at_cap = true;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	static uint64_t key[ALL];
	static float grad[ALL][4];
	static float out[2][ALL][4];
	const uint64_t many = 1u << 20; /* above all new keys */

	for (uint64_t step = 1; step <= FILL; step++) { /* no row is as it was born */
		for (uint64_t i = 0; i < ALL; i++) {
			key[i] = many + step * ALL + i;
			grad[i][0] = 1.0f;
		}
		assert_int_equal(bed_push(table, step, key, ALL, grad[0]), WEFT_OK);
	}
	for (uint64_t step = FILL + 1; step <= FILL + 10; step++) {
		for (uint64_t i = 0; i < NEW; i++) {
			key[i] = step * NEW + i;
		}
		keys_with_rows(table, many, key + NEW, KNOWN);
		uint64_t evicted = bed_stat(table, WF_TABLE_EVICTED_AT_CAP);
		assert_int_equal(bed_look(table, key, ALL, out[0][0], false), WEFT_OK);
		bool one = step % 2 == 0;
		size_t last = one ? 0 : 900;
		const struct wf_table_batch batch[2] = {
			{.key = key + last, .grad = grad[0], .count = ALL - last},
			{.key = key, .grad = grad[0], .count = last}};
		const struct wf_table_push push = {.step = step,
						   .rate = 1.0,
						   .divisor = 1.0f,
						   .batch = batch,
						   .batch_count = one ? 1 : 2};
		assert_int_equal(wf_table_push(table, &push), WEFT_OK);
		assert_int_equal(bed_look(table, key, ALL, out[1][0], false), WEFT_OK);
		for (uint64_t i = 0; i < ALL; i++) {
			assert_true(out[1][i][0] == out[0][i][0] - 1.0f);
		}
		assert_true(bed_stat(table, WF_TABLE_EVICTED_AT_CAP) > evicted);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_LOST), 0);
	wf_table_destroy(table);
}

/* Whatever allocation fails while a table grows: rows are refused or born, none is lost. */
static void
growth_survives_every_failing_allocation(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.dim = 64;
	opts.row.kind = WF_ROW_ADAGRAD;
	float out[64];
	for (uint64_t nth = 1; nth < 60; nth++) {
		wf_failing_env_fail(&failing, 0, false);
		struct wf_table *table = bed_table(&failing.env, &opts);
		wf_failing_env_fail(&failing, nth, false);
		uint64_t born = 0;
		for (uint64_t key = 0; key < 20000; key++) {
			assert_int_equal(bed_look(table, &key, 1, out, true), WEFT_OK);
		}
		born = bed_stat(table, WF_TABLE_ROWS_BORN);
		assert_int_equal(born + bed_stat(table, WF_TABLE_ROWS_REFUSED), 20000);
		assert_int_equal(bed_stat(table, WF_TABLE_MEMORY_BYTES), failing.live_bytes);
		uint64_t cursor = 0;
		struct wf_table_row row;
		while (wf_table_next(table, &cursor, &row)) {
			born--;
		}
		assert_int_equal(born, 0);
		bool done = failing.failed == 0;
		wf_table_destroy(table);
		assert_true(wf_failing_env_is_clean(&failing));
		if (done) {
			return;
		}
	}
	fail_msg("a table of 20,000 rows takes more allocations than expected");
}

/* Take rows until there are `slabs` slabs; each row is where its number says, and apart from the
 * others. */
static void
take_slabs(struct wf_rows *rows, uint32_t slabs)
{
	while (rows->slabs.count < slabs || rows->used_count < rows->slabs.room_count) {
		uint32_t row = wf_rows_alloc(rows);
		assert_int_not_equal(row, WF_ROW_NONE);
		assert_int_equal(row, wf_rows_nth(rows, rows->used_count - 1));
		struct wf_row_head *head = wf_row_at(rows, row);
		assert_int_equal(head->key, 0);
		head->key = rows->used_count;
	}
	for (uint32_t n = 0; n < rows->used_count; n += n < 600 ? 1 : 511) {
		assert_int_equal(wf_row_at(rows, wf_rows_nth(rows, n))->key, n + 1);
	}
}

static void
many_slabs_come_in_runs_and_where_those_end_one_by_one(void **state)
{
	const struct wf_rows_opts opts = {.value_floats = 4100, .slab_bytes = 3 << 20};
	struct wf_budget budget = {.env = &failing.env, .cap_bytes = UINT64_MAX};
	struct wf_rows rows;

	(void)state;
	wf_rows_init(&rows, &budget, &opts);
	const uint32_t run = rows.slabs.run_slabs;
	const uint32_t small = rows.slabs.small_count;
	const size_t slab_bytes = rows.slabs.row_bytes << rows.slabs.slab_shift;
	assert_true(run > 1 && small > 1 && slab_bytes > 2 << 20);
	take_slabs(&rows, small + 2 * run);
	assert_int_equal(rows.slabs.run_end, 0);
	take_slabs(&rows, small + 2 * run + 1);
	assert_int_equal(rows.slabs.count, small + 3 * run);
	assert_int_equal(rows.slabs.run_first, small + 2 * run);
	/* Room for one slab more, and not for a run. */
	budget.cap_bytes = budget.used_bytes + slab_bytes + 64 * 1024;
	take_slabs(&rows, small + 3 * run + 1);
	assert_int_equal(rows.slabs.count, small + 3 * run + 1);
	assert_int_equal(rows.slabs.run_end, small + 3 * run);
	assert_int_equal(wf_rows_alloc(&rows), WF_ROW_NONE);
	wf_rows_fini(&rows);
	assert_int_equal(budget.used_bytes, 0);
}

struct parts {
	struct wf_row_head head;
	uint64_t value[20];
	struct wf_row_score score;
};

/* What the nth row is filled with. */
static struct parts
parts_of(uint32_t n, size_t value_bytes)
{
	struct parts parts = {.head = {.key = n, .stamp = n + 1, .born = n + 2},
			      .score = {.show = (float)n, .click = (float)n + 0.5f}};
	for (size_t i = 0; i < value_bytes / sizeof(uint64_t); i++) {
		parts.value[i] = (uint64_t)n << 32 | i;
	}
	return parts;
}

/* Heads, values and scores of rows share no byte, and a row that is used again is zeros. */
static void
parts_of_rows_lie_apart(void **state)
{
	static struct wf_row_head *head[101];
	(void)state;
	for (size_t floats = 1; floats <= 40; floats += floats < 4 ? 1 : 4) {
		const struct wf_rows_opts opts = {
			.value_floats = floats, .with_score = floats % 8 != 0, .slab_bytes = 4096};
		struct wf_budget budget = {.env = &failing.env, .cap_bytes = UINT64_MAX};
		struct wf_rows rows;
		wf_failing_env_fail(&failing, 0, false);
		wf_rows_init(&rows, &budget, &opts);
		assert_true(rows.value_bytes >= floats * sizeof(float));
		assert_true(rows.value_bytes <= sizeof(((struct parts *)NULL)->value));
		for (uint32_t n = 0; n < WF_ARRAY_COUNT(head); n++) {
			const struct parts parts = parts_of(n, rows.value_bytes);
			head[n] = wf_row_at(&rows, wf_rows_alloc(&rows));
			*head[n] = parts.head;
			memcpy(wf_row_values(head[n]), parts.value, rows.value_bytes);
			if (opts.with_score) {
				*wf_row_score(&rows, head[n]) = parts.score;
			}
		}
		for (uint32_t n = 0; n < WF_ARRAY_COUNT(head); n++) {
			const struct parts parts = parts_of(n, rows.value_bytes);
			const float *values = wf_row_values(head[n]);
			assert_memory_equal(head[n], &parts.head, sizeof(parts.head));
			assert_memory_equal(values, parts.value, rows.value_bytes);
			assert_true(!opts.with_score ||
				    memcmp(wf_row_score(&rows, head[n]), &parts.score,
					   sizeof(parts.score)) == 0);
		}
		wf_rows_give(&rows, wf_rows_nth(&rows, 6));
		assert_int_equal(wf_rows_alloc(&rows), wf_rows_nth(&rows, 6));
		const struct parts zero = {0};
		assert_memory_equal(head[6], &zero.head, sizeof(zero.head));
		assert_memory_equal(wf_row_values(head[6]), zero.value, rows.value_bytes);
		assert_true(!opts.with_score || memcmp(wf_row_score(&rows, head[6]), &zero.score,
						       sizeof(zero.score)) == 0);
		assert_int_equal(head[5]->key, 5);
		wf_rows_fini(&rows);
		assert_int_equal(budget.used_bytes, 0);
	}
}

/* What a table takes for its rows, beside what it is made with, is at most twice what they need,
 * and some. */
static void
a_table_of_few_rows_takes_little(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.dim = 64;
	opts.row.kind = WF_ROW_ADAGRAD;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = bed_table(&failing.env, &opts);
	const uint64_t row_bytes = bed_stat(table, WF_TABLE_ROW_BYTES);
	const uint64_t empty = failing.live_bytes;
	float out[64];
	(void)state;
	for (uint64_t key = 0; key < 30000; key++) {
		assert_int_equal(bed_look(table, &key, 1, out, true), WEFT_OK);
		uint64_t most = 2 * (key + 1) * (row_bytes + 24) + (128 << 10);
		if (failing.live_bytes - empty > most) {
			fail_msg("%llu rows of %llu bytes take %llu", (unsigned long long)key + 1,
				 (unsigned long long)row_bytes,
				 (unsigned long long)(failing.live_bytes - empty));
		}
	}
	wf_table_destroy(table);
}

static void
a_vocabulary_takes_what_its_rows_need(void **state)
{
	struct wf_table_opts opts = bed_opts();
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *none = bed_table(&failing.env, &opts);
	const uint64_t empty = failing.live_bytes;
	(void)state;
	wf_table_destroy(none);
	opts.vocabulary = 3000;
	struct wf_table *table = bed_table(&failing.env, &opts);
	/* Ranks are the same for all partitions: 3 x 1,024. */
	uint64_t rows = 3 * 1024 * bed_stat(table, WF_TABLE_ROW_BYTES);
	assert_true(failing.live_bytes <= empty + rows + 256);
	for (uint64_t key = 0; key < 3000; key++) {
		float out[4];
		assert_int_equal(bed_look(table, &key, 1, out, true), WEFT_OK);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 3000);
	assert_int_equal(bed_stat(table, WF_TABLE_MEMORY_BYTES), failing.live_bytes);
	wf_table_destroy(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(creating_fails_cleanly_wherever_memory_ends),
		TEST(all_memory_is_counted),
		TEST(lookups_and_pushes_of_known_keys_take_no_memory),
		TEST(under_a_cap_new_rows_are_refused_and_counted),
		TEST(keys_that_are_refused_do_not_cost_others_their_gradients),
		TEST(at_the_cap_old_rows_make_room),
		TEST(a_push_of_new_keys_at_the_cap_keeps_them_all),
		TEST(a_rows_first_step_is_told_where_rows_before_it_are_new_or_lost),
		TEST(rows_of_a_push_never_go_for_its_new_keys),
		TEST(growth_survives_every_failing_allocation),
		TEST(many_slabs_come_in_runs_and_where_those_end_one_by_one),
		TEST(parts_of_rows_lie_apart),
		TEST(a_table_of_few_rows_takes_little),
		TEST(a_vocabulary_takes_what_its_rows_need),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
