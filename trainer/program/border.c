/* SPDX-License-Identifier: Apache-2.0 */
/* border: see border.h. */
#include "trainer/program/border.h"

#include <inttypes.h>

#include "trainer/program/saving.h"

enum weft_status
wf_border_check(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	const char *name = opts->saving_period_by_batches > 0 ? "saving_period_by_batches"
			   : opts->save_on_term               ? "save_on_term"
			   : opts->time_limit_ns > 0          ? "time_limit"
			   : opts->start_batch > 0            ? "start_batch"
							      : NULL;

	if (opts->leave_on_term && (opts->save_on_term || job->is_sequential)) {
		return wf_fail(WEFT_INVALID, "leave_on_term: %s",
			       job->is_sequential
				       ? "a sequential run has no job that would go on"
				       : "save_on_term is given, too; a trainer that leaves saves "
					 "nothing; leave one of the two out");
	}
	if (name == NULL) {
		return WEFT_OK;
	}
	if (opts->saving_period_by_batches > 0 && !wf_run_is_sync(job)) {
		return wf_fail(WEFT_INVALID,
			       "saving_period_by_batches=%" PRIu64
			       ": trainers that do not wait for each other have no common state "
			       "in the middle of a pass; give dense_mode=sync and "
			       "sparse_mode=sync, or save at the end of passes (saving_period), "
			       "and where the run ends (save_on_term, time_limit)",
			       opts->saving_period_by_batches);
	}
	if (wf_run_is_first(job) && !wf_run_is_saver(job)) {
		return wf_fail(WEFT_INVALID, "%s: give trainer 0 a save_dir, where it saves", name);
	}
	if (opts->start_batch > 0 && opts->init_model_path != NULL &&
	    opts->init_model_path[0] != '\0') {
		return wf_fail(WEFT_INVALID,
			       "start_batch=%" PRIu64 ": goes on from a save in save_dir, but "
			       "init_model_path is given; leave one of the two out",
			       opts->start_batch);
	}
	return WEFT_OK;
}

void
wf_border_postpone(const struct wf_run *job)
{
	const bool is_postponed = job->opts->save_on_term || job->opts->leave_on_term;
	if (is_postponed && job->sink->watch != NULL) {
		job->sink->watch->postpone(job->opts->term_grace_ns);
	}
}

void
wf_border_look(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	if (job->border.end != WF_RUN_GOES_ON) {
		return;
	}
	if (opts->save_on_term && job->sink->watch != NULL && job->sink->watch->is_stopping()) {
		job->border.end = WF_RUN_IS_STOPPED;
	} else if (opts->time_limit_ns > 0 &&
		   wf_now_ns(job->env) - job->border.start_ns >= opts->time_limit_ns) {
		job->border.end = WF_RUN_IS_OUT_OF_TIME;
	}
}

bool
wf_border_leaves(const struct wf_run *job)
{
	return job->opts->leave_on_term && job->sink->watch != NULL &&
	       job->sink->watch->is_stopping();
}

bool
wf_border_is_near(struct wf_run *job)
{
	const uint64_t period = job->opts->saving_period_by_batches;

	if (!wf_run_is_first(job) || !wf_run_is_sync(job)) {
		return false;
	}
	wf_border_look(job);
	return job->border.end != WF_RUN_GOES_ON || (period > 0 && (job->batch + 1) % period == 0);
}

bool
wf_border_cuts_pass(struct wf_run *job)
{
	if (wf_run_is_sync(job)) {
		return false;
	}
	wf_border_look(job);
	job->border.is_cutting = job->border.end != WF_RUN_GOES_ON;
	return job->border.is_cutting;
}

void
wf_border_pass_is_cut(struct wf_run *job, uint64_t batch)
{
	job->border.batch = batch;
	if (job->border.end == WF_RUN_GOES_ON) {
		job->border.end = WF_RUN_IS_CUT;
	}
}

enum weft_status
wf_border_end(struct wf_run *job, uint64_t batch)
{
	static const char *const why[] = {
		[WF_RUN_IS_STOPPED] = "stopped by SIGTERM",
		[WF_RUN_IS_OUT_OF_TIME] = "time_limit is over",
		[WF_RUN_IS_CUT] = "another trainer is stopped by SIGTERM, or out of time",
	};
	const enum wf_run_end end = job->border.end;
	/* At its end the next pass is the one to begin with. */
	const uint64_t next = batch > 0 ? job->pass : job->pass + 1;

	/* The others are told by trainer 0, once it has saved. */
	if (end == WF_RUN_GOES_ON || !wf_run_is_first(job) || next >= job->opts->num_passes) {
		return WEFT_OK;
	}
	if (end == WF_RUN_IS_STOPPED && !job->is_sequential) {
		job->sink->watch->stop(); /* the other members learn the reason */
	}
	if (job->saving.is_last_lost) {
		const struct wf_error lost = job->saving.first_failure;
		return wf_fail(WEFT_IO, "%s, and the run could not be saved: %.400s", why[end],
			       lost.text);
	}
	if (end == WF_RUN_IS_OUT_OF_TIME && job->sink->is_out_of_time != NULL) {
		*job->sink->is_out_of_time = true;
	}
	return wf_fail(WEFT_ABORTED,
		       "%s: saved in pass %" PRIu64 " after batch %" PRIu64
		       "; continue with --start_pass=%" PRIu64 " --start_batch=%" PRIu64,
		       why[end], job->pass, batch > 0 ? batch : job->batch, next, batch);
}

uint64_t
wf_border_first_batch(const struct wf_run *job)
{
	return job->pass == job->first_pass ? job->first_batch : 0;
}

enum weft_status
wf_border_refuse_start(const struct wf_run *job)
{
	return wf_fail(WEFT_INVALID,
		       "start_batch=%" PRIu64 ": no trainer has more batches in pass %" PRIu64
		       "; give the data and the batch_size of the run that was saved, or begin "
		       "with the next start_pass",
		       job->opts->start_batch, job->pass);
}
