/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of status and assert: names, the thread's record, ownership. Thread: main, and one more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/status.h"

static void
every_status_has_a_name_of_its_own(void **state)
{
	for (int i = 0; i < WEFT_STATUS_COUNT; i++) {
		const char *name = weft_status_name((enum weft_status)i);
		assert_string_not_equal(name, "unknown");
		for (int j = 0; j < i; j++) {
			assert_string_not_equal(name, weft_status_name((enum weft_status)j));
		}
	}
	assert_string_equal(weft_status_name(WEFT_TIMEOUT), "timeout");
	assert_string_equal(weft_status_name((enum weft_status)WEFT_STATUS_COUNT), "unknown");
	assert_string_equal(weft_status_name((enum weft_status) - 1), "unknown");
}

static void
fail_returns_its_status_and_keeps_the_text(void **state)
{
	assert_int_equal(wf_fail(WEFT_NOMEM, "lane %u: %s", 3u, "no room"), WEFT_NOMEM);
	assert_string_equal(weft_last_error(), "lane 3: no room");
	assert_int_equal(wf_error_record()->status, WEFT_NOMEM);
}

static void
fail_errno_appends_the_reason(void **state)
{
	assert_int_equal(wf_fail_errno(WEFT_IO, ENOENT, "file %d", 1), WEFT_IO);
	assert_string_equal(weft_last_error(), "file 1: No such file or directory");
}

static void
a_text_may_quote_the_error_before_it(void **state)
{
	(void)wf_fail(WEFT_LOST, "inner");
	(void)wf_fail(WEFT_ABORTED, "outer (%s)", weft_last_error());
	assert_string_equal(weft_last_error(), "outer (inner)");
}

static void
a_text_stays_one_line_and_within_its_limit(void **state)
{
	char big[2 * WF_ERROR_BYTES];
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	(void)wf_fail(WEFT_INVALID, "a\nb\x1b[31m");
	assert_string_equal(weft_last_error(), "a b [31m");
	(void)wf_fail(WEFT_INVALID, "%s", big);
	assert_int_equal(strlen(weft_last_error()), WF_ERROR_BYTES - 1);
	(void)wf_fail_errno(WEFT_INVALID, EIO, "%s", big);
	assert_int_equal(strlen(weft_last_error()), WF_ERROR_BYTES - 1);
}

static void *
fail_elsewhere(void *arg)
{
	bool *was_empty = arg;
	*was_empty = weft_last_error()[0] == '\0';
	(void)wf_fail(WEFT_TIMEOUT, "elsewhere");
	return NULL;
}

static void
each_thread_has_its_own_record(void **state)
{
	pthread_t thread;
	bool was_empty = false;
	(void)wf_fail(WEFT_DATA, "here");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &was_empty), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(was_empty);
	assert_string_equal(weft_last_error(), "here");
}

static void
a_record_can_be_swapped(void **state)
{
	struct wf_error other = {.status = WEFT_LOST, .text = "of another member"};
	(void)wf_fail(WEFT_DATA, "mine");
	struct wf_error mine = *wf_error_record();
	*wf_error_record() = other;
	assert_string_equal(weft_last_error(), "of another member");
	*wf_error_record() = mine;
	assert_string_equal(weft_last_error(), "mine");
}

static void *
look_at_owner(void *arg)
{
	return wf_owner_is_me(arg) ? arg : NULL;
}

static void
an_object_belongs_to_the_thread_that_took_it(void **state)
{
	struct wf_owner owner = {0};
	pthread_t thread;
	void *seen = &owner;
	assert_false(wf_owner_is_me(&owner));
	wf_owner_claim(&owner);
	wf_owner_claim(&owner);
	assert_true(wf_owner_is_me(&owner));
	assert_int_equal(pthread_create(&thread, NULL, look_at_owner, &owner), 0);
	assert_int_equal(pthread_join(thread, &seen), 0);
	assert_null(seen);
	wf_owner_drop(&owner);
	assert_false(wf_owner_is_me(&owner));
}

static void
a_failed_assertion_names_its_place_and_aborts(void **state)
{
	int pipe_fds[2];
	char text[256] = "";
	assert_int_equal(pipe(pipe_fds), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(pipe_fds[1], STDERR_FILENO);
		WF_ASSERT(child != 0);
		_exit(0);
	}
	(void)close(pipe_fds[1]);
	assert_true(read(pipe_fds[0], text, sizeof(text) - 1) > 0);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	(void)close(pipe_fds[0]);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(text, "child != 0"));
	assert_non_null(strstr(text, "test_status.c:"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name_of_its_own),
		cmocka_unit_test(fail_returns_its_status_and_keeps_the_text),
		cmocka_unit_test(fail_errno_appends_the_reason),
		cmocka_unit_test(a_text_may_quote_the_error_before_it),
		cmocka_unit_test(a_text_stays_one_line_and_within_its_limit),
		cmocka_unit_test(each_thread_has_its_own_record),
		cmocka_unit_test(a_record_can_be_swapped),
		cmocka_unit_test(an_object_belongs_to_the_thread_that_took_it),
		cmocka_unit_test(a_failed_assertion_names_its_place_and_aborts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
