/* SPDX-License-Identifier: Apache-2.0 */
/* Every row has a place and a number of its own, rows of a piece follow each other, and memory that
 * cannot be had changes nothing. Thread: one. */
#include "sparse/table/slabs.h"

#include <string.h>

#include "tests/unit/sparse/helper.h"

static struct wf_budget budget;
static struct wf_slabs slabs;

static void
start(size_t row_bytes, size_t slab_bytes)
{
	budget = (struct wf_budget){.env = begin(REFUSED), .cap_bytes = UINT64_MAX};
	wf_slabs_init(&slabs, &budget, row_bytes, slab_bytes, 0);
	assert_int_equal(slabs.room_count, 0);
	assert_int_equal(budget.used_bytes, 0);
}

static void
finish(void)
{
	wf_slabs_fini(&slabs);
	assert_int_equal(budget.used_bytes, 0);
	assert_true(wf_failing_env_is_clean(&ground.failing));
}

/* Each row is written with its rank, and all ranks are read again. */
static void
check_rows(void)
{
	for (uint32_t n = 0; n < slabs.room_count; n++) {
		char *at = wf_slabs_at(&slabs, wf_slabs_nth(&slabs, n));
		uint32_t zero = 0;
		assert_memory_equal(at, &zero, sizeof(zero));
		memcpy(at, &n, sizeof(n));
		memcpy(at + slabs.row_bytes - sizeof(n), &n, sizeof(n));
	}
	for (uint32_t n = 0; n < slabs.room_count; n++) {
		uint32_t row = wf_slabs_nth(&slabs, n);
		const char *at = wf_slabs_at(&slabs, row);
		assert_memory_equal(at, &n, sizeof(n));
		assert_memory_equal(at + slabs.row_bytes - sizeof(n), &n, sizeof(n));
		assert_true(n == 0 || row > wf_slabs_nth(&slabs, n - 1));
		assert_int_equal(wf_slabs_rank(&slabs, row), n);
	}
}

/* Pieces follow each other without a gap, and within one of them rows do. */
static void
check_pieces(void)
{
	uint32_t pieces = 0;
	uint32_t end = 0;
	for (uint32_t n = 0; n < slabs.room_count; n++) {
		if (n == end) {
			pieces++;
			end = wf_slabs_piece_end(&slabs, n);
			assert_true(end > n && end <= slabs.room_count);
		}
		assert_int_equal(wf_slabs_piece_end(&slabs, n), end);
		if (n + 1 < end) {
			const char *at = wf_slabs_at(&slabs, wf_slabs_nth(&slabs, n));
			const char *next = wf_slabs_at(&slabs, wf_slabs_nth(&slabs, n + 1));
			assert_ptr_equal(next, at + slabs.row_bytes);
		}
	}
	assert_int_equal(end, slabs.room_count);
	assert_true(pieces <= slabs.count);
	if (slabs.run_end == 0 && !wf_slabs_are_fixed(&slabs)) {
		assert_int_equal(pieces, slabs.count);
	}
}

static void
every_row_has_a_place_of_its_own(void **state)
{
	static const size_t shape[][2] = {{8, 64},          {24, 1 << 10}, {40, 16 << 10},
					  {264, 256 << 10}, {4096, 1},     {65536, 3 << 20}};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(shape); i++) {
		start(shape[i][0], shape[i][1]);
		while (slabs.count < 20) {
			uint32_t room = slabs.room_count;
			assert_true(wf_slabs_add(&slabs));
			assert_true(slabs.room_count > room);
		}
		check_rows();
		check_pieces();
		finish();
	}
}

/* 2.5 MiB a slab: four of them end with a huge page. */
static void
many_full_slabs_come_in_runs(void **state)
{
	(void)state;
	start(2560, (5u << 20) / 2);
	assert_int_equal(wf_slabs_slab_bytes(&slabs), (5u << 20) / 2);
	assert_int_equal(slabs.run_slabs, 4);
	while (slabs.count < slabs.small_count + 2 * slabs.run_slabs) {
		assert_true(wf_slabs_add(&slabs));
		assert_int_equal(slabs.run_end, 0);
	}
	uint32_t count = slabs.count;
	assert_true(wf_slabs_add(&slabs));
	assert_int_equal(slabs.count, count + 4);
	assert_int_equal(slabs.run_first, count);
	/* No memory for a run: from now on they come one by one, or not at all. */
	budget.cap_bytes = budget.used_bytes + 2 * wf_slabs_slab_bytes(&slabs);
	assert_true(wf_slabs_add(&slabs));
	assert_int_equal(slabs.count, count + 5);
	assert_true(wf_slabs_add(&slabs));
	uint32_t room = slabs.room_count;
	assert_false(wf_slabs_add(&slabs));
	assert_int_equal(slabs.room_count, room);
	budget.cap_bytes = UINT64_MAX;
	assert_true(wf_slabs_add(&slabs));
	assert_int_equal(slabs.count, count + 7);
	check_pieces();
	finish();
}

/* A slab for each, and more than can be counted twice in 32 bits. */
static void
billions_of_rows_beyond_the_cap_are_refused(void **state)
{
	(void)state;
	start(8 << 10, 1 << 10);
	budget.cap_bytes = 1 << 20;
	assert_false(wf_slabs_add_all(&slabs, 4000000000u));
	assert_int_equal(slabs.room_count, 0);
	finish();
}

static void
a_fixed_number_of_rows_is_one_piece(void **state)
{
	(void)state;
	for (uint32_t count = 1; count <= 3000; count += 428) {
		start(24, 4 << 10);
		budget.cap_bytes = 1 << 10;
		bool fits = count * 24 + 16 * sizeof(char *) <= budget.cap_bytes;
		assert_int_equal(wf_slabs_add_all(&slabs, count), fits);
		if (!fits) {
			finish();
			start(24, 4 << 10);
			assert_true(wf_slabs_add_all(&slabs, count));
		}
		assert_int_equal(slabs.room_count, count);
		for (uint32_t n = 0; n < count; n++) {
			assert_int_equal(wf_slabs_nth(&slabs, n), n);
		}
		check_rows();
		check_pieces();
		finish();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_row_has_a_place_of_its_own),
		TEST(many_full_slabs_come_in_runs),
		TEST(billions_of_rows_beyond_the_cap_are_refused),
		TEST(a_fixed_number_of_rows_is_one_piece),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
