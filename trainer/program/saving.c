/* SPDX-License-Identifier: Apache-2.0 */
/* Saved models of a run. Trainer 0 writes and reads them; the others get its values at start.
 * Thread: the run's. */
#include "trainer/program/saving.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "saved/saved.h"
#include "trainer/program/initial.h"
#include "trainer/program/saving_remote.h"
#include "trainer/program/saving_tables.h"
#include "trainer/program/saving_words.h"
#include "trainer/program/tensor_modes.h"
#include "weft/weft.h"

#define WHERE_BYTES 40u /* " after batch N" */

WF_STATIC_ASSERT(WF_STATE_MAX <= WF_SAVED_STATE_MAX, "every optimizer's state can be saved");

static bool
is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static bool
is_continuing(const struct wf_train_opts *opts)
{
	return opts->start_pass > 0 || opts->start_batch > 0;
}

/* The number of the save from which the run continues. */
static uint64_t
start_save(const struct wf_train_opts *opts)
{
	return opts->start_batch > 0 ? opts->start_pass : opts->start_pass - 1;
}

/* The folder's check has failed with `st`. If the save that the run continues from is damaged, that
 * is the reason: without its manifest its files look like those of somebody else. */
static enum weft_status
find_damage(const struct wf_run *job, const char *dir, enum weft_status st)
{
	const struct wf_error why = *wf_error_record();
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved *saved = NULL;

	enum weft_status found = wf_saved_pass_path(dir, start_save(job->opts), path);
	if (found == WEFT_OK) {
		found = wf_saved_open(job->env, wf_saved_posix(), path, &saved);
	}
	wf_saved_close(saved);
	if (found == WEFT_DATA) {
		return found;
	}
	*wf_error_record() = why;
	return st;
}

/* Creates the folder or locks the existing one, and checks that the passes to come can be saved. */
static enum weft_status
open_folder(const struct wf_run *job, const char *dir, struct wf_saved_folder **out)
{
	const struct wf_saved_place place = {
		.env = job->env,
		.calls = wf_saved_posix(),
		.dir = dir,
	};

	enum weft_status st = wf_saved_folder_open(&place, out);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_saved_folder_check(*out, job->opts->start_pass, job->opts->num_passes);
	return st != WEFT_OK && job->opts->start_batch > 0 ? find_damage(job, dir, st) : st;
}

/* Averages are passes of their own, in "save_dir/average". */
static enum weft_status
open_folders(struct wf_run *job)
{
	char dir[WF_SAVED_PATH_BYTES];

	enum weft_status st = open_folder(job, job->opts->save_dir, &job->saving.folder);
	if (st == WEFT_OK && wf_optimizer_averages(&job->terms.optimizer.set)) {
		st = wf_saved_join(job->opts->save_dir, "average", dir);
		st = st == WEFT_OK ? open_folder(job, dir, &job->saving.average_folder) : st;
	}
	return st;
}

void
wf_run_close_saving(struct wf_run *job)
{
	wf_saved_folder_close(job->saving.average_folder);
	wf_saved_folder_close(job->saving.folder);
}

bool
wf_run_is_saver(const struct wf_run *job)
{
	return is_given(job->opts->save_dir) && wf_run_is_first(job);
}

/* Values alone are no beginning where they follow from the state. */
static enum weft_status
check_tables(const struct wf_run *job)
{
	const enum wf_row_optimizer kind = job->terms.row_optimizer.kind;

	if (is_given(job->opts->init_model_path) &&
	    (kind == WF_ROW_FTRL || kind == WF_ROW_FTRL_GROUP)) {
		return wf_fail(WEFT_INVALID,
			       "init_model_path: with sparse_optimizer=%s the values of tables' "
			       "rows follow from their state; give save_dir and start_pass, or "
			       "another sparse_optimizer",
			       job->opts->sparse_optimizer);
	}
	return WEFT_OK;
}

