/* SPDX-License-Identifier: Apache-2.0 */
/* supervise: see supervise.h. One loop over one epoll: pipes, a signalfd, and room for
 * results. */
#include "tools/launch/supervise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "base/signals.h"
#include "tools/launch/child.h"
#include "tools/launch/restart.h"
#include "tools/launch/supervise_internal.h"

#define EVENTS_MAX 32
#define LINGER_NS (10 * WF_NS_PER_S) /* for children that are not workers, after the last worker */

static enum weft_status
open_signals(struct wf_supervision *job)
{
	wf_signals_that_stop(&job->signals); /* blocked, they come even if they are ignored */
	sigaddset(&job->signals, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &job->signals, &job->mask_before) != 0) {
		return wf_fail_errno(WEFT_INTERNAL, errno, "sigprocmask");
	}
	job->signal_fd = signalfd(-1, &job->signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (job->signal_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "signalfd");
	}
	job->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (job->epoll_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_create1");
	}
	enum weft_status st = wf_supervision_watch(job, job->signal_fd, WF_SUPERVISE_SIGNAL);
	if (st == WEFT_OK) {
		st = wf_supervision_watch(job, job->wake_fd, WF_SUPERVISE_WAKE);
	}
	for (unsigned i = 0; i < job->opts->site_count && st == WEFT_OK; i++) {
		st = wf_supervision_watch(job, job->opts->site[i]->fd, WF_SUPERVISE_SITE + i);
	}
	return st;
}

static enum weft_status
make_log_dir(const struct wf_supervise_opts *opts)
{
	if (opts->log_dir != NULL && mkdir(opts->log_dir, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "--log_dir=%s", opts->log_dir);
	}
	return WEFT_OK;
}

static enum weft_status
start_all(struct wf_supervision *job)
{
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < job->opts->count && st == WEFT_OK; i++) {
		wf_restart_init(&job->restart[i], wf_now_ns(job->opts->env));
		st = wf_child_start(&job->child[i], &job->mask_before);
		if (st == WEFT_OK) {
			st = wf_supervision_watch_child(job, i);
		}
	}
	return st;
}

/* A process of this host survives SIGKILL only in the kernel. A site may be out of reach. */
static void
kill_all(struct wf_supervision *job)
{
	wf_supervision_enter(job, WF_PHASE_KILL,
			     job->opts->site_count > 0 ? job->opts->grace_ns : WF_PROCESS_STUCK_NS);
}

static bool
all_ended(const struct wf_supervision *job, bool workers_only)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		bool is_over = child->ended && !wf_restart_is_planned(&job->restart[i]);
		if (!is_over && (!workers_only || child->spec->is_worker)) {
			return false;
		}
	}
	return true;
}

/* ---- the loop ---- */

static void
reap(struct wf_supervision *job)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (wf_child_reap(&job->child[i])) {
			wf_supervision_note_end(job, i);
		}
	}
	if (job->phase == WF_PHASE_RUN && all_ended(job, true)) {
		wf_supervision_enter(job, WF_PHASE_LINGER, LINGER_NS);
	} else if (job->phase == WF_PHASE_RUN && wf_supervision_is_over_but_for_joiners(job)) {
		wf_supervision_enter(job, WF_PHASE_LINGER, job->opts->restarts.joiner_grace_ns);
	}
}

static void
handle_signals(struct wf_supervision *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			continue; /* several become one: reap looks at all */
		}
		if (wf_stop_asked(&job->asked, (int)info.ssi_signo) == WF_STOP_ECHO) {
			continue;
		}
		job->signal_number = (int)info.ssi_signo;
		if (job->phase == WF_PHASE_KILL) {
			continue; /* nothing is left to do but to wait until its deadline */
		}
		if (job->phase == WF_PHASE_TERM) {
			kill_all(job);
			continue;
		}
		char text[128];
		snprintf(text, sizeof(text),
			 "%s: stopping %u processes; a second signal stops them at once",
			 strsignal(job->signal_number), job->opts->count);
		wf_supervision_print(job, text);
		/* Children save on SIGTERM, which is what they get for any of these signals. */
		wf_supervision_enter(job, WF_PHASE_TERM,
				     job->opts->grace_ns + job->opts->save_grace_ns);
	}
}

/* What SIGKILL has not ended is given up. */
static void
give_up(struct wf_supervision *job)
{
	char text[WF_SUPERVISE_SAY_BYTES - 64];

	job->deadline_ns = WF_NEVER;
	for (unsigned i = 0; i < job->opts->site_count; i++) {
		job->opts->site[i]->ops->abandon(job->opts->site[i]);
	}
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (wf_child_leave(&job->child[i], text, sizeof(text))) {
			wf_supervision_print(job, text);
			job->left_count++;
		}
	}
	reap(job);
}

/* Names those that have not ended on SIGTERM. A pid is one of the host where the process runs. */
static void
name_killed(const struct wf_supervision *job)
{
	char text[WF_SUPERVISE_SAY_BYTES - 64];

	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		const struct wf_site *site = child->spec->site;
		if (!child->ended) {
			snprintf(text, sizeof(text),
				 "%.100s (pid %d%s%.200s) has not ended within %.3f s of SIGTERM "
				 "and is killed",
				 child->spec->name, (int)child->pid, site != NULL ? " on " : "",
				 site != NULL ? site->name : "",
				 (double)job->phase_ns / (double)WF_NS_PER_S);
			wf_supervision_print(job, text);
		}
	}
}

