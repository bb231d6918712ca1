/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of turn: the state that decides on sleep, event by event; and every nanosecond is charged
 * once, under a clock that the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "exchange/turn.h"
#include "transport/ops.h"

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
	wf_turn_init(&turn, &env, NULL, 0);
	turn.times.poll = POLL_TIME_NS;
	turn.times.idle = IDLE_TIME_NS;
	turn.times.away = AWAY_TIME_NS;
	wf_turn_start(&turn, &stats);
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
	(void)wf_turn_may_arm(&turn, false);
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
		assert_true(wf_turn_may_arm(&turn, false));
		wf_turn_begin(&turn);
		assert_true(wf_turn_rests(&turn, false));
		assert_false(wf_turn_may_arm(&turn, false));
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
	assert_true(wf_turn_may_arm(&turn, false));
	assert_false(wf_turn_rests(&turn, true));
	wf_turn_charge(&turn, clock_ns, true);
	assert_false(wf_turn_rests(&turn, false)); /* arming is for one turn */
}

static void
only_the_turn_that_a_sleep_may_follow_is_armed(void **state)
{
	one_turn(1, true);
	assert_false(wf_turn_may_arm(&turn, true)); /* it sends: something will come of it */
	one_turn(1, false);
	assert_true(wf_turn_may_arm(&turn, true)); /* nothing came of it */
	one_turn(1, false);
	assert_false(wf_turn_may_arm(&turn, false)); /* it slept, and was woken for something */
	one_turn(1, true);
	assert_true(wf_turn_may_arm(&turn, false));
}

static void
a_sleep_without_a_turn_before_it_is_idle_all_the_same(void **state)
{
	one_turn(10, true);
	clock_ns += 4; /* the sends */
	assert_true(wf_turn_may_arm(&turn, false));
	wf_turn_rest(&turn);
	clock_ns += 1000;
	assert_false(wf_turn_may_arm(&turn, false)); /* it slept, and was woken for something */
	one_turn(20, true);
	assert_charged(34, 1000, 0, 0);
}

static void
the_time_away_before_such_a_sleep_is_away(void **state)
{
	one_turn(10, true);
	wf_turn_go_away(&turn);
	clock_ns += 500;
	assert_true(wf_turn_may_arm(&turn, false));
	wf_turn_rest(&turn);
	clock_ns += 1000;
	one_turn(20, true);
	assert_charged(30, 1000, 500, 0);
}

static bool
one_spinning_turn(bool urgent)
{
	turn.spins = true;
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
	turn.times.on = false;
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
	turn.times.on = false;
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
	(void)wf_turn_may_arm(&turn, false);
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
			(void)wf_turn_may_arm(&turn, false);
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
	turn.times.on = false;
	(void)wf_turn_may_arm(&turn, false);
	one_turn(10, false);
	one_turn(10, true);
	uint64_t entered = wf_turn_enter(&turn);
	assert_int_equal(entered, 0);
	assert_int_equal(wf_turn_leave(&turn, APPLY_TIME_NS, entered), 0);
	assert_charged(0, 0, 0, 0);
	assert_int_equal(readings, 0);
}

enum step { ARM, ARM_SENDING, EVENTS, NOTHING, REST, GO_AWAY, STEP_COUNT };

/* The table of turn.h; ARM that is refused leaves the state. */
static const enum wf_turn_state after[][STEP_COUNT] = {
	[WF_TURN_BUSY] = {WF_TURN_ARMED, WF_TURN_BUSY, WF_TURN_BUSY, WF_TURN_EMPTY, WF_TURN_ASLEEP,
			  WF_TURN_AWAY},
	[WF_TURN_EMPTY] = {WF_TURN_ARMED, WF_TURN_ARMED, WF_TURN_BUSY, WF_TURN_EMPTY,
			   WF_TURN_ASLEEP, WF_TURN_AWAY},
	[WF_TURN_ARMED] = {WF_TURN_ARMED, WF_TURN_ARMED, WF_TURN_BUSY, WF_TURN_ASLEEP,
			   WF_TURN_ASLEEP, WF_TURN_AWAY},
	[WF_TURN_ASLEEP] = {WF_TURN_ASLEEP, WF_TURN_ASLEEP, WF_TURN_BUSY, WF_TURN_EMPTY,
			    WF_TURN_ASLEEP, WF_TURN_AWAY},
	[WF_TURN_AWAY] = {WF_TURN_ARMED, WF_TURN_AWAY, WF_TURN_BUSY, WF_TURN_EMPTY, WF_TURN_ASLEEP,
			  WF_TURN_AWAY},
};

static void
do_step(enum step step)
{
	bool refused = turn.state == WF_TURN_ASLEEP ||
		       (step == ARM_SENDING && turn.state != WF_TURN_EMPTY);
	switch (step) {
	case ARM:
	case ARM_SENDING:
		assert_int_equal(wf_turn_may_arm(&turn, step == ARM_SENDING), !refused);
		break;
	case EVENTS:
	case NOTHING:
		one_turn(3, step == EVENTS);
		break;
	case REST:
		wf_turn_rest(&turn);
		break;
	case GO_AWAY:
		wf_turn_go_away(&turn);
		break;
	case STEP_COUNT:
		break;
	}
}

