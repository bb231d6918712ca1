/* SPDX-License-Identifier: Apache-2.0 */
/* One trainer of a job: gradients from the compute threads, parameters from the fabric. Uses the
 * public API alone. Thread: the run's, which is the session's owner. */
#include "trainer/program/job.h"

#include <cblas.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/status.h"
#include "base/settings.h"
#include "trainer/program/border.h"
#include "trainer/program/remote_tables.h"
#include "trainer/program/resume.h"
#include "trainer/program/saving.h"
#include "trainer/program/stragglers.h"
#include "trainer/program/tensor_modes.h"
#include "weft/members.h"
#include "weft/restart.h"
#include "weft/weft.h"

#define WHERE_BYTES 192u /* of which file a refusal is about */
#define REDUCE_MAX 256u  /* values of a reduction */

struct fabric {
	struct wf_run *job;
	struct weft_session *session;
	bool is_watched;
	bool is_resumed; /* the pservers had a snapshot, or the job was running */
	bool has_left;
	struct weft_tensor *tensor[WF_MODEL_TENSORS_MAX];
	float *param[WF_MODEL_TENSORS_MAX]; /* the session's arrays */
	float *grad[WF_MODEL_TENSORS_MAX];
	float *exact[WF_MODEL_TENSORS_MAX]; /* the pservers' values; NULL where none are kept */
	float *state[WF_STATE_MAX][WF_MODEL_TENSORS_MAX]; /* NULL where none is kept */
	float *average[WF_MODEL_TENSORS_MAX];             /* of this trainer; NULL: none yet */
	uint64_t samples; /* of all trainers, in the passes that have ended */
	uint64_t slices_answered, slices_discarded; /* of this one, likewise; not of sync */
	struct wf_stragglers stragglers;            /* trainer 0, with stats_period */
	struct wf_feed feed;
	struct wf_remote_tables tables;
	struct wf_remote_batch batch[2]; /* the one being computed, and the next */
	unsigned now;                    /* which of them is which */
	char progress_pin[16];
	char numerics[96];
	char compared[WF_COMPARED_BYTES];
};

static void
log_line(void *arg, enum weft_log_level level, const char *line)
{
	wf_log(arg, level, "%s", line);
}

/* The progress thread has the place after those of the compute threads. It is a separate setting,
 * because the session does not know the compute threads. Without that thread it determines where
 * the arrays are. */
static const char *
progress_pin(struct fabric *fabric)
{
	const struct wf_run *job = fabric->job;
	bool has_thread = job->opts->session.progress == WEFT_PROGRESS_THREAD;
	int cpu =
		wf_pin_place_of(job->pin, has_thread ? (unsigned)job->opts->trainer_count : 0).cpu;

	if (cpu < 0) {
		return "off";
	}
	snprintf(fabric->progress_pin, sizeof(fabric->progress_pin), "%d", cpu);
	return fabric->progress_pin;
}

/* Trainer 0 tests with averages, where there are any. */
static bool
keeps_averages(const struct wf_run *job)
{
	return wf_optimizer_averages(&job->terms.optimizer.set) &&
	       job->opts->session.trainer_id == 0;
}

static enum weft_status
open_session(struct fabric *fabric)
{
	const struct wf_run *job = fabric->job;
	const struct wf_train_opts *opts = job->opts;
	struct weft_session_opts session;

	enum weft_status st = wf_run_compared(job, fabric->compared);
	if (st != WEFT_OK) {
		return st;
	}
	session = opts->session;
	snprintf(fabric->numerics, sizeof(fabric->numerics),
		 "openblas %s, 1 BLAS thread, trainer_count %" PRIu64, openblas_get_corename(),
		 opts->trainer_count);
	wf_session_set_lag(&session, (uint32_t)opts->staleness,
			   opts->async_lagged_grad_discard_ratio);
	session.rounding_seed = job->seed;
	session.optimizer = job->terms.session_optimizer;
	session.pin = progress_pin(fabric);
	session.keep_state = wf_run_is_saver(job) || keeps_averages(job);
	session.compared = fabric->compared;
	session.numerics = fabric->numerics;
	session.log = log_line;
	session.log_arg = job->env;
	struct weft_settings *settings = NULL;
	st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	if (st == WEFT_OK) {
		st = wf_settings_set_named(settings, &opts->values);
	}
	if (st == WEFT_OK) {
		wf_settings_set_env(settings, job->env);
		session.settings = settings;
		st = weft_session_open(&session, &fabric->session);
	}
	weft_settings_destroy(settings);
	return st;
}

