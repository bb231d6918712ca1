/* SPDX-License-Identifier: Apache-2.0 */
/* run: see run.h. */
#include "tools/drill/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/own_file.h"
#include "base/signals.h"

#define READ_BYTES 16384
#define EVENTS_MAX 8
#define SIGNAL_KEY WF_PROCESS_STREAMS /* epoll data of the signalfd; else the stream */
/* launch gives its processes 5 s after SIGTERM, and waits 30 s for what SIGKILL does not end. */
#define STOP_NS (45 * WF_NS_PER_S)

enum weft_status
wf_drill_run_open(struct wf_env *env, struct wf_drill_run *run)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = SIGNAL_KEY};
	sigset_t signals;

	*run = (struct wf_drill_run){.env = env, .log_fd = -1, .epoll_fd = -1, .signal_fd = -1};
	wf_process_init(&run->launch);
	wf_signals_that_stop(&signals);
	sigaddset(&signals, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &signals, &run->mask_before) != 0) {
		return wf_fail_errno(WEFT_INTERNAL, errno, "sigprocmask");
	}
	run->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (run->signal_fd < 0 || run->epoll_fd < 0 ||
	    epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, run->signal_fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "cannot wait for signals");
	}
	return WEFT_OK;
}

static void
forget_members(struct wf_drill_run *run)
{
	for (unsigned i = 0; i < run->member_count; i++) {
		close(run->member[i].fd);
	}
	run->member_count = 0;
}

void
wf_drill_run_close(struct wf_drill_run *run)
{
	wf_drill_run_stop(run);
	wf_process_fini(&run->launch);
	forget_members(run);
	const int fd[] = {run->log_fd, run->epoll_fd, run->signal_fd};
	for (size_t i = 0; i < WF_ARRAY_COUNT(fd); i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
	if (run->signal_fd >= 0) {
		sigprocmask(SIG_SETMASK, &run->mask_before, NULL);
	}
}

enum weft_status
wf_drill_run_reset(struct wf_drill_run *run, const char *log_path)
{
	const uint64_t steps_each = run->facts.steps_each;

	run->facts = (struct wf_drill_facts){.steps_each = steps_each};
	run->replaced = 0;
	if (run->log_fd >= 0) {
		close(run->log_fd);
		run->log_fd = -1;
	}
	return wf_own_file_open(log_path, O_APPEND, &run->log_fd);
}

enum weft_status
wf_drill_run_start(struct wf_drill_run *run, const struct wf_args *args)
{
	const struct wf_process_opts opts = {
		.name = WF_DRILL_LAUNCH, .args = args, .mask = &run->mask_before};

	wf_process_fini(&run->launch);
	wf_process_init(&run->launch);
	forget_members(run);
	enum weft_status st = wf_process_start(&run->launch, &opts);
	for (int i = WF_PROCESS_STDOUT; st == WEFT_OK && i <= WF_PROCESS_STDERR; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)i};
		run->lines[i].used = 0;
		if (epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, run->launch.fd[i], &event) != 0) {
			st = wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
		}
	}
	return st;
}

/* ---- lines ---- */

/* Whether launch has started it. A number in a line is not enough to send a signal to it. */
static bool
is_of_launch(const struct wf_drill_run *run, pid_t pid)
{
	char path[64];
	char line[256];
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL &&
	       sscanf(line, "PPid: %d", &parent) != 1) {
	}
	if (file != NULL) {
		fclose(file);
	}
	return parent != 0 && parent == (int)run->launch.pid;
}

static void
put_member(struct wf_drill_run *run, const char *name, pid_t pid, int fd)
{
	for (unsigned i = 0; i < run->member_count; i++) {
		if (strcmp(run->member[i].name, name) == 0) {
			close(run->member[i].fd);
			run->member[i].fd = fd;
			run->member[i].pid = pid;
			run->replaced++;
			return;
		}
	}
	if (run->member_count == WF_DRILL_MEMBERS_MAX) {
		close(fd);
		return;
	}
	struct wf_drill_member *member = &run->member[run->member_count++];
	*member = (struct wf_drill_member){.pid = pid, .fd = fd};
	snprintf(member->name, sizeof(member->name), "%s", name);
}

/* "trainer 1 | pid 4711: weft train mlp ..." */
static void
look_for_member(struct wf_drill_run *run, const char *line)
{
	char role[16];
	char name[WF_DRILL_NAME_BYTES];
	unsigned number;
	int pid;

	if (sscanf(line, "%15[a-z] %u | pid %d: weft ", role, &number, &pid) != 3 || pid <= 0) {
		return;
	}
	/* The handle first: what is asked then is asked of the process that it leads to. */
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
	if (fd < 0) {
		return;
	}
	if (!is_of_launch(run, (pid_t)pid)) {
		close(fd);
		return;
	}
	snprintf(name, sizeof(name), "%s %u", role, number);
	put_member(run, name, (pid_t)pid, fd);
}

static void
on_line(struct wf_drill_run *run, const char *text)
{
	char line[WF_LINE_BYTES + 1];
	int bytes = snprintf(line, sizeof(line), "%s\n", text);

	/* A file that cannot be written is no reason to end: it only shows what has happened. */
	(void)!write(run->log_fd, line, (size_t)bytes);
}

static void
on_stdout(void *arg, const char *text)
{
	struct wf_drill_run *run = arg;

	on_line(run, text);
	wf_drill_facts_on_result(&run->facts, text);
}

static void
on_stderr(void *arg, const char *text)
{
	struct wf_drill_run *run = arg;

	on_line(run, text);
	look_for_member(run, text);
	wf_drill_facts_on_line(&run->facts, text, wf_now_ns(run->env));
}

