/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of waits: what is logged of consecutive waits, and which of several is the oldest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/env.h"
#include "base/waits.h"

#define TICK_NS (WF_NS_PER_S / 10)

/* Look ten times a second from `*now_ns` on; returns how many lines were due, and the times at
 * which they were, in seconds since the wait's begin. */
static unsigned
look(struct wf_wait_gate *gate, uint64_t since_ns, uint64_t *now_ns, uint64_t until_ns,
     uint64_t age_s[8])
{
	unsigned count = 0;
	for (; *now_ns < until_ns; *now_ns += TICK_NS) {
		if (wf_wait_is_due(gate, since_ns, *now_ns)) {
			assert_in_range(count, 0, 7);
			age_s[count++] = (*now_ns - since_ns) / WF_NS_PER_S;
		}
	}
	return count;
}

static void
a_wait_is_told_after_two_seconds_and_then_ever_more_rarely(void **state)
{
	(void)state;
	struct wf_wait_gate gate = {0};
	uint64_t now_ns = WF_NS_PER_S;
	uint64_t age_s[8] = {0};
	static const uint64_t expected[] = {2, 6, 14, 30, 62, 122, 182};
	assert_int_equal(look(&gate, now_ns, &now_ns, 200 * WF_NS_PER_S, age_s), 7);
	assert_memory_equal(age_s, expected, sizeof(expected));
}

static void
short_waits_one_after_another_are_never_told(void **state)
{
	(void)state;
	struct wf_wait_gate gate = {0};
	uint64_t now_ns = WF_NS_PER_S;
	uint64_t age_s[8];
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t end_ns = now_ns + 2 * WF_NS_PER_S;
		assert_int_equal(look(&gate, now_ns, &now_ns, end_ns, age_s), 0);
		assert_false(wf_wait_is_due(&gate, 0, now_ns));
	}
}

static void
a_second_wait_has_its_own_clock_and_begins_with_short_periods(void **state)
{
	(void)state;
	struct wf_wait_gate gate = {0};
	uint64_t now_ns = WF_NS_PER_S;
	uint64_t age_s[8] = {0};
	assert_int_equal(look(&gate, now_ns, &now_ns, 40 * WF_NS_PER_S, age_s), 4);
	for (unsigned i = 0; i < 3; i++) { /* at once, no look in between */
		uint64_t end_ns = now_ns + 10 * WF_NS_PER_S;
		assert_int_equal(look(&gate, now_ns, &now_ns, end_ns, age_s), 2);
		assert_int_equal(age_s[0], 2);
		assert_int_equal(age_s[1], 6);
	}
}

/* The oldest of many is another one at each look, and each has waited for ten seconds: a line for
 * each would be six hundred. */
static void
waits_that_overlap_share_the_periods(void **state)
{
	(void)state;
	struct wf_wait_gate gate = {0};
	unsigned count = 0;
	uint64_t begin_ns = 100 * WF_NS_PER_S;
	for (uint64_t now_ns = begin_ns; now_ns < begin_ns + 60 * WF_NS_PER_S; now_ns += TICK_NS) {
		count += wf_wait_is_due(&gate, now_ns - 10 * WF_NS_PER_S, now_ns) ? 1 : 0;
	}
	assert_in_range(count, 5, 10);
}

static void
a_wait_that_begins_in_the_future_is_not_due(void **state)
{
	(void)state;
	struct wf_wait_gate gate = {0};
	assert_false(wf_wait_is_due(&gate, 10 * WF_NS_PER_S, 9 * WF_NS_PER_S));
	assert_false(wf_wait_is_due(&gate, 10 * WF_NS_PER_S, 12 * WF_NS_PER_S - 1));
	assert_true(wf_wait_is_due(&gate, 10 * WF_NS_PER_S, 12 * WF_NS_PER_S));
}

static void
the_oldest_wait_is_at_hand_in_whatever_order_they_end(void **state)
{
	(void)state;
	enum { COUNT = 4 };
	static const unsigned order[][COUNT] = {
		{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
	for (unsigned o = 0; o < 4; o++) {
		struct wf_wait_list list = {0};
		struct wf_wait wait[COUNT] = {{0}};
		bool ended[COUNT] = {false};
		for (unsigned i = 0; i < COUNT; i++) {
			wf_wait_begin(&list, &wait[i], 10 + i);
		}
		for (unsigned i = 0; i < COUNT; i++) {
			unsigned oldest = 0;
			while (ended[oldest]) {
				oldest++;
			}
			assert_ptr_equal(list.oldest, &wait[oldest]);
			wf_wait_end(&list, &wait[order[o][i]]);
			ended[order[o][i]] = true;
		}
		assert_null(list.oldest);
		assert_null(list.newest);
	}
}

static void
what_has_no_time_gets_that_of_the_next_reading_and_keeps_it(void **state)
{
	(void)state;
	struct wf_wait_list list = {0};
	struct wf_wait wait[4] = {{0}};
	wf_wait_stamp(&list, 5);
	wf_wait_begin(&list, &wait[0], 0);
	wf_wait_begin(&list, &wait[1], 0);
	wf_wait_stamp(&list, 10);
	wf_wait_begin(&list, &wait[2], 0);
	wf_wait_begin(&list, &wait[3], 0);
	wf_wait_end(&list, &wait[3]);
	wf_wait_stamp(&list, 20);
	assert_int_equal(wait[0].since_ns, 10);
	assert_int_equal(wait[1].since_ns, 10);
	assert_int_equal(wait[2].since_ns, 20);
	wf_wait_end(&list, &wait[0]);
	wf_wait_begin(&list, &wait[0], 0);
	wf_wait_stamp(&list, 30);
	assert_int_equal(wait[0].since_ns, 30);
	assert_int_equal(list.oldest->since_ns, 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_told_after_two_seconds_and_then_ever_more_rarely),
		cmocka_unit_test(short_waits_one_after_another_are_never_told),
		cmocka_unit_test(a_second_wait_has_its_own_clock_and_begins_with_short_periods),
		cmocka_unit_test(waits_that_overlap_share_the_periods),
		cmocka_unit_test(a_wait_that_begins_in_the_future_is_not_due),
		cmocka_unit_test(the_oldest_wait_is_at_hand_in_whatever_order_they_end),
		cmocka_unit_test(what_has_no_time_gets_that_of_the_next_reading_and_keeps_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
