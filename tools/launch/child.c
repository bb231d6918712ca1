/* SPDX-License-Identifier: Apache-2.0 */
/* child: see child.h. */
#include "tools/launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/own_file.h"

#define READ_BYTES 16384
/* What one read may add to the queue of stdout: empty lines, the first of which ends an unfinished
 * one. */
#define READ_ROOM (READ_BYTES * (1 + (size_t)WF_OUTLET_HEAD_BYTES) + WF_LINE_BYTES)

/* The origin of a line. */
struct source {
	struct wf_child *child;
	enum wf_child_stream stream;
};

void
wf_child_init(struct wf_child *child, const struct wf_supervise_opts *opts, unsigned idx)
{
	WF_ASSERT(idx < opts->count);
	memset(child, 0, sizeof(*child));
	child->opts = opts;
	child->spec = &opts->spec[idx];
	child->colour = 31 + idx % 6;
	child->log_fd = -1;
	child->fd[WF_CHILD_STDOUT] = -1;
	child->fd[WF_CHILD_STDERR] = -1;
}

static enum weft_status
open_log(struct wf_child *child)
{
	char path[4096];

	if (child->opts->log_dir == NULL) {
		return WEFT_OK;
	}
	int wanted =
		snprintf(path, sizeof(path), "%s/%s.log", child->opts->log_dir, child->spec->name);
	if (wanted < 0 || (size_t)wanted >= sizeof(path)) {
		return wf_fail(WEFT_INVALID, "--log_dir: the path is longer than %zu bytes",
			       sizeof(path) - sizeof(child->spec->name));
	}
	for (char *space = strchr(path + strlen(child->opts->log_dir), ' '); space != NULL;
	     space = strchr(space, ' ')) {
		*space = '-';
	}
	return wf_own_file_open(path, O_APPEND, &child->log_fd);
}

static _Noreturn void
exec_failed(const char *what)
{
	char text[4096];

	int bytes = snprintf(text, sizeof(text), "weft: %s: %s\n", what, strerror(errno));
	if (bytes > 0 && write(STDERR_FILENO, text, (size_t)bytes) < 0) {
		_exit(WF_EXIT_IO);
	}
	_exit(WF_EXIT_INTERNAL);
}

/* In the new process, which has one thread. */
static _Noreturn void
become(const struct wf_child *child, const int write_fd[2], const sigset_t *mask, pid_t parent)
{
	static const int ended[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(WF_EXIT_INTERNAL); /* the parent died before prctl */
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(ended); i++) {
		signal(ended[i], SIG_DFL);
	}
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (dup2(write_fd[WF_CHILD_STDOUT], STDOUT_FILENO) < 0 ||
	    dup2(write_fd[WF_CHILD_STDERR], STDERR_FILENO) < 0) {
		exec_failed("dup2");
	}
	int null_fd = open("/dev/null", O_RDONLY);
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0) {
		exec_failed("/dev/null");
	}
	if (null_fd > STDERR_FILENO) {
		close(null_fd);
	}
	for (unsigned i = 0; i < child->spec->variables.count; i++) {
		putenv(child->spec->variables.argv[i]);
	}
	if (child->spec->program == NULL) {
		execv("/proc/self/exe", child->spec->args.argv);
		exec_failed("/proc/self/exe");
	}
	execvp(child->spec->program, child->spec->args.argv);
	exec_failed(child->spec->program);
}

static void
close_both(const int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
}

static enum weft_status
open_pipes(struct wf_child *child, int write_fd[2])
{
	for (int i = 0; i < WF_CHILD_STREAMS; i++) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) != 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: pipe", child->spec->name);
		}
		child->fd[i] = ends[0];
		write_fd[i] = ends[1];
		if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: pipe", child->spec->name);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_child_start(struct wf_child *child, const sigset_t *mask)
{
	int write_fd[WF_CHILD_STREAMS] = {-1, -1};
	pid_t parent = getpid();

	enum weft_status st = open_log(child);
	if (st == WEFT_OK) {
		st = open_pipes(child, write_fd);
	}
	if (st != WEFT_OK) {
		close_both(write_fd);
		return st;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		become(child, write_fd, mask, parent);
	}
	int err = errno;
	close_both(write_fd);
	if (pid < 0) {
		return wf_fail_errno(WEFT_IO, err, "%s: cannot start a process", child->spec->name);
	}
	setpgid(pid, pid); /* both sides set it, whichever runs first */
	child->pid = pid;
	return WEFT_OK;
}