/* Returns false when there is no more to read now. */
static bool
read_stream(struct wf_drill_run *run, enum wf_process_stream stream)
{
	wf_line_fn *line = stream == WF_PROCESS_STDOUT ? on_stdout : on_stderr;
	char bytes[READ_BYTES];

	if (run->launch.fd[stream] < 0) {
		return false;
	}
	ssize_t got = read(run->launch.fd[stream], bytes, sizeof(bytes));
	if (got > 0) {
		wf_lines_feed(&run->lines[stream], bytes, (size_t)got, line, run);
		return true;
	}
	if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		wf_lines_end(&run->lines[stream], line, run);
		wf_process_close(&run->launch, stream);
	}
	return false;
}

/* ---- waiting ---- */

static bool
is_running(const struct wf_drill_run *run)
{
	return run->launch.pid != 0 && !run->launch.ended;
}

static void
read_signals(struct wf_drill_run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			continue;
		}
		enum wf_stop_ask ask = wf_stop_asked(&run->asked, (int)info.ssi_signo);
		run->signal_number = (int)info.ssi_signo;
		if (ask == WF_STOP_AGAIN) {
			wf_process_signal(&run->launch, SIGKILL); /* and its processes with it */
		}
	}
}

/* Waits once, and handles what there is. */
static void
turn(struct wf_drill_run *run, uint64_t deadline_ns)
{
	struct epoll_event events[EVENTS_MAX];
	int count = run->env->ops->wait_events(run->env, run->epoll_fd, deadline_ns, events,
					       EVENTS_MAX);

	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 == SIGNAL_KEY) {
			read_signals(run);
		} else {
			(void)read_stream(run, (enum wf_process_stream)events[i].data.u64);
		}
	}
	if (is_running(run) && wf_process_reap(&run->launch)) {
		while (read_stream(run, WF_PROCESS_STDOUT) || read_stream(run, WF_PROCESS_STDERR)) {
		}
		wf_process_close(&run->launch, WF_PROCESS_STDOUT);
		wf_process_close(&run->launch, WF_PROCESS_STDERR);
	}
}

enum weft_status
wf_drill_run_await(struct wf_drill_run *run, wf_drill_question *question, uint64_t deadline_ns)
{
	for (;;) {
		if (run->signal_number != 0) {
			return wf_fail(WEFT_ABORTED, "stopped by %s",
				       strsignal(run->signal_number));
		}
		if (question != NULL && question(run)) {
			return WEFT_OK;
		}
		if (!is_running(run)) {
			return question == NULL ? WEFT_OK
						: wf_fail(WEFT_CLOSED, "%.400s", run->facts.last);
		}
		if (wf_now_ns(run->env) >= deadline_ns) {
			return wf_fail(WEFT_TIMEOUT, "%s still runs", WF_DRILL_LAUNCH);
		}
		turn(run, deadline_ns);
	}
}

static bool
send_to(const struct wf_drill_member *member, int signal_number)
{
	return syscall(SYS_pidfd_send_signal, member->fd, signal_number, NULL, 0u) == 0;
}

void
wf_drill_run_stop(struct wf_drill_run *run)
{
	const uint64_t deadline_ns = wf_now_ns(run->env) + STOP_NS;

	if (!is_running(run)) {
		return;
	}
	for (unsigned i = 0; i < run->member_count; i++) { /* one may be paused */
		(void)send_to(&run->member[i], SIGCONT);
	}
	wf_process_signal(&run->launch, SIGTERM);
	while (is_running(run) && wf_now_ns(run->env) < deadline_ns) {
		turn(run, deadline_ns);
	}
	wf_process_signal(&run->launch, SIGKILL);
	while (is_running(run)) {
		turn(run, WF_NEVER);
	}
}

int
wf_drill_run_exit_code(const struct wf_drill_run *run)
{
	const int status = run->launch.wait_status;

	WF_ASSERT(run->launch.ended);
	return WIFSIGNALED(status) ? WF_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- faults ---- */

enum weft_status
wf_drill_run_signal(const struct wf_drill_run *run, const char *name, int signal_number)
{
	if (strcmp(name, WF_DRILL_LAUNCH) == 0) {
		wf_process_signal(&run->launch, signal_number);
		return WEFT_OK;
	}
	for (unsigned i = 0; i < run->member_count; i++) {
		const struct wf_drill_member *member = &run->member[i];
		if (strcmp(member->name, name) == 0) {
			return send_to(member, signal_number)
				       ? WEFT_OK
				       : wf_fail_errno(WEFT_INVALID, errno,
						       "%s: cannot be sent a signal", name);
		}
	}
	return wf_fail(WEFT_INVALID,
		       "%s: is no process of this job; Linux 5.3 and /proc are needed", name);
}

enum weft_status
wf_drill_run_let_write(const struct wf_drill_run *run, bool may_write)
{
	unsigned count = 0;

	for (unsigned i = 0; i < run->member_count; i++) {
		const struct wf_drill_member *member = &run->member[i];
		struct rlimit limit;
		if (strncmp(member->name, "pserver ", 8) != 0) {
			continue;
		}
		/* A pid that is another's by now is not touched. */
		bool done =
			send_to(member, 0) && prlimit(member->pid, RLIMIT_FSIZE, NULL, &limit) == 0;
		limit.rlim_cur = may_write ? limit.rlim_max : 0;
		if (!done || prlimit(member->pid, RLIMIT_FSIZE, &limit, NULL) != 0) {
			return wf_fail_errno(WEFT_PERM, errno, "%s: its RLIMIT_FSIZE cannot be set",
					     member->name);
		}
		count++;
	}
	return count > 0 ? WEFT_OK : wf_fail(WEFT_INVALID, "no pserver is left");
}
