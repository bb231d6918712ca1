/* SPDX-License-Identifier: Apache-2.0 */
/* Supervision, with this very program as the children: `test child exit 3`. Thread: main. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/assert.h"
#include "tools/launch/supervise.h"

#define LONG_NS (120 * WF_NS_PER_S) /* never reached where all goes well */
#define SHORT_NS (WF_NS_PER_S / 10)

static struct wf_child_spec spec[3];
static struct wf_env *env;

/* ---- what a child does ---- */

static int
be_a_child(char **words)
{
	if (strcmp(words[0], "say") == 0) {
		printf("%s\n", words[1]);
		fprintf(stderr, "error of %s\n", words[1]);
		return 0;
	}
	if (strcmp(words[0], "exit") == 0) {
		fprintf(stderr, "last words of %s\n", words[1]);
		return (int)strtol(words[1], NULL, 10);
	}
	if (strcmp(words[0], "kill") == 0) {
		raise(SIGKILL);
	}
	if (strcmp(words[0], "deaf") == 0) {
		signal(SIGTERM, SIG_IGN);
	}
	if (strcmp(words[0], "stop_parent") == 0) {
		kill(getppid(), SIGINT);
	}
	for (;;) {
		pause();
	}
}

/* ---- what the tests share ---- */

static void
plan(unsigned idx, const char *what, const char *with, bool is_worker)
{
	snprintf(spec[idx].name, sizeof(spec[idx].name), "child %u", idx);
	spec[idx].is_worker = is_worker;
	spec[idx].owns_stdout = idx == 0;
	wf_args_init(&spec[idx].args);
	wf_args_add(&spec[idx].args, "test");
	wf_args_add(&spec[idx].args, "child");
	wf_args_add(&spec[idx].args, "%s", what);
	wf_args_add(&spec[idx].args, "%s", with);
	assert_int_equal(wf_args_check(&spec[idx].args), WEFT_OK);
}

static struct wf_supervise_opts
opts_for(unsigned count, uint64_t grace_ns)
{
	return (struct wf_supervise_opts){
		.env = env, .spec = spec, .count = count, .program = "test", .grace_ns = grace_ns};
}

static struct wf_supervise_end
supervise(const struct wf_supervise_opts *opts)
{
	struct wf_supervise_end end;

	assert_int_equal(wf_supervise(opts, &end), WEFT_OK);
	/* Whatever happened: no child is left, dead or alive. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return end;
}

static void
keep_line(void *arg, const char *line)
{
	snprintf(arg, 64, "%s", line);
}

/* ---- tests ---- */

static void
a_job_that_goes_well_ends_with_0_and_nothing_to_say(void **state)
{
	char line[64] = "";
	plan(0, "say", "hello", true);
	plan(1, "say", "other", false);
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);

	opts.on_stdout = keep_line;
	opts.on_stdout_arg = line;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_string_equal(end.cause, "");
	assert_string_equal(line, "hello");
}

static void
the_failing_child_is_the_cause_and_the_others_are_stopped(void **state)
{
	plan(0, "wait", "", true);
	plan(1, "exit", "65", true);
	plan(2, "wait", "", false);
	struct wf_supervise_opts opts = opts_for(3, SHORT_NS);

	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 65);
	assert_non_null(strstr(end.cause, "child 1"));
	assert_non_null(strstr(end.cause, "last words of 65"));
}

static void
who_met_the_failure_of_another_is_not_the_cause(void **state)
{
	plan(0, "exit", "69", true);
	plan(1, "exit", "65", true);
	plan(2, "exit", "69", false);
	struct wf_supervise_opts opts = opts_for(3, LONG_NS);

	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 65);
	assert_non_null(strstr(end.cause, "child 1"));
}

static void
a_child_killed_by_a_signal_is_named_with_it(void **state)
{
	plan(0, "kill", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_non_null(strstr(end.cause, "killed by signal 9"));
}

static void
one_signal_stops_all_even_the_deaf(void **state)
{
	plan(0, "wait", "", true);
	plan(1, "deaf", "", true);
	plan(2, "stop_parent", "", true);
	struct wf_supervise_opts opts = opts_for(3, SHORT_NS);

	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGINT);
	assert_non_null(strstr(end.cause, "all processes have ended"));
}

static void
lines_are_filed_for_each_child(void **state)
{
	char folder[] = "weft_logs_XXXXXX";
	char path[64];
	char line[64] = "";

	plan(0, "say", "hello", true);
	plan(1, "say", "other", true);
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);
	assert_non_null(mkdtemp(folder));
	opts.log_dir = folder;
	opts.on_stdout = keep_line;
	opts.on_stdout_arg = line;
	(void)supervise(&opts);
	snprintf(path, sizeof(path), "%s/child-1.log", folder);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	char text[128] = "";
	size_t bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = '\0';
	assert_non_null(strstr(text, "other\n"));
	assert_non_null(strstr(text, "error of other\n"));
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/child-0.log", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void
a_job_that_cannot_be_started_leaves_nothing(void **state)
{
	struct wf_supervise_end end;
	plan(0, "wait", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	opts.log_dir = "/no/such/folder";
	assert_int_equal(wf_supervise(&opts, &end), WEFT_IO);
	assert_non_null(strstr(weft_last_error(), "/no/such/folder"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static unsigned
open_files(void)
{
	unsigned count = 0;
	DIR *folder = opendir("/proc/self/fd");

	assert_non_null(folder);
	while (readdir(folder) != NULL) {
		count++;
	}
	closedir(folder);
	return count;
}

static void
no_file_stays_open(void **state)
{
	plan(0, "exit", "0", true);
	plan(1, "exit", "3", true);
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);
	unsigned before = open_files();

	(void)supervise(&opts);
	assert_int_equal(open_files(), before);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_goes_well_ends_with_0_and_nothing_to_say),
		cmocka_unit_test(the_failing_child_is_the_cause_and_the_others_are_stopped),
		cmocka_unit_test(who_met_the_failure_of_another_is_not_the_cause),
		cmocka_unit_test(a_child_killed_by_a_signal_is_named_with_it),
		cmocka_unit_test(one_signal_stops_all_even_the_deaf),
		cmocka_unit_test(lines_are_filed_for_each_child),
		cmocka_unit_test(a_job_that_cannot_be_started_leaves_nothing),
		cmocka_unit_test(no_file_stays_open),
	};

	if (argc >= 4 && strcmp(argv[1], "child") == 0) {
		return be_a_child(argv + 2);
	}
	if (wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env) != WEFT_OK) {
		return 1;
	}
	int failed = cmocka_run_group_tests_name("tools_supervise", tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
