/* SPDX-License-Identifier: Apache-2.0 */
/* process: see process.h. */
#include "tools/launch/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/own_path.h"

void
wf_process_init(struct wf_process *process)
{
	*process = (struct wf_process){.fd = {-1, -1, -1}};
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

/* The child's three descriptors: its ends of the pipes, and /dev/null where it has no stdin. */
static void
place_streams(const int far[WF_PROCESS_STREAMS])
{
	if (dup2(far[WF_PROCESS_STDOUT], STDOUT_FILENO) < 0 ||
	    dup2(far[WF_PROCESS_STDERR], STDERR_FILENO) < 0) {
		exec_failed("dup2");
	}
	if (far[WF_PROCESS_STDIN] >= 0) {
		if (dup2(far[WF_PROCESS_STDIN], STDIN_FILENO) < 0) {
			exec_failed("dup2");
		}
		return;
	}
	int null_fd = open("/dev/null", O_RDONLY);
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0) {
		exec_failed("/dev/null");
	}
	if (null_fd > STDERR_FILENO) {
		close(null_fd);
	}
}

/* Executes this program: the same file, even if another has its name by now; where /proc is not
 * mounted, the file of that name. */
static _Noreturn void
become_again(char *const *argv)
{
	char path[PATH_MAX];

	execv("/proc/self/exe", argv);
	if (wf_own_path(path, sizeof(path)) == WEFT_OK) {
		execv(path, argv);
	}
	exec_failed("/proc/self/exe");
}

/* In the new process, which has one thread. */
static _Noreturn void
become(const struct wf_process_opts *opts, const int far[WF_PROCESS_STREAMS], pid_t parent)
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
	sigprocmask(SIG_SETMASK, opts->mask, NULL);
	place_streams(far);
	for (unsigned i = 0; opts->variables != NULL && i < opts->variables->count; i++) {
		putenv(opts->variables->argv[i]);
	}
	if (opts->program == NULL) {
		become_again(opts->args->argv);
	}
	execvp(opts->program, opts->args->argv);
	exec_failed(opts->program);
}

static void
close_all(const int fd[WF_PROCESS_STREAMS])
{
	for (int i = 0; i < WF_PROCESS_STREAMS; i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
}

static enum weft_status
open_pipes(struct wf_process *process, const struct wf_process_opts *opts,
	   int far[WF_PROCESS_STREAMS])
{
	for (int i = opts->has_stdin ? 0 : 1; i < WF_PROCESS_STREAMS; i++) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) != 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: pipe", opts->name);
		}
		int near = i == WF_PROCESS_STDIN ? 1 : 0;
		process->fd[i] = ends[near];
		far[i] = ends[1 - near];
		if (fcntl(ends[near], F_SETFL, O_NONBLOCK) != 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: pipe", opts->name);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_process_start(struct wf_process *process, const struct wf_process_opts *opts)
{
	int far[WF_PROCESS_STREAMS] = {-1, -1, -1};
	pid_t parent = getpid();

	enum weft_status st = open_pipes(process, opts, far);
	if (st != WEFT_OK) {
		close_all(far);
		return st;
	}
	/* A parent of this program may have it ignore SIGCHLD. The system would then reap its
	 * children itself, and their ends would never be seen. */
	signal(SIGCHLD, SIG_DFL);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		become(opts, far, parent);
	}
	int err = errno;
	close_all(far);
	if (pid < 0) {
		return wf_fail_errno(WEFT_IO, err, "%s: cannot start a process", opts->name);
	}
	setpgid(pid, pid); /* both sides set it, whichever runs first */
	process->pid = pid;
	return WEFT_OK;
}

/* It is examined first and reaped later: until then no other process can get its pid. */
static bool
has_ended(const struct wf_process *process)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == process->pid;
}

bool
wf_process_reap(struct wf_process *process)
{
	if (process->pid == 0 || process->ended || !has_ended(process)) {
		return false;
	}
	kill(-process->pid, SIGKILL); /* processes that it started itself */
	if (waitpid(process->pid, &process->wait_status, 0) != process->pid) {
		return false;
	}
	process->ended = true;
	return true;
}

void
wf_process_leave(struct wf_process *process)
{
	process->ended = true;
	process->wait_status = W_EXITCODE(0, SIGKILL);
}

void
wf_process_signal(const struct wf_process *process, int signal_number)
{
	if (process->pid == 0 || process->ended) {
		return;
	}
	/* Right after fork the group may not be there yet for a moment. */
	if (kill(-process->pid, signal_number) != 0) {
		kill(process->pid, signal_number);
	}
}

void
wf_process_close(struct wf_process *process, enum wf_process_stream stream)
{
	if (process->fd[stream] >= 0) {
		close(process->fd[stream]);
		process->fd[stream] = -1;
	}
}

void
wf_process_fini(struct wf_process *process)
{
	WF_ASSERT(process->pid == 0 || process->ended);
	for (int i = 0; i < WF_PROCESS_STREAMS; i++) {
		wf_process_close(process, (enum wf_process_stream)i);
	}
}
