/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of cursors: what one end sends in parts the other receives in parts, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "exchange/cursors.h"
#include "wire/job.h"

static struct wf_msg_steps part;

/* Send all of `units`, and receive it. Returns how many messages it took. */
static unsigned
exchange_all(uint32_t units)
{
	struct wf_cursor out = {0};
	struct wf_cursor in = {0};
	uint32_t covered = 0;
	unsigned parts = 0;
	wf_cursor_begin(&out, units);
	wf_cursor_begin(&in, units);
	while (wf_cursor_is_open(&out)) {
		wf_cursor_fill(&out, &part);
		assert_int_equal(part.first, covered);
		assert_true(part.count <= WF_STEPS_PER_MSG);
		assert_int_equal(part.last, covered + part.count == units);
		assert_true(wf_cursor_is_open(&in));
		assert_int_equal(wf_cursor_recv(&in, "RESUME", &part), WEFT_OK);
		wf_cursor_advance(&out, &part);
		covered += part.count;
		parts++;
	}
	assert_int_equal(covered, units);
	assert_false(wf_cursor_is_open(&in));
	return parts;
}

static void
every_unit_is_covered_once_in_as_few_parts_as_it_takes(void **state)
{
	(void)state;
	assert_int_equal(exchange_all(0), 1); /* one message, without units */
	assert_int_equal(exchange_all(1), 1);
	assert_int_equal(exchange_all(WF_STEPS_PER_MSG - 1), 1);
	assert_int_equal(exchange_all(WF_STEPS_PER_MSG), 1);
	assert_int_equal(exchange_all(WF_STEPS_PER_MSG + 1), 2);
	assert_int_equal(exchange_all(3 * WF_STEPS_PER_MSG), 3);
	assert_int_equal(exchange_all(WF_SLICE_COUNT_MAX), 4195);
}

static void
a_part_that_was_not_sent_is_filled_again(void **state)
{
	struct wf_cursor out;
	(void)state;
	wf_cursor_begin(&out, WF_STEPS_PER_MSG + 7);
	wf_cursor_fill(&out, &part);
	wf_cursor_advance(&out, &part);
	for (unsigned i = 0; i < 2; i++) {
		wf_cursor_fill(&out, &part);
		assert_int_equal(part.first, WF_STEPS_PER_MSG);
		assert_int_equal(part.count, 7);
		assert_true(part.last && wf_cursor_is_open(&out));
	}
	wf_cursor_advance(&out, &part);
	assert_false(wf_cursor_is_open(&out));
}

static void
a_path_that_is_gone_closes_the_cursor(void **state)
{
	struct wf_cursor out;
	(void)state;
	wf_cursor_begin(&out, 3);
	wf_cursor_end(&out);
	assert_false(wf_cursor_is_open(&out));
}

/* A cursor over five units, of which two are here, receives this. */
static void
assert_refused(struct wf_msg_steps *wrong, const char *text)
{
	struct wf_cursor in;
	wf_cursor_begin(&in, 5);
	const struct wf_msg_steps begin = {.count = 2};
	assert_int_equal(wf_cursor_recv(&in, "HAVE", &begin), WEFT_OK);
	assert_int_equal(wf_cursor_recv(&in, "HAVE", wrong), WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), text));
	const struct wf_msg_steps rest = {.first = 2, .count = 3, .last = true};
	assert_int_equal(wf_cursor_recv(&in, "HAVE", &rest), WEFT_OK); /* it stands where it was */
}

static void
a_part_that_is_not_the_next_is_refused(void **state)
{
	(void)state;
	assert_refused(&(struct wf_msg_steps){.first = 3, .count = 2, .last = true},
		       "HAVE: units 3 and 2 more, the last, 2 of 5 are there");
	assert_refused(&(struct wf_msg_steps){.first = 0, .count = 2},
		       "HAVE: units 0 and 2 more, 2 of 5 are there");
}

static void
a_part_with_units_that_do_not_exist_is_refused(void **state)
{
	(void)state;
	assert_refused(&(struct wf_msg_steps){.first = 2, .count = 4, .last = true},
		       "HAVE: units 2 and 4 more, the last, 2 of 5 are there");
	assert_refused(&(struct wf_msg_steps){.first = 2, .count = UINT32_MAX, .last = true},
		       "HAVE: units 2 and 4294967295 more");
}

static void
the_last_part_is_the_one_that_ends_with_the_last_unit(void **state)
{
	(void)state;
	assert_refused(&(struct wf_msg_steps){.first = 2, .count = 2, .last = true},
		       "HAVE: units 2 and 2 more, the last, 2 of 5 are there");
	assert_refused(&(struct wf_msg_steps){.first = 2, .count = 3},
		       "HAVE: units 2 and 3 more, 2 of 5 are there");
}

static void
a_part_without_units_is_refused_where_some_are_missing(void **state)
{
	(void)state;
	assert_refused(&(struct wf_msg_steps){.first = 2}, "HAVE: units 2 and 0 more");
}

static void
nothing_is_received_after_the_last_part_or_before_a_path(void **state)
{
	struct wf_cursor in = {0};
	const struct wf_msg_steps none = {.last = true};
	(void)state;
	assert_int_equal(wf_cursor_recv(&in, "HAVE", &none), WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), "and no more are waited for"));
	wf_cursor_begin(&in, 0);
	assert_int_equal(wf_cursor_recv(&in, "HAVE", &none), WEFT_OK);
	assert_int_equal(wf_cursor_recv(&in, "HAVE", &none), WEFT_PROTOCOL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_unit_is_covered_once_in_as_few_parts_as_it_takes),
		cmocka_unit_test(a_part_that_was_not_sent_is_filled_again),
		cmocka_unit_test(a_path_that_is_gone_closes_the_cursor),
		cmocka_unit_test(a_part_that_is_not_the_next_is_refused),
		cmocka_unit_test(a_part_with_units_that_do_not_exist_is_refused),
		cmocka_unit_test(the_last_part_is_the_one_that_ends_with_the_last_unit),
		cmocka_unit_test(a_part_without_units_is_refused_where_some_are_missing),
		cmocka_unit_test(nothing_is_received_after_the_last_part_or_before_a_path),
	};
	return cmocka_run_group_tests_name("cursors", tests, NULL, NULL);
}
