/* SPDX-License-Identifier: Apache-2.0 */
/* child: see child.h. */
#include "tools/launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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
	enum wf_process_stream stream;
};

void
wf_child_init(struct wf_child *child, const struct wf_supervise_opts *opts,
	      const struct wf_child_spec *spec, unsigned idx)
{
	memset(child, 0, sizeof(*child));
	child->opts = opts;
	child->spec = spec;
	child->colour = 31 + idx % 6;
	child->log_fd = -1;
	wf_process_init(&child->process);
}

static enum weft_status
open_log(struct wf_child *child)
{
	char path[4096];

	if (child->opts->log_dir == NULL) {
		return WEFT_OK;
	}
	const char *name = child->spec->log[0] != '\0' ? child->spec->log : child->spec->name;
	int wanted = snprintf(path, sizeof(path), "%s/%s.log", child->opts->log_dir, name);
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

enum weft_status
wf_child_start(struct wf_child *child, const sigset_t *mask)
{
	const struct wf_process_opts process = {
		.name = child->spec->name,
		.program = child->spec->program,
		.args = &child->spec->args,
		.variables = &child->spec->variables,
		.mask = mask,
		.has_stdin = child->spec->has_stdin,
	};

	enum weft_status st = open_log(child);
	if (st == WEFT_OK && child->spec->site != NULL) {
		child->started = true;
		return child->spec->site->ops->start(child->spec->site, child, mask);
	}
	if (st == WEFT_OK) {
		st = wf_process_start(&child->process, &process);
	}
	child->started = child->process.pid != 0;
	if (st == WEFT_OK) {
		wf_child_on_start(child, child->process.pid);
	}
	return st;
}

enum weft_status
wf_child_add_again(struct wf_child_spec *spec)
{
	struct wf_args *to = spec->program != NULL ? &spec->variables : &spec->args;

	if (spec->again != NULL) {
		wf_args_add(to, "%s", spec->again);
		spec->again = NULL;
	}
	return wf_args_check(to);
}

enum weft_status
wf_child_restart(struct wf_child *child, const sigset_t *mask)
{
	WF_ASSERT(child->ended);
	wf_child_fini(child);
	wf_process_init(&child->process);
	enum weft_status st = wf_child_start(child, mask);
	if (st == WEFT_OK) {
		child->over = false;
		child->ended = false;
		child->stopped = false;
		child->log_failed = false;
		child->last_error[0] = '\0';
	}
	return st;
}

static void
file_line(struct wf_child *child, const char *text)
{
	char line[WF_LINE_BYTES + 1];

	if (child->log_fd < 0 || child->log_failed) {
		return;
	}
	int bytes = snprintf(line, sizeof(line), "%s\n", text);
	ssize_t written = write(child->log_fd, line, (size_t)bytes);
	if (written != bytes) {
		int err = written < 0 ? errno : ENOSPC;
		child->log_failed = true;
		int length = snprintf(line, sizeof(line),
				      "%s: the log file of %s cannot be written: %s\n",
				      child->opts->program, child->spec->name, strerror(err));
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

static void
announce(const struct wf_child *child)
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
	char line[WF_LINE_BYTES + WF_SITE_NAME_BYTES + 32];
	if (child->spec->site != NULL) {
		snprintf(line, sizeof(line), "pid %d on %s: %s", (int)child->pid,
			 child->spec->site->name, text);
	} else {
		snprintf(line, sizeof(line), "pid %d: %s", (int)child->pid, text);
	}
	show_line(child, line);
}

void
wf_child_on_start(struct wf_child *child, pid_t pid)
{
	child->pid = pid;
	if (child->opts->announce) {
		announce(child);
	}
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

void
wf_child_on_line(struct wf_child *child, enum wf_process_stream stream, const char *text)
{
	file_line(child, text);
	if (stream == WF_PROCESS_STDERR && text[0] != '\0') {
		snprintf(child->last_error, sizeof(child->last_error), "%s", text);
	}
	if (child->opts->on_line != NULL) {
		child->opts->on_line(child->opts->on_line_arg, child, stream, text);
	} else if (stream == WF_PROCESS_STDOUT && child->spec->owns_stdout) {
		pass_on(child, text);
	} else if (!child->opts->quiet || !is_info(text)) {
		show_line(child, text);
	}
}

static void
on_line(void *arg, const char *text)
{
	const struct source *source = arg;

	wf_child_on_line(source->child, source->stream, text);
}

static void
close_stream(struct wf_child *child, enum wf_process_stream stream)
{
	struct source source = {child, stream};

	wf_lines_end(&child->lines[stream], on_line, &source);
	wf_process_close(&child->process, stream);
}

void
wf_child_read(struct wf_child *child, enum wf_process_stream stream)
{
	struct source source = {child, stream};
	char bytes[READ_BYTES];

	if (child->process.fd[stream] < 0) {
		return;
	}
	ssize_t got = read(child->process.fd[stream], bytes, sizeof(bytes));
	if (got > 0) {
		wf_lines_feed(&child->lines[stream], bytes, (size_t)got, on_line, &source);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		close_stream(child, stream);
	}
}

/* The child's stdout is ours, line by line, so there has to be room for what is read. */
static bool
has_room(const struct wf_child *child, enum wf_process_stream stream)
{
	return stream != WF_PROCESS_STDOUT || !child->spec->owns_stdout ||
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
drain(struct wf_child *child, enum wf_process_stream stream)
{
	struct source source = {child, stream};
	char bytes[READ_BYTES];
	int left = 0;

	if (child->process.fd[stream] < 0) {
		return;
	}
	if (ioctl(child->process.fd[stream], FIONREAD, &left) != 0) {
		left = 0;
	}
	while (left > 0 && has_room(child, stream)) {
		size_t wanted = (size_t)left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		ssize_t got = read(child->process.fd[stream], bytes, wanted);
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
	if (child->ended) {
		return false;
	}
	if (child->spec->site == NULL && wf_process_reap(&child->process)) {
		drain(child, WF_PROCESS_STDOUT);
		drain(child, WF_PROCESS_STDERR);
		wf_child_on_end(child, child->process.wait_status);
	}
	child->ended = child->over;
	return child->ended;
}

bool
wf_child_leave(struct wf_child *child, char *text, size_t bytes)
{
	if (!child->started || child->ended || child->spec->site != NULL) {
		return false;
	}
	snprintf(text, bytes,
		 "%s (pid %d) has not ended %llu s after SIGKILL and is left behind: it waits in "
		 "the kernel for a device or a file system",
		 child->spec->name, (int)child->pid, WF_PROCESS_STUCK_NS / WF_NS_PER_S);
	wf_process_leave(&child->process);
	drain(child, WF_PROCESS_STDOUT);
	drain(child, WF_PROCESS_STDERR);
	wf_child_on_end(child, child->process.wait_status);
	child->ended = true;
	return true;
}

void
wf_child_on_end(struct wf_child *child, int wait_status)
{
	child->over = true;
	child->wait_status = wait_status;
}

void
wf_child_signal(struct wf_child *child, int signal_number)
{
	if (!child->started || child->ended) {
		return;
	}
	child->stopped = true;
	if (child->spec->site != NULL) {
		child->spec->site->ops->signal(child->spec->site, child, signal_number);
	} else {
		wf_process_signal(&child->process, signal_number);
	}
}

const char *
wf_child_last_words(const struct wf_child *child)
{
	return child->last_error[0] != '\0' ? child->last_error : "it printed nothing to stderr";
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
	wf_process_fini(&child->process);
	if (child->log_fd >= 0) {
		close(child->log_fd);
		child->log_fd = -1;
	}
}
