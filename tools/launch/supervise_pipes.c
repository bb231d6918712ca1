/* SPDX-License-Identifier: Apache-2.0 */
/* supervise_pipes: the output of a job's processes, and the supervisor's own. Results wait for
 * their reader; lines of the log do not. Thread: the supervisor's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "tools/launch/child.h"
#include "tools/launch/supervise_internal.h"

#define ERR_QUEUE_BYTES ((size_t)1 << 20)
#define OUT_QUEUE_BYTES (8 * WF_CHILD_STDOUT_ROOM) /* address space */

void
wf_supervision_print(const struct wf_supervision *job, const char *text)
{
	char line[WF_SUPERVISE_SAY_BYTES];

	int bytes = snprintf(line, sizeof(line), "%s: %s\n", job->opts->program, text);
	WF_ASSERT(bytes > 0 && (size_t)bytes < sizeof(line));
	(void)wf_outlet_put(job->err, line, (size_t)bytes);
}

enum weft_status
wf_supervision_watch(struct wf_supervision *job, int fd, uint64_t key)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};

	if (epoll_ctl(job->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return WEFT_OK;
}

enum weft_status
wf_supervision_open_output(struct wf_supervision *job)
{
	const struct wf_outlet_opts err = {.fd = STDERR_FILENO,
					   .queue_bytes = ERR_QUEUE_BYTES,
					   .format_dropped = wf_outlet_format_dropped,
					   .wake_fd = -1};
	struct wf_outlet_opts out = {.fd = STDOUT_FILENO, .queue_bytes = OUT_QUEUE_BYTES};

	job->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (job->wake_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "eventfd");
	}
	out.wake_fd = job->wake_fd;
	enum weft_status st = wf_outlet_open(&err, &job->err);
	if (st == WEFT_OK) {
		st = wf_outlet_open(&out, &job->out);
	}
	for (unsigned i = 0; i < job->opts->count; i++) {
		job->child[i].err = job->err;
		job->child[i].out = job->out;
	}
	return st;
}

enum weft_status
wf_supervision_watch_child(struct wf_supervision *job, unsigned idx)
{
	const struct wf_process *process = &job->child[idx].process;
	enum weft_status st = WEFT_OK;

	for (unsigned s = 0; st == WEFT_OK && s < WF_PROCESS_STREAMS; s++) {
		if (process->fd[s] >= 0) {
			st = wf_supervision_watch(job, process->fd[s],
						  (uint64_t)idx * WF_PROCESS_STREAMS + s);
		}
	}
	return st;
}

/* Results are not dropped: if nobody reads them, their child waits, as it would without the
 * launcher; at a site, everything there waits. `child` is the one that `fd` brings results of. */
static bool
stalls(struct wf_supervision *job, const struct wf_child *child, int fd, uint64_t key)
{
	if (job->opts->on_stdout != NULL || !child->spec->owns_stdout ||
	    wf_outlet_room(job->out) >= 2 * WF_CHILD_STDOUT_ROOM) {
		return false;
	}
	if (epoll_ctl(job->epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0) {
		job->stalled_fd = fd;
		job->stalled_key = key;
	}
	return true;
}

/* The child whose results a site brings, or any other one of it. */
static const struct wf_child *
find_child_at(const struct wf_supervision *job, const struct wf_site *site)
{
	const struct wf_child *found = &job->child[0];

	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		if (child->spec->site == site && child->spec->owns_stdout) {
			return child;
		}
		found = child->spec->site == site ? child : found;
	}
	return found;
}

void
wf_supervision_on_wake(struct wf_supervision *job)
{
	int fd = job->stalled_fd;
	uint64_t count;

	(void)!read(job->wake_fd, &count, sizeof(count));
	if (fd < 0 || wf_outlet_room(job->out) < 2 * WF_CHILD_STDOUT_ROOM) {
		return;
	}
	job->stalled_fd = -1;
	if (job->stalled_key < WF_SUPERVISE_SITE &&
	    job->child[job->stalled_key / WF_PROCESS_STREAMS].process.fd[WF_PROCESS_STDOUT] != fd) {
		return; /* it has ended, and its last lines have been read */
	}
	if (wf_supervision_watch(job, fd, job->stalled_key) != WEFT_OK) {
		wf_supervision_print(job, weft_last_error());
	}
}

void
wf_supervision_on_site(struct wf_supervision *job, uint64_t key)
{
	struct wf_site *site = job->opts->site[key - WF_SUPERVISE_SITE];

	if (!stalls(job, find_child_at(job, site), site->fd, key)) {
		site->ops->on_ready(site);
	}
}

void
wf_supervision_on_child(struct wf_supervision *job, uint64_t key)
{
	struct wf_child *child = &job->child[key / WF_PROCESS_STREAMS];
	enum wf_process_stream stream = (enum wf_process_stream)(key % WF_PROCESS_STREAMS);

	if (stream != WF_PROCESS_STDOUT || !stalls(job, child, child->process.fd[stream], key)) {
		wf_child_read(child, stream);
	}
}

/* As long as the reader accepts some of it; what it accepted before this does not count. */
static bool
write_while_taken(const struct wf_supervision *job)
{
	struct wf_env *env = job->opts->env;
	uint64_t deadline_ns = wf_now_ns(env) + WF_OUTLET_PATIENCE_NS;
	uint64_t count;

	while (!wf_outlet_flush(job->out, 0)) {
		wf_wait(env, job->wake_fd, deadline_ns);
		if (read(job->wake_fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
			deadline_ns = wf_now_ns(env) + WF_OUTLET_PATIENCE_NS;
		} else if (wf_now_ns(env) >= deadline_ns) {
			return false;
		}
	}
	return true;
}

void
wf_supervision_finish_output(struct wf_supervision *job)
{
	sigprocmask(SIG_SETMASK, &job->mask_before, NULL);
	if (job->signal_number == 0) {
		(void)wf_outlet_flush(job->out, WF_NEVER);
		job->signal_number = wf_outlet_error(job->out) != 0 ? SIGPIPE : 0;
	} else if (!write_while_taken(job)) {
		wf_supervision_print(
			job, "nobody reads stdout: results that were not yet written are lost");
	}
}
