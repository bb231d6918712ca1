/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a process that forks: what it closes while a child has a duplicate of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/loop.h"

static unsigned called;

static void
count(struct wf_loop_source *source, uint32_t mask)
{
	(void)source;
	(void)mask;
	called++;
}

static void
a_descriptor_that_is_closed_brings_nothing_though_it_has_a_duplicate(void **state)
{
	struct wf_loop_source source = {.notify = count};
	struct wf_env *env = NULL;
	struct wf_loop loop;
	(void)state;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	wf_loop_init(&loop, env, NULL);
	assert_int_equal(wf_loop_open(&loop), WEFT_OK);
	int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	int duplicate = dup(fd);
	assert_true(fd >= 0 && duplicate >= 0);
	assert_int_equal(wf_loop_watch(&loop, fd, EPOLLIN, &source), WEFT_OK);
	assert_true(wf_loop_collect(&loop));
	assert_int_equal(called, 1);
	wf_loop_close_fd(&loop, &fd);
	assert_int_equal(fd, -1);
	assert_int_equal(write(duplicate, &(uint64_t){1}, 8), 8);
	assert_true(wf_loop_collect(&loop));
	assert_int_equal(called, 1);
	wf_loop_close_fd(&loop, &fd); /* once more */
	assert_int_equal(close(duplicate), 0);
	wf_loop_close(&loop);
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_descriptor_that_is_closed_brings_nothing_though_it_has_a_duplicate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
