/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces are zeroed and apart, what finds no memory does not depend on the helper, and each piece
 * is counted as ready or cleared. Thread: one. */
#include "sparse/table/chunks.h"

#include <string.h>

#include "tests/unit/sparse/helper.h"

#define PIECES 200u

struct pieces {
	struct wf_budget budget;
	struct wf_chunks chunks;
	char *at[PIECES];
	uint32_t count;
};

static struct pieces pieces;

static void
start(struct wf_env *env, bool spares, uint64_t cap_bytes)
{
	pieces = (struct pieces){.budget = {.env = env, .cap_bytes = cap_bytes}};
	wf_chunks_init(&pieces.chunks, &pieces.budget, spares ? env : NULL, 0);
	assert_int_equal(pieces.budget.used_bytes, 0);
}

/* As many as there is memory for, each filled with a byte of its own. Returns how many. */
static uint32_t
cut_all(void)
{
	static const char zero[WF_PIECE_BYTES];

	while (pieces.count < PIECES) {
		char *at = wf_chunks_alloc(&pieces.chunks);
		if (at == NULL) {
			break;
		}
		assert_memory_equal(at, zero, WF_PIECE_BYTES);
		memset(at, (int)(1 + pieces.count % 255), WF_PIECE_BYTES);
		pieces.at[pieces.count++] = at;
	}
	return pieces.count;
}

static void
finish(void)
{
	const uint64_t cut_bytes = pieces.count * WF_PIECE_BYTES;

	for (uint32_t i = 0; i < pieces.count; i++) {
		assert_int_equal((uint8_t)pieces.at[i][0], 1 + i % 255);
		assert_int_equal((uint8_t)pieces.at[i][WF_PIECE_BYTES - 1], 1 + i % 255);
	}
	assert_int_equal(pieces.chunks.readied_bytes + pieces.chunks.cleared_bytes, cut_bytes);
	wf_chunks_fini(&pieces.chunks);
	assert_int_equal(pieces.budget.used_bytes, 0);
}

static void
pieces_are_zeroed_and_apart(void **state)
{
	(void)state;
	start(begin(REFUSED), false, UINT64_MAX);
	assert_int_equal(cut_all(), PIECES);
	assert_int_equal(pieces.chunks.readied_bytes, 0);
	assert_int_equal(ground.submitted, 0);
	finish();
}

static void
few_pieces_take_at_most_twice_their_bytes(void **state)
{
	(void)state;
	start(begin(REFUSED), false, UINT64_MAX);
	for (uint64_t n = 1; n <= 63; n++) {
		assert_non_null(wf_chunks_alloc(&pieces.chunks));
		uint64_t entries = pieces.chunks.capacity * sizeof(char *);
		assert_true(pieces.budget.used_bytes - entries < 2 * n * WF_PIECE_BYTES);
	}
	wf_chunks_fini(&pieces.chunks);
	assert_int_equal(pieces.budget.used_bytes, 0);
}

/* The same pieces and the same memory for every helper, and after memory has ended too. */
static void
what_finds_no_memory_does_not_depend_on_the_helper(void **state)
{
	(void)state;
	for (uint64_t cap = 0; cap <= 6u << 20; cap += 768u << 10) {
		uint32_t count[3];
		uint64_t used[3];
		for (int helper = AT_ONCE; helper <= REFUSED; helper++) {
			start(begin((enum helper)helper), true, cap);
			count[helper] = cut_all();
			used[helper] = pieces.budget.used_bytes;
			assert_true(used[helper] <= cap);
			pieces.budget.cap_bytes = UINT64_MAX;
			assert_int_equal(cut_all(), PIECES);
			finish();
			assert_true(wf_failing_env_is_clean(&ground.failing));
		}
		assert_int_equal(count[HELD_BACK], count[AT_ONCE]);
		assert_int_equal(count[REFUSED], count[AT_ONCE]);
		assert_int_equal(used[HELD_BACK], used[AT_ONCE]);
		assert_int_equal(used[REFUSED], used[AT_ONCE]);
	}
}

/* A spare is taken with the first full chunk: the second one is ready before it is cut, and so are
 * those behind it. */
static void
a_spare_is_ready_before_it_is_cut(void **state)
{
	(void)state;
	if (!system_can()) {
		skip();
	}
	start(begin(AT_ONCE), true, UINT64_MAX);
	assert_int_equal(cut_all(), PIECES);
	assert_int_equal(pieces.chunks.cleared_bytes, (63 + 64) * WF_PIECE_BYTES);
	assert_int_equal(ground.submitted, (PIECES - 63 - 64) / 64 + 2);
	finish();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_are_zeroed_and_apart),
		TEST(few_pieces_take_at_most_twice_their_bytes),
		TEST(what_finds_no_memory_does_not_depend_on_the_helper),
		TEST(a_spare_is_ready_before_it_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
