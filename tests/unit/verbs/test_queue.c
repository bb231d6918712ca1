/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of a send queue: freed by completions that were polled, and by nothing else.
 * Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "transport/verbs/verbs_sq.h"

#define DEPTH 16u
#define RESERVE 3u

static void
data_leaves_the_reserve_alone(void **state)
{
	struct wf_verbs_sq sq;
	wf_verbs_sq_init(&sq, DEPTH, RESERVE);
	for (unsigned left = DEPTH - RESERVE; left > 0; left--) {
		assert_int_equal(wf_verbs_sq_room(&sq), left);
		(void)wf_verbs_sq_reserve(&sq);
	}
	assert_int_equal(wf_verbs_sq_room(&sq), 0);
	assert_int_equal(wf_verbs_sq_room_all(&sq), RESERVE);
	(void)wf_verbs_sq_reserve(&sq);
	assert_int_equal(wf_verbs_sq_room(&sq), 0);
	assert_int_equal(wf_verbs_sq_room_all(&sq), RESERVE - 1);
}

static void
a_completion_frees_all_before_it(void **state)
{
	struct wf_verbs_sq sq;
	wf_verbs_sq_init(&sq, DEPTH, RESERVE);
	uint64_t third = 0;
	for (int i = 0; i < 5; i++) {
		uint64_t position = wf_verbs_sq_reserve(&sq);
		third = i == 2 ? position : third;
	}
	assert_true(wf_verbs_sq_complete(&sq, (uint32_t)third));
	assert_true(wf_verbs_sq_is_over(&sq, third));
	assert_false(wf_verbs_sq_is_over(&sq, third + 1));
	assert_int_equal(wf_verbs_sq_room_all(&sq), DEPTH - 2);
}

static void
a_completion_of_nothing_changes_nothing(void **state)
{
	struct wf_verbs_sq sq;
	wf_verbs_sq_init(&sq, DEPTH, RESERVE);
	assert_false(wf_verbs_sq_complete(&sq, 0));
	uint64_t first = wf_verbs_sq_reserve(&sq);
	assert_false(wf_verbs_sq_complete(&sq, (uint32_t)first + 1));
	assert_true(wf_verbs_sq_complete(&sq, (uint32_t)first));
	assert_false(wf_verbs_sq_complete(&sq, (uint32_t)first)); /* twice */
	assert_int_equal(wf_verbs_sq_room_all(&sq), DEPTH);
}

static void
positions_pass_four_thousand_million(void **state)
{
	struct wf_verbs_sq sq;
	wf_verbs_sq_init(&sq, DEPTH, RESERVE);
	sq.posted = sq.completed = UINT32_MAX - 2ull;
	uint64_t last = 0;
	for (int i = 0; i < 6; i++) {
		last = wf_verbs_sq_reserve(&sq);
	}
	assert_true(last > UINT32_MAX);
	assert_true(wf_verbs_sq_complete(&sq, (uint32_t)last));
	assert_true(wf_verbs_sq_is_over(&sq, last));
	assert_int_equal(sq.completed, last + 1);
	assert_false(wf_verbs_sq_complete(&sq, (uint32_t)(last - 1)));
}

static void
any_order_of_posts_and_completions_keeps_count(void **state)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
	print_message("WEFT_SEED=%llu\n", (unsigned long long)seed);
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	struct wf_verbs_sq sq;
	wf_verbs_sq_init(&sq, DEPTH, RESERVE);
	uint64_t posted = 0, completed = 0;
	for (int i = 0; i < 100000; i++) {
		if (wf_rng_below(&rng, 3) > 0 && wf_verbs_sq_room_all(&sq) > 0) {
			assert_int_equal(wf_verbs_sq_reserve(&sq), posted);
			posted++;
		} else if (posted > completed) {
			uint64_t at = completed + wf_rng_below(&rng, posted - completed);
			assert_true(wf_verbs_sq_complete(&sq, (uint32_t)at));
			completed = at + 1;
		}
		assert_int_equal(wf_verbs_sq_room_all(&sq), DEPTH - (posted - completed));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_leaves_the_reserve_alone),
		cmocka_unit_test(a_completion_frees_all_before_it),
		cmocka_unit_test(a_completion_of_nothing_changes_nothing),
		cmocka_unit_test(positions_pass_four_thousand_million),
		cmocka_unit_test(any_order_of_posts_and_completions_keeps_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
