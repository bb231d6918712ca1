/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of outlet: every way in which a process ends, children of fork, and systems without a
 * thread to spare. Two threads: the test's and the outlet's own; more where noted. */
#include "tests/unit/base/outlet_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/env.h"

#define THREADS 4u

/* The linker calls this instead of the system's, which is __real_. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

static atomic_bool has_no_threads; /* nobody gets one */

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
		      void *arg)
{
	return atomic_load_explicit(&has_no_threads, memory_order_relaxed)
		       ? EAGAIN
		       : __real_pthread_create(thread, attr, run, arg);
}

static void
let_have_threads(bool has_threads)
{
	atomic_store_explicit(&has_no_threads, !has_threads, memory_order_relaxed);
}

static void
where_no_thread_can_be_had_who_waits_for_lines_writes_them(void **state)
{
	char line[LINE_BYTES + 1];
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	let_have_threads(false);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(put_line(outlet, i));
	}
	(void)alarm(60); /* or it hangs */
	assert_true(wf_outlet_flush(outlet, WF_NEVER));
	for (unsigned i = 0; i < 3; i++) {
		next_line(fds[0], line, sizeof(line));
		assert_int_equal(number_of(line), i);
	}
	/* Whose patience is at its end loses nothing by that. */
	size_t filled = fill(fds[1]);
	assert_true(put_line(outlet, 3));
	assert_false(wf_outlet_flush(outlet, 0));
	assert_false(wf_outlet_flush(outlet, WF_NS_PER_MS));
	wf_outlets_flush(WF_NS_PER_MS);
	discard(fds[0], filled);
	assert_true(put_line(outlet, 4));
	wf_outlets_flush(WF_OUTLET_PATIENCE_NS);
	for (unsigned i = 3; i < 5; i++) {
		next_line(fds[0], line, sizeof(line));
		assert_int_equal(number_of(line), i);
	}
	/* As soon as there are threads again it has one. */
	assert_true(put_line(outlet, 5));
	let_have_threads(true);
	unsigned before = threads_of_this_process();
	assert_true(wf_outlet_flush(outlet, WF_NEVER));
	assert_int_equal(threads_of_this_process(), before + 1);
	let_have_threads(false);
	struct wf_outlet *last = open_outlet(fds[1], QUEUE);
	assert_true(put_line(last, 6));
	wf_outlet_close(last);
	for (unsigned i = 5; i < 7; i++) {
		next_line(fds[0], line, sizeof(line));
		assert_int_equal(number_of(line), i);
	}
	let_have_threads(true);
	(void)alarm(0);
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

/* In a child, which must not die: a reader that went away, and then a file that may not grow. */
static _Noreturn void
write_in_vain(int pipe_fd)
{
	const struct rlimit none = {0, 0};
	int file = memfd_create("full", MFD_CLOEXEC);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)alarm(60);
	if (file < 0 || setrlimit(RLIMIT_FSIZE, &none) != 0) {
		_exit(1);
	}
	let_have_threads(false);
	const struct {
		int fd;
		int error;
	} vain[] = {{pipe_fd, EPIPE}, {file, EFBIG}};
	for (size_t i = 0; i < WF_ARRAY_COUNT(vain); i++) {
		struct wf_outlet *outlet = open_outlet(vain[i].fd, QUEUE);
		(void)put_line(outlet, 1);
		(void)wf_outlet_flush(outlet, WF_NEVER);
		if (wf_outlet_error(outlet) != vain[i].error) {
			_exit(2);
		}
		(void)put_line(outlet, 2);
		wf_outlet_close(outlet);
		if (wf_outlet_write(vain[i].fd, "last words\n", 11, 0)) {
			_exit(3);
		}
	}
	sigset_t blocked;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	_exit(sigismember(&blocked, SIGPIPE) == 0 && sigismember(&blocked, SIGXFSZ) == 0 ? 0 : 4);
}

static void
who_writes_without_a_thread_dies_of_no_reader_and_no_limit(void **state)
{
	int fds[2];
	int status = 0;
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(close(fds[0]), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		write_in_vain(fds[1]);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(close(fds[1]), 0);
}

static void *
flush_for_ever(void *arg)
{
	assert_true(wf_outlet_flush(arg, WF_NEVER));
	return NULL;
}

/* Each line comes once, whoever of them writes it. */
static void
several_wait_for_lines_where_no_thread_can_be_had(void **state)
{
	pthread_t thread[THREADS];
	char line[LINE_BYTES + 1];
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	size_t filled = fill(fds[1]);
	let_have_threads(false);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(put_line(outlet, i));
	}
	(void)alarm(60);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(__real_pthread_create(&thread[i], NULL, flush_for_ever, outlet),
				 0);
	}
	discard(fds[0], filled);
	for (unsigned i = 0; i < 100; i++) {
		next_line(fds[0], line, sizeof(line));
		assert_int_equal(number_of(line), i);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	}
	(void)alarm(0);
	let_have_threads(true);
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[1]), 0);
	assert_int_equal(read(fds[0], line, 1), 0);
	assert_int_equal(close(fds[0]), 0);
}