/* Every order of six steps, from the beginning. */
static void
every_order_of_steps_is_as_the_table_says(void **state)
{
	unsigned orders = 1;
	for (unsigned i = 0; i < 6; i++) {
		orders *= STEP_COUNT;
	}
	for (unsigned order = 0; order < orders; order++) {
		(void)set_up(state);
		unsigned rest = order;
		for (unsigned i = 0; i < 6; i++) {
			enum step step = rest % STEP_COUNT;
			rest /= STEP_COUNT;
			enum wf_turn_state before = turn.state;
			clock_ns += 7;
			do_step(step);
			assert_int_equal(turn.state, after[before][step]);
		}
		one_turn(1, true);
		uint64_t sum = 0;
		for (unsigned i = 0; i < COUNTER_COUNT; i++) {
			sum += wf_stats_get(&stats, i);
		}
		assert_int_equal(sum, clock_ns - 1000);
	}
}

/* A transport that the test scripts: what each poll brings, and whether an arm is quiet. */
static struct {
	struct wf_transport transport;
	unsigned events[8]; /* of the next polls */
	unsigned polls, arms, flushes, owed_flushes, ticks, handled;
	bool quiet, fails;
	uint64_t deadline_ns;
} medium;

static enum weft_status
poll_medium(struct wf_transport *transport, struct wf_event *events, unsigned max, unsigned *count)
{
	(void)events;
	assert_in_range(medium.events[medium.polls], 0, max);
	*count = medium.events[medium.polls++];
	return medium.fails ? wf_fail(WEFT_IO, "scripted") : WEFT_OK;
}

static bool
arm_medium(struct wf_transport *transport, uint64_t *deadline_ns)
{
	medium.arms++;
	*deadline_ns = medium.deadline_ns;
	return medium.quiet;
}

static const struct wf_transport_ops medium_ops = {.poll = poll_medium, .arm = arm_medium};

static void
handle(void *end, const struct wf_event *event)
{
	medium.handled++;
}

static bool leaves_something;
static struct wf_due *due_meanwhile; /* becomes due in the next flush; NULL: nothing does */

static bool
flush(struct wf_due *due)
{
	medium.flushes++;
	if (due_meanwhile != NULL) {
		wf_turn_due(&turn, due_meanwhile);
		due_meanwhile = NULL;
	}
	return leaves_something;
}

static bool
flush_owed(struct wf_due *due)
{
	medium.owed_flushes++;
	return leaves_something;
}

static void
fail_medium(void *end, enum weft_status status)
{
	assert_int_equal(status, WEFT_IO);
	medium.ticks += 100;
}

static void
tick(void *end, uint64_t now_ns)
{
	medium.ticks++;
	turn.tick_ns = now_ns + 1000;
}

static const struct wf_turn_ops ends = {
	.event = handle,
	.flush = flush,
	.flush_owed = flush_owed,
	.failed = fail_medium,
	.tick = tick,
};

static int
set_up_medium(void **state)
{
	(void)set_up(state);
	memset(&medium, 0, sizeof(medium));
	medium.transport.ops = &medium_ops;
	medium.transport.active = &medium.transport;
	medium.transport.rest_ns = WF_NEVER;
	medium.deadline_ns = WF_NEVER;
	leaves_something = false;
	due_meanwhile = NULL;
	turn.times.on = false;
	turn.transport = &medium.transport;
	turn.tick_ns = clock_ns + 1000;
	return 0;
}

static void
what_is_due_is_sent_before_the_poll_and_after_events(void **state)
{
	struct wf_due due[2] = {{0}, {0}};
	wf_turn_due(&turn, &due[0]);
	wf_turn_due(&turn, &due[1]);
	wf_turn_due(&turn, &due[0]); /* it is there already */
	assert_false(wf_turn_run(&turn, &ends));
	assert_int_equal(medium.flushes, 2);
	assert_null(turn.due);
	leaves_something = true;
	wf_turn_due(&turn, &due[0]);
	medium.events[1] = 3;
	assert_true(wf_turn_run(&turn, &ends));
	assert_int_equal(medium.flushes, 4);
	assert_int_equal(medium.handled, 3);
	assert_ptr_equal(turn.due, &due[0]);
	assert_int_equal(medium.polls, 2);
}

/* One turn flushes as said: as a whole, and only what is owed. */
static void
check_flushes(unsigned whole, unsigned owed)
{
	medium.flushes = medium.owed_flushes = 0;
	(void)wf_turn_run(&turn, &ends);
	assert_int_equal(medium.flushes, whole);
	assert_int_equal(medium.owed_flushes, owed);
	medium.polls = 0;
}

