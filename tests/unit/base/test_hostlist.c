/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of hostlist: what Slurm writes, and what nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/assert.h"
#include "base/hostlist.h"

static void
lists_are_expanded_in_their_order(void **state)
{
	static const struct {
		const char *list, *names;
		uint32_t count;
	} cases[] = {
		{"n1", "n1", 1},
		{"login-2.site", "login-2.site", 1},
		{"n[1-3]", "n1,n2,n3", 3},
		{"n[1-3,7],gpu[001-003]", "n1,n2,n3,n7,gpu001,gpu002,gpu003", 7},
		{"n[08-11]", "n08,n09,n10,n11", 4},
		{"a,b[2],c", "a,b2,c", 3},
		{"r[1-2]n[0-1]x", "r1n0x,r1n1x,r2n0x,r2n1x", 4},
		{"[3-4]", "3,4", 2},
	};
	char out[256];
	uint32_t count;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(wf_hostlist_expand(cases[i].list, WF_HOSTLIST_MAX, out,
						    sizeof(out), &count),
				 WEFT_OK);
		assert_string_equal(out, cases[i].names);
		assert_int_equal(count, cases[i].count);
	}
}

static void
what_is_no_list_is_refused(void **state)
{
	static const char *const lists[] = {
		"",
		"a,",
		",a",
		"n[1-3",
		"n]",
		"n[[1]]",
		"n[]",
		"n[1-]",
		"n[3-1]",
		"n[a]",
		"n[1,]",
		"n[-1]",
		"n[1-2-3]",
		"n[1 ]",
		"n[1][2][3][4][5]",
		"n[0-70000]",
		"n[0-999][0-99]",
		"n[0000000001]",
		"n[1-99999999999]",
	};
	char out[256];
	uint32_t count;

	for (size_t i = 0; i < WF_ARRAY_COUNT(lists); i++) {
		assert_int_equal(
			wf_hostlist_expand(lists[i], WF_HOSTLIST_MAX, out, sizeof(out), &count),
			WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), "the list of hosts"));
	}
}

/* To the byte: "n1,n2,n3" and its NUL. */
static void
what_does_not_fit_is_refused(void **state)
{
	char out[9];
	uint32_t count;

	assert_int_equal(wf_hostlist_expand("n[1-3]", WF_HOSTLIST_MAX, out, sizeof(out), &count),
			 WEFT_OK);
	assert_int_equal(
		wf_hostlist_expand("n[1-3]", WF_HOSTLIST_MAX, out, sizeof(out) - 1, &count),
		WEFT_INVALID);
	assert_int_equal(wf_hostlist_expand("n[1-3]", WF_HOSTLIST_MAX, out, 1, &count),
			 WEFT_INVALID);
}

/* Of a list that has no room, its first names and their number. */
static void
names_beyond_the_most_are_only_counted(void **state)
{
	char out[9];
	uint32_t count;

	assert_int_equal(wf_hostlist_expand("n[1-60000],m[1-2]", 2, out, sizeof(out), &count),
			 WEFT_OK);
	assert_string_equal(out, "n1,n2");
	assert_int_equal(count, 60002);
	assert_int_equal(wf_hostlist_expand("a,b[1-2", 1, out, sizeof(out), &count), WEFT_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_expanded_in_their_order),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(names_beyond_the_most_are_only_counted),
	};

	return cmocka_run_group_tests_name("base_hostlist", tests, NULL, NULL);
}
