/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of beats: when a peer is asked, when it is silent, and that a process that stood still
 * blames no peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/beats.h"

#define TICK_NS (WF_NS_PER_S / 10)

struct rig {
	struct wf_beat_clock clock;
	struct wf_beat beat;
	uint64_t now_ns;
};

static struct rig
begun(void)
{
	return (struct rig){.now_ns = 77 * WF_NS_PER_S};
}

/* Look ten times a second for so long; returns how many questions became due. */
static unsigned
look(struct rig *rig, uint64_t span_ns, bool waits)
{
	unsigned asked = 0;
	for (uint64_t until_ns = rig->now_ns + span_ns; rig->now_ns < until_ns;) {
		wf_beat_clock_look(&rig->clock, rig->now_ns);
		asked += wf_beat_look(&rig->beat, &rig->clock, waits) ? 1 : 0;
		rig->now_ns += TICK_NS;
	}
	return asked;
}

static void
nobody_is_asked_whom_nobody_waits_for(void **state)
{
	(void)state;
	struct rig rig = begun();
	assert_int_equal(look(&rig, 100 * WF_NS_PER_S, false), 0);
	assert_false(rig.beat.ask_due);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
}

static void
who_is_heard_of_is_not_asked(void **state)
{
	(void)state;
	struct rig rig = begun();
	for (unsigned i = 0; i < 100; i++) {
		rig.beat.heard = true;
		assert_int_equal(look(&rig, 4 * TICK_NS, true), 0);
	}
}

static void
who_is_silent_is_asked_once_until_it_is_heard(void **state)
{
	(void)state;
	struct rig rig = begun();
	assert_int_equal(look(&rig, 5 * TICK_NS, true), 0);
	assert_int_equal(look(&rig, 600 * WF_NS_PER_S, true), 1);
	assert_true(rig.beat.ask_due);
	rig.beat.heard = true;
	assert_int_equal(look(&rig, 5 * TICK_NS, true), 0);
	assert_int_equal(look(&rig, 600 * WF_NS_PER_S, true), 1);
}

static void
silence_lasts_from_the_question_to_whatever_is_heard(void **state)
{
	(void)state;
	char text[64];
	struct rig rig = begun();
	(void)look(&rig, 5 * TICK_NS + TICK_NS, true);
	wf_beat_done(&rig.beat, WF_BEAT_COOKIE);
	(void)look(&rig, WF_NS_PER_S, true);
	assert_false(wf_beat_describe(&rig.beat, &rig.clock, text, sizeof(text)));
	(void)look(&rig, TICK_NS, true);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), WF_NS_PER_S);
	assert_true(wf_beat_describe(&rig.beat, &rig.clock, text, sizeof(text)));
	assert_string_equal(text, " has not taken a turn for 1 s");
	(void)look(&rig, 3 * WF_NS_PER_S, true);
	assert_true(wf_beat_describe(&rig.beat, &rig.clock, text, sizeof(text)));
	assert_string_equal(text, " has not taken a turn for 4 s");
	rig.beat.heard = true; /* before the next look, too */
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
	(void)look(&rig, TICK_NS, true);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
	assert_false(wf_beat_describe(&rig.beat, &rig.clock, text, sizeof(text)));
}

/* The question is behind others, which leave one by one, and then itself; what leaves later says
 * nothing of the other end. */
