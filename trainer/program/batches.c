/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a run: which rows they have, and the memory of one batch. Thread: the run's. */
#include <inttypes.h>

#include "trainer/program/job.h"

#define ENTRIES_MAX (1u << 22) /* keys of a batch, repetitions counted */

/* Rows that row_number has room for. */
static size_t
row_numbers(const struct wf_run *job)
{
	return job->batches.rows_max > WF_COMPUTE_TEST_ROWS ? job->batches.rows_max
							    : WF_COMPUTE_TEST_ROWS;
}

enum weft_status
wf_run_shard(const struct wf_run *job, uint32_t trainer, struct wf_shard *out)
{
	return wf_shard_init(job->env,
			     &(struct wf_shard_opts){
				     .train_rows = job->source.train_rows,
				     .trainer = trainer,
				     .trainers = (uint32_t)job->opts->session.num_gradient_servers,
				     .batch_size = job->opts->batch_size,
			     },
			     out);
}

/* The largest batch is trainer 0's: its shard is never smaller than another's. */
enum weft_status
wf_run_batches_init(struct wf_run *job)
{
	struct wf_shard shard;
	enum weft_status st = wf_run_shard(job, 0, &shard);
	if (st != WEFT_OK) {
		return st;
	}
	job->batches.rows_max = shard.batch_rows;
	wf_shard_fini(job->env, &shard);
	job->batches.entries_max = job->batches.rows_max * job->source.row_entries_max;
	if (job->batches.entries_max > ENTRIES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "batch_size=%" PRIu64 ": %zu rows of up to %zu keys are more than "
			       "%u keys; give a smaller batch_size",
			       job->opts->batch_size, job->batches.rows_max,
			       job->source.row_entries_max, ENTRIES_MAX);
	}
	const size_t rows = row_numbers(job);
	job->batches.row_number = wf_zalloc_array(job->env, rows, sizeof(*job->batches.row_number));
	if (job->batches.row_number == NULL) {
		return wf_fail(WEFT_NOMEM, "a batch of %zu rows", rows);
	}
	for (unsigned t = 0; t < job->model.table_count; t++) {
		const size_t count = job->batches.entries_max * job->model.table[t].width;
		job->batches.entry_grad[t] = wf_zalloc_array(job->env, count, sizeof(float));
		if (job->batches.entry_grad[t] == NULL) {
			return wf_fail(WEFT_NOMEM, "gradients of %zu keys",
				       job->batches.entries_max);
		}
	}
	if (job->opts->evict_score > 0.0 && job->model.table_count > 0) {
		job->batches.entry_click =
			wf_zalloc_array(job->env, job->batches.entries_max, sizeof(float));
		if (job->batches.entry_click == NULL) {
			return wf_fail(WEFT_NOMEM, "clicks of %zu keys", job->batches.entries_max);
		}
	}
	return WEFT_OK;
}

void
wf_run_fill_clicks(const struct wf_run *job, const struct wf_bag_batch *rows)
{
	for (size_t r = 0; job->batches.entry_click != NULL && r < rows->rows; r++) {
		const uint32_t end = rows->first[(r + 1) * rows->slots];
		for (uint32_t e = rows->first[r * rows->slots]; e < end; e++) {
			job->batches.entry_click[e] = rows->y[r] > 0.0f ? 1.0f : 0.0f;
		}
	}
}

void
wf_run_batches_fini(struct wf_run *job)
{
	for (unsigned t = 0; t < job->model.table_count; t++) {
		wf_free(job->env, job->batches.entry_grad[t],
			job->batches.entries_max * job->model.table[t].width * sizeof(float));
	}
	wf_free(job->env, job->batches.entry_click, job->batches.entries_max * sizeof(float));
	wf_free(job->env, job->batches.row_number,
		row_numbers(job) * sizeof(*job->batches.row_number));
}

enum weft_status
wf_run_batch_init(const struct wf_run *job, struct wf_bag_batch *out)
{
	return wf_source_batch_init(job->env, &job->source, job->batches.rows_max, out);
}

void
wf_run_gather(const struct wf_run *job, const struct wf_shard *shard, size_t at,
	      struct wf_bag_batch *out)
{
	size_t rows = wf_shard_rows(shard, at, job->batches.row_number);

	wf_source_gather(&job->source, job->batches.row_number, rows, out);
}