static void
what_is_only_owed_asks_for_nothing_else(void **state)
{
	struct wf_due due = {0};
	wf_turn_owes(&turn, &due);
	check_flushes(0, 1);
	wf_turn_due(&turn, &due);
	check_flushes(1, 0);
	check_flushes(0, 0);
	wf_turn_owes(&turn, &due);
	check_flushes(0, 1);
}

static void
what_is_due_beside_what_is_owed_is_sent_with_it(void **state)
{
	struct wf_due due = {0};
	wf_turn_owes(&turn, &due);
	wf_turn_due(&turn, &due); /* it is queued already */
	check_flushes(1, 0);
	wf_turn_due(&turn, &due);
	wf_turn_owes(&turn, &due);
	check_flushes(1, 0);
}

static void
what_is_left_is_asked_for_again_as_it_was(void **state)
{
	struct wf_due due = {0};
	leaves_something = true;
	wf_turn_owes(&turn, &due);
	check_flushes(0, 1);
	check_flushes(0, 1);
	wf_turn_due(&turn, &due);
	check_flushes(1, 0);
	check_flushes(1, 0);
	leaves_something = false;
	check_flushes(1, 0);
	check_flushes(0, 0);
}

/* The whole flush has asked for it already, or has not: it is asked for once more. */
static void
what_becomes_due_in_a_flush_is_sent_by_the_next(void **state)
{
	struct wf_due due = {0};
	wf_turn_due(&turn, &due);
	due_meanwhile = &due;
	check_flushes(1, 0);
	assert_ptr_equal(turn.due, &due);
	assert_null(due.next);
	check_flushes(1, 0);
	check_flushes(0, 0);
}

static void
a_round_sleeps_at_once_where_nothing_is_awaited(void **state)
{
	uint64_t deadline_ns;
	medium.quiet = true;
	assert_true(wf_turn_round(&turn, &ends, &deadline_ns));
	assert_int_equal(deadline_ns, turn.tick_ns); /* before the transport's */
	assert_int_equal(medium.polls, 0);
	assert_false(wf_turn_round(&turn, &ends, &deadline_ns)); /* the first turn after a sleep */
	assert_int_equal(medium.arms, 1);
	assert_int_equal(medium.polls, 1);
	turn.awaits_done = true; /* DONEs that the arm does not tell of */
	assert_true(wf_turn_round(&turn, &ends, &deadline_ns));
	assert_int_equal(medium.polls, 2);
}

static void
a_round_goes_on_where_the_armed_turn_brings_something(void **state)
{
	uint64_t deadline_ns;
	medium.deadline_ns = 5;
	medium.events[0] = 1;
	assert_false(wf_turn_round(&turn, &ends, &deadline_ns));
	assert_int_equal(turn.state, WF_TURN_BUSY);
	assert_true(wf_turn_round(&turn, &ends, &deadline_ns));
	assert_int_equal(deadline_ns, 5);
	turn.tick_ns = 0; /* something has changed that the clock decides */
	assert_false(wf_turn_round(&turn, &ends, &deadline_ns));
	assert_int_equal(medium.ticks, 1);
	assert_true(turn.ticked);
}

static void
a_round_polls_for_as_long_as_the_limit_says(void **state)
{
	uint64_t deadline_ns;
	wf_spin_init(&turn.spin, 100);
	wf_turn_go_away(&turn);
	for (unsigned i = 0; i < 3; i++) {      /* at 0, 50 and 100 */
		turn.blind = WF_TURN_BLIND_MAX; /* it looks at the clock */
		assert_false(wf_turn_round(&turn, &ends, &deadline_ns));
		clock_ns += 50;
	}
	assert_int_equal(medium.arms, 0);
	assert_true(wf_turn_round(&turn, &ends, &deadline_ns));
	assert_int_equal(medium.arms, 1);
}

static void
a_transport_that_fails_is_told(void **state)
{
	medium.fails = true;
	(void)wf_turn_run(&turn, &ends);
	assert_int_equal(medium.ticks, 100);
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
		cmocka_unit_test_setup(every_order_of_steps_is_as_the_table_says, set_up),
		cmocka_unit_test_setup(what_is_due_is_sent_before_the_poll_and_after_events,
				       set_up_medium),
		cmocka_unit_test_setup(what_is_only_owed_asks_for_nothing_else, set_up_medium),
		cmocka_unit_test_setup(what_is_due_beside_what_is_owed_is_sent_with_it,
				       set_up_medium),
		cmocka_unit_test_setup(what_is_left_is_asked_for_again_as_it_was, set_up_medium),
		cmocka_unit_test_setup(what_becomes_due_in_a_flush_is_sent_by_the_next,
				       set_up_medium),
		cmocka_unit_test_setup(a_round_sleeps_at_once_where_nothing_is_awaited,
				       set_up_medium),
		cmocka_unit_test_setup(a_round_goes_on_where_the_armed_turn_brings_something,
				       set_up_medium),
		cmocka_unit_test_setup(a_round_polls_for_as_long_as_the_limit_says, set_up_medium),
		cmocka_unit_test_setup(a_transport_that_fails_is_told, set_up_medium),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
