/* SPDX-License-Identifier: Apache-2.0 */
/* A run from beginning to end. Thread: the caller's. */
#include "trainer/program/train.h"

#include <stdio.h>

#include "trainer/models/least_squares.h"
#include "trainer/program/job.h"
#include "trainer/program/saving.h"

#define LINE_BYTES 96

static enum weft_status
run_closed_form(struct wf_run *job)
{
	char line[LINE_BYTES];
	struct wf_least_squares solution;

	if (!job->kind->has_closed_form) {
		return wf_fail(
			WEFT_INVALID,
			"closed_form: the model %s has no closed-form solution; linear has one",
			job->kind->name);
	}
	if (job->data.set[0].is_streamed || job->data.set_count > 1) {
		return wf_fail(WEFT_INVALID,
			       "closed_form: needs all rows in memory, as one set; give "
			       "data_split=rows, or a larger --data_window");
	}
	enum weft_status st =
		wf_least_squares_solve(job->env, &job->data.source->dataset, &solution);
	if (st != WEFT_OK) {
		return st;
	}
	snprintf(line, sizeof(line), "closed form train %.6f test %.6f", solution.train,
		 solution.test);
	return job->sink->line(job->sink->arg, line);
}

enum weft_status
wf_train_run(const struct wf_train_opts *opts, struct wf_env *env, const struct wf_train_sink *sink)
{
	struct wf_run job;

	enum weft_status st = wf_run_init(&job, opts, env, sink);
	if (st != WEFT_OK) {
		wf_run_fini(&job);
		return st;
	}
	if (opts->closed_form) {
		st = run_closed_form(&job);
	} else if (job.is_sequential) {
		st = wf_run_run_sequential(&job);
	} else {
		st = wf_run_run_fabric(&job);
	}
	if (st == WEFT_OK && !opts->closed_form && wf_run_is_first(&job)) {
		st = wf_run_conclude(&job);
	}
	if (st == WEFT_OK) {
		st = wf_run_saving_result(&job);
	}
	wf_run_fini(&job);
	return st;
}
