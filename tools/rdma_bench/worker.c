/* SPDX-License-Identifier: Apache-2.0 */
/* worker: see worker.h. */
#include "tools/rdma_bench/worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/exit_code.h"

static enum weft_status
bind_self(const struct wf_worker_opts *opts)
{
	cpu_set_t set;
	if (opts->cpu == WF_CPU_FREE) {
		return WEFT_OK;
	}
	CPU_ZERO(&set);
	if (opts->cpu == WF_CPU_ANY) {
		CPU_SET((size_t)opts->either[0], &set);
		CPU_SET((size_t)opts->either[1], &set);
	} else {
		CPU_SET((size_t)opts->cpu, &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		return wf_fail_errno(WEFT_PERM, errno, "binding to cpu %d", opts->cpu);
	}
	return WEFT_OK;
}

static _Noreturn void
live(const struct wf_worker_opts *opts, int fd, pid_t parent)
{
	struct wf_bench_seat seat = {.fd = fd};
	struct wf_figures end = {0};

	/* The parent may have ended already. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
		_exit(WF_EXIT_INTERNAL);
	}
	/* Before it is bound: the env's helper runs where the process may, not beside this. */
	end.status = wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &seat.env);
	if (end.status == WEFT_OK) {
		end.status = bind_self(opts);
	}
	if (end.status == WEFT_OK) {
		end.status = opts->run(&seat, opts->arg);
	}
	if (end.status != WEFT_OK) {
		snprintf(end.text, sizeof(end.text), "%s", weft_last_error());
		wf_seat_report(&seat, &end);
	}
	_exit(wf_exit_code(end.status)); /* no second flush of the parent's streams */
}

enum weft_status
wf_worker_start(const struct wf_worker_opts *opts, struct wf_worker *out)
{
	int fd[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: no socket pair", opts->name);
	}
	pid_t pid = fork();
	if (pid < 0) {
		int err = errno;
		close(fd[0]);
		close(fd[1]);
		return wf_fail_errno(WEFT_NOMEM, err, "%s: no process", opts->name);
	}
	if (pid == 0) {
		close(fd[0]);
		live(opts, fd[1], parent);
	}
	close(fd[1]);
	*out = (struct wf_worker){.name = opts->name, .pid = pid, .fd = fd[0]};
	return WEFT_OK;
}

enum weft_status
wf_worker_order(struct wf_worker *worker, const struct wf_work_order *order)
{
	WF_ASSERT(worker->pid > 0);
	if (send(worker->fd, order, sizeof(*order), MSG_NOSIGNAL) != (ssize_t)sizeof(*order)) {
		return wf_fail_errno(WEFT_LOST, errno, "%s does not read its commands",
				     worker->name);
	}
	return WEFT_OK;
}

enum weft_status
wf_worker_await(struct wf_worker *worker, uint64_t timeout_ns, struct wf_figures *out)
{
	WF_ASSERT(worker->pid > 0);
	struct pollfd wait = {.fd = worker->fd, .events = POLLIN};
	int timeout_ms = (int)(timeout_ns / WF_NS_PER_MS);
	int ready;
	do {
		ready = poll(&wait, 1, timeout_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0) {
		return wf_fail(WEFT_TIMEOUT, "%s has not answered for %d ms", worker->name,
			       timeout_ms);
	}
	ssize_t got = recv(worker->fd, out, sizeof(*out), 0);
	if (got != (ssize_t)sizeof(*out)) {
		return wf_fail(WEFT_LOST, "%s (pid %d) has ended without a message", worker->name,
			       (int)worker->pid);
	}
	if (out->status != WEFT_OK) {
		return wf_fail(out->status, "%s: %s", worker->name, out->text);
	}
	return WEFT_OK;
}

void
wf_worker_end(struct wf_worker *worker, uint64_t timeout_ns)
{
	if (worker->pid <= 0) {
		return;
	}
	const struct wf_work_order stop = {.stop = 1};
	struct wf_figures last;
	(void)send(worker->fd, &stop, sizeof(stop), MSG_NOSIGNAL);
	struct pollfd wait = {.fd = worker->fd, .events = POLLIN};
	/* Its end of the socket closes with it; what it still sends is of no use. */
	while (poll(&wait, 1, (int)(timeout_ns / WF_NS_PER_MS)) > 0 &&
	       recv(worker->fd, &last, sizeof(last), 0) > 0) {
	}
	if ((wait.revents & POLLHUP) == 0) {
		(void)kill(worker->pid, SIGKILL);
	}
	while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	close(worker->fd);
	*worker = (struct wf_worker){.fd = -1};
}

void
wf_seat_ready(struct wf_bench_seat *seat, uint64_t number)
{
	const struct wf_figures figures = {.number = number};
	wf_seat_report(seat, &figures);
}

bool
wf_seat_order(struct wf_bench_seat *seat, struct wf_work_order *out)
{
	return recv(seat->fd, out, sizeof(*out), 0) == (ssize_t)sizeof(*out) && out->stop == 0;
}

void
wf_seat_report(struct wf_bench_seat *seat, const struct wf_figures *figures)
{
	ssize_t sent = send(seat->fd, figures, sizeof(*figures), MSG_NOSIGNAL);
	(void)sent; /* nobody listens any more: the worker is about to be ended */
}
