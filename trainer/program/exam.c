/* SPDX-License-Identifier: Apache-2.0 */
/* exam: evaluates the current state of a model: its test figure and its digest. Rows of tables are
 * looked up as in training, but nothing is changed and no row is created. Thread: the run's. */
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "trainer/models/auc.h"
#include "trainer/program/job.h"

struct wf_exam {
	struct wf_digest *digest;
	struct wf_walk walk; /* over the test rows */
	struct wf_bag_batch rows;
	uint32_t number[WF_COMPUTE_TEST_ROWS]; /* of the batch being made */
	/* Of a model with tables. */
	struct wf_key_list keys;         /* whose rows the digest covers */
	float *row[WF_MODEL_TABLES_MAX]; /* [wf_run_lookup_max, width] */
	uint32_t *place;                 /* [wf_run_lookup_max] 0, 1, 2, ... */
};

uint32_t
wf_run_lookup_max(const struct wf_run *job)
{
	return (uint32_t)(WF_COMPUTE_TEST_ROWS * job->data.source->row_entries_max);
}

/* Over the test rows. `ahead_until` as of wf_stream_open. */
static enum weft_status
open_walk(const struct wf_run *job, uint64_t ahead_until, struct wf_walk *out)
{
	return job->data.has_test_set
		       ? wf_walk_init(job->env, &job->data.test_set, WF_PART_ALL, ahead_until, out)
		       : wf_walk_init(job->env, &job->data.set[0], WF_PART_TEST, ahead_until, out);
}

/* All keys of a streamed set would be more than memory has room for, unless they are the numbers of
 * words. */
static enum weft_status
list_keys(struct wf_run *job, struct wf_exam *exam)
{
	struct wf_walk walk;
	struct wf_block block;

	if (!job->data.set[0].is_streamed || job->data.source->key_count > 0) {
		return wf_source_list_keys(job->env, job->data.source, &exam->keys);
	}
	/* The walk of tests would keep its blocks until the first test. */
	enum weft_status st = open_walk(job, 0, &walk);
	if (st != WEFT_OK) {
		return st;
	}
	wf_walk_begin(&walk, job->seed, 0);
	st = wf_walk_next(&walk, &block);
	if (st == WEFT_OK) {
		st = wf_source_list_keys(job->env, block.source, &exam->keys);
	}
	if (st == WEFT_OK) {
		wf_log(job->env, WF_LOG_INFO,
		       "digests of tables cover the rows of %zu keys: of the first %zu of %zu test "
		       "rows",
		       exam->keys.count, block.rows, wf_exam_rows(job));
	}
	wf_walk_fini(&walk);
	return st;
}

static enum weft_status
alloc_tables_memory(struct wf_run *job, struct wf_exam *exam)
{
	const uint32_t most = wf_run_lookup_max(job);

	exam->place = wf_zalloc_array(job->env, most, sizeof(*exam->place));
	bool is_short = exam->place == NULL;
	for (unsigned t = 0; t < job->model.table_count; t++) {
		exam->row[t] = wf_zalloc_array(job->env, (size_t)most * job->model.table[t].width,
					       sizeof(float));
		is_short = is_short || exam->row[t] == NULL;
	}
	if (is_short) {
		return wf_fail(WEFT_NOMEM, "test: rows of %u keys", most);
	}
	for (uint32_t i = 0; i < most; i++) {
		exam->place[i] = i;
	}
	return list_keys(job, exam);
}

enum weft_status
wf_exam_create(struct wf_run *job, struct wf_exam **out)
{
	struct wf_exam *exam = wf_zalloc(job->env, sizeof(*exam));

	if (exam == NULL) {
		return wf_fail(WEFT_NOMEM, "test: %zu bytes", sizeof(*exam));
	}
	/* Nothing is read for the next test before it begins: most of the time is training. */
	enum weft_status st = open_walk(job, wf_run_reads_ahead(job) ? 1 : 0, &exam->walk);
	if (st == WEFT_OK) {
		st = wf_digest_create(job->env, &exam->digest);
	}
	if (st == WEFT_OK) {
		st = wf_source_batch_init(job->env, job->data.source, WF_COMPUTE_TEST_ROWS,
					  &exam->rows);
	}
	if (st == WEFT_OK && job->model.table_count > 0) {
		st = alloc_tables_memory(job, exam);
	}
	if (st != WEFT_OK) {
		wf_exam_destroy(job, exam);
		return st;
	}
	*out = exam;
	return WEFT_OK;
}

void
wf_exam_destroy(struct wf_run *job, struct wf_exam *exam)
{
	if (exam == NULL) {
		return;
	}
	const size_t most = wf_run_lookup_max(job);
	for (unsigned t = 0; t < job->model.table_count; t++) {
		wf_free(job->env, exam->row[t], most * job->model.table[t].width * sizeof(float));
	}
	wf_free(job->env, exam->place, most * sizeof(*exam->place));
	wf_key_list_fini(job->env, &exam->keys);
	wf_bag_batch_fini(job->env, &exam->rows);
	wf_walk_fini(&exam->walk);
	wf_digest_destroy(exam->digest);
	wf_free(job->env, exam, sizeof(*exam));
}

/* `count` rows of a source from `first` on with what the tables have for them; each entry has a
 * copy of its row. */