enum weft_status
wf_run_open_saving(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	enum weft_status st = job->kind->has_tables ? check_tables(job) : WEFT_OK;
	if (st == WEFT_OK) {
		st = wf_run_check_initial(job);
	}
	if (st == WEFT_OK) {
		st = wf_run_note_words(job);
	}
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
			       "start_pass=%" PRIu64 ": must be less than num_passes=%" PRIu64
			       ", which counts the passes before it too",
			       opts->start_pass, opts->num_passes);
	}
	if (!wf_run_is_saver(job)) {
		return WEFT_OK;
	}
	st = open_folders(job);
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
	const struct wf_row_opts *row = &job->terms.row_optimizer;
	const size_t used = strlen(about->settings);

	snprintf(
		about->settings + used, sizeof(about->settings) - used,
		" sparse=%s rest=%s wire=%s rate=%.9g decay=%.9g l1=%.9g l2=%.9g l21=%.9g rho=%.9g "
		"ftrl_beta=%.9g "
		"dense_equivalent=%d admit=%" PRIu64 ",%.9g evict_age=%" PRIu64,
		opts->sparse_optimizer, opts->sparse_rest, opts->sparse_wire,
		row->set.learning_rate, row->set.decay, row->set.l1, row->set.l2, row->set.l21,
		row->set.rho, row->set.ftrl_beta, row->set.dense_equivalent, opts->admit_count,
		opts->admit_probability, opts->evict_age);
}

static void add_text(struct wf_saved_about *about, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
add_text(struct wf_saved_about *about, const char *format, ...)
{
	const size_t used = strlen(about->settings);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(about->settings + used, sizeof(about->settings) - used, format, args);
	va_end(args);
}

/* What the bits depend on besides the data and the tensors: equal texts, equal runs. */
static void
describe(const struct wf_run *job, struct wf_saved_about *about)
{
	const struct wf_train_opts *opts = job->opts;

	snprintf(about->version, sizeof(about->version), "%s", weft_version());
	struct wf_session_values values = opts->values;
	values.opts.optimizer = job->terms.session_optimizer;
	wf_saved_describe(&values, about);
	wf_run_describe_words(job, about);
	add_text(about,
		 "%sseed=%" PRIu64 " batch_size=%" PRIu64 " num_gradient_servers=%" PRIu32
		 " trainer_count=%" PRIu64,
		 about->settings[0] != '\0' ? " " : "", job->seed, opts->batch_size,
		 opts->session.num_gradient_servers, opts->trainer_count);
	if (job->data.set[0].is_streamed) {
		add_text(about, " data_window=%zu", job->data.set[0].window_bytes);
	}
	if (job->data.split != WF_SPLIT_ROWS) {
		add_text(about, " data_split=%s", opts->data_split);
	}
	if (about->batch > 0 && !wf_run_is_sync(job)) {
		add_text(about, " batch=least");
	}
	if (wf_tensor_modes_given(opts)) {
		add_text(about, " tensor_modes=%.200s", opts->tensor_modes);
	}
	if (!job->kind->has_tables) {
		return;
	}
	describe_tables(job, about);
	if (opts->evict_score > 0.0) {
		add_text(about, " score=%.9g,%.9g,%.9g,%.9g,%" PRIu64, opts->evict_score,
			 opts->evict_show_weight, opts->evict_click_weight, opts->evict_fade,
			 opts->evict_fade_steps);
	}
	if (opts->table_memory > 0) {
		add_text(about, " table_memory=%" PRIu64 ",%d", opts->table_memory,
			 opts->evict_at_cap);
	}
	if (opts->session.sparse_mode != WEFT_SPARSE_SYNC) {
		add_text(about, " sparse_mode=%s",
			 wf_setting_text(&opts->values, "sparse_mode").text);
	}
}

/* The model's tensors with their arrays. Returns how many. */
static uint32_t
list_tensors(const struct wf_run *job, const struct wf_run_arrays *arrays,
	     struct wf_saved_tensor *out)
{
	const struct wf_model *model = &job->model;
	const unsigned states = wf_state_count(&job->terms.optimizer);

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
	struct wf_saved_about now = {.batch = past->batch};

	describe(job, &now);
	if (strcmp(past->optimizer, now.optimizer) != 0) {
		return wf_fail(WEFT_MISMATCH,
			       "%s: was saved with optimizer %s, this run has %s; give "
			       "optimizer=%s, or take the values alone with init_model_path",
			       path, past->optimizer, now.optimizer, past->optimizer);
	}
	if (past->pass != start_save(job->opts)) {
		return wf_fail(WEFT_DATA,
			       "%s: its manifest is that of pass %" PRIu64 ", not of pass %" PRIu64,
			       path, past->pass, start_save(job->opts));
	}
	if (past->batch != job->opts->start_batch) {
		return wf_fail(WEFT_MISMATCH,
			       "%s: was saved after %" PRIu64 " batches of its pass (0: all); "
			       "continue with start_pass=%" PRIu64 " start_batch=%" PRIu64,
			       path, past->batch, past->batch > 0 ? past->pass : past->pass + 1,
			       past->batch);
	}
	enum weft_status st = wf_run_check_words(job, past, path);
	if (st == WEFT_OK &&
	    strcmp(wf_run_settings_behind_words(past), wf_run_settings_behind_words(&now)) != 0) {
		wf_log(job->env, WF_LOG_WARN,
		       "start_pass: the settings differ from the saved ones, so the digest will "
		       "differ: %s; saved: %s",
		       now.settings, past->settings);
	}
	return st;
}

/* From the save at `path`. */
static enum weft_status
load(struct wf_run *job, const struct wf_run_arrays *arrays, const char *path,
     struct wf_run_past *out)
{
	struct wf_saved_tensor tensor[WF_MODEL_TENSORS_MAX];
	struct wf_saved *saved = NULL;

	enum weft_status st = wf_saved_open(job->env, wf_saved_posix(), path, &saved);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_saved_about *past = wf_saved_about(saved);
	st = check_past(job, past, path);
	if (st == WEFT_OK) {
		st = wf_saved_load(saved, tensor, list_tensors(job, arrays, tensor), true);
	}
	if (st == WEFT_OK && arrays->tables != NULL) {
		st = wf_run_load_tables(job, saved, arrays->tables, false);
	}
	if (st == WEFT_OK) {
		wf_log(job->env, WF_LOG_INFO,
		       "continuing from %s (pass %" PRIu64 ", step %" PRIu64 ")", path, past->pass,
		       past->step);
		*out = (struct wf_run_past){.step = past->step, .samples = past->samples};
	}
	wf_saved_close(saved);
	return st;
}

/* A save whose tables' rows a run begins with. */
static enum weft_status
open_initial(const struct wf_run *job, struct wf_saved **out)
{
	enum weft_status st =
		wf_saved_open_any(job->env, wf_saved_posix(), job->opts->init_model_path, out);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st,
			       "init_model_path: the tables of the model %s can be initialised "
			       "from a saved pass or a snapshot of weft only: %.300s",
			       job->kind->name, why.text);
	}
	st = wf_run_check_words(job, wf_saved_about(*out), job->opts->init_model_path);
	if (st != WEFT_OK) {
		wf_saved_close(*out);
		*out = NULL;
	}
	return st;
}

