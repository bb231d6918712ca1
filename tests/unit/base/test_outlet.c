/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of outlet: order, what a full pipe costs, and how dropped lines are reported. Two threads:
 * the test's and the outlet's own; more where noted. */
#include "tests/unit/base/outlet_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/env.h"

#define THREADS 4u
#define LINES_EACH 2000u

static void
lines_come_out_in_their_order(void **state)
{
	int log = memfd_create("log", MFD_CLOEXEC);
	struct wf_outlet *outlet = open_outlet(log, QUEUE);
	char line[LINE_BYTES + 1];
	(void)state;
	for (unsigned i = 0; i < LINES_EACH; i++) {
		while (!put_line(outlet, i)) { /* the queue is much shorter than all of them */
			assert_true(wf_outlet_flush(outlet, WF_NEVER));
		}
	}
	wf_outlet_close(outlet);
	assert_int_equal(lseek(log, 0, SEEK_SET), 0);
	for (unsigned i = 0; i < LINES_EACH; i++) {
		do { /* what it says of those that were put again does not count here */
			next_line(log, line, sizeof(line));
		} while (line[0] == '[');
		assert_int_equal(strtoul(line + 5, NULL, 10), i);
	}
	assert_int_equal(read(log, line, 1), 0);
	assert_int_equal(close(log), 0);
}

static void
a_line_longer_than_a_pipe_takes_at_once_comes_whole(void **state)
{
	char *sent = calloc(1, WF_OUTLET_LINE_BYTES);
	char *got = calloc(1, WF_OUTLET_LINE_BYTES);
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	struct wf_outlet *outlet = open_outlet(fds[1], WF_OUTLET_LINE_BYTES * 2);
	for (size_t i = 0; i < WF_OUTLET_LINE_BYTES; i++) {
		sent[i] = (char)('a' + i % 26);
	}
	for (unsigned round = 0; round < 3; round++) { /* over the end of the queue, too */
		assert_true(wf_outlet_put(outlet, sent, WF_OUTLET_LINE_BYTES));
		for (size_t used = 0; used < WF_OUTLET_LINE_BYTES;) {
			ssize_t n = read(fds[0], got + used, WF_OUTLET_LINE_BYTES - used);
			assert_true(n > 0);
			used += (size_t)n;
		}
		assert_memory_equal(sent, got, WF_OUTLET_LINE_BYTES);
	}
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
	free(sent);
	free(got);
}