/* ---- ends of processes ---- */

enum end {
	END_EXIT,
	END_ASSERT,
	END_ABORT,
	END_SEGV,
	END_SENT,
	END_ASSERT_IN_THREAD,
	END_WITHOUT_THREADS = 16, /* beside one of those: an outlet has none */
};

static void *
assert_what_is_not(void *nowhere)
{
	WF_ASSERT(nowhere != NULL);
	return NULL;
}

static _Noreturn void
end_by(enum end end, int *nowhere)
{
	pthread_t thread;
	switch (end & ~END_WITHOUT_THREADS) {
	case END_EXIT:
		exit(0); /* the outlet is still open */
	case END_ASSERT:
		WF_ASSERT(nowhere != NULL);
		break;
	case END_ABORT:
		wf_outlets_serve_program();
		abort();
	case END_SEGV:
		wf_outlets_serve_program();
		memset(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1);
		break;
	case END_SENT:
		wf_outlets_serve_program();
		(void)raise(SIGSEGV);
		break;
	case END_ASSERT_IN_THREAD:
		(void)__real_pthread_create(&thread, NULL, assert_what_is_not, nowhere);
		(void)pthread_join(thread, NULL);
		break;
	default:
		break;
	}
	_exit(99); /* it did not end */
}

/* In a child: fills the pipe, puts a line, and ends; meanwhile the parent begins to read. */
static void
ends_with_its_line(enum end end, int signal_number)
{
	static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
	int fds[2];
	int status = 0;
	char text[4096] = "";
	size_t used = 0;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	size_t filled = fill(fds[1]);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < WF_ARRAY_COUNT(fatal); i++) {
			(void)signal(fatal[i], SIG_DFL); /* cmocka's and sanitizers' own */
		}
		(void)dup2(fds[1], STDERR_FILENO);
		(void)close(fds[0]);
		let_have_threads((end & END_WITHOUT_THREADS) == 0);
		struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
		(void)put_line(outlet, 42);
		end_by(end, NULL);
	}
	assert_int_equal(close(fds[1]), 0);
	discard(fds[0], filled);
	for (ssize_t n = 1; n > 0; used += n > 0 ? (size_t)n : 0) {
		n = read(fds[0], text + used, sizeof(text) - 1 - used);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, signal_number);
	assert_memory_equal(text, "line 000042 ", 12);
	if ((end & ~END_WITHOUT_THREADS) == END_ASSERT || end == END_ASSERT_IN_THREAD) {
		assert_non_null(strstr(text, "assertion failed: nowhere != NULL\n"));
	}
	assert_int_equal(close(fds[0]), 0);
}

static void
exit_writes_what_is_left(void **state)
{
	(void)state;
	ends_with_its_line(END_EXIT, 0);
}

static void
a_failed_assertion_writes_what_is_left_and_then_itself(void **state)
{
	(void)state;
	ends_with_its_line(END_ASSERT, SIGABRT);
	ends_with_its_line(END_ASSERT_IN_THREAD, SIGABRT);
}

static void
without_a_thread_what_is_left_is_written_all_the_same(void **state)
{
	(void)state;
	ends_with_its_line(END_WITHOUT_THREADS | END_EXIT, 0);
	ends_with_its_line(END_WITHOUT_THREADS | END_ASSERT, SIGABRT);
	ends_with_its_line(END_WITHOUT_THREADS | END_SEGV, SIGSEGV);
}

static void
a_crash_writes_what_is_left_and_stays_a_crash(void **state)
{
	(void)state;
	ends_with_its_line(END_ABORT, SIGABRT);
	ends_with_its_line(END_SEGV, SIGSEGV);
	ends_with_its_line(END_SENT, SIGSEGV);
}

