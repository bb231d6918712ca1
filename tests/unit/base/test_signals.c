/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of signals: which one is a further request to stop, and which the echo of the first. */
#include "base/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static uint64_t
now_ms(void)
{
	struct timespec now = {0};
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
the_same_signal_at_once_is_the_echo_of_the_first(void **state)
{
	enum wf_stop_ask again[2];
	uint64_t took_ms = 0;
	(void)state;
	do { /* once more where somebody else had the CPU in between */
		_Atomic uint64_t asked = 0;
		uint64_t begin_ms = now_ms();
		assert_int_equal(wf_stop_asked(&asked, SIGTERM), WF_STOP_FIRST);
		again[0] = wf_stop_asked(&asked, SIGTERM);
		again[1] = wf_stop_asked(&asked, SIGTERM);
		took_ms = now_ms() - begin_ms;
	} while (took_ms >= WF_STOP_ECHO_MS);
	assert_int_equal(again[0], WF_STOP_ECHO);
	assert_int_equal(again[1], WF_STOP_ECHO);
}

static void
another_signal_asks_once_more(void **state)
{
	_Atomic uint64_t asked = 0;
	(void)state;
	assert_int_equal(wf_stop_asked(&asked, SIGTERM), WF_STOP_FIRST);
	assert_int_equal(wf_stop_asked(&asked, SIGINT), WF_STOP_AGAIN);
}

/* The first came a millisecond after the machine had started. */
static void
the_same_signal_later_asks_once_more(void **state)
{
	_Atomic uint64_t asked = 1u << 8 | SIGTERM;
	(void)state;
	assert_int_equal(wf_stop_asked(&asked, SIGTERM), WF_STOP_AGAIN);
}

/* For a program that saves first, the same signal counts as an echo for longer. */
static void
how_long_an_echo_is_one_is_the_programs_choice(void **state)
{
	_Atomic uint64_t asked = 0;
	(void)state;
	assert_int_equal(wf_stop_asked_within(&asked, SIGTERM, UINT64_MAX), WF_STOP_FIRST);
	assert_int_equal(wf_stop_asked_within(&asked, SIGTERM, UINT64_MAX), WF_STOP_ECHO);
	assert_int_equal(wf_stop_asked_within(&asked, SIGTERM, 0), WF_STOP_AGAIN);
	assert_int_equal(wf_stop_asked_within(&asked, SIGINT, UINT64_MAX), WF_STOP_AGAIN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_signal_at_once_is_the_echo_of_the_first),
		cmocka_unit_test(another_signal_asks_once_more),
		cmocka_unit_test(the_same_signal_later_asks_once_more),
		cmocka_unit_test(how_long_an_echo_is_one_is_the_programs_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
