/* SPDX-License-Identifier: Apache-2.0 */
/* Children that die and are started again by themselves, while the others go on. The children are
 * this very program: `test child die_once`. Thread: main. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tools/launch/restart.h"
#include "tools/launch/supervise.h"

#define LONG_NS (120 * WF_NS_PER_S) /* never reached where all goes well */
#define SHORT_NS (WF_NS_PER_S / 10)
#define WORD_BYTES 32
#define PATH_BYTES 256

static struct wf_child_spec spec[2];
static struct wf_env *env;
static char dir[PATH_BYTES]; /* of one test */
static char fifo[PATH_BYTES + 8];

/* ---- what a child does ---- */

/* The first word that comes through the pipe. */
static void
recv_word(const char *path, char word[WORD_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, word, WORD_BYTES - 1);

	if (bytes <= 0) {
		exit(1);
	}
	word[bytes] = '\0';
}

static void
send_word(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, word, strlen(word)) != (ssize_t)strlen(word)) {
		exit(1);
	}
}

/* Waits until the process has ended, reaped or not. */
static void
await_end_of(pid_t pid)
{
	struct pollfd one = {.fd = (int)syscall(SYS_pidfd_open, pid, 0u), .events = POLLIN};

	if (one.fd >= 0) {
		(void)poll(&one, 1, -1);
	}
}

/* Waits until the parent knows that the process has ended. */
static void
await_reap_of(pid_t pid)
{
	while (kill(pid, 0) == 0) {
		(void)poll(NULL, 0, 1);
	}
}

/* Of some children the second life is another one. */
static void
live_again(const char *what, const char *with)
{
	char word[WORD_BYTES];

	if (strcmp(what, "die_once") == 0) {
		send_word(with, "alive");
		exit(0);
	}
	if (strcmp(what, "die_then_fail") == 0) {
		snprintf(word, sizeof(word), "%d", (int)getpid());
		send_word(with, word);
		exit(64);
	}
	if (strcmp(what, "die_then_wait") == 0) {
		send_word(with, "0");
		for (;;) {
			pause();
		}
	}
	if (strcmp(what, "die_then_end") == 0) {
		exit(0);
	}
	if (strcmp(what, "stop_parent_again") == 0) {
		kill(getppid(), SIGINT);
	}
}

static int
be_a_child(char **words, bool is_again)
{
	char word[WORD_BYTES] = "";
	const char *what = words[0];
	const char *with = words[1];

	if (is_again) {
		live_again(what, with);
	}
	if (strcmp(what, "outlive") == 0) {
		recv_word(with, word);
		await_reap_of((pid_t)strtol(word, NULL, 10));
		return 0;
	}
	if (strcmp(what, "recv") == 0) {
		recv_word(with, word);
		printf("%s\n", word);
		return 0;
	}
	if (strncmp(what, "send_pid", 8) == 0) {
		snprintf(word, sizeof(word), "%d", (int)getpid());
		send_word(with, word);
		if (strcmp(what, "send_pid_fail") == 0) {
			return 64;
		}
		if (strcmp(what, "send_pid_end") == 0) {
			return 0;
		}
	}
	if (strcmp(what, "stop_parent_after") == 0) {
		recv_word(with, word);
		await_reap_of((pid_t)strtol(word, NULL, 10));
		kill(getppid(), SIGINT);
		pause();
	}
	if (strcmp(what, "die_after") == 0) {
		recv_word(with, word);
		await_end_of((pid_t)strtol(word, NULL, 10));
	}
	if (strcmp(what, "exit") == 0) {
		return (int)strtol(with, NULL, 10);
	}
	if (strcmp(what, "move") == 0) {
		snprintf(word, sizeof(word), "moved");
		if (chdir(with) != 0 || rename("log", word) != 0) {
			return 1;
		}
	}
	if (strcmp(what, "wait") == 0) {
		for (;;) {
			pause();
		}
	}
	raise(SIGKILL);
	return 1;
}

/* ---- what the tests share ---- */

static void
plan(unsigned idx, const char *what, const char *with)
{
	spec[idx] = (struct wf_child_spec){.is_worker = true, .owns_stdout = idx == 0};
	snprintf(spec[idx].name, sizeof(spec[idx].name), "child %u", idx);
	wf_args_init(&spec[idx].variables);
	wf_args_init(&spec[idx].args);
	wf_args_add(&spec[idx].args, "test");
	wf_args_add(&spec[idx].args, "child");
	wf_args_add(&spec[idx].args, "%s", what);
	wf_args_add(&spec[idx].args, "%s", with);
	assert_int_equal(wf_args_check(&spec[idx].args), WEFT_OK);
	spec[idx].again = "again";
}

static struct wf_supervise_opts
opts_for(uint64_t most, uint64_t grace_ns)
{
	return (struct wf_supervise_opts){.env = env,
					  .spec = spec,
					  .count = 2,
					  .program = "test",
					  .grace_ns = grace_ns,
					  .restarts = {.alone = true, .most = most}};
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

static int
set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/weft_test_restart_XXXXXX");
	if (mkdtemp(dir) == NULL) {
		return 1;
	}
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	return mkfifo(fifo, 0600);
}