static void
every_line_is_written_or_counted(void **state)
{
	int fds[2];
	char line[LINE_BYTES + 1];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	size_t filled = fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	for (unsigned i = 0; i < 1000; i++) {
		(void)put_line(outlet, i);
	}
	discard(fds[0], filled);
	/* Nobody puts any more: what was dropped last is said all the same. */
	unsigned written = 0;
	unsigned lost = 0;
	unsigned before = 0;
	while (written + lost < 1000) {
		next_line(fds[0], line, sizeof(line));
		if (line[0] == '[') {
			lost += (unsigned)strtoul(line + 1, NULL, 10);
		} else {
			unsigned number = (unsigned)strtoul(line + 5, NULL, 10);
			assert_true(number == written + lost); /* where the gap was */
			assert_true(written == 0 || number > before);
			before = number;
			written++;
		}
	}
	assert_int_equal(written + lost, 1000);
	assert_true(lost > 0);
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

static void
closing_on_a_pipe_that_nobody_reads_ends(void **state)
{
	unsigned before = threads_of_this_process();
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_true(put_line(outlet, 1));
	assert_false(wf_outlet_flush(outlet, 0));
	wf_outlet_close(outlet);
	/* Nothing is left that might write to that number later. A thread that was joined may be
	 * seen for a moment. */
	for (unsigned i = 0; i < 10000 && threads_of_this_process() > before; i++) {
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(threads_of_this_process(), before);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

struct reader {
	int fd;
	size_t skip;
	char line[LINE_BYTES + 1];
};

static void *
read_later(void *arg)
{
	struct reader *reader = arg;
	discard(reader->fd, reader->skip);
	next_line(reader->fd, reader->line, sizeof(reader->line));
	return NULL;
}

static void
what_is_left_is_written_at_close_when_somebody_reads_again(void **state)
{
	struct reader reader = {0};
	pthread_t thread;
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	reader.fd = fds[0];
	reader.skip = fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_true(put_line(outlet, 7));
	assert_int_equal(pthread_create(&thread, NULL, read_later, &reader), 0);
	wf_outlet_close(outlet);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(strtoul(reader.line + 5, NULL, 10), 7);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

static void
a_reader_that_went_away_is_an_error_and_no_signal(void **state)
{
	int fds[2];
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t count = 0;
	struct wf_outlet *outlet = NULL;
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const struct wf_outlet_opts opts = {.fd = fds[1],
					    .queue_bytes = QUEUE,
					    .format_dropped = format_dropped,
					    .wake_fd = wake_fd};
	assert_int_equal(wf_outlet_open(&opts, &outlet), WEFT_OK);
	assert_int_equal(wf_outlet_error(outlet), 0);
	assert_int_equal(close(fds[0]), 0);
	(void)signal(SIGPIPE, SIG_DFL);
	assert_true(put_line(outlet, 1));
	assert_true(wf_outlet_flush(outlet, WF_NEVER)); /* lost is done, too */
	assert_int_equal(wf_outlet_error(outlet), EPIPE);
	assert_int_equal(read(wake_fd, &count, sizeof(count)), sizeof(count));
	assert_false(wf_outlet_write(fds[1], "x\n", 2, WF_NEVER));
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[1]) + close(wake_fd), 0);
}

static void
lines_lost_to_an_error_are_told_when_writing_works_again(void **state)
{
	char path[] = "outlet_XXXXXX";
	char line[LINE_BYTES + 1];
	(void)state;
	/* A FIFO whose reader comes back. */
	assert_non_null(mkdtemp(path));
	char name[64];
	(void)snprintf(name, sizeof(name), "%s/fifo", path);
	assert_int_equal(mkfifo(name, 0600), 0);
	int reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int writer = open(name, O_WRONLY | O_CLOEXEC);
	assert_true(reader >= 0 && writer >= 0);
	struct wf_outlet *outlet = open_outlet(writer, QUEUE);
	assert_int_equal(close(reader), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(put_line(outlet, i));
		assert_true(wf_outlet_flush(outlet, WF_NEVER));
	}
	reader = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(put_line(outlet, 3));
	next_line(reader, line, sizeof(line));
	assert_string_equal(line, "[3 dropped]");
	next_line(reader, line, sizeof(line));
	assert_int_equal(strtoul(line + 5, NULL, 10), 3);
	wf_outlet_close(outlet);
	assert_int_equal(close(reader) + close(writer), 0);
	assert_int_equal(unlink(name) + rmdir(path), 0);
}

static void
somebody_elses_nonblocking_descriptor_loses_nothing(void **state)
{
	int fds[2];
	char line[LINE_BYTES + 1];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	size_t filled = fill(fds[1]);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_true(put_line(outlet, 5));
	discard(fds[0], filled);
	next_line(fds[0], line, sizeof(line));
	assert_int_equal(strtoul(line + 5, NULL, 10), 5);
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

/* ---- threads ---- */

struct speaker {
	pthread_t thread;
	struct wf_outlet *outlet;
	unsigned idx;
	unsigned dropped;
};

static void *
speak(void *arg)
{
	struct speaker *speaker = arg;
	for (unsigned i = 0; i < LINES_EACH; i++) {
		speaker->dropped +=
			put_line(speaker->outlet, speaker->idx * LINES_EACH + i) ? 0 : 1;
	}
	return NULL;
}

static void
threads_keep_their_own_order_and_lose_nothing_uncounted(void **state)
{
	struct speaker speaker[THREADS] = {0};
	unsigned next[THREADS] = {0};
	unsigned written = 0;
	unsigned lost = 0;
	unsigned dropped = 0;
	char line[LINE_BYTES + 1];
	int log = memfd_create("log", MFD_CLOEXEC);
	struct wf_outlet *outlet = open_outlet(log, QUEUE);
	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		speaker[i] = (struct speaker){.outlet = outlet, .idx = i};
		assert_int_equal(pthread_create(&speaker[i].thread, NULL, speak, &speaker[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		wf_outlets_flush(0); /* looks on without a lock */
		assert_int_equal(pthread_join(speaker[i].thread, NULL), 0);
		dropped += speaker[i].dropped;
	}
	wf_outlet_close(outlet);
	assert_int_equal(lseek(log, 0, SEEK_SET), 0);
	while (written + lost < THREADS * LINES_EACH) {
		next_line(log, line, sizeof(line));
		if (line[0] == '[') {
			lost += (unsigned)strtoul(line + 1, NULL, 10);
			continue;
		}
		unsigned number = (unsigned)strtoul(line + 5, NULL, 10);
		unsigned of = number / LINES_EACH;
		assert_true(of < THREADS && number % LINES_EACH >= next[of]);
		next[of] = number % LINES_EACH + 1;
		written++;
	}
	assert_int_equal(lost, dropped);
	assert_int_equal(read(log, line, 1), 0);
	assert_int_equal(close(log), 0);
}

static void
a_program_without_standard_descriptors_gets_none_of_its_files_there(void **state)
{
	int status = 0;
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)close(STDIN_FILENO);
		(void)close(STDOUT_FILENO);
		(void)close(STDERR_FILENO);
		wf_outlets_serve_program();
		bool apart = memfd_create("file", MFD_CLOEXEC) > STDERR_FILENO;
		bool err = write(STDERR_FILENO, "x", 1) == 1; /* said to nobody */
		bool out = write(STDOUT_FILENO, "x", 1) < 0 && errno == EBADF;
		_exit(apart && err && out ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void
room_says_how_much_is_taken_for_certain(void **state)
{
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_int_equal(wf_outlet_room(outlet), QUEUE);
	for (unsigned i = 0; i < 1000; i++) {
		size_t room = wf_outlet_room(outlet);
		bool taken = put_line(outlet, i);
		/* The writer takes lines out beside this; there is never less room. */
		assert_true(taken || room < LINE_BYTES + WF_OUTLET_HEAD_BYTES);
	}
	assert_true(wf_outlet_room(outlet) < QUEUE / 2);
	wf_outlet_close(outlet);
	wf_outlet_close(NULL);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_out_in_their_order),
		cmocka_unit_test(a_line_longer_than_a_pipe_takes_at_once_comes_whole),
		cmocka_unit_test(every_line_is_written_or_counted),
		cmocka_unit_test(closing_on_a_pipe_that_nobody_reads_ends),
		cmocka_unit_test(what_is_left_is_written_at_close_when_somebody_reads_again),
		cmocka_unit_test(a_reader_that_went_away_is_an_error_and_no_signal),
		cmocka_unit_test(lines_lost_to_an_error_are_told_when_writing_works_again),
		cmocka_unit_test(somebody_elses_nonblocking_descriptor_loses_nothing),
		cmocka_unit_test(threads_keep_their_own_order_and_lose_nothing_uncounted),
		cmocka_unit_test(
			a_program_without_standard_descriptors_gets_none_of_its_files_there),
		cmocka_unit_test(room_says_how_much_is_taken_for_certain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
