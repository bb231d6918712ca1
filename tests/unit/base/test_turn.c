/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of turn: every nanosecond is charged once, under a clock that the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/turn.h"

enum { POLL_TIME_NS, IDLE_TIME_NS, AWAY_TIME_NS, APPLY_TIME_NS, COUNTER_COUNT };
static const char *const name[COUNTER_COUNT] = {"poll_time_ns", "idle_time_ns", "away_time_ns",
						"apply_time_ns"};

static uint64_t clock_ns;
static unsigned readings;

static uint64_t
read_clock(struct wf_env *env)
{
	readings++;
	return clock_ns;
}

static const struct wf_env_ops ops = {.now_ns = read_clock};
static struct wf_env env = {&ops};
static struct wf_stats stats;
static struct wf_turn turn;

static int
set_up(void **state)
{
	clock_ns = 1000;
	wf_stats_init(&stats, name, COUNTER_COUNT);
	turn = (struct wf_turn){.poll = POLL_TIME_NS, .idle = IDLE_TIME_NS, .away = AWAY_TIME_NS};
	wf_turn_start(&turn, &env, &stats);
	readings = 0;
	return 0;
}

static void
one_turn(uint64_t work_ns, bool busy)
{
	wf_turn_begin(&turn);
	clock_ns += work_ns;
	if (!wf_turn_rests(&turn, busy)) {
		wf_turn_charge(&turn, clock_ns, busy);
	}
}

static void
assert_charged(uint64_t poll, uint64_t idle, uint64_t away, uint64_t apply)
{
	assert_int_equal(wf_stats_get(&stats, POLL_TIME_NS), poll);
	assert_int_equal(wf_stats_get(&stats, IDLE_TIME_NS), idle);
	assert_int_equal(wf_stats_get(&stats, AWAY_TIME_NS), away);
	assert_int_equal(wf_stats_get(&stats, APPLY_TIME_NS), apply);
}

static void
a_turn_with_events_is_work_and_reads_no_clock(void **state)
{
	one_turn(10, true);
	one_turn(5, true);
	assert_charged(15, 0, 0, 0);
	assert_int_equal(readings, 0);
}

static void
the_empty_turn_after_a_busy_one_holds_its_sends_and_is_work(void **state)
{
	one_turn(10, true);
	clock_ns += 7; /* the sends */
	one_turn(1, false);
	assert_charged(18, 0, 0, 0);
	one_turn(3, false); /* spinning */
	one_turn(2, false);
	assert_charged(18, 5, 0, 0);
	assert_int_equal(readings, 0);
}

static void
sleep_is_idle_and_the_work_after_it_is_not(void **state)
{
	one_turn(10, true);
	one_turn(1, false);
	(void)wf_turn_arm(&turn, false);
	one_turn(2, false); /* empty again: it sleeps */
	assert_charged(11, 2, 0, 0);
	clock_ns += 1000;
	one_turn(20, true);
	assert_charged(31, 1002, 0, 0);
	assert_int_equal(readings, 2);
}

static void
the_turn_after_a_sleep_does_not_rest_again(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		assert_true(wf_turn_arm(&turn, false));
		wf_turn_begin(&turn);
		assert_true(wf_turn_rests(&turn, false));
		turn.armed = true;
		wf_turn_begin(&turn);
		assert_false(wf_turn_rests(&turn, false)); /* it looks at the clock */
		wf_turn_charge(&turn, clock_ns, false);
	}
}

static void
a_turn_that_is_not_armed_or_is_busy_does_not_rest(void **state)
{
	wf_turn_begin(&turn);
	assert_false(wf_turn_rests(&turn, false));
	assert_true(wf_turn_arm(&turn, false));
	assert_false(wf_turn_rests(&turn, true));
	assert_false(wf_turn_rests(&turn, false)); /* arming is for one turn */
}

static void
only_the_turn_that_a_sleep_may_follow_is_armed(void **state)
{
	one_turn(1, true);
	assert_false(wf_turn_arm(&turn, true)); /* it sends: something will come of it */
	one_turn(1, false);
	assert_true(wf_turn_arm(&turn, true)); /* nothing came of it */
	one_turn(1, false);
	assert_false(wf_turn_arm(&turn, false)); /* it slept, and was woken for something */
	one_turn(1, true);
	assert_true(wf_turn_arm(&turn, false));
}

static void
a_sleep_without_a_turn_before_it_is_idle_all_the_same(void **state)
{
	one_turn(10, true);
	clock_ns += 4; /* the sends */
	assert_true(wf_turn_arm(&turn, false));
	wf_turn_rest(&turn);
	clock_ns += 1000;
	assert_false(wf_turn_arm(&turn, false)); /* it slept, and was woken for something */
	one_turn(20, true);
	assert_charged(34, 1000, 0, 0);
}

static void
the_time_away_before_such_a_sleep_is_away(void **state)
{
	one_turn(10, true);
	wf_turn_go_away(&turn);
	clock_ns += 500;
	assert_true(wf_turn_arm(&turn, false));
	wf_turn_rest(&turn);
	clock_ns += 1000;
	one_turn(20, true);
	assert_charged(30, 1000, 500, 0);
}

