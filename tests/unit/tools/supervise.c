/* SPDX-License-Identifier: Apache-2.0 */
/* Supervision, with this very program as the children: `test child exit 3`. Thread: main. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/assert.h"
#include "tools/launch/supervise.h"

#define LINE_BYTES 1000u
#define LEFT_BYTES (3u << 19)       /* of empty lines; each takes 17 bytes of a queue of 16 MiB */
#define LONG_NS (120 * WF_NS_PER_S) /* never reached where all goes well */
#define SHORT_NS (WF_NS_PER_S / 10)

static struct wf_child_spec spec[3];
static struct wf_env *env;

/* ---- what a child does ---- */

/* Numbered lines of LINE_BYTES until nobody has taken any for a second. Returns their number. */
static unsigned
flood(unsigned first, unsigned most)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	char line[LINE_BYTES + 1];
	unsigned next = first;

	while (next - first < most && poll(&out, 1, 1000) == 1) {
		snprintf(line, sizeof(line), "%-*u\n", (int)LINE_BYTES - 1, next);
		if (write(STDOUT_FILENO, line, LINE_BYTES) != (ssize_t)LINE_BYTES) {
			exit(1); /* shorter than what a pipe takes at once */
		}
		next++;
	}
	return next - first;
}

/* Writes empty lines to `fd` until nobody can read them any more. */
static _Noreturn void
write_for_ever(int fd)
{
	char lines[4096];

	memset(lines, '\n', sizeof(lines));
	for (;;) {
		if (write(fd, lines, sizeof(lines)) < 0) {
			_exit(0);
		}
	}
}

/* Leaves a process of a session of its own, which writes to `fd` before this one ends and goes on
 * afterwards. */
static int
leave_a_writer(int fd)
{
	int begun[2];
	char byte;

	assert_int_equal(pipe2(begun, O_CLOEXEC), 0);
	printf("first line\n");
	fprintf(stderr, "first line\n");
	(void)fflush(NULL);
	if (fork() == 0) {
		setsid();
		(void)!write(fd, "\n", 1);
		(void)!write(begun[1], "", 1);
		write_for_ever(fd);
	}
	return read(begun[0], &byte, 1) == 1 ? 0 : 1;
}

/* Writes more empty lines than the queue of results and a pipe of the usual size have room for, and
 * fewer than with the largest pipe. */
static int
leave_a_large_pipe(void)
{
	char lines[4096];

	if (fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20) < 1 << 20) {
		return 1;
	}
	memset(lines, '\n', sizeof(lines));
	for (unsigned i = 0; i < LEFT_BYTES / sizeof(lines); i++) {
		assert_int_equal(write(STDOUT_FILENO, lines, sizeof(lines)), sizeof(lines));
	}
	return 0;
}

/* Until the supervisor has seen the end of all others. */
static void
wait_until_alone(void)
{
	char path[64], line[256] = "";
	long other = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getppid(), (int)getppid());
	do {
		char *end = line;
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_non_null(fgets(line, sizeof(line), file));
		assert_int_equal(fclose(file), 0);
		other = strtol(line, &end, 10);
		other = other == getpid() ? strtol(end, NULL, 10) : other;
		(void)poll(NULL, 0, 1);
	} while (other != 0);
}

