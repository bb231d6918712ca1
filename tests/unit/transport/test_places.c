/* SPDX-License-Identifier: Apache-2.0 */
/* Who goes when too many come: who has been silent for longest. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/places.h"

#define NEWCOMERS 3u

static struct wf_places places;
static struct wf_place place[NEWCOMERS + 1];
static int owner[NEWCOMERS + 1];

static int
set_up(void **state)
{
	(void)state;
	wf_places_init(&places, 1, NEWCOMERS);
	for (unsigned i = 0; i <= NEWCOMERS; i++) {
		place[i] = (struct wf_place){.kind = WF_PLACE_NONE};
		if (i < NEWCOMERS) {
			wf_places_come(&places, &place[i], &owner[i]);
		}
	}
	return 0;
}

static void
assert_order(const unsigned *order, unsigned count)
{
	const struct wf_place *at = places.first;
	for (unsigned i = 0; i < count; i++) {
		assert_ptr_equal(at, &place[order[i]]);
		assert_ptr_equal(at->owner, &owner[order[i]]);
		assert_true(at->listed);
		at = at->next;
	}
	assert_null(at);
	assert_ptr_equal(places.last, count > 0 ? &place[order[count - 1]] : NULL);
}

static void
who_spoke_last_goes_last(void **state)
{
	(void)state;
	assert_order((const unsigned[]){0, 1, 2}, 3);
	wf_places_spoke(&places, &place[0]);
	assert_order((const unsigned[]){1, 2, 0}, 3);
	wf_places_spoke(&places, &place[2]);
	assert_order((const unsigned[]){1, 0, 2}, 3);
	wf_places_spoke(&places, &place[2]);
	assert_order((const unsigned[]){1, 0, 2}, 3);
	assert_true(wf_places_are_crowded(&places) && wf_places_may_come(&places));
}

static void
who_said_hello_does_not_go_and_is_not_listed_by_more_words(void **state)
{
	(void)state;
	wf_places_keep(&places, &place[1]);
	assert_order((const unsigned[]){0, 2}, 2);
	wf_places_spoke(&places, &place[1]);
	assert_order((const unsigned[]){0, 2}, 2);
	assert_int_equal(places.newcomer_count, NEWCOMERS);
	wf_places_keep(&places, &place[0]);
	wf_places_keep(&places, &place[2]);
	assert_order(NULL, 0);
	assert_false(wf_places_are_crowded(&places)); /* there is nobody to send away */
	assert_false(wf_places_may_come(&places));
}

static void
who_was_refused_goes_after_those_who_are_silent(void **state)
{
	(void)state;
	wf_places_keep(&places, &place[0]);
	assert_true(wf_places_claim(&places, &place[0]));
	assert_int_equal(places.conn_count, 1);
	wf_places_come(&places, &place[3], &owner[3]);
	wf_places_refuse(&places, &place[0]);
	assert_order((const unsigned[]){1, 2, 3, 0}, 4);
	assert_int_equal(places.conn_count, 0);
	wf_places_end(&places, &place[1]);
	assert_order((const unsigned[]){2, 3, 0}, 3);
	for (unsigned i = 0; i <= NEWCOMERS; i++) {
		wf_places_leave(&places, &place[i]);
	}
	assert_order(NULL, 0);
	assert_int_equal(wf_places_count(&places), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_spoke_last_goes_last, set_up),
		cmocka_unit_test_setup(who_said_hello_does_not_go_and_is_not_listed_by_more_words,
				       set_up),
		cmocka_unit_test_setup(who_was_refused_goes_after_those_who_are_silent, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
