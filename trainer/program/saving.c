/* SPDX-License-Identifier: Apache-2.0 */
/* Saved models of a run. Trainer 0 writes and reads them; the others get its values at start.
 * Thread: the run's. */
#include "trainer/program/saving.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/program/saving_remote.h"
#include "trainer/program/saving_tables.h"
#include "trainer/saved/saved.h"
#include "weft/weft.h"

WF_STATIC_ASSERT(WF_STATE_MAX <= WF_SAVED_STATE_MAX, "every optimizer's state can be saved");

static bool
is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static struct wf_saved_place
place_of(const struct wf_run *job)
{
	return (struct wf_saved_place){
		.env = job->env,
		.calls = wf_saved_posix(),
		.dir = job->opts->save_dir,
	};
}

static bool
is_first_trainer(const struct wf_run *job)
{
	return job->is_sequential || job->opts->trainer_id == 0;
}

bool
wf_run_is_saver(const struct wf_run *job)
{
	return is_given(job->opts->save_dir) && is_first_trainer(job);
}

/* Half a model is not saved, and none is begun with. */
static enum weft_status
check_tables(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	if (!job->is_sequential && strcmp(opts->sparse_mode, "sync") != 0 &&
	    (is_given(opts->save_dir) || opts->start_pass > 0)) {
		return wf_fail(WEFT_INVALID,
			       "save_dir, start_pass: with sparse_mode=%s each sparse lane counts "
			       "steps of its own, and tables are not saved; give sparse_mode=sync, "
			       "or leave them out",
			       opts->sparse_mode);
	}
	if (is_given(opts->init_model_path)) {
		return wf_fail(WEFT_INVALID,
			       "init_model_path: the model %s has tables, and their values alone "
			       "are no beginning; give save_dir and start_pass",
			       job->kind->name);
	}
	return WEFT_OK;
}

enum weft_status
wf_run_check_saving(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	enum weft_status st = job->kind->has_tables ? check_tables(job) : WEFT_OK;
	if (st != WEFT_OK) {
		return st;
	}
	if (opts->start_pass > 0 && !is_given(opts->save_dir) && !is_given(opts->init_model_path)) {
		return wf_fail(WEFT_INVALID,
			       "start_pass=%" PRIu64 ": goes on from a saved pass; give save_dir "
			       "with the folder that has it, or init_model_path",
			       opts->start_pass);
	}
	if (opts->start_pass >= opts->num_passes) {
		return wf_fail(WEFT_INVALID,
			       "start_pass=%" PRIu64 ": has to be less than num_passes=%" PRIu64
			       ", which counts the passes before it too",
			       opts->start_pass, opts->num_passes);
	}
	if (!wf_run_is_saver(job)) {
		return WEFT_OK;
	}
	const struct wf_saved_place place = place_of(job);
	st = wf_saved_prepare(&place);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "save_dir: %s", why.text);
	}
	return WEFT_OK;
}

/* The tables' part of it. */
static void
describe_tables(const struct wf_run *job, struct wf_saved_about *about)
{
	const struct wf_train_opts *opts = job->opts;
	const struct wf_row_opts *row = &job->row_optimizer;
	const size_t used = strlen(about->settings);

	snprintf(about->settings + used, sizeof(about->settings) - used,
		 " sparse=%s rest=%s rate=%.9g decay=%.9g l1=%.9g l2=%.9g l21=%.9g rho=%.9g "
		 "ftrl_beta=%.9g "
		 "dense_equivalent=%d admit=%" PRIu64 ",%.9g evict_age=%" PRIu64,
		 opts->sparse_optimizer, opts->sparse_rest, row->learning_rate, row->decay, row->l1,
		 row->l2, row->l21, row->rho, row->ftrl_beta, row->dense_equivalent,
		 opts->admit_count, opts->admit_probability, opts->evict_age);
}