static enum weft_status
load_initial(struct wf_run *job, const struct wf_run_arrays *arrays)
{
	struct wf_saved_tensor tensor[WF_MODEL_TENSORS_MAX];
	struct wf_saved *saved = NULL;

	enum weft_status st = wf_run_load_initial(job, tensor, list_tensors(job, arrays, tensor));
	if (st != WEFT_OK || arrays->tables == NULL) {
		return st;
	}
	st = open_initial(job, &saved);
	if (st == WEFT_OK) {
		st = wf_run_load_tables(job, saved, arrays->tables, true);
	}
	wf_saved_close(saved);
	return st;
}

enum weft_status
wf_run_restore(struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past *out)
{
	const struct wf_train_opts *opts = job->opts;
	char path[WF_SAVED_PATH_BYTES];

	WF_ASSERT(wf_run_is_first(job));
	*out = (struct wf_run_past){0};
	if (is_given(opts->init_model_path)) {
		return load_initial(job, arrays);
	}
	if (!is_continuing(opts)) {
		return WEFT_OK;
	}
	enum weft_status st = wf_saved_pass_path(opts->save_dir, start_save(opts), path);
	return st == WEFT_OK ? load(job, arrays, path, out) : st;
}

enum weft_status
wf_run_restore_remote(struct wf_run *job, const struct wf_remote_tables *tables)
{
	const bool is_init = is_given(job->opts->init_model_path);
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved *saved = NULL;
	enum weft_status st;

	if (is_init) {
		st = open_initial(job, &saved);
	} else if (!is_continuing(job->opts)) {
		return WEFT_OK;
	} else {
		st = wf_saved_pass_path(job->opts->save_dir, start_save(job->opts), path);
		st = st == WEFT_OK ? wf_saved_open(job->env, wf_saved_posix(), path, &saved) : st;
	}
	if (st == WEFT_OK) {
		st = wf_run_load_remote(job, saved, tables, is_init);
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

	return wf_run_is_saver(job) && (job->border.end != WF_RUN_GOES_ON ||
					(period != 0 && (job->pass + 1) % period == 0));
}

static enum weft_status
save(const struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past past)
{
	struct wf_saved_tensor tensor[WF_MODEL_TENSORS_MAX];
	struct wf_saved_table table[WF_MODEL_TABLES_MAX];
	struct wf_saved_about about = {
		.pass = job->pass,
		.batch = past.batch,
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
	if (arrays->remote != NULL) {
		enum weft_status st = wf_run_stamp_remote(table, content.table_count);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return wf_saved_write_all(job->saving.folder, &about, &content);
}

/* The averages as values, without state: a model to use, or to begin with. */
static enum weft_status
save_averages(const struct wf_run *job, float *const *average, struct wf_run_past past)
{
	const struct wf_model *model = &job->model;
	struct wf_saved_tensor tensor[WF_MODEL_TENSORS_MAX];
	struct wf_saved_about about = {
		.pass = job->pass,
		.step = past.step,
		.samples = past.samples,
	};

	for (unsigned t = 0; t < model->tensor_count; t++) {
		tensor[t] = (struct wf_saved_tensor){
			.name = model->tensor[t].name,
			.rows = model->tensor[t].rows,
			.cols = model->tensor[t].cols,
			.value = average[t],
		};
	}
	describe(job, &about);
	enum weft_status st =
		wf_saved_write(job->saving.average_folder, &about, tensor, model->tensor_count);
	if (st == WEFT_OK && job->opts->save_only_one &&
	    wf_saved_remove_older(job->saving.average_folder, job->pass) != WEFT_OK) {
		wf_log(job->env, WF_LOG_WARN, "save_only_one: %s", weft_last_error());
	}
	return st;
}

/* `what` of this pass, after so many batches of it (0: all), is not saved: reported now, and at the
 * end of the run. */
static void
note_failure(struct wf_run *job, const char *what, uint64_t batch)
{
	char where[WHERE_BYTES] = "";

	if (batch > 0) {
		snprintf(where, sizeof(where), " after batch %" PRIu64, batch);
	}
	wf_log(job->env, WF_LOG_WARN, "%s %" PRIu64 "%s is not saved, training %s: %s", what,
	       job->pass, where, job->border.end == WF_RUN_GOES_ON ? "goes on" : "ends",
	       weft_last_error());
	if (job->saving.failures++ == 0) {
		job->saving.first_failure = *wf_error_record();
		job->saving.first_unsaved_pass = job->pass;
	}
}

void
wf_run_save(struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past past)
{
	job->saving.is_last_lost = save(job, arrays, past) != WEFT_OK;
	if (job->saving.is_last_lost) {
		note_failure(job, "pass", past.batch);
		return;
	}
	if (job->opts->save_only_one &&
	    wf_saved_remove_older(job->saving.folder, job->pass) != WEFT_OK) {
		wf_log(job->env, WF_LOG_WARN, "save_only_one: %s", weft_last_error());
	}
	if (arrays->average != NULL && save_averages(job, arrays->average, past) != WEFT_OK) {
		note_failure(job, "average of pass", 0);
	}
}

enum weft_status
wf_run_saving_result(const struct wf_run *job)
{
	if (job->saving.failures == 0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_IO,
		       "training has finished, but %" PRIu64 " of its saves failed; the first is "
		       "that of pass %" PRIu64 ": %.400s",
		       job->saving.failures, job->saving.first_unsaved_pass,
		       job->saving.first_failure.text);
}
