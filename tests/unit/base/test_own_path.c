/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of own_path; where /proc is not mounted: tests/programs/no_proc.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/own_path.h"

static void
it_is_absolute_and_names_this_program(void **state)
{
	char path[4096];

	assert_int_equal(wf_own_path(path, sizeof(path)), WEFT_OK);
	assert_int_equal(path[0], '/');
	assert_non_null(strstr(path, "own_path"));
	assert_int_equal(access(path, X_OK), 0);
}

static void
a_path_that_does_not_fit_is_refused(void **state)
{
	char path[4096];

	assert_int_equal(wf_own_path(path, sizeof(path)), WEFT_OK);
	size_t bytes = strlen(path);
	assert_int_equal(wf_own_path(path, bytes), WEFT_IO);
	assert_int_equal(wf_own_path(path, bytes + 1), WEFT_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_absolute_and_names_this_program),
		cmocka_unit_test(a_path_that_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests_name("base_own_path", tests, NULL, NULL);
}