static void
silence_lasts_from_when_the_question_has_left(void **state)
{
	(void)state;
	char text[64];
	struct rig rig = begun();
	assert_int_equal(look(&rig, 5 * TICK_NS + TICK_NS, true), 1);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(look(&rig, 10 * WF_NS_PER_S, true), 0);
		assert_true(wf_beat_silent_ns(&rig.beat, &rig.clock) >= 9 * WF_NS_PER_S);
		assert_true(wf_beat_describe(&rig.beat, &rig.clock, text, sizeof(text)));
		assert_non_null(strstr(text, " has taken nothing in for "));
		wf_beat_done(&rig.beat, i);
		assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
	}
	(void)look(&rig, 10 * WF_NS_PER_S, true);
	wf_beat_done(&rig.beat, WF_BEAT_COOKIE);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
	(void)look(&rig, 4 * WF_NS_PER_S, true);
	wf_beat_done(&rig.beat, 1);
	wf_beat_done(&rig.beat, 0);
	(void)look(&rig, TICK_NS, true);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 4 * WF_NS_PER_S);
	assert_true(wf_beat_describe(&rig.beat, &rig.clock, text, sizeof(text)));
	assert_string_equal(text, " has not taken a turn for 4 s");
}

/* Answered by other traffic before it had left; the next one is behind others again. */
static void
each_question_leaves_by_itself(void **state)
{
	(void)state;
	struct rig rig = begun();
	(void)look(&rig, WF_NS_PER_S, true);
	wf_beat_done(&rig.beat, WF_BEAT_COOKIE);
	assert_true(rig.beat.left);
	rig.beat.heard = true;
	(void)look(&rig, TICK_NS, true);
	assert_false(rig.beat.left);
	wf_beat_done(&rig.beat, WF_BEAT_COOKIE); /* of another one, late */
	assert_int_equal(look(&rig, WF_NS_PER_S, true), 1);
	assert_false(rig.beat.left);
	(void)look(&rig, 10 * WF_NS_PER_S, true);
	wf_beat_done(&rig.beat, 5);
	(void)look(&rig, TICK_NS, true);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
	wf_beat_begin(&rig.beat, &rig.clock);
	assert_false(rig.beat.left);
}

/* Stopped for an hour with a question open: the answer may have been here all the time. */
static void
who_stood_still_itself_accuses_nobody(void **state)
{
	(void)state;
	struct rig rig = begun();
	assert_int_equal(look(&rig, WF_NS_PER_S, true), 1);
	uint64_t before_ns = wf_beat_silent_ns(&rig.beat, &rig.clock);
	rig.now_ns += 3600 * WF_NS_PER_S;
	wf_beat_clock_look(&rig.clock, rig.now_ns);
	assert_true(wf_beat_silent_ns(&rig.beat, &rig.clock) <= before_ns + WF_NS_PER_S);
}

static void
a_path_begins_with_a_question(void **state)
{
	(void)state;
	struct rig rig = begun();
	(void)look(&rig, 5 * WF_NS_PER_S, true);
	rig.beat.itself = true;
	wf_beat_begin(&rig.beat, &rig.clock);
	assert_true(rig.beat.ask_due && !rig.beat.itself);
	assert_int_equal(wf_beat_silent_ns(&rig.beat, &rig.clock), 0);
	assert_int_equal(look(&rig, 4 * WF_NS_PER_S, true), 0); /* it is open already */
	assert_true(wf_beat_silent_ns(&rig.beat, &rig.clock) >= 3 * WF_NS_PER_S);
	struct rig fresh = begun();
	wf_beat_begin(&fresh.beat, &fresh.clock);
	assert_int_equal(look(&fresh, 4 * WF_NS_PER_S, true), 0);
	assert_true(wf_beat_silent_ns(&fresh.beat, &fresh.clock) >= 3 * WF_NS_PER_S);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_asked_whom_nobody_waits_for),
		cmocka_unit_test(who_is_heard_of_is_not_asked),
		cmocka_unit_test(who_is_silent_is_asked_once_until_it_is_heard),
		cmocka_unit_test(silence_lasts_from_the_question_to_whatever_is_heard),
		cmocka_unit_test(silence_lasts_from_when_the_question_has_left),
		cmocka_unit_test(each_question_leaves_by_itself),
		cmocka_unit_test(who_stood_still_itself_accuses_nobody),
		cmocka_unit_test(a_path_begins_with_a_question),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