static int
be_a_child(char **words)
{
	if (strcmp(words[0], "leave_writer") == 0) {
		return leave_a_writer((int)strtol(words[1], NULL, 10));
	}
	if (strcmp(words[0], "leave_pipe") == 0) {
		return leave_a_large_pipe();
	}
	if (strcmp(words[0], "flood_stop") == 0) {
		fprintf(stderr, "%u lines\n", flood(0, UINT_MAX));
		kill(getppid(), SIGINT);
	}
	if (strcmp(words[0], "flood_on") == 0) {
		unsigned lines = flood(0, UINT_MAX);
		fprintf(stderr, "stalled\n");
		lines += flood(lines, 1000); /* it goes on as soon as they are read */
		fprintf(stderr, "%u lines\n", lines);
		return 0;
	}
	if (strcmp(words[0], "complain") == 0) {
		for (unsigned i = 0; i < 20000; i++) {
			fprintf(stderr, "%-*u\n", (int)LINE_BYTES - 1, i);
		}
		return 0;
	}
	if (strcmp(words[0], "say") == 0) {
		printf("%s\n", words[1]);
		fprintf(stderr, "error of %s\n", words[1]);
		return 0;
	}
	if (strcmp(words[0], "exit") == 0) {
		fprintf(stderr, "last words of %s\n", words[1]);
		return (int)strtol(words[1], NULL, 10);
	}
	if (strcmp(words[0], "exit_last") == 0) {
		wait_until_alone();
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

/* A trainer of the user's ends with 1 because a pserver has told it why there is no job. */
static void
a_program_with_exit_codes_of_its_own_is_not_the_cause_of_others(void **state)
{
	plan(0, "exit", "1", true);
	plan(1, "exit_last", "65", false);
	spec[0].program = "/proc/self/exe";
	struct wf_supervise_opts opts = opts_for(2, LONG_NS);

	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 65);
	assert_non_null(strstr(end.cause, "child 1"));
	assert_false(end.may_recover);
	plan(1, "exit_last", "69", false);
	end = supervise(&opts);
	assert_int_equal(end.exit_code, 1);
	assert_non_null(strstr(end.cause, "child 0"));
	spec[0].program = NULL;
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
a_worker_that_has_died_is_dropped_as_long_as_enough_are_left(void **state)
{
	plan(0, "exit", "0", true);
	plan(1, "kill", "", true);
	plan(2, "exit", "0", false);
	struct wf_supervise_opts opts = opts_for(3, LONG_NS);

	opts.least_workers = 1;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 0);
	assert_string_equal(end.cause, "the job has ended well without child 1, which had died or "
				       "failed");
	opts.least_workers = 2;
	end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_non_null(strstr(end.cause, "child 1 (pid "));
	plan(2, "exit_last", "70", false); /* when the work is done, without child 1 */
	opts.least_workers = 1;
	end = supervise(&opts);
	assert_int_equal(end.exit_code, 70);
	assert_true(end.is_done);
}

static void
who_is_no_worker_or_has_bad_options_is_not_dropped(void **state)
{
	plan(0, "wait", "", true);
	plan(1, "exit", "64", true);
	plan(2, "wait", "", false);
	struct wf_supervise_opts opts = opts_for(3, SHORT_NS);

	opts.least_workers = 1;
	struct wf_supervise_end end = supervise(&opts);
	assert_int_equal(end.exit_code, 64);
	plan(1, "kill", "", false);
	end = supervise(&opts);
	assert_int_equal(end.exit_code, 128 + SIGKILL);
	assert_false(end.is_done);
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
write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void
check_text(const char *path, const char *wanted)
{
	char text[128] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(wanted));
	assert_string_equal(text, wanted);
	assert_int_equal(fclose(file), 0);
}

/* The folder is the user's choice and may be a link; what is in it nobody chose. */
static void
only_files_of_our_own_are_emptied_for_a_log(void **state)
{
	struct wf_supervise_end end;
	char line[64] = "";
	char folder[] = "weft_logs_XXXXXX";
	char log[64], mine[64], link_to[64];
	plan(0, "say", "hello", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	assert_non_null(mkdtemp(folder));
	snprintf(log, sizeof(log), "%s/child-0.log", folder);
	snprintf(mine, sizeof(mine), "%s/mine", folder);
	snprintf(link_to, sizeof(link_to), "%s_link", folder);
	assert_int_equal(symlink(folder, link_to), 0);
	opts.log_dir = link_to;
	opts.on_stdout = keep_line;
	opts.on_stdout_arg = line;
	write_text(mine, "mine");
	for (unsigned i = 0; i < 6; i++) {
		int made = -1;
		switch (i) {
		case 0:
			made = symlink("mine", log);
			break;
		case 1:
			made = symlink("nowhere", log);
			break;
		case 2:
			made = symlink("/dev/null", log);
			break;
		case 3:
			made = link(mine, log);
			break;
		case 4:
			made = mkfifo(log, 0600);
			break;
		default:
			made = mkdir(log, 0700);
			break;
		}
		assert_int_equal(made, 0);
		assert_int_equal(wf_supervise(&opts, &end), WEFT_IO);
		assert_non_null(strstr(weft_last_error(), "child-0.log: is a link, a folder, "));
		check_text(mine, "mine");
		assert_int_equal(remove(log), 0);
	}
	/* What an earlier job left there is its own. */
	write_text(log, "a much longer line of an earlier job than those that come\n");
	(void)supervise(&opts);
	FILE *file = fopen(log, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(fclose(file), 0);
	assert_null(strstr(line, "earlier"));
	assert_int_equal(unlink(log) + unlink(mine) + unlink(link_to) + rmdir(folder), 0);
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

/* ---- output that nobody takes ---- */

struct pipes {
	int saved[2]; /* stdout, stderr */
	int out[2], err[2];
	pthread_t thread;
	unsigned lines; /* seen on `out`, in order */
	char said[65536];
};

static void
fill(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	while (poll(&ready, 1, 0) == 1) {
		assert_int_equal(write(fd, "\n", 1), 1);
	}
}

static void
begin(struct pipes *p)
{
	(void)fflush(NULL);
	for (int i = 0; i < 2; i++) {
		p->saved[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 0);
		assert_int_equal(pipe2(i == 0 ? p->out : p->err, O_CLOEXEC), 0);
		assert_int_equal(dup2(i == 0 ? p->out[1] : p->err[1], i + 1), i + 1);
	}
}

/* Nobody writes any more. */
static void
finish(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dup2(p->saved[i], i + 1), i + 1);
		assert_int_equal(close(p->saved[i]), 0);
	}
	assert_int_equal(close(p->out[1]) + close(p->err[1]), 0);
}

static void
a_stderr_that_nobody_reads_stops_neither_us_nor_the_children(void **state)
{
	struct pipes p = {0};
	char line[64] = "";
	plan(0, "complain", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	opts.on_stdout = keep_line;
	opts.on_stdout_arg = line;
	begin(&p);
	fill(p.err[1]);
	struct wf_supervise_end end = supervise(&opts);
	finish(&p);
	assert_int_equal(end.exit_code, 0);
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

static void
a_stdout_that_nobody_reads_does_not_keep_us_from_a_signal(void **state)
{
	struct pipes p = {0};
	plan(0, "flood_stop", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	begin(&p);
	struct wf_supervise_end end = supervise(&opts);
	finish(&p);
	assert_int_equal(end.exit_code, 128 + SIGINT);
	assert_true(read(p.err[0], p.said, sizeof(p.said) - 1) > 0);
	assert_non_null(strstr(p.said, "nobody reads stdout: results"));
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

static bool
next_byte(int fd, char *out)
{
	return read(fd, out, 1) == 1;
}

static void
read_stderr_until(struct pipes *p, const char *text)
{
	size_t used = 0;

	while (used + 1 < sizeof(p->said) && next_byte(p->err[0], p->said + used)) {
		p->said[++used] = '\0';
		if (strstr(p->said, text) != NULL) {
			return;
		}
	}
}

/* Begins to read stdout when the child has found that nobody does. */
static void *
read_late(void *arg)
{
	struct pipes *p = arg;
	char line[LINE_BYTES];

	read_stderr_until(p, "stalled\n");
	FILE *out = fdopen(dup(p->out[0]), "r");
	while (out != NULL && fread(line, sizeof(line), 1, out) == 1 &&
	       strtoul(line, NULL, 10) == p->lines && line[LINE_BYTES - 1] == '\n') {
		p->lines++;
	}
	if (out != NULL) {
		(void)fclose(out);
	}
	return NULL;
}

/* A pager that somebody scrolls through: it goes on, but not within the patience of an end. */
static void *
read_slowly(void *arg)
{
	struct pipes *p = arg;
	char bytes[16 * LINE_BYTES];
	size_t used = 0;
	ssize_t got = 1;

	read_stderr_until(p, "stopping 1 processes");
	while (got > 0) {
		got = read(p->out[0], bytes + used, sizeof(bytes) - used);
		used += got > 0 ? (size_t)got : 0;
		for (size_t at = 0; used == sizeof(bytes) && at < used; at += LINE_BYTES) {
			if (strtoul(bytes + at, NULL, 10) != p->lines) {
				return NULL;
			}
			p->lines++;
		}
		if (used == sizeof(bytes)) {
			used = 0;
			(void)poll(NULL, 0, 8);
		}
	}
	p->lines += (unsigned)(used / LINE_BYTES);
	return NULL;
}

static struct wf_supervise_end
supervise_with_reader(struct pipes *p, const struct wf_supervise_opts *opts,
		      void *(*reader)(void *))
{
	sigset_t all, before;

	begin(p);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	assert_int_equal(pthread_create(&p->thread, NULL, reader, p), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	struct wf_supervise_end end = supervise(opts);
	finish(p);
	assert_int_equal(pthread_join(p->thread, NULL), 0);
	return end;
}

static void
results_that_are_still_read_after_a_signal_are_all_written(void **state)
{
	struct pipes p = {0};
	plan(0, "flood_stop", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	struct wf_supervise_end end = supervise_with_reader(&p, &opts, read_slowly);
	assert_int_equal(end.exit_code, 128 + SIGINT);
	assert_non_null(strstr(p.said, " lines"));
	assert_int_equal(strtoul(strstr(p.said, "| ") + 2, NULL, 10), p.lines);
	assert_true(p.lines > 8000); /* more than is read in the five seconds of an end */
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

static void
results_wait_for_who_reads_them_and_none_is_lost(void **state)
{
	struct pipes p = {0};
	plan(0, "flood_on", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	struct wf_supervise_end end = supervise_with_reader(&p, &opts, read_late);
	char rest[256] = "";
	assert_true(read(p.err[0], rest, sizeof(rest) - 1) > 0);
	assert_int_equal(end.exit_code, 0);
	assert_non_null(strstr(rest, " lines"));
	assert_int_equal(strtoul(strstr(rest, "| ") + 2, NULL, 10), p.lines);
	assert_true(p.lines > 1000);
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

/* Reads everything, beginning at once. Counts the lines, and keeps the beginning. */
static void *
read_all(void *arg)
{
	struct pipes *p = arg;
	char bytes[4096];
	size_t used = 0;
	ssize_t got = 1;

	while ((got = read(p->out[0], bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			p->lines += bytes[i] == '\n' ? 1 : 0;
			if (used + 1 < sizeof(p->said)) {
				p->said[used++] = bytes[i];
			}
		}
	}
	return NULL;
}

static void
a_process_that_still_has_the_stdout_of_an_ended_child_is_not_waited_for(void **state)
{
	struct pipes p = {0};
	plan(0, "leave_writer", "1", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	struct wf_supervise_end end = supervise_with_reader(&p, &opts, read_all);
	assert_int_equal(end.exit_code, 0);
	assert_memory_equal(p.said, "first line\n\n", 12);
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

static void
a_process_that_still_has_the_stderr_of_an_ended_child_is_not_waited_for(void **state)
{
	struct pipes p = {0};
	plan(0, "leave_writer", "2", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	struct wf_supervise_end end = supervise_with_reader(&p, &opts, read_all);
	assert_int_equal(end.exit_code, 0);
	assert_int_equal(p.lines, 1);
	read_stderr_until(&p, "child 0 | first line\nchild 0 | \n");
	assert_non_null(strstr(p.said, "child 0 | first line\nchild 0 | \n"));
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

/* Begins to read stdout when what does not fit into the queue was lost. */
static void *
read_after_the_loss(void *arg)
{
	struct pipes *p = arg;

	read_stderr_until(p, "lost: nobody reads stdout\n");
	return read_all(p);
}

static void
results_that_the_queue_has_no_room_for_at_the_end_are_reported_lost(void **state)
{
	struct pipes p = {0};
	plan(0, "leave_pipe", "", true);
	struct wf_supervise_opts opts = opts_for(1, LONG_NS);

	struct wf_supervise_end end = supervise_with_reader(&p, &opts, read_after_the_loss);
	assert_int_equal(end.exit_code, 0);
	assert_true(p.lines > 500000 && p.lines < LEFT_BYTES); /* the queue was full */
	assert_int_equal(close(p.out[0]) + close(p.err[0]), 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_goes_well_ends_with_0_and_nothing_to_say),
		cmocka_unit_test(the_failing_child_is_the_cause_and_the_others_are_stopped),
		cmocka_unit_test(who_met_the_failure_of_another_is_not_the_cause),
		cmocka_unit_test(a_program_with_exit_codes_of_its_own_is_not_the_cause_of_others),
		cmocka_unit_test(a_child_killed_by_a_signal_is_named_with_it),
		cmocka_unit_test(a_worker_that_has_died_is_dropped_as_long_as_enough_are_left),
		cmocka_unit_test(who_is_no_worker_or_has_bad_options_is_not_dropped),
		cmocka_unit_test(one_signal_stops_all_even_the_deaf),
		cmocka_unit_test(lines_are_filed_for_each_child),
		cmocka_unit_test(only_files_of_our_own_are_emptied_for_a_log),
		cmocka_unit_test(a_job_that_cannot_be_started_leaves_nothing),
		cmocka_unit_test(a_stderr_that_nobody_reads_stops_neither_us_nor_the_children),
		cmocka_unit_test(a_stdout_that_nobody_reads_does_not_keep_us_from_a_signal),
		cmocka_unit_test(results_that_are_still_read_after_a_signal_are_all_written),
		cmocka_unit_test(results_wait_for_who_reads_them_and_none_is_lost),
		cmocka_unit_test(
			a_process_that_still_has_the_stdout_of_an_ended_child_is_not_waited_for),
		cmocka_unit_test(
			a_process_that_still_has_the_stderr_of_an_ended_child_is_not_waited_for),
		cmocka_unit_test(
			results_that_the_queue_has_no_room_for_at_the_end_are_reported_lost),
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