/* What the bits depend on besides the data and the tensors: equal texts, equal runs. */
static void
describe(const struct wf_run *job, struct wf_saved_about *about)
{
	const struct wf_train_opts *opts = job->opts;
	const struct wf_optimizer_opts *o = &job->optimizer;

	snprintf(about->version, sizeof(about->version), "%s", weft_version());
	snprintf(about->optimizer, sizeof(about->optimizer), "%s", opts->optimizer);
	snprintf(about->settings, sizeof(about->settings),
		 "learning_rate=%.9g momentum=%.9g beta1=%.9g beta2=%.9g epsilon=%.9g l2=%.9g "
		 "clip=%.9g schedule=%s a=%.9g b=%.9g grad_reduce=%s nonfinite=%s seed=%" PRIu64
		 " batch_size=%" PRIu64 " num_gradient_servers=%" PRIu64 " trainer_count=%" PRIu64,
		 o->learning_rate, o->momentum, o->beta1, o->beta2, o->epsilon, o->decay, o->clip,
		 opts->learning_rate_schedule, o->schedule_a, o->schedule_b, opts->grad_reduce,
		 opts->nonfinite, job->seed, opts->batch_size, opts->num_gradient_servers,
		 opts->trainer_count);
	if (job->kind->has_tables) {
		describe_tables(job, about);
	}
}

/* The model's tensors with their arrays. Returns how many. */
static uint32_t
list_tensors(const struct wf_run *job, const struct wf_run_arrays *arrays,
	     struct wf_saved_tensor *out)
{
	const struct wf_model *model = &job->model;
	const unsigned states = wf_optimizer_state_count(job->optimizer.kind);

	for (unsigned t = 0; t < model->tensor_count; t++) {
		out[t] = (struct wf_saved_tensor){
			.name = model->tensor[t].name,
			.rows = model->tensor[t].rows,
			.cols = model->tensor[t].cols,
			.value = arrays->param[t],
			.state_count = states,
		};
		for (unsigned s = 0; s < states; s++) {
			out[t].state[s] = arrays->state[s][t];
		}
	}
	return model->tensor_count;
}

static enum weft_status
check_past(const struct wf_run *job, const struct wf_saved_about *past, const char *path)
{
	struct wf_saved_about now = {0};

	describe(job, &now);
	if (strcmp(past->optimizer, now.optimizer) != 0) {
		return wf_fail(WEFT_MISMATCH,
			       "%s: was saved with optimizer %s, this run has %s; give "
			       "optimizer=%s, or take the values alone with init_model_path",
			       path, past->optimizer, now.optimizer, past->optimizer);
	}
	if (past->pass != job->opts->start_pass - 1) {
		return wf_fail(WEFT_DATA, "%s: says that it is pass %" PRIu64 ", not %" PRIu64,
			       path, past->pass, job->opts->start_pass - 1);
	}
	if (strcmp(past->settings, now.settings) != 0) {
		wf_log(job->env, WF_LOG_WARN,
		       "start_pass: other settings than the saved ones, so the digest will differ: "
		       "%s; saved: %s",
		       now.settings, past->settings);
	}
	return WEFT_OK;
}

/* From the save at `path`; `is_init`: its values alone. */
static enum weft_status
load(struct wf_run *job, const struct wf_run_arrays *arrays, const char *path,
     struct wf_run_past *out)
{
	const bool is_init = is_given(job->opts->init_model_path);
	struct wf_saved_tensor tensor[WF_MODEL_TENSORS_MAX];
	struct wf_saved *saved = NULL;

	enum weft_status st = wf_saved_open(job->env, wf_saved_posix(), path, &saved);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_saved_about *past = wf_saved_about(saved);
	if (!is_init) {
		st = check_past(job, past, path);
	}
	if (st == WEFT_OK) {
		st = wf_saved_load(saved, tensor, list_tensors(job, arrays, tensor), !is_init);
	}
	if (st == WEFT_OK && arrays->tables != NULL) {
		st = wf_run_load_tables(job, saved, arrays->tables);
	}
	if (st == WEFT_OK) {
		wf_log(job->env, WF_LOG_INFO, "%s from %s (pass %" PRIu64 ", step %" PRIu64 ")",
		       is_init ? "initial values" : "going on", path, past->pass, past->step);
	}
	if (st == WEFT_OK && !is_init) {
		*out = (struct wf_run_past){.step = past->step, .samples = past->samples};
	}
	wf_saved_close(saved);
	return st;
}

