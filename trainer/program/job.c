/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up and taking down a run, and its lines. Thread: the run's. */
#include "trainer/program/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/settings.h"
#include "base/status.h"
#include "trainer/program/border.h"
#include "trainer/program/saving.h"

#define LINE_BYTES 160

static enum weft_status
make_model(struct wf_run *job)
{
	const struct wf_model_opts model_opts = {
		.features = job->data.source->features,
		.classes = job->data.source->classes,
		.hidden = job->opts->hidden == NULL ? job->kind->usual.hidden : job->opts->hidden,
		.slots = job->data.source->slots,
		.embedding = (uint32_t)job->opts->embedding,
		.kernels = job->kernels,
	};
	if (job->data.source->kind == WF_SOURCE_WORDS && job->opts->embedding == 0) {
		return wf_fail(WEFT_INVALID, "embedding=0: ngram needs rows of at least 1 value");
	}
	if (!job->kind->has_tables && job->opts->embedding > 0) {
		return wf_fail(WEFT_INVALID,
			       "embedding=%" PRIu64
			       ": the model %s has no table; leave the option out",
			       job->opts->embedding, job->kind->name);
	}
	enum weft_status st = job->kind->init(&model_opts, &job->model);
	return st == WEFT_OK ? wf_run_batches_init(job) : st;
}

static enum weft_status
start_compute(struct wf_run *job)
{
	unsigned threads = (unsigned)job->opts->trainer_count;
	bool has_progress_thread =
		!job->is_sequential && job->opts->session.progress == WEFT_PROGRESS_THREAD;
	const struct wf_seat_process seats = {.compute = threads, .progress = has_progress_thread};
	const struct wf_seat_ask ask = {.process = &seats, .process_count = 1};
	enum weft_status st = wf_pin_create_for(job->env, job->opts->session.pin, &ask, &job->pin);
	if (st == WEFT_OK) {
		st = wf_compute_create(
			job->env,
			&(struct wf_compute_opts){.model = &job->model,
						  .thread_count = threads,
						  .batch_rows = job->batches.rows_max,
						  .pin = job->pin},
			&job->compute);
	}
	return st == WEFT_OK && wf_run_is_first(job) ? wf_exam_create(job, &job->exam) : st;
}

enum weft_status
wf_run_init(struct wf_run *job, const struct wf_train_opts *opts, struct wf_env *env,
	    const struct wf_train_sink *sink)
{
	*job = (struct wf_run){
		.opts = opts,
		.sink = sink,
		.env = env,
		.kernels = wf_kernels_best(),
		.is_sequential = opts->sequential || opts->local,
		.seed = opts->seed,
		.first_pass = opts->start_pass,
		.first_batch = opts->start_batch,
		.border.start_ns = wf_now_ns(env),
	};
	enum weft_status st = wf_kind_by_name(opts->model, &job->kind);
	if (st == WEFT_OK) {
		st = wf_run_terms_read(job);
	}
	if (st == WEFT_OK) {
		st = wf_run_open_data(job);
	}
	if (st == WEFT_OK && !opts->closed_form) {
		st = wf_border_check(job);
	}
	if (st == WEFT_OK && !opts->closed_form) {
		st = wf_run_open_saving(job);
	}
	if (st == WEFT_OK && !opts->closed_form) {
		st = make_model(job);
	}
	if (st == WEFT_OK && !opts->closed_form) {
		st = start_compute(job);
	}
	if (st == WEFT_OK && job->seed == 0) {
		job->seed = wf_random(env) | 1;
		wf_log(env, WF_LOG_INFO, "seed %" PRIu64 " (drawn)", job->seed);
	}
	return st;
}

void
wf_run_fini(struct wf_run *job)
{
	wf_run_close_saving(job);
	wf_exam_destroy(job, job->exam);
	wf_compute_destroy(job->compute);
	wf_pin_destroy(job->pin);
	wf_run_batches_fini(job);
	wf_run_close_data(job);
}

enum weft_status
wf_run_batch_done(struct wf_run *job, const struct wf_tally *tally, const struct wf_view *view,
		  bool is_reporter)
{
	const struct wf_train_opts *opts = job->opts;
	double test = 0.0;

	job->batch++;
	if (opts->dot_period != 0 && job->batch % opts->dot_period == 0 && job->sink->dot != NULL) {
		job->sink->dot(job->sink->arg);
	}
	if (opts->log_period != 0 && job->batch % opts->log_period == 0) {
		wf_log(job->env, WF_LOG_INFO, "pass %" PRIu64 " batch %" PRIu64 " cost %.8g",
		       job->pass, job->batch, tally->cost / tally->samples);
	}
	if (!is_reporter || opts->test_period == 0 || job->batch % opts->test_period != 0) {
		return WEFT_OK;
	}
	enum weft_status st = wf_exam_test(job, view, NULL, 0, &test);
	if (st == WEFT_OK) {
		wf_log(job->env, WF_LOG_INFO, "pass %" PRIu64 " batch %" PRIu64 " test %.8g",
		       job->pass, job->batch, test);
	}
	return st;
}

/* The sign of a NaN depends on how it was computed: it is not printed. */
static double
unsigned_nan(double value)
{
	return value != value ? __builtin_nan("") : value;
}

enum weft_status
wf_run_report(struct wf_run *job, const struct wf_tally *tally, const struct wf_view *view)
{
	char line[LINE_BYTES];
	uint64_t digest = 0;

	/* Of a run that goes on behind the last batch of a pass the cost is a mean of nothing. */
	WF_ASSERT(tally->samples > 0.0 || job->pass == job->first_pass);
	enum weft_status st = wf_exam_test(job, view, NULL, 0, &job->figures.test);
	if (st == WEFT_OK) {
		st = wf_exam_digest(job, view, &digest);
	}
	if (st != WEFT_OK) {
		return st;
	}
	snprintf(line, sizeof(line), "pass %" PRIu64 " cost %.8g test %.8g digest %016" PRIx64,
		 job->pass, unsigned_nan(tally->cost / tally->samples),
		 unsigned_nan(job->figures.test), digest);
	return job->sink->line(job->sink->arg, line);
}