static void
file_line(struct wf_child *child, const char *text)
{
	char line[WF_LINE_BYTES + 1];

	if (child->log_fd < 0 || child->log_failed) {
		return;
	}
	int bytes = snprintf(line, sizeof(line), "%s\n", text);
	if (write(child->log_fd, line, (size_t)bytes) != bytes) {
		child->log_failed = true;
		int length = snprintf(line, sizeof(line),
				      "%s: the log file of %s cannot be written: %s\n",
				      child->opts->program, child->spec->name, strerror(errno));
		(void)wf_outlet_put(child->err, line, (size_t)length);
	}
}

static void
pass_on(struct wf_child *child, const char *text)
{
	const struct wf_supervise_opts *opts = child->opts;
	char line[WF_LINE_BYTES + 1];

	if (opts->on_stdout != NULL) {
		opts->on_stdout(opts->on_stdout_arg, text);
		return;
	}
	int bytes = snprintf(line, sizeof(line), "%s\n", text);
	bool taken = wf_outlet_put(child->out, line, (size_t)bytes);
	WF_ASSERT(taken); /* there was room before the read */
}

/* A stderr that nobody reads loses lines, and blocks neither this process nor the children. */
static void
show_line(const struct wf_child *child, const char *text)
{
	char line[WF_LINE_BYTES + sizeof(child->spec->name) + 32];
	const char *name = child->spec->name;
	int bytes = child->opts->colour ? snprintf(line, sizeof(line), "\033[%um%s |\033[0m %s\n",
						   child->colour, name, text)
					: snprintf(line, sizeof(line), "%s | %s\n", name, text);

	WF_ASSERT(bytes > 0 && (size_t)bytes < sizeof(line));
	(void)wf_outlet_put(child->err, line, (size_t)bytes);
}

/* Appends a word to `used` bytes of `text`, cut to the room there is. Returns the bytes then. */
static size_t
append_word(char *text, size_t used, const char *word)
{
	int wanted = snprintf(text + used, WF_LINE_BYTES - used, "%s%s", used > 0 ? " " : "", word);
	size_t more = wanted > 0 ? (size_t)wanted : 0;
	return used + more < WF_LINE_BYTES ? used + more : WF_LINE_BYTES - 1;
}

void
wf_child_announce(const struct wf_child *child)
{
	const struct wf_child_spec *spec = child->spec;
	char text[WF_LINE_BYTES] = "";
	size_t used = 0;

	if (spec->program != NULL) {
		used = append_word(text, used, "env");
	}
	for (unsigned i = 0; i < spec->variables.count && spec->program != NULL; i++) {
		if (strncmp(spec->variables.argv[i], "WEFT_", strlen("WEFT_")) == 0) {
			used = append_word(text, used, spec->variables.argv[i]);
		}
	}
	for (unsigned i = 0; i < spec->args.count; i++) {
		used = append_word(text, used, spec->args.argv[i]);
	}
	char line[WF_LINE_BYTES + 32];
	snprintf(line, sizeof(line), "pid %d: %s", (int)child->pid, text);
	show_line(child, line);
}

/* "2026-11-20 07:16:18.123 I text" */
static bool
is_info(const char *text)
{
	static const char shape[] = "0000-00-00 00:00:00.000 I ";

	for (size_t i = 0; i + 1 < sizeof(shape); i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';
		if (shape[i] == '0' ? !digit : text[i] != shape[i]) {
			return false;
		}
	}
	return true;
}