static bool
one_spinning_turn(bool urgent)
{
	wf_turn_spin(&turn);
	wf_turn_begin(&turn);
	assert_false(wf_turn_rests(&turn, urgent));
	if (wf_turn_is_blind(&turn, urgent, urgent)) {
		return true;
	}
	wf_turn_charge(&turn, clock_ns, urgent);
	return false;
}

static void
a_spinning_thread_looks_at_the_clock_every_few_turns(void **state)
{
	turn.on = false;
	wf_turn_go_away(&turn);
	assert_false(one_spinning_turn(false)); /* who knows how late it is */
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < WF_TURN_BLIND_MAX; i++) {
			assert_true(one_spinning_turn(false));
		}
		assert_false(one_spinning_turn(false));
	}
}

static void
no_turn_is_blind_that_charges_or_is_urgent_or_may_be_late(void **state)
{
	assert_false(one_spinning_turn(false)); /* charged */
	turn.on = false;
	assert_true(one_spinning_turn(false));
	assert_false(one_spinning_turn(true));
	wf_turn_go_away(&turn);
	assert_false(one_spinning_turn(false));
	wf_turn_begin(&turn);
	assert_false(wf_turn_is_blind(&turn, false, false)); /* it does not spin */
}

static void
an_armed_turn_with_events_does_not_sleep(void **state)
{
	(void)wf_turn_arm(&turn, false);
	one_turn(4, true);
	one_turn(5, true);
	assert_charged(9, 0, 0, 0);
	assert_int_equal(readings, 0);
}

static void
a_piece_with_a_counter_of_its_own_is_not_charged_twice(void **state)
{
	wf_turn_begin(&turn);
	clock_ns += 3;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t entered = wf_turn_enter(&turn);
		clock_ns += 50;
		assert_int_equal(wf_turn_leave(&turn, APPLY_TIME_NS, entered), clock_ns);
	}
	clock_ns += 4;
	wf_turn_charge(&turn, clock_ns, true);
	assert_charged(7, 0, 0, 100);
	one_turn(1, true); /* forgotten by the next turn */
	assert_charged(8, 0, 0, 100);
}

static void
time_between_the_callers_waits_is_away(void **state)
{
	one_turn(10, true);
	wf_turn_go_away(&turn);
	clock_ns += 500;
	one_turn(20, true);
	assert_charged(30, 0, 500, 0);
}

static void
all_of_the_time_is_charged_once(void **state)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (i % 7 == 0) {
			(void)wf_turn_arm(&turn, false);
		}
		if (i % 11 == 0) {
			wf_turn_go_away(&turn);
		}
		clock_ns += i % 13;
		one_turn(i % 5, i % 3 == 0);
	}
	uint64_t sum = 0;
	for (unsigned i = 0; i < COUNTER_COUNT; i++) {
		sum += wf_stats_get(&stats, i);
	}
	assert_int_equal(sum, clock_ns - 1000);
}

static void
off_it_reads_no_clock_and_charges_nothing(void **state)
{
	turn.on = false;
	(void)wf_turn_arm(&turn, false);
	one_turn(10, false);
	one_turn(10, true);
	uint64_t entered = wf_turn_enter(&turn);
	assert_int_equal(entered, 0);
	assert_int_equal(wf_turn_leave(&turn, APPLY_TIME_NS, entered), 0);
	assert_charged(0, 0, 0, 0);
	assert_int_equal(readings, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_turn_with_events_is_work_and_reads_no_clock, set_up),
		cmocka_unit_test_setup(the_empty_turn_after_a_busy_one_holds_its_sends_and_is_work,
				       set_up),
		cmocka_unit_test_setup(the_turn_after_a_sleep_does_not_rest_again, set_up),
		cmocka_unit_test_setup(a_turn_that_is_not_armed_or_is_busy_does_not_rest, set_up),
		cmocka_unit_test_setup(only_the_turn_that_a_sleep_may_follow_is_armed, set_up),
		cmocka_unit_test_setup(a_sleep_without_a_turn_before_it_is_idle_all_the_same,
				       set_up),
		cmocka_unit_test_setup(the_time_away_before_such_a_sleep_is_away, set_up),
		cmocka_unit_test_setup(sleep_is_idle_and_the_work_after_it_is_not, set_up),
		cmocka_unit_test_setup(a_spinning_thread_looks_at_the_clock_every_few_turns,
				       set_up),
		cmocka_unit_test_setup(no_turn_is_blind_that_charges_or_is_urgent_or_may_be_late,
				       set_up),
		cmocka_unit_test_setup(an_armed_turn_with_events_does_not_sleep, set_up),
		cmocka_unit_test_setup(a_piece_with_a_counter_of_its_own_is_not_charged_twice,
				       set_up),
		cmocka_unit_test_setup(time_between_the_callers_waits_is_away, set_up),
		cmocka_unit_test_setup(all_of_the_time_is_charged_once, set_up),
		cmocka_unit_test_setup(off_it_reads_no_clock_and_charges_nothing, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
