/* SPDX-License-Identifier: Apache-2.0 */
/* supervise_losses: what becomes of a job that has lost a process: it ends, or the process is
 * started again, or the others go on without it. Thread: the supervisor's. */
#include <inttypes.h>
#include <stdio.h>

#include "base/exit_code.h"
#include "tools/launch/child.h"
#include "tools/launch/restart.h"
#include "tools/launch/supervise_internal.h"

#define USAGE_GRACE_NS (WF_NS_PER_S)

/* The job ends because of it. */
static void
fail_job(struct wf_supervision *job, const struct wf_child *child)
{
	int code = wf_child_exit_code(child);

	if (wf_supervision_is_better_cause(job, child)) {
		job->cause = child;
	}
	if (job->phase == WF_PHASE_RUN || job->phase == WF_PHASE_LINGER) {
		/* A mistake in the options is not something that peers could notice. */
		wf_supervision_enter(job, WF_PHASE_FAIL,
				     code == WF_EXIT_USAGE && job->opts->grace_ns > USAGE_GRACE_NS
					     ? USAGE_GRACE_NS
					     : job->opts->grace_ns);
	}
}

/* ---- going on without one ---- */

/* Workers that are left besides this one. */
static unsigned
count_left(const struct wf_supervision *job, const struct wf_child *but)
{
	unsigned count = 0;

	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		count += child != but && child->spec->is_worker && !child->dropped &&
			 !wf_restart_is_planned(&job->restart[i]);
	}
	return count;
}

/* One that was to join cannot end a job that has gone on without it, whatever the reason. */
static bool
can_drop(const struct wf_supervision *job, const struct wf_child *child)
{
	return job->opts->least_workers > 0 &&
	       (job->phase == WF_PHASE_RUN || job->phase == WF_PHASE_LINGER) &&
	       child->spec->is_worker && (child->is_joiner || wf_supervision_may_recover(child)) &&
	       count_left(job, child) >= job->opts->least_workers;
}

static void
drop(struct wf_supervision *job, struct wf_child *child)
{
	struct wf_supervise_end end;
	char text[WF_CAUSE_BYTES + 40];
	unsigned left = count_left(job, child);

	child->dropped = true;
	wf_supervision_describe_cause(child, &end);
	snprintf(text, sizeof(text), "%s; %u trainer%s left", end.cause, left,
		 left == 1 ? " is" : "s are");
	wf_supervision_print(job, text);
}

/* One that is not started again. */
static void
lose_for_good(struct wf_supervision *job, struct wf_child *child)
{
	if (can_drop(job, child)) {
		drop(job, child);
	} else {
		fail_job(job, child);
	}
}

/* ---- starting one again ---- */

/* Whether starting this one again lets the job go on: nobody stops it, and all others are there. */
static bool
can_restart(const struct wf_supervision *job, const struct wf_child *child)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (job->child[i].ended && wf_child_exit_code(&job->child[i]) == 0) {
			return false;
		}
	}
	if (job->opts->restarts.joins && !can_drop(job, child)) {
		return false;
	}
	const struct wf_site *site = child->spec->site;
	return job->opts->restarts.alone && job->phase == WF_PHASE_RUN &&
	       (site == NULL || site->ops->is_there(site)) && wf_supervision_may_recover(child);
}

/* Whether one more start is allowed, besides those that are planned. */
static bool
has_restart_left(const struct wf_supervision *job)
{
	uint64_t count = job->restarts;

	for (unsigned i = 0; i < job->opts->count; i++) {
		count += wf_restart_is_planned(&job->restart[i]);
	}
	return count < job->opts->restarts.most;
}

static void
plan_restart(struct wf_supervision *job, unsigned idx)
{
	struct wf_supervise_end end;

	wf_supervision_describe_cause(&job->child[idx], &end);
	wf_supervision_print(job, end.cause);
	wf_restart_plan(&job->restart[idx], wf_now_ns(job->opts->env));
}

static void
restart(struct wf_supervision *job, unsigned idx)
{
	struct wf_child_spec *spec = &job->opts->spec[idx];
	struct wf_child *child = &job->child[idx];
	char text[WF_SUPERVISE_SAY_BYTES - 64];

	wf_restart_begin(&job->restart[idx], wf_now_ns(job->opts->env));
	if (!can_restart(job, child)) {
		lose_for_good(job, child);
		return;
	}
	if (job->stalled_fd >= 0 && job->stalled_key / WF_PROCESS_STREAMS == idx) {
		job->stalled_fd = -1; /* it is closed, and may be another's number */
	}
	snprintf(text, sizeof(text), "%s is started again%s (%" PRIu64 " of %" PRIu64 ")",
		 spec->name, job->opts->restarts.joins ? " and is to join" : "", job->restarts + 1,
		 job->opts->restarts.most);
	wf_supervision_print(job, text);
	enum weft_status st = wf_child_add_again(spec);
	st = st == WEFT_OK ? wf_child_restart(child, &job->mask_before) : st;
	if (st != WEFT_OK) {
		wf_supervision_print(job, weft_last_error());
		lose_for_good(job, child);
		return;
	}
	child->is_joiner = job->opts->restarts.joins;
	job->restarts++;
	if (wf_supervision_watch_child(job, idx) != WEFT_OK) {
		wf_supervision_print(job, weft_last_error());
		wf_process_signal(&child->process, SIGKILL); /* which is one more death of it */
	}
}

void
wf_supervision_restart_due(struct wf_supervision *job)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (wf_restart_is_planned(&job->restart[i]) &&
		    wf_now_ns(job->opts->env) >= job->restart[i].due_ns) {
			restart(job, i);
		}
	}
}

/* ---- who cannot join any more ---- */

/* One of weft's own: it would go on to ask for its place. What another program does after its
 * session has ended is its own affair. */
static bool
is_late(const struct wf_child *child)
{
	return child->is_joiner && !child->ended && child->spec->program == NULL;
}

bool
wf_supervision_is_over_but_for_joiners(const struct wf_supervision *job)
{
	unsigned late = 0;

	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		bool is_over = child->ended && !wf_restart_is_planned(&job->restart[i]) &&
			       (child->spec->is_worker || wf_child_exit_code(child) == 0);
		if (!is_over && !is_late(child)) {
			return false;
		}
		late += !is_over;
	}
	return late > 0;
}

bool
wf_supervision_drop_joiners(struct wf_supervision *job)
{
	bool has_any = false;
	char text[WF_SUPERVISE_SAY_BYTES - 64];

	for (unsigned i = 0; i < job->opts->count; i++) {
		if (is_late(&job->child[i])) {
			has_any = job->child[i].dropped = true;
			snprintf(text, sizeof(text),
				 "%s is stopped: the job has ended, so it cannot join",
				 job->child[i].spec->name);
			wf_supervision_print(job, text);
		}
	}
	return has_any;
}

/* ---- what becomes of the job ---- */

void
wf_supervision_note_end(struct wf_supervision *job, unsigned idx)
{
	struct wf_child *child = &job->child[idx];

	if (wf_child_exit_code(child) == 0 || child->stopped) {
		return;
	}
	if (can_restart(job, child) && has_restart_left(job)) {
		plan_restart(job, idx);
	} else {
		lose_for_good(job, child);
	}
}
