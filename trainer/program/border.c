/* SPDX-License-Identifier: Apache-2.0 */
/* border: see border.h. */
#include "trainer/program/border.h"

#include <inttypes.h>

#include "trainer/program/saving.h"
#include "trainer/program/tensor_modes.h"

/* The batches of trainer 0, which has the largest share of the set: of one block, whose batches
 * follow from the number of its rows alone. */
static uint64_t
batches_of_first(const struct wf_run *job)
{
	const uint64_t trainers = job->opts->session.num_gradient_servers;
	const uint64_t share = (job->data.source->train_rows + trainers - 1) / trainers;
	const uint64_t size = job->opts->batch_size;

	return size == 0 || share == 0 ? share > 0 : (share + size - 1) / size;
}

static enum weft_status
check_start(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	const uint64_t batches = batches_of_first(job);

	if (opts->start_batch == 0) {
		return WEFT_OK;
	}
	if (opts->init_model_path != NULL && opts->init_model_path[0] != '\0') {
		return wf_fail(WEFT_INVALID,
			       "start_batch=%" PRIu64 ": goes on from a save in save_dir, but "
			       "init_model_path is given; leave one of the two out",
			       opts->start_batch);
	}
	if (opts->start_batch >= batches) {
		return wf_fail(WEFT_INVALID,
			       "start_batch=%" PRIu64 ": a pass has %" PRIu64 " batches; give a "
			       "lower number, or the next start_pass",
			       opts->start_batch, batches);
	}
	return WEFT_OK;
}

enum weft_status
wf_border_check(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	const char *name = opts->saving_period_by_batches > 0 ? "saving_period_by_batches"
			   : opts->save_on_term               ? "save_on_term"
			   : opts->time_limit_ns > 0          ? "time_limit"
			   : opts->start_batch > 0            ? "start_batch"
							      : NULL;

	if (name == NULL) {
		return WEFT_OK;
	}
	if (opts->session.dense_mode != WEFT_DENSE_SYNC || wf_tensor_modes_given(opts) ||
	    (job->kind->has_tables && opts->session.sparse_mode != WEFT_SPARSE_SYNC)) {
		return wf_fail(WEFT_INVALID,
			       "%s: only a synchronous job has a state between two steps that can "
			       "be saved; give dense_mode=sync and sparse_mode=sync, or leave it "
			       "out",
			       name);
	}
	if (job->data.split != WF_SPLIT_ROWS || job->data.set[0].is_streamed) {
		return wf_fail(WEFT_INVALID,
			       "%s: how far all trainers are in a pass is known only if they share "
			       "the rows of a set that fits in memory; give data_split=rows and a "
			       "larger data_window, or leave it out",
			       name);
	}
	if (wf_run_is_first(job) && !wf_run_is_saver(job)) {
		return wf_fail(WEFT_INVALID, "%s: give trainer 0 a save_dir, where it saves", name);
	}
	return check_start(job);
}

void
wf_border_postpone(const struct wf_run *job)
{
	if (job->opts->save_on_term && job->sink->watch != NULL) {
		job->sink->watch->postpone(job->opts->term_grace_ns);
	}
}

void
wf_border_look(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	if (job->border.end != WF_RUN_GOES_ON || !wf_run_is_first(job)) {
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
wf_border_is_near(struct wf_run *job)
{
	const uint64_t period = job->opts->saving_period_by_batches;

	/* After the last batch comes the end of the pass, which has its own save. */
	if (!wf_run_is_first(job) || job->batch + 1 >= batches_of_first(job)) {
		return false;
	}
	wf_border_look(job);
	return job->border.end != WF_RUN_GOES_ON || (period > 0 && (job->batch + 1) % period == 0);
}

enum weft_status
wf_border_end(struct wf_run *job, uint64_t batch)
{
	const bool is_stopped = job->border.end == WF_RUN_IS_STOPPED;
	const char *why = is_stopped ? "stopped by SIGTERM" : "time_limit is over";
	/* At its end the next pass is the one to begin with. */
	const uint64_t next = batch > 0 ? job->pass : job->pass + 1;

	if (job->border.end == WF_RUN_GOES_ON || next >= job->opts->num_passes) {
		return WEFT_OK;
	}
	if (is_stopped && !job->is_sequential) {
		job->sink->watch->stop(); /* the other members learn the reason */
	}
	if (job->saving.is_last_lost) {
		const struct wf_error lost = job->saving.first_failure;
		return wf_fail(WEFT_IO, "%s, and the run could not be saved: %.400s", why,
			       lost.text);
	}
	if (!is_stopped && job->sink->is_out_of_time != NULL) {
		*job->sink->is_out_of_time = true;
	}
	return wf_fail(WEFT_ABORTED,
		       "%s: saved in pass %" PRIu64 " after batch %" PRIu64
		       "; continue with --start_pass=%" PRIu64 " --start_batch=%" PRIu64,
		       why, job->pass, job->batch, next, batch);
}

uint64_t
wf_border_first_batch(const struct wf_run *job)
{
	return job->pass == job->opts->start_pass ? job->opts->start_batch : 0;
}

static uint64_t
samples_to(const struct wf_run *job, uint64_t batch)
{
	const uint64_t trainers = job->opts->session.num_gradient_servers;
	const uint64_t rows = job->data.source->train_rows;
	uint64_t samples = 0;

	for (uint64_t i = 0; i < trainers; i++) {
		const uint64_t share = rows / trainers + (i < rows % trainers);
		const uint64_t size = job->opts->batch_size;
		const uint64_t each = size == 0 || size > share ? share : size;
		samples += each * batch < share ? each * batch : share;
	}
	return samples;
}

uint64_t
wf_border_samples(const struct wf_run *job, uint64_t batch)
{
	return samples_to(job, batch) - samples_to(job, wf_border_first_batch(job));
}