enum weft_status
wf_run_restore(struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past *out)
{
	const struct wf_train_opts *opts = job->opts;
	char path[WF_SAVED_PATH_BYTES];

	WF_ASSERT(is_first_trainer(job));
	*out = (struct wf_run_past){0};
	if (is_given(opts->init_model_path)) {
		return load(job, arrays, opts->init_model_path, out);
	}
	if (opts->start_pass == 0) {
		return WEFT_OK;
	}
	enum weft_status st = wf_saved_pass_path(opts->save_dir, opts->start_pass - 1, path);
	return st == WEFT_OK ? load(job, arrays, path, out) : st;
}

enum weft_status
wf_run_restore_remote(struct wf_run *job, const struct wf_remote_tables *tables)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved *saved = NULL;

	enum weft_status st =
		wf_saved_pass_path(job->opts->save_dir, job->opts->start_pass - 1, path);
	if (st == WEFT_OK) {
		st = wf_saved_open(job->env, wf_saved_posix(), path, &saved);
	}
	if (st == WEFT_OK) {
		st = wf_run_load_remote(job, saved, tables);
	}
	wf_saved_close(saved);
	return st;
}

static uint32_t
list_tables(const struct wf_run *job, const struct wf_run_arrays *arrays,
	    struct wf_saved_table *out)
{
	if (arrays->tables != NULL) {
		return wf_run_list_tables(job, arrays->tables, out);
	}
	return arrays->remote != NULL ? wf_run_list_remote(job, arrays->remote, out) : 0;
}

bool
wf_run_is_save_due(const struct wf_run *job)
{
	const uint64_t period = job->opts->saving_period;

	return wf_run_is_saver(job) && period != 0 && (job->pass + 1) % period == 0;
}

static enum weft_status
save(const struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past past)
{
	const struct wf_saved_place place = place_of(job);
	struct wf_saved_tensor tensor[WF_MODEL_TENSORS_MAX];
	struct wf_saved_table table[WF_MODEL_TABLES_MAX];
	struct wf_saved_about about = {
		.pass = job->pass,
		.step = past.step,
		.samples = past.samples,
	};

	const struct wf_saved_content content = {
		.tensor = tensor,
		.tensor_count = list_tensors(job, arrays, tensor),
		.table = table,
		.table_count = list_tables(job, arrays, table),
	};
	describe(job, &about);
	return wf_saved_write_all(&place, &about, &content);
}

void
wf_run_save(struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past past)
{
	const struct wf_saved_place place = place_of(job);

	if (save(job, arrays, past) != WEFT_OK) {
		wf_log(job->env, WF_LOG_WARN, "pass %" PRIu64 " is not saved, training goes on: %s",
		       job->pass, weft_last_error());
		if (job->save_failures++ == 0) {
			job->first_save_failure = *wf_error_record();
			job->first_unsaved_pass = job->pass;
		}
		return;
	}
	if (job->opts->save_only_one && wf_saved_remove_older(&place, job->pass) != WEFT_OK) {
		wf_log(job->env, WF_LOG_WARN, "save_only_one: %s", weft_last_error());
	}
}

enum weft_status
wf_run_saving_result(const struct wf_run *job)
{
	if (job->save_failures == 0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_IO,
		       "training has finished, but %" PRIu64 " of its passes could not be saved; "
		       "first pass %" PRIu64 ": %.400s",
		       job->save_failures, job->first_unsaved_pass, job->first_save_failure.text);
}
