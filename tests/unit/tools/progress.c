/* SPDX-License-Identifier: Apache-2.0 */
/* What progress says of long work, and that short work shows nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/progress/progress.h"

#define MIB (1ull << 20)

static void
a_line_says_how_far_and_how_long(void **state)
{
	static const struct {
		uint64_t total, done, seconds;
		bool with_bar;
		const char *text;
	} rows[] = {
		{100 * MIB, 25 * MIB, 10, true,
		 "weft x: reading  25 % [######                  ] 25.0 MiB of 100.0 MiB, 0:30 "
		 "left"},
		{100 * MIB, 25 * MIB, 10, false,
		 "weft x: reading: 25 %, 25.0 MiB of 100.0 MiB, 0:30 left"},
		{100 * MIB, 0, 10, true,
		 "weft x: reading   0 % [                        ] 0.0 KiB of 100.0 MiB"},
		/* More than was known is no more than all. */
		{100 * MIB, 200 * MIB, 10, true,
		 "weft x: reading 100 % [########################] 100.0 MiB of 100.0 MiB"},
		{3 << 10, 3 << 9, 200, false,
		 "weft x: reading: 50 %, 1.5 KiB of 3.0 KiB, 3:20 left"},
		{0, 5120 * MIB, 12, true, "weft x: reading: 5.0 GiB after 12 s"},
		{UINT64_MAX, 1, 1000, false, "weft x: reading: 0 %, 0.0 KiB of 16777216.0 TiB"},
	};
	char line[200];
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		const struct wf_progress_opts opts = {
			.program = "weft x", .what = "reading", .total = rows[i].total};
		wf_progress_format(&opts, rows[i].done, rows[i].seconds * WF_NS_PER_S,
				   rows[i].with_bar, line, sizeof(line));
		assert_string_equal(line, rows[i].text);
	}
}

static void
short_work_shows_nothing(void **state)
{
	struct wf_env *env = NULL;
	char said[64];
	int end[2];
	(void)state;
	assert_int_equal(pipe(end), 0);
	const int before = dup(STDERR_FILENO);
	assert_int_equal(dup2(end[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, -1, &env), WEFT_OK);
	const struct wf_progress_opts opts = {.env = env, .program = "x", .what = "reading"};
	struct wf_progress *progress = wf_progress_start(&opts);
	wf_progress_add_total(progress, 100);
	wf_progress_hide(progress);
	wf_progress_stop(progress);
	wf_progress_stop(NULL);
	wf_env_system_destroy(env);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	close(end[1]);
	assert_int_equal(read(end[0], said, sizeof(said)), 0);
	close(end[0]);
}

static void
a_size_is_that_of_the_files(void **state)
{
	(void)state;
	assert_int_equal(wf_progress_size("no/such/folder"), 0);
	assert_int_equal(wf_progress_size("/proc/self/io"), 0);
	assert_true(wf_progress_size("/etc/passwd") > 0);
	assert_true(wf_progress_size("/etc") >= wf_progress_size("/etc/passwd"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_says_how_far_and_how_long),
		cmocka_unit_test(short_work_shows_nothing),
		cmocka_unit_test(a_size_is_that_of_the_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
