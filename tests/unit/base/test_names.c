/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of names: numbers in order, no name twice, and a cost that does not grow with the set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "tests/support/failing_env.h"

#define MANY 40000u

static struct wf_env *env;
static char text[MANY][32];

static int
set_up(void **state)
{
	(void)state;
	return wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)state;
	wf_env_system_destroy(env);
	return 0;
}

static void
a_name_is_found_under_its_number_and_no_other_is(void **state)
{
	struct wf_names names;
	(void)state;
	assert_int_equal(wf_names_init(env, 3, &names), WEFT_OK);
	assert_true(wf_names_find(&names, "a") == WF_NAMES_NONE);
	assert_int_equal(wf_names_add(&names, "a"), 0);
	assert_int_equal(wf_names_add(&names, ""), 1);
	assert_int_equal(wf_names_add(&names, "ab"), 2);
	assert_int_equal(wf_names_find(&names, "a"), 0);
	assert_int_equal(wf_names_find(&names, ""), 1);
	assert_int_equal(wf_names_find(&names, "ab"), 2);
	assert_true(wf_names_find(&names, "b") == WF_NAMES_NONE);
	assert_true(wf_names_find(&names, "A") == WF_NAMES_NONE);
	assert_true(wf_names_find(&names, "abc") == WF_NAMES_NONE);
	wf_names_fini(env, &names);
}

static void
no_names_need_no_memory(void **state)
{
	struct wf_names names;
	(void)state;
	assert_int_equal(wf_names_init(env, 0, &names), WEFT_OK);
	assert_true(wf_names_find(&names, "a") == WF_NAMES_NONE);
	wf_names_fini(env, &names);
}

static void
a_full_set_finds_all_and_looks_at_few_slots_for_each(void **state)
{
	struct wf_names names;
	(void)state;
	assert_int_equal(wf_names_init(env, MANY, &names), WEFT_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "layer.%u.weight", i);
		assert_true(wf_names_find(&names, text[i]) == WF_NAMES_NONE);
		assert_int_equal(wf_names_add(&names, text[i]), i);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(wf_names_find(&names, text[i]), i);
	}
	/* One search each, of two slots at most on average: half of all are taken. */
	assert_true(names.looks >= MANY && names.looks <= 2 * MANY);
	wf_names_fini(env, &names);
}

static void
running_out_of_memory_is_refused_and_leaks_nothing(void **state)
{
	struct wf_failing_env failing;
	(void)state;
	wf_failing_env_init(&failing, env);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		struct wf_names names;
		wf_failing_env_fail(&failing, nth, false);
		assert_int_equal(wf_names_init(&failing.env, 8, &names), WEFT_NOMEM);
		assert_non_null(strstr(weft_last_error(), "no memory for 8"));
		assert_true(wf_failing_env_is_clean(&failing));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_found_under_its_number_and_no_other_is),
		cmocka_unit_test(no_names_need_no_memory),
		cmocka_unit_test(a_full_set_finds_all_and_looks_at_few_slots_for_each),
		cmocka_unit_test(running_out_of_memory_is_refused_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
