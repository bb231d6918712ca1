/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of spin: when polling pays, and when it is left out. A step of the tests is one wait, that
 * ends when `takes_ns` have passed if it polled, and `wake_ns` later if it slept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/spin.h"
#include "weft/weft.h"

#define US WF_NS_PER_US
#define WAKE_NS (20 * US)

static struct wf_spin spin;

/* Returns how long it polled. */
static uint64_t
one_wait(uint64_t takes_ns)
{
	uint64_t polled_ns = 0;
	while (polled_ns < takes_ns && wf_spin_goes_on(&spin, polled_ns)) {
		polled_ns += US;
	}
	wf_spin_end(&spin, polled_ns < takes_ns ? takes_ns + WAKE_NS : takes_ns);
	return polled_ns;
}

static uint64_t
waits(unsigned count, uint64_t takes_ns)
{
	uint64_t polled_ns = 0;
	for (unsigned i = 0; i < count; i++) {
		polled_ns += one_wait(takes_ns);
	}
	return polled_ns;
}

static void
a_fixed_limit_stays(void **state)
{
	wf_spin_init(&spin, 7 * US);
	assert_int_equal(one_wait(3 * US), 3 * US);
	assert_int_equal(waits(1000, 5000 * US), 1000 * 7 * US);
	assert_int_equal(one_wait(3 * US), 3 * US);
}

static void
zero_never_polls(void **state)
{
	wf_spin_init(&spin, 0);
	assert_int_equal(waits(1000, 1 * US), 0);
}

static void
short_waits_are_polled_through_once_that_is_known(void **state)
{
	wf_spin_init(&spin, WEFT_SPIN_AUTO);
	assert_int_equal(one_wait(4 * US), 0); /* nothing is known yet */
	waits(20, 4 * US);
	assert_int_equal(waits(100, 4 * US), 100 * 4 * US);
	assert_in_range(spin.limit_ns, 8 * US, 16 * US);
}

/* With the wake-up they are just as long as polling is worth. */
static void
waits_that_sleeping_makes_long_are_tried(void **state)
{
	wf_spin_init(&spin, WEFT_SPIN_AUTO);
	waits(20, WF_SPIN_MAX_NS - WAKE_NS - 5 * US);
	assert_true(one_wait(WF_SPIN_MAX_NS - WAKE_NS - 5 * US) > 0);
}

static void
long_waits_are_slept_through(void **state)
{
	wf_spin_init(&spin, WEFT_SPIN_AUTO);
	waits(20, 4 * US);
	waits(20, 1000 * US);
	assert_int_equal(waits(1000, 1000 * US), 0);
}

/* The answers of a step come together, and then the trainers compute. */
static void
one_long_wait_among_short_ones_costs_no_more_than_the_limit(void **state)
{
	wf_spin_init(&spin, WEFT_SPIN_AUTO);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(one_wait(5000 * US) <= WF_SPIN_MAX_NS);
		waits(10, 2 * US);
	}
	assert_int_equal(one_wait(2 * US), 2 * US);
}

/* The event comes only after the thread has given the core away. */
static void
polling_that_never_sees_the_event_is_left_out_ever_longer(void **state)
{
	wf_spin_init(&spin, WEFT_SPIN_AUTO);
	unsigned polled = 0;
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t waited_ns = 0;
		while (wf_spin_goes_on(&spin, waited_ns)) {
			waited_ns += US;
		}
		polled += waited_ns > 0 ? 1 : 0;
		wf_spin_end(&spin, waited_ns + 10 * US);
	}
	assert_in_range(polled, 5, 30);
	waits(2 * WF_SPIN_REST_MAX, 2 * US); /* it has the core again */
	assert_int_equal(waits(100, 2 * US), 100 * 2 * US);
}

static void
two_misses_in_a_row_are_needed(void **state)
{
	wf_spin_init(&spin, WEFT_SPIN_AUTO);
	waits(50, 2 * US);
	for (unsigned i = 0; i < 50; i++) {
		assert_true(one_wait(12 * US) > 0);
		assert_int_equal(one_wait(2 * US), 2 * US);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fixed_limit_stays),
		cmocka_unit_test(zero_never_polls),
		cmocka_unit_test(short_waits_are_polled_through_once_that_is_known),
		cmocka_unit_test(waits_that_sleeping_makes_long_are_tried),
		cmocka_unit_test(long_waits_are_slept_through),
		cmocka_unit_test(one_long_wait_among_short_ones_costs_no_more_than_the_limit),
		cmocka_unit_test(polling_that_never_sees_the_event_is_left_out_ever_longer),
		cmocka_unit_test(two_misses_in_a_row_are_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