static int
tear_down(void **state)
{
	char path[PATH_BYTES + 32];
	static const char *const names[] = {"fifo", "moved/child-0.log", "moved/child-1.log",
					    "moved"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	return rmdir(dir);
}

/* ---- tests ---- */

static void
keep_line(void *arg, const char *line)
{
	snprintf(arg, WORD_BYTES, "%s", line);
}

/* Child 0 waits for the second life of child 1, which has one argument more than the first. */
static void
a_child_that_dies_is_started_again_and_the_other_one_stays(void **state)
{
	char line[WORD_BYTES] = "";
	plan(0, "recv", fifo);
	plan(1, "die_once", fifo);
	struct wf_supervise_opts opts = opts_for(5, LONG_NS);

	(void)state;
	opts.on_stdout = keep_line;
	opts.on_stdout_arg = line;
	opts.restarts.made = 2;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_string_equal(end.cause, "");
	assert_int_equal(end.restarts, 3);
	assert_string_equal(line, "alive");
}

static void
it_is_started_as_often_as_is_allowed(void **state)
{
	plan(0, "wait", "");
	plan(1, "die", "");
	struct wf_supervise_opts opts = opts_for(2, SHORT_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_non_null(strstr(end.cause, "child 1"));
	assert_int_equal(end.restarts, 2);
	assert_true(end.may_recover);
}

/* Both have died at about the same time, and one start is allowed. */
static void
planned_starts_count_as_well(void **state)
{
	plan(0, "die", "");
	plan(1, "die", "");
	struct wf_supervise_opts opts = opts_for(1, SHORT_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_in_range(end.restarts, 0, 1);
}

static void
nobody_is_started_again_where_that_is_off(void **state)
{
	plan(0, "wait", "");
	plan(1, "die", "");
	struct wf_supervise_opts opts = opts_for(2, SHORT_NS);

	(void)state;
	opts.restarts.alone = false;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_int_equal(end.restarts, 0);
}

static void
nobody_is_started_again_when_one_has_ended_well(void **state)
{
	plan(0, "send_pid_end", fifo);
	plan(1, "die_after", fifo);
	struct wf_supervise_opts opts = opts_for(2, SHORT_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_non_null(strstr(end.cause, "child 1"));
	assert_int_equal(end.restarts, 0);
	assert_true(end.may_recover);
}

/* A pserver that dies when the work is done costs no other run of it. */
static void
a_job_whose_workers_have_all_ended_well_is_not_begun_again(void **state)
{
	plan(0, "send_pid_end", fifo);
	plan(1, "die_after", fifo);
	spec[1].is_worker = false;
	struct wf_supervise_opts opts = opts_for(2, SHORT_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_non_null(strstr(end.cause, "child 1"));
	assert_int_equal(end.restarts, 0);
	assert_true(end.is_done);
	assert_false(end.may_recover);
}

static void
a_mistake_in_the_options_is_not_tried_again(void **state)
{
	plan(0, "wait", "");
	plan(1, "exit", "64");
	struct wf_supervise_opts opts = opts_for(2, SHORT_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 64);
	assert_int_equal(end.restarts, 0);
	assert_false(end.may_recover);
}

/* Its log cannot be opened the second time. */
static void
a_start_that_fails_ends_the_job_with_the_first_reason(void **state)
{
	char log[PATH_BYTES + 8];
	plan(0, "wait", "");
	plan(1, "move", dir);
	struct wf_supervise_opts opts = opts_for(2, SHORT_NS);

	(void)state;
	snprintf(log, sizeof(log), "%s/log", dir);
	opts.log_dir = log;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_non_null(strstr(end.cause, "child 1"));
	assert_int_equal(end.restarts, 0);
	assert_true(end.may_recover);
}

static struct wf_supervise_opts
opts_for_joiners(uint64_t most)
{
	struct wf_supervise_opts opts = opts_for(most, SHORT_NS);

	opts.least_workers = 1;
	opts.restarts.joins = true;
	opts.restarts.joiner_grace_ns = SHORT_NS;
	return opts;
}

static void
a_worker_that_joins_again_is_not_dropped(void **state)
{
	plan(0, "recv", fifo);
	plan(1, "die_once", fifo);
	struct wf_supervise_opts opts = opts_for_joiners(1);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_string_equal(end.cause, "");
	assert_int_equal(end.restarts, 1);
}

/* It is the last one that is left, so there is nobody to be joined. */
static void
who_cannot_be_dropped_does_not_join(void **state)
{
	plan(0, "wait", "");
	plan(1, "die", "");
	struct wf_supervise_opts opts = opts_for_joiners(5);

	(void)state;
	opts.least_workers = 2;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_int_equal(end.restarts, 0);
}

/* A pserver of a job that drops trainers. */
static void
who_is_no_worker_does_not_join(void **state)
{
	plan(0, "wait", "");
	plan(1, "die", "");
	spec[1].is_worker = false;
	struct wf_supervise_opts opts = opts_for_joiners(5);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_int_equal(end.restarts, 0);
}

/* Child 0 is there when the second life of child 1 fails, as a mistake in the options does. */
static void
a_joiner_that_is_refused_ends_nothing(void **state)
{
	plan(0, "outlive", fifo);
	plan(1, "die_then_fail", fifo);
	struct wf_supervise_opts opts = opts_for_joiners(5);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_non_null(strstr(end.cause, "without child 1"));
	assert_int_equal(end.restarts, 1);
}

/* Child 0 ends well when the second life of child 1 has begun, which waits for ever. */
static void
a_joiner_that_comes_too_late_is_stopped_and_the_job_has_ended_well(void **state)
{
	plan(0, "recv", fifo);
	plan(1, "die_then_wait", fifo);
	struct wf_supervise_opts opts = opts_for_joiners(5);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_non_null(strstr(end.cause, "without child 1"));
	assert_int_equal(end.restarts, 1);
}

static void
a_signal_ends_the_job_and_nobody_is_started_after_it(void **state)
{
	plan(0, "wait", "");
	plan(1, "stop_parent_again", "");
	struct wf_supervise_opts opts = opts_for(1000, LONG_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGINT);
	assert_int_equal(end.restarts, 1);
	assert_false(end.may_recover);
}

static void
nobody_is_started_again_while_the_job_fails(void **state)
{
	plan(0, "send_pid_fail", fifo);
	plan(1, "die_after", fifo);
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 64);
	assert_int_equal(end.restarts, 0);
}

static void
a_signal_between_death_and_start_ends_the_job(void **state)
{
	plan(0, "stop_parent_after", fifo);
	plan(1, "send_pid_die", fifo);
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);

	(void)state;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGINT);
	assert_non_null(strstr(end.cause, "stopped by"));
}

static void
a_job_goes_on_when_all_of_it_has_died(void **state)
{
	plan(0, "die_then_end", "");
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);

	(void)state;
	opts.count = 1;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_int_equal(end.restarts, 1);
}

static void
who_dies_soon_waits_twice_as_long_each_time(void **state)
{
	struct wf_restart restart;
	uint64_t now_ns = 1;
	uint64_t expected_ns = WF_RESTART_FIRST_NS;

	(void)state;
	wf_restart_init(&restart, now_ns);
	assert_false(wf_restart_is_planned(&restart));
	for (unsigned i = 0; i < 40; i++) {
		now_ns += WF_RESTART_LIFE_NS - 1;
		wf_restart_plan(&restart, now_ns);
		assert_true(wf_restart_is_planned(&restart));
		assert_int_equal(restart.due_ns, now_ns + expected_ns);
		expected_ns *= 2;
		expected_ns =
			expected_ns < WF_RESTART_LONGEST_NS ? expected_ns : WF_RESTART_LONGEST_NS;
		now_ns = restart.due_ns;
		wf_restart_begin(&restart, now_ns);
		assert_false(wf_restart_is_planned(&restart));
	}
	now_ns += WF_RESTART_LIFE_NS;
	wf_restart_plan(&restart, now_ns);
	assert_int_equal(restart.due_ns, now_ns + WF_RESTART_FIRST_NS);
}

#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ONE(a_child_that_dies_is_started_again_and_the_other_one_stays),
		ONE(it_is_started_as_often_as_is_allowed),
		ONE(planned_starts_count_as_well),
		ONE(nobody_is_started_again_where_that_is_off),
		ONE(nobody_is_started_again_when_one_has_ended_well),
		ONE(a_job_whose_workers_have_all_ended_well_is_not_begun_again),
		ONE(a_mistake_in_the_options_is_not_tried_again),
		ONE(a_start_that_fails_ends_the_job_with_the_first_reason),
		ONE(a_worker_that_joins_again_is_not_dropped),
		ONE(who_cannot_be_dropped_does_not_join),
		ONE(who_is_no_worker_does_not_join),
		ONE(a_joiner_that_is_refused_ends_nothing),
		ONE(a_joiner_that_comes_too_late_is_stopped_and_the_job_has_ended_well),
		ONE(a_signal_ends_the_job_and_nobody_is_started_after_it),
		ONE(nobody_is_started_again_while_the_job_fails),
		ONE(a_signal_between_death_and_start_ends_the_job),
		ONE(a_job_goes_on_when_all_of_it_has_died),
		cmocka_unit_test(who_dies_soon_waits_twice_as_long_each_time),
	};

	if (argc >= 4 && strcmp(argv[1], "child") == 0) {
		return be_a_child(argv + 2, argc >= 5);
	}
	if (wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env) != WEFT_OK) {
		return 1;
	}
	int failed = cmocka_run_group_tests_name("tools_restart", tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