static enum weft_status
add_tensors(struct fabric *fabric)
{
	const struct wf_model *model = &fabric->job->model;
	enum weft_status st = wf_tensor_modes_fit(fabric->job->opts, model);

	for (unsigned t = 0; t < model->tensor_count && st == WEFT_OK; t++) {
		struct weft_tensor_opts tensor = {
			.name = model->tensor[t].name,
			.rows = model->tensor[t].rows,
			.cols = model->tensor[t].cols,
		};
		wf_tensor_modes_set(fabric->job->opts, &tensor);
		st = weft_tensor_add(fabric->session, &tensor, &fabric->tensor[t]);
	}
	if (st == WEFT_OK) {
		st = wf_remote_tables_add(&fabric->tables, fabric->job, fabric->session);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(fabric->session);
	}
	if (st != WEFT_OK) {
		return st;
	}
	for (unsigned t = 0; t < model->tensor_count; t++) {
		fabric->param[t] = weft_tensor_param(fabric->tensor[t]);
		fabric->grad[t] = weft_tensor_grad(fabric->tensor[t]);
		fabric->exact[t] = weft_tensor_exact(fabric->tensor[t]);
		for (unsigned s = 0; s < weft_state_count(fabric->session); s++) {
			fabric->state[s][t] = weft_tensor_state(fabric->tensor[t], s);
		}
		WF_ASSERT(weft_tensor_count(fabric->tensor[t]) == wf_model_tensor_count(model, t));
	}
	return WEFT_OK;
}

/* All trainers get the values of trainer 0. */
static enum weft_status
set_initial_values(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;
	const struct wf_run_arrays arrays = {.param = fabric->param, .state = fabric->state};
	struct wf_run_past past;

	job->model.ops->init(&job->model, job->seed, fabric->param);
	enum weft_status st = wf_run_restore(job, &arrays, &past);
	if (st != WEFT_OK || past.step == 0) {
		return st;
	}
	fabric->samples = past.samples;
	return weft_session_restore(fabric->session, past.step, past.samples);
}

/* The rows from which tables continue or begin are restored before any trainer pulls a row. Only
 * trainer 0 may know whether there are any. */
static enum weft_status
restore_tables(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;
	enum weft_status st = WEFT_OK;

	if (job->model.table_count == 0) {
		return WEFT_OK;
	}
	if (job->opts->session.trainer_id == 0 && !fabric->is_resumed) {
		st = wf_run_restore_remote(job, &fabric->tables);
	}
	/* Who joins a job that runs has no table to restore, and finds the others at work. */
	return st == WEFT_OK && !weft_session_joined(fabric->session)
		       ? weft_barrier(fabric->session)
		       : st;
}

/* Initial values are of no pass. */
static enum weft_status
note_answers(struct fabric *fabric)
{
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
	enum weft_status st = weft_session_stats(fabric->session, &stats);
	fabric->slices_answered = stats.slices_answered;
	return st;
}