static void
on_deadline(struct wf_supervision *job)
{
	switch (job->phase) {
	case WF_PHASE_RUN:
		break;
	case WF_PHASE_KILL:
		give_up(job);
		break;
	case WF_PHASE_LINGER:
		if (all_ended(job, true) || !wf_supervision_drop_joiners(job)) {
			wf_supervision_print(job, "all trainers have ended; stopping the pservers");
		}
		wf_supervision_enter(job, WF_PHASE_TERM, job->opts->grace_ns);
		break;
	case WF_PHASE_FAIL:
		wf_supervision_enter(job, WF_PHASE_TERM, job->opts->grace_ns);
		break;
	case WF_PHASE_TERM:
		name_killed(job);
		kill_all(job);
		break;
	}
}

/* The reader of stdout is gone (weft launch ... | head), so the rest is not wanted. */
static void
check_stdout(struct wf_supervision *job)
{
	if (wf_outlet_error(job->out) != 0 && job->phase == WF_PHASE_RUN) {
		job->signal_number = SIGPIPE;
		wf_supervision_enter(job, WF_PHASE_TERM, job->opts->grace_ns);
	}
}

static void
handle_events(struct wf_supervision *job)
{
	struct epoll_event events[EVENTS_MAX];

	int count = epoll_wait(job->epoll_fd, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++) {
		uint64_t key = events[i].data.u64;
		if (key == WF_SUPERVISE_SIGNAL) {
			handle_signals(job);
		} else if (key == WF_SUPERVISE_WAKE) {
			wf_supervision_on_wake(job);
		} else if (key >= WF_SUPERVISE_SITE) {
			wf_supervision_on_site(job, key);
		} else {
			wf_supervision_on_child(job, key);
		}
	}
	check_stdout(job);
}

static void
tick_sites(struct wf_supervision *job)
{
	uint64_t now_ns = wf_now_ns(job->opts->env);

	if (now_ns < job->tick_ns) {
		return;
	}
	for (unsigned i = 0; i < job->opts->site_count; i++) {
		job->opts->site[i]->ops->tick(job->opts->site[i]);
	}
	job->tick_ns = now_ns + WF_SITE_TICK_NS;
}

/* When there is something to do even if nothing happens. */
static uint64_t
find_next_ns(const struct wf_supervision *job)
{
	uint64_t next_ns = job->tick_ns < job->deadline_ns ? job->tick_ns : job->deadline_ns;

	for (unsigned i = 0; i < job->opts->count; i++) {
		next_ns = job->restart[i].due_ns < next_ns ? job->restart[i].due_ns : next_ns;
	}
	return next_ns;
}

static void
watch_to_the_end(struct wf_supervision *job)
{
	while (!all_ended(job, false)) {
		wf_wait(job->opts->env, job->epoll_fd, find_next_ns(job));
		handle_events(job);
		tick_sites(job);
		reap(job);
		wf_supervision_restart_due(job);
		if (wf_now_ns(job->opts->env) >= job->deadline_ns) {
			on_deadline(job);
		}
	}
}

/* A start that failed half way: nothing of it may stay. */
static void
kill_started(struct wf_supervision *job)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		job->child[i].ended = !job->child[i].started;
	}
	kill_all(job);
	watch_to_the_end(job);
}

static void
close_job(struct wf_supervision *job)
{
	wf_outlet_close(job->out);
	wf_outlet_close(job->err);
	if (job->wake_fd >= 0) {
		close(job->wake_fd);
	}
	for (unsigned i = 0; i < job->opts->count; i++) {
		wf_child_fini(&job->child[i]);
	}
	if (job->epoll_fd >= 0) {
		close(job->epoll_fd);
	}
	if (job->signal_fd >= 0) {
		close(job->signal_fd);
		sigprocmask(SIG_SETMASK, &job->mask_before, NULL);
	}
	wf_free(job->opts->env, job->restart, job->opts->count * sizeof(*job->restart));
	wf_free(job->opts->env, job->child, job->opts->count * sizeof(*job->child));
}

enum weft_status
wf_supervise(const struct wf_supervise_opts *opts, struct wf_supervise_end *out)
{
	struct wf_supervision job = {.opts = opts,
				     .epoll_fd = -1,
				     .signal_fd = -1,
				     .wake_fd = -1,
				     .stalled_fd = -1,
				     .phase = WF_PHASE_RUN,
				     .deadline_ns = WF_NEVER,
				     .tick_ns = opts->site_count > 0 ? 0 : WF_NEVER,
				     .restarts = opts->restarts.made};

	WF_ASSERT(opts->count >= 1);
	job.child = wf_zalloc_array(opts->env, opts->count, sizeof(*job.child));
	job.restart = wf_zalloc_array(opts->env, opts->count, sizeof(*job.restart));
	if (job.child == NULL || job.restart == NULL) {
		wf_free(opts->env, job.restart, opts->count * sizeof(*job.restart));
		wf_free(opts->env, job.child, opts->count * sizeof(*job.child));
		return wf_fail(WEFT_NOMEM, "no memory for %u processes", opts->count);
	}
	for (unsigned i = 0; i < opts->count; i++) {
		wf_child_init(&job.child[i], opts, &opts->spec[i], i);
		wf_restart_cancel(&job.restart[i]);
	}
	enum weft_status st = make_log_dir(opts);
	if (st == WEFT_OK) {
		st = wf_supervision_open_output(&job);
	}
	if (st == WEFT_OK) {
		st = open_signals(&job);
	}
	if (st == WEFT_OK) {
		st = start_all(&job);
	}
	if (st == WEFT_OK) {
		watch_to_the_end(&job);
		wf_supervision_finish_output(&job);
		wf_supervision_describe_end(&job, out);
	} else {
		kill_started(&job);
	}
	close_job(&job);
	return st;
}