static void
a_failed_assertion_with_a_stderr_that_nobody_reads_aborts(void **state)
{
	int fds[2];
	int status = 0;
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)fill(fds[1]);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(fds[1], STDERR_FILENO);
		struct wf_outlet *outlet = open_outlet(STDERR_FILENO, QUEUE);
		(void)put_line(outlet, 1);
		end_by(END_ASSERT, NULL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_int_equal(close(fds[0]) + close(fds[1]), 0);
}

static void
a_child_of_fork_writes_its_lines_itself_and_none_of_its_parents(void **state)
{
	int fds[2];
	int status = 0;
	char line[LINE_BYTES + 1];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	size_t filled = fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_true(put_line(outlet, 1)); /* the writer has it, or is about to */
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		bool ok = wf_outlet_flush(outlet, WF_NEVER) && put_line(outlet, 2);
		wf_outlet_close(outlet);
		_exit(ok ? 0 : 1);
	}
	discard(fds[0], filled);
	unsigned sum = 0;
	for (unsigned i = 0; i < 2; i++) {
		next_line(fds[0], line, sizeof(line));
		sum += 1u << (4 * strtoul(line + 5, NULL, 10));
	}
	assert_int_equal(sum, 0x110); /* each of them once */
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[1]), 0);
	assert_int_equal(read(fds[0], line, 1), 0);
	assert_int_equal(close(fds[0]), 0);
}

/* Last words of a child are its own, and are not waited for by nobody: neither the lines of its
 * parent, which the parent writes, nor its parent's threads, which are not there. */
static void
a_failed_assertion_in_a_child_of_fork_writes_its_own_words_alone(void **state)
{
	int fds[2];
	int status = 0;
	char text[4096] = "";
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	int log = memfd_create("stderr", MFD_CLOEXEC);
	(void)fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_true(put_line(outlet, 1));
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(log, STDERR_FILENO);
		(void)wf_outlet_write(log, "last line\n", 10, 0);
		end_by(END_ASSERT, NULL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_true(pread(log, text, sizeof(text) - 1, 0) > 0);
	assert_memory_equal(text, "last line\n", 10);
	assert_non_null(strstr(text, "assertion failed: nowhere != NULL\n"));
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[0]) + close(fds[1]) + close(log), 0);
}

static void *
flush_all_for_ever(void *arg)
{
	(void)sem_post(arg);
	wf_outlets_flush(WF_NEVER);
	return NULL;
}

/* A fork at a moment when another thread looks at the outlets, or has the lock of one. */
static void
a_child_of_fork_waits_for_none_of_its_parents_threads(void **state)
{
	pthread_t looker;
	sem_t begun;
	int fds[2];
	int status = 0;
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC) + sem_init(&begun, 0, 0), 0);
	size_t filled = fill(fds[1]);
	struct wf_outlet *outlet = open_outlet(fds[1], QUEUE);
	assert_true(put_line(outlet, 1));
	assert_int_equal(pthread_create(&looker, NULL, flush_all_for_ever, &begun), 0);
	assert_int_equal(sem_wait(&begun), 0);
	for (unsigned i = 0; i < 50; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			(void)signal(SIGALRM, SIG_DFL);
			(void)alarm(20); /* or it hangs */
			bool is_unused =
				wf_outlet_room(outlet) == QUEUE && wf_outlet_error(outlet) == 0;
			wf_outlet_close(outlet);
			_exit(is_unused ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		(void)poll(NULL, 0, 1); /* another moment */
	}
	discard(fds[0], filled);
	assert_int_equal(pthread_join(looker, NULL), 0);
	wf_outlet_close(outlet);
	assert_int_equal(close(fds[0]) + close(fds[1]) + sem_destroy(&begun), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_writes_what_is_left),
		cmocka_unit_test(a_failed_assertion_writes_what_is_left_and_then_itself),
		cmocka_unit_test(without_a_thread_what_is_left_is_written_all_the_same),
		cmocka_unit_test(a_crash_writes_what_is_left_and_stays_a_crash),
		cmocka_unit_test(a_failed_assertion_with_a_stderr_that_nobody_reads_aborts),
		cmocka_unit_test(a_child_of_fork_writes_its_lines_itself_and_none_of_its_parents),
		cmocka_unit_test(a_failed_assertion_in_a_child_of_fork_writes_its_own_words_alone),
		cmocka_unit_test(a_child_of_fork_waits_for_none_of_its_parents_threads),
		cmocka_unit_test(where_no_thread_can_be_had_who_waits_for_lines_writes_them),
		cmocka_unit_test(who_writes_without_a_thread_dies_of_no_reader_and_no_limit),
		cmocka_unit_test(several_wait_for_lines_where_no_thread_can_be_had),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