static enum weft_status
start(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;

	enum weft_status st =
		wf_run_feed_init(job, (uint32_t)job->opts->session.trainer_id, &fabric->feed);
	for (unsigned i = 0; st == WEFT_OK && i < WF_ARRAY_COUNT(fabric->batch); i++) {
		st = wf_run_batch_init(job, &fabric->batch[i].rows);
	}
	if (st == WEFT_OK) {
		st = open_session(fabric);
	}
	if (st == WEFT_OK) {
		st = add_tensors(fabric);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (job->opts->session.trainer_id == 0) {
		st = set_initial_values(fabric);
		if (st != WEFT_OK) {
			return st;
		}
	}
	fabric->is_watched = job->sink->watch != NULL;
	if (fabric->is_watched) {
		job->sink->watch->begins(fabric->session);
	}
	st = weft_session_start(fabric->session);
	if (st == WEFT_OK) {
		st = wf_run_resume(job, fabric->session, &fabric->is_resumed, &fabric->samples);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = restore_tables(fabric);
	if (st != WEFT_OK) {
		return st;
	}
	st = note_answers(fabric);
	if (st != WEFT_OK) {
		return st;
	}
	/* Only now: a thread that this one starts inherits its CPU set. */
	return wf_pin_self(job->pin, 0);
}

static struct wf_view
view_of(struct fabric *fabric)
{
	return (struct wf_view){
		.param = (const float *const *)fabric->param,
		.rows = wf_remote_tables_rows,
		.arg = &fabric->tables,
	};
}

static enum weft_status
pull_averages(struct fabric *fabric)
{
	const struct wf_model *model = &fabric->job->model;

	enum weft_status st = weft_pull_state(fabric->session);
	for (unsigned t = 0; t < model->tensor_count && st == WEFT_OK; t++) {
		size_t count = wf_model_tensor_count(model, t);
		if (fabric->average[t] == NULL) {
			fabric->average[t] =
				wf_zalloc_array(fabric->job->env, count, sizeof(float));
		}
		st = fabric->average[t] != NULL
			     ? weft_tensor_average(fabric->tensor[t], fabric->average[t])
			     : wf_fail(WEFT_NOMEM, "averages of %zu parameters", count);
	}
	return st;
}

/* Some trainers have ended their pass early: the least batches that one of them has done. What it
 * begins with when it continues there, the others have done already; nobody leaves any out. */
static enum weft_status
find_least(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;
	const uint32_t trainers = (uint32_t)job->opts->session.num_gradient_servers;
	const uint32_t own = (uint32_t)job->opts->session.trainer_id;
	enum weft_status st = WEFT_OK;
	uint64_t least = UINT64_MAX;

	for (uint32_t first = 0; st == WEFT_OK && first < trainers; first += REDUCE_MAX) {
		const uint32_t left = trainers - first;
		const uint32_t count = left < REDUCE_MAX ? left : REDUCE_MAX;
		double done[REDUCE_MAX] = {0};
		if (job->border.is_cutting && own - first < count) {
			done[own - first] = (double)job->batch;
		}
		st = weft_reduce(fabric->session, done, count);
		for (uint32_t i = 0; st == WEFT_OK && i < count; i++) {
			least = done[i] > 0.0 && done[i] < (double)least ? (uint64_t)done[i]
									 : least;
		}
	}
	if (st == WEFT_OK) {
		wf_border_pass_is_cut(job, least);
	}
	return st;
}

/* Its line, unless trainers have ended it early, which ends the run, and which no trainer of a
 * synchronous job can: there the cost and the samples are all that is summed, as in trainers of
 * other programs, which may be in such a job. */
static enum weft_status
report_pass(struct fabric *fabric, const struct wf_tally *tally)
{
	struct wf_run *job = fabric->job;
	struct wf_view view = view_of(fabric);
	double sums[3] = {tally->cost, tally->samples, job->border.is_cutting ? 1.0 : 0.0};

	enum weft_status st = weft_reduce(fabric->session, sums, wf_run_is_sync(job) ? 2 : 3);
	if (st != WEFT_OK) {
		return st;
	}
	fabric->samples += (uint64_t)sums[1];
	if (sums[2] > 0.0) {
		return find_least(fabric);
	}
	if (job->opts->session.trainer_id != 0) {
		return WEFT_OK;
	}
	st = wf_remote_tables_report_lost(&fabric->tables);
	if (st == WEFT_OK) {
		st = weft_digest(fabric->session, &view.digest);
	}
	if (st == WEFT_OK && keeps_averages(job)) {
		st = pull_averages(fabric);
		view.param = (const float *const *)fabric->average;
	}
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_tally total = {.cost = sums[0], .samples = sums[1]};
	return wf_run_report(job, &total, &view);
}

/* Of this pass, by this trainer. */
static enum weft_status
log_discarded(struct fabric *fabric)
{
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
	enum weft_status st = weft_session_stats(fabric->session, &stats);
	if (st != WEFT_OK) {
		return st;
	}
	const uint64_t dropped = stats.slices_discarded - fabric->slices_discarded;
	const uint64_t pushed = stats.slices_answered - fabric->slices_answered;
	fabric->slices_discarded = stats.slices_discarded;
	fabric->slices_answered = stats.slices_answered;
	if (dropped > 0) {
		wf_log(fabric->job->env, WF_LOG_INFO,
		       "trainer %" PRIu32 ": pass %" PRIu64 ": %" PRIu64 " of %" PRIu64
		       " pushed slices came too late and were dropped "
		       "(async_lagged_grad_discard_ratio)",
		       fabric->job->opts->session.trainer_id, fabric->job->pass, dropped, pushed);
	}
	return WEFT_OK;
}

/* Saves at the end of a pass (batch 0), in its middle, or where trainers have ended it early. The
 * other trainers continue meanwhile, as far as they can without this one's gradients. */
static enum weft_status
save(struct fabric *fabric, uint64_t batch)
{
	const struct wf_run_arrays arrays = {
		.param = fabric->exact,
		.state = fabric->state,
		.average = batch == 0 && keeps_averages(fabric->job) ? fabric->average : NULL,
		.remote = &fabric->tables,
	};
	struct wf_run_past past = {.samples = fabric->samples, .batch = batch};

	enum weft_status st = weft_pull_state(fabric->session);
	if (st != WEFT_OK) {
		return st;
	}
	past.step = weft_steps(fabric->session);
	/* Those of a pass that has ended early are known. */
	if (batch > 0 && wf_run_is_sync(fabric->job)) {
		st = weft_samples(fabric->session, &past.samples);
	}
	if (st == WEFT_OK) {
		wf_run_save(fabric->job, &arrays, past);
	}
	return st;
}

static enum weft_status
save_pass(struct fabric *fabric)
{
	wf_border_look(fabric->job);
	const uint64_t batch = fabric->job->border.batch;
	enum weft_status st = wf_run_is_save_due(fabric->job) ? save(fabric, batch) : WEFT_OK;
	return st == WEFT_OK ? wf_border_end(fabric->job, batch) : st;
}

/* In the middle of a pass. */
static enum weft_status
save_part(struct fabric *fabric)
{
	const uint64_t batch = fabric->job->batch;
	enum weft_status st = save(fabric, batch);
	return st == WEFT_OK ? wf_border_end(fabric->job, batch) : st;
}

/* The next batch of this pass, and its rows on their way. It has no rows if none is left. */
static enum weft_status
begin_batch(struct fabric *fabric, struct wf_remote_batch *batch)
{
	enum weft_status st = wf_feed_next(&fabric->feed, &batch->rows);

	return st == WEFT_OK && batch->rows.rows > 0 ? wf_remote_batch_pull(&fabric->tables, batch)
						     : st;
}

/* All tensors' gradients, and all answers. */
static enum weft_status
push_tensors(struct fabric *fabric)
{
	enum weft_status st = WEFT_OK;

	for (unsigned t = fabric->job->model.tensor_count; st == WEFT_OK && t-- > 0;) {
		st = weft_push(fabric->tensor[t]);
	}
	return st == WEFT_OK ? weft_wait_all(fabric->session) : st;
}

/* One batch of a model with tables. The step begins before its cost is known, so that the rows of
 * the next batch, whose values are those after this step, can be requested while this one is
 * computed; not before a border, where tables are saved. */
static enum weft_status
step_with_rows(struct fabric *fabric, struct wf_tally *tally, bool is_border)
{
	struct wf_run *job = fabric->job;
	struct wf_remote_batch *now = &fabric->batch[fabric->now];
	struct wf_remote_batch *next = &fabric->batch[1 - fabric->now];
	struct wf_batch batch;

	enum weft_status st = wf_remote_batch_wait(&fabric->tables, now, &batch);
	if (st == WEFT_OK) {
		st = wf_run_give_position(job, fabric->session);
	}
	if (st == WEFT_OK) {
		st = weft_step(fabric->session, now->rows.rows, 0.0);
	}
	if (st == WEFT_OK && !is_border) {
		st = begin_batch(fabric, next);
	}
	if (st != WEFT_OK) {
		return st;
	}
	tally->cost += wf_compute_gradient(job->compute, &batch,
					   (const float *const *)fabric->param, fabric->grad);
	tally->samples += (double)now->rows.rows;
	st = wf_remote_batch_push(&fabric->tables, now, &batch);
	fabric->now = 1 - fabric->now;
	return st == WEFT_OK ? push_tensors(fabric) : st;
}

/* One batch of a model without tables. */
static enum weft_status
step_dense(struct fabric *fabric, struct wf_tally *tally)
{
	struct wf_run *job = fabric->job;
	struct wf_bag_batch *rows = &fabric->batch[0].rows;
	const struct wf_batch batch = {.rows = rows};

	double cost = wf_compute_gradient(job->compute, &batch, (const float *const *)fabric->param,
					  fabric->grad);
	tally->cost += cost;
	tally->samples += (double)rows->rows;
	enum weft_status st = wf_run_give_position(job, fabric->session);
	if (st == WEFT_OK) {
		st = weft_exchange(fabric->session, rows->rows, cost);
	}
	return st == WEFT_OK ? wf_feed_next(&fabric->feed, rows) : st;
}

/* The first batch of the pass. Where a run continues in the middle of it, some trainer has one. */
static enum weft_status
begin_pass(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;
	struct wf_remote_batch *batch = &fabric->batch[fabric->now];

	job->batch = wf_border_first_batch(job);
	wf_feed_begin(&fabric->feed, job->seed, job->pass);
	enum weft_status st = wf_feed_skip(&fabric->feed, job->batch);
	if (st == WEFT_OK) {
		st = begin_batch(fabric, batch);
	}
	/* A snapshot may have been taken behind the last batch of the pass. */
	if (st != WEFT_OK || job->batch == 0 || fabric->is_resumed) {
		return st;
	}
	double left = batch->rows.rows > 0 ? 1.0 : 0.0;
	st = weft_reduce(fabric->session, &left, 1);
	return st == WEFT_OK && left == 0.0 ? wf_border_refuse_start(job) : st;
}

/* Between two steps. */
static enum weft_status
leave(struct fabric *fabric)
{
	const struct wf_run *job = fabric->job;

	enum weft_status st = weft_session_leave(fabric->session);
	if (st == WEFT_OK) {
		fabric->has_left = true;
		wf_log(job->env, WF_LOG_WARN,
		       "trainer %" PRIu32
		       ": has left the job, which goes on: stopped by SIGTERM in pass %" PRIu64
		       " after batch %" PRIu64,
		       job->opts->session.trainer_id, job->pass, job->batch);
	}
	return st;
}

static enum weft_status
run_batch(struct fabric *fabric, struct wf_tally *tally)
{
	struct wf_run *job = fabric->job;
	const bool has_tables = job->model.table_count > 0;
	const struct wf_view view = view_of(fabric);
	const bool leaves = wf_border_leaves(job);
	bool is_border = !leaves && wf_border_is_near(job);

	enum weft_status st = is_border ? wf_feed_has_next(&fabric->feed, &is_border) : WEFT_OK;
	if (st == WEFT_OK) {
		st = has_tables ? step_with_rows(fabric, tally, is_border || leaves)
				: step_dense(fabric, tally);
	}
	if (st == WEFT_OK) {
		st = wf_run_batch_done(job, tally, &view, job->opts->session.trainer_id == 0);
	}
	if (st == WEFT_OK && leaves) {
		return leave(fabric);
	}
	if (st == WEFT_OK && is_border) {
		st = save_part(fabric);
		if (st == WEFT_OK && has_tables) {
			st = begin_batch(fabric, &fabric->batch[fabric->now]);
		}
	}
	return st;
}

static enum weft_status
run_pass(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;
	struct wf_tally tally = {0};
	bool is_cut = false;

	enum weft_status st = begin_pass(fabric);
	while (st == WEFT_OK && fabric->batch[fabric->now].rows.rows > 0 && !is_cut) {
		st = run_batch(fabric, &tally);
		if (fabric->has_left) {
			return st;
		}
		is_cut = st == WEFT_OK && fabric->batch[fabric->now].rows.rows > 0 &&
			 wf_border_cuts_pass(job);
	}
	if (st == WEFT_OK) {
		st = weft_pass_end(fabric->session);
	}
	if (st == WEFT_OK && fabric->stragglers.trainer_count > 0) {
		st = wf_stragglers_report(job->env, &fabric->stragglers, fabric->session,
					  job->pass);
	}
	if (st == WEFT_OK) {
		st = report_pass(fabric, &tally);
	}
	if (st == WEFT_OK) {
		st = save_pass(fabric);
	}
	const bool is_sync = job->opts->session.dense_mode == WEFT_DENSE_SYNC &&
			     !wf_tensor_modes_given(job->opts);
	if (st == WEFT_OK && !is_sync) {
		st = log_discarded(fabric);
	}
	if (st != WEFT_OK || wf_run_is_sync(job)) {
		return st;
	}
	/* No trainer waits for this one's gradients, and what is being saved would change. */
	return weft_barrier(fabric->session);
}

static enum weft_status
run_passes(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;
	enum weft_status st = WEFT_OK;

	for (job->pass = job->first_pass; st == WEFT_OK && job->pass < job->opts->num_passes;
	     job->pass++) {
		st = run_pass(fabric);
		if (fabric->has_left) {
			return st;
		}
	}
	if (st == WEFT_OK && job->opts->session.trainer_id == 0) {
		const struct wf_view view = view_of(fabric);
		st = wf_run_measure(job, &view);
	}
	return st == WEFT_OK ? weft_session_finish(fabric->session) : st;
}

/* The job has lost a member: this trainer goes on where the newest snapshot was taken, or from the
 * beginning. */
static enum weft_status
go_back(struct fabric *fabric)
{
	struct wf_run *job = fabric->job;

	wf_log(job->env, WF_LOG_WARN, "trainer %" PRIu32 ": the job goes back: %s",
	       job->opts->session.trainer_id, weft_last_error());
	enum weft_status st = weft_session_rejoin(fabric->session);
	job->first_pass = job->opts->start_pass;
	job->first_batch = job->opts->start_batch;
	fabric->samples = 0;
	fabric->slices_discarded = 0;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(fabric->batch); i++) {
		memset(fabric->batch[i].pulled, 0, sizeof(fabric->batch[i].pulled));
	}
	if (st == WEFT_OK) {
		st = wf_run_resume(job, fabric->session, &fabric->is_resumed, &fabric->samples);
	}
	if (st == WEFT_OK) {
		st = restore_tables(fabric);
	}
	return st == WEFT_OK ? note_answers(fabric) : st;
}

static enum weft_status
run_lives(struct fabric *fabric)
{
	enum weft_status st = run_passes(fabric);

	while (st == WEFT_ROLLED_BACK) {
		st = go_back(fabric);
		if (st == WEFT_OK) {
			st = run_passes(fabric);
		}
	}
	return st;
}

/* Data that differs is refused by pservers, which know neither files nor what trainers do with
 * them. */
static enum weft_status
hint_at_data(const struct wf_run *job, enum weft_status st)
{
	const struct wf_error why = *wf_error_record();
	char where[WHERE_BYTES];

	if (st != WEFT_MISMATCH || !wf_run_explain_data(job, why.text, where, sizeof(where))) {
		return st;
	}
	return wf_fail(st, "%s%s%s%s", why.text, where[0] == '\0' ? "" : "; ", where,
		       job->data.split == WF_SPLIT_ROWS
			       ? "; where each trainer has data of its own, give all of them "
				 "--data_split=mine"
			       : "");
}

/* Ends the session. The first failure is reported, not its consequences. */
static enum weft_status
end_session(struct fabric *fabric, enum weft_status st)
{
	if (st == WEFT_OK) {
		return weft_session_close(fabric->session);
	}
	const struct wf_error first = *wf_error_record();
	if (fabric->session != NULL) {
		weft_session_abort(fabric->session, st, first.text);
	}
	*wf_error_record() = first;
	return st;
}

static enum weft_status
finish(struct fabric *fabric, enum weft_status st)
{
	const struct wf_train_watch *watch = fabric->is_watched ? fabric->job->sink->watch : NULL;
	if (watch != NULL) {
		watch->ends();
	}
	st = hint_at_data(fabric->job, end_session(fabric, st));
	if (watch != NULL) {
		watch->over(st);
	}
	return st;
}

enum weft_status
wf_run_run_fabric(struct wf_run *job)
{
	struct fabric fabric = {.job = job};

	enum weft_status st = start(&fabric);
	const bool tells = job->opts->session.trainer_id == 0 &&
			   job->opts->session.stats_period_ns > 0 &&
			   job->opts->session.num_gradient_servers > 1;
	if (st == WEFT_OK && tells) {
		st = wf_stragglers_init(job->env, (uint32_t)job->opts->session.num_gradient_servers,
					&fabric.stragglers);
	}
	if (st == WEFT_OK) {
		wf_border_postpone(job);
	}
	st = st == WEFT_OK ? run_lives(&fabric) : st;
	st = finish(&fabric, st);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(fabric.batch); i++) {
		wf_bag_batch_fini(job->env, &fabric.batch[i].rows);
	}
	for (unsigned t = 0; t < job->model.tensor_count; t++) {
		wf_free(job->env, fabric.average[t],
			wf_model_tensor_count(&job->model, t) * sizeof(float));
	}
	wf_stragglers_fini(job->env, &fabric.stragglers);
	wf_feed_fini(&fabric.feed);
	return st;
}