static enum weft_status
make_batch(struct wf_run *job, const struct wf_view *view, const struct wf_source *source,
	   size_t first, size_t count)
{
	struct wf_exam *exam = job->exam;

	for (size_t i = 0; i < count; i++) {
		exam->number[i] = (uint32_t)(first + i);
	}
	wf_source_gather(source, exam->number, count, &exam->rows);
	if (job->model.table_count == 0) {
		return WEFT_OK;
	}
	const uint32_t entries = exam->rows.first[count * exam->rows.slots];
	enum weft_status st = WEFT_OK;
	for (unsigned t = 0; st == WEFT_OK && t < job->model.table_count; t++) {
		st = view->rows(view->arg, t, exam->rows.key, entries, exam->row[t]);
	}
	return st;
}

/* What a test counts up, over all of its blocks. */
struct marks {
	double sum;
	size_t rows;
	struct wf_auc_row *auc; /* [auc_max] of the first rows */
	size_t auc_max;
};

static void
add_scores(const struct wf_bag_batch *rows, const float *score, struct marks *marks)
{
	for (size_t i = 0; i < rows->rows && marks->rows + i < marks->auc_max; i++) {
		marks->auc[marks->rows + i] =
			(struct wf_auc_row){.score = score[i], .y = rows->y[i]};
	}
	marks->rows += rows->rows;
}

static enum weft_status
test_piece(struct wf_run *job, const struct wf_view *view, const struct wf_source *source,
	   const struct wf_piece *piece, struct marks *marks)
{
	struct wf_exam *exam = job->exam;
	float score[WF_COMPUTE_TEST_ROWS];

	for (size_t at = 0; at < piece->count; at += WF_COMPUTE_TEST_ROWS) {
		const size_t left = piece->count - at;
		struct wf_batch batch = {
			.rows = &exam->rows,
			.score = marks->auc == NULL ? NULL : score,
		};
		for (unsigned t = 0; t < job->model.table_count; t++) {
			batch.row[t] = exam->row[t];
			batch.place[t] = exam->place;
		}
		enum weft_status st =
			make_batch(job, view, source, piece->first + at,
				   left < WF_COMPUTE_TEST_ROWS ? left : WF_COMPUTE_TEST_ROWS);
		if (st != WEFT_OK) {
			return st;
		}
		marks->sum += wf_compute_test(job->compute, &batch, view->param);
		add_scores(&exam->rows, score, marks);
	}
	return WEFT_OK;
}

size_t
wf_exam_rows(const struct wf_run *job)
{
	return job->data.has_test_set ? job->data.test_set.source.rows
				      : job->data.source->rows - job->data.source->train_rows;
}

enum weft_status
wf_exam_test(struct wf_run *job, const struct wf_view *view, struct wf_auc_row *auc, size_t auc_max,
	     double *out)
{
	struct wf_exam *exam = job->exam;
	struct marks marks = {.auc = auc, .auc_max = auc_max};
	struct wf_block block;

	wf_walk_begin(&exam->walk, job->seed, 0);
	enum weft_status st = wf_walk_next(&exam->walk, &block);
	while (st == WEFT_OK && block.rows > 0) {
		for (size_t i = 0; st == WEFT_OK && i < block.piece_count; i++) {
			st = test_piece(job, view, block.source, &block.piece[i], &marks);
		}
		if (st == WEFT_OK) {
			st = wf_walk_next(&exam->walk, &block);
		}
	}
	if (st == WEFT_OK) {
		*out = marks.sum / (double)marks.rows;
	}
	return st;
}

static enum weft_status
digest_table(struct wf_run *job, const struct wf_view *view, unsigned table)
{
	struct wf_exam *exam = job->exam;
	const struct wf_model_table *about = &job->model.table[table];
	const size_t most = wf_run_lookup_max(job);

	wf_digest_string(exam->digest, about->name);
	wf_digest_u64(exam->digest, about->width);
	wf_digest_u64(exam->digest, exam->keys.count);
	for (size_t first = 0; first < exam->keys.count; first += most) {
		const size_t left = exam->keys.count - first;
		const size_t count = left < most ? left : most;
		enum weft_status st = view->rows(view->arg, table, exam->keys.key + first,
						 (uint32_t)count, exam->row[table]);
		if (st != WEFT_OK) {
			return st;
		}
		for (size_t i = 0; i < count; i++) {
			wf_digest_u64(exam->digest, exam->keys.key[first + i]);
			wf_digest_bytes(exam->digest, exam->row[table] + i * about->width,
					about->width * sizeof(float));
		}
	}
	return WEFT_OK;
}

/* The table whose name follows `last`; "" begins. table_count: there is none. */
static unsigned
next_by_name(const struct wf_model *model, const char *last)
{
	unsigned next = model->table_count;

	for (unsigned t = 0; t < model->table_count; t++) {
		if (strcmp(model->table[t].name, last) > 0 &&
		    (next == model->table_count ||
		     strcmp(model->table[t].name, model->table[next].name) < 0)) {
			next = t;
		}
	}
	return next;
}

enum weft_status
wf_exam_digest(struct wf_run *job, const struct wf_view *view, uint64_t *out)
{
	const struct wf_model *model = &job->model;
	struct wf_exam *exam = job->exam;

	if (model->table_count == 0) {
		*out = view->digest;
		return WEFT_OK;
	}
	wf_digest_reset(exam->digest);
	wf_digest_u64(exam->digest, view->digest);
	for (unsigned t = next_by_name(model, ""); t < model->table_count;
	     t = next_by_name(model, model->table[t].name)) {
		enum weft_status st = digest_table(job, view, t);
		if (st != WEFT_OK) {
			return st;
		}
	}
	*out = wf_digest_value(exam->digest);
	return WEFT_OK;
}
