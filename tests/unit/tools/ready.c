/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a pserver finds its log written. Thread: one, and the log's. */
#include "tools/ready.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMES 100u

static off_t
size_of(int fd)
{
	struct stat info;
	assert_int_equal(fstat(fd, &info), 0);
	return info.st_size;
}

static void
log_is_written_before_the_file_is_there(void **state)
{
	char folder[] = "/tmp/weft-test-XXXXXX";
	char path[sizeof(folder) + 8];
	struct wf_env *env = NULL;
	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/ready", folder);
	int log = memfd_create("log", MFD_CLOEXEC);
	assert_true(log >= 0);
	assert_int_equal(wf_env_system_create(WF_LOG_INFO, log, &env), WEFT_OK);
	for (uint32_t i = 0; i < TIMES; i++) {
		struct wf_ready ready = {0};
		const off_t before = size_of(log);
		wf_log(env, WF_LOG_INFO, "pserver listens, time %u", i);
		assert_int_equal(wf_ready_announce(&ready, env, path, "here"), WEFT_OK);
		assert_true(size_of(log) > before);
		wf_ready_withdraw(&ready, env);
		assert_int_equal(access(path, F_OK), -1);
	}
	wf_env_system_destroy(env);
	close(log);
	rmdir(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_is_written_before_the_file_is_there),
	};
	(void)unsetenv("NOTIFY_SOCKET");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
