/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the list of broken paths: how long each is left out, which entry is replaced by another,
 * and what is forgiven. Time is the test's. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "transport/paths/paths_internal.h"

#define RETRY_NS 1000u

static struct wf_paths_broken_list list;
static const struct wf_path path, another;

static int
set_up(void **state)
{
	(void)state;
	list = (struct wf_paths_broken_list){0};
	return 0;
}

static struct wf_host
host(unsigned number)
{
	struct wf_host host = {.port = 7164};
	(void)snprintf(host.name, sizeof(host.name), "10.0.0.%u", number);
	return host;
}

/* It carried since `up_ns`. */
static const struct wf_paths_broken *
break_at(unsigned number, uint64_t up_ns, uint64_t now_ns)
{
	const struct wf_host peer = host(number);
	const struct wf_paths_breaking what = {.path = &path,
					       .peer = &peer,
					       .why = "gone",
					       .now_ns = now_ns,
					       .up_ns = up_ns,
					       .retry_ns = RETRY_NS};
	return wf_paths_broken_add(&list, &what);
}

static const struct wf_paths_broken *
find(const struct wf_path *wanted, unsigned number)
{
	const struct wf_host peer = host(number);
	return wf_paths_broken_find(&list, wanted, &peer);
}

static void
a_path_that_does_not_hold_is_left_out_for_twice_as_long(void **state)
{
	uint64_t now_ns = 500;
	(void)state;
	for (unsigned times = 0; times < WF_PATHS_BROKEN_DOUBLINGS + 3; times++) {
		unsigned doublings =
			times < WF_PATHS_BROKEN_DOUBLINGS ? times : WF_PATHS_BROKEN_DOUBLINGS;
		const struct wf_paths_broken *broken = break_at(1, now_ns - 1, now_ns);
		assert_int_equal(broken->at_ns, now_ns);
		assert_int_equal(broken->until_ns - now_ns, (uint64_t)RETRY_NS << doublings);
		now_ns = broken->until_ns + 2;
	}
}

static void
a_path_that_held_for_as_long_as_it_was_left_out_begins_anew(void **state)
{
	(void)state;
	(void)break_at(1, 0, 100);
	const struct wf_paths_broken *broken = break_at(1, 2000, 2000 + RETRY_NS);
	assert_int_equal(broken->until_ns - broken->at_ns, 2 * RETRY_NS); /* not for longer */
	broken = break_at(1, 9000, 9000 + 2 * RETRY_NS + 1);
	assert_int_equal(broken->until_ns - broken->at_ns, RETRY_NS);
	broken = break_at(1, 0, 50000); /* it never came up */
	assert_int_equal(broken->until_ns - broken->at_ns, 2 * RETRY_NS);
}

static void
what_broke_is_found_by_path_and_peer(void **state)
{
	struct wf_host other_port = host(1);
	(void)state;
	(void)break_at(1, 0, 100);
	other_port.port++;
	assert_non_null(find(&path, 1));
	assert_string_equal(find(&path, 1)->why, "gone");
	assert_null(find(&another, 1));
	assert_null(find(&path, 2));
	assert_null(wf_paths_broken_find(&list, &path, &other_port));
}

static void
whatever_broke_longest_ago_makes_room(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX; i++) {
		(void)break_at(i, 0, i == 7 ? 10 : 100 + i);
	}
	assert_non_null(find(&path, 7));
	(void)break_at(200, 0, 1000);
	assert_null(find(&path, 7));
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX; i++) {
		assert_true((find(&path, i) != NULL) == (i != 7));
	}
	assert_non_null(find(&path, 200));
}

static void
only_the_breaking_of_that_number_is_forgiven(void **state)
{
	(void)state;
	uint64_t first = break_at(1, 0, 100)->number;
	uint64_t second = break_at(2, 0, 100)->number;
	assert_true(first != 0 && second != 0 && first != second);
	wf_paths_broken_forgive(&list, 0);
	assert_true(find(&path, 1) != NULL && find(&path, 2) != NULL);
	uint64_t again = break_at(1, 0, 200)->number;
	wf_paths_broken_forgive(&list, first); /* another one is in its place */
	assert_non_null(find(&path, 1));
	wf_paths_broken_forgive(&list, again);
	assert_null(find(&path, 1));
	assert_non_null(find(&path, 2));
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_that_does_not_hold_is_left_out_for_twice_as_long),
		TEST(a_path_that_held_for_as_long_as_it_was_left_out_begins_anew),
		TEST(what_broke_is_found_by_path_and_peer),
		TEST(whatever_broke_longest_ago_makes_room),
		TEST(only_the_breaking_of_that_number_is_forgiven),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