static void
on_line(void *arg, const char *text)
{
	const struct source *source = arg;
	struct wf_child *child = source->child;

	file_line(child, text);
	if (source->stream == WF_CHILD_STDERR && text[0] != '\0') {
		snprintf(child->last_error, sizeof(child->last_error), "%s", text);
	}
	if (source->stream == WF_CHILD_STDOUT && child->spec->owns_stdout) {
		pass_on(child, text);
	} else if (!child->opts->quiet || !is_info(text)) {
		show_line(child, text);
	}
}

static void
close_stream(struct wf_child *child, enum wf_child_stream stream)
{
	struct source source = {child, stream};

	wf_lines_end(&child->lines[stream], on_line, &source);
	close(child->fd[stream]);
	child->fd[stream] = -1;
}

void
wf_child_read(struct wf_child *child, enum wf_child_stream stream)
{
	struct source source = {child, stream};
	char bytes[READ_BYTES];

	if (child->fd[stream] < 0) {
		return;
	}
	ssize_t got = read(child->fd[stream], bytes, sizeof(bytes));
	if (got > 0) {
		wf_lines_feed(&child->lines[stream], bytes, (size_t)got, on_line, &source);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		close_stream(child, stream);
	}
}

/* The child's stdout is ours, line by line, so there has to be room for what is read. */
static bool
has_room(const struct wf_child *child, enum wf_child_stream stream)
{
	return stream != WF_CHILD_STDOUT || !child->spec->owns_stdout ||
	       child->opts->on_stdout != NULL || wf_outlet_room(child->out) >= READ_ROOM;
}

static void
report_lost(const struct wf_child *child, int bytes)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "the last %d bytes of its output are lost: nobody reads stdout", bytes);
	show_line(child, text);
}

/* Reads what the pipe holds of a process that has ended, and closes it. What comes later is not
 * read: another process that has the pipe may write for ever. */
static void
drain(struct wf_child *child, enum wf_child_stream stream)
{
	struct source source = {child, stream};
	char bytes[READ_BYTES];
	int left = 0;

	if (child->fd[stream] < 0) {
		return;
	}
	if (ioctl(child->fd[stream], FIONREAD, &left) != 0) {
		left = 0;
	}
	while (left > 0 && has_room(child, stream)) {
		size_t wanted = (size_t)left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		ssize_t got = read(child->fd[stream], bytes, wanted);
		if (got <= 0) {
			break;
		}
		wf_lines_feed(&child->lines[stream], bytes, (size_t)got, on_line, &source);
		left -= (int)got;
	}
	if (left > 0) {
		report_lost(child, left);
	}
	close_stream(child, stream);
}

bool
wf_child_reap(struct wf_child *child)
{
	siginfo_t info = {0};

	if (child->pid == 0 || child->ended) {
		return false;
	}
	/* It is examined first and reaped later: until then no other process can get its pid. */
	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	    info.si_pid != child->pid) {
		return false;
	}
	kill(-child->pid, SIGKILL); /* processes that it started itself */
	if (waitpid(child->pid, &child->wait_status, 0) != child->pid) {
		return false;
	}
	child->ended = true;
	drain(child, WF_CHILD_STDOUT);
	drain(child, WF_CHILD_STDERR);
	return true;
}

void
wf_child_signal(struct wf_child *child, int signal_number)
{
	if (child->pid == 0 || child->ended) {
		return;
	}
	child->stopped = true;
	/* Right after fork the group may not be there yet for a moment. */
	if (kill(-child->pid, signal_number) != 0) {
		kill(child->pid, signal_number);
	}
}

int
wf_child_exit_code(const struct wf_child *child)
{
	WF_ASSERT(child->ended);
	if (WIFSIGNALED(child->wait_status)) {
		return WF_EXIT_SIGNAL + WTERMSIG(child->wait_status);
	}
	return WEXITSTATUS(child->wait_status);
}

void
wf_child_fini(struct wf_child *child)
{
	WF_ASSERT(child->pid == 0 || child->ended);
	close_both(child->fd);
	if (child->log_fd >= 0) {
		close(child->log_fd);
		child->log_fd = -1;
	}
}
