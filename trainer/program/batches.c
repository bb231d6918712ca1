/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a run: which rows they have, and the memory of one batch. Thread: the run's. */
#include <inttypes.h>

#include "trainer/program/job.h"

#define ENTRIES_MAX (1u << 22) /* keys of a batch, repetitions counted */

/* Rows of the largest batch of any trainer. Of a shared set that is trainer 0's: its share is never
 * smaller than another's. */
static size_t
largest_batch(const struct wf_run *job)
{
	const struct wf_shard_opts shard = wf_run_shard(job, 0);
	size_t most = 0;

	for (uint32_t i = 0; i < job->data.set_count; i++) {
		const size_t rows = wf_shard_share(&shard, job->data.set[i].source.train_rows);
		most = rows > most ? rows : most;
	}
	return shard.batch_size != 0 && shard.batch_size < most ? (size_t)shard.batch_size : most;
}

enum weft_status
wf_run_batches_init(struct wf_run *job)
{
	for (uint32_t i = 0; i < job->data.set_count; i++) {
		if (job->data.set[i].is_streamed && job->opts->batch_size == 0) {
			return wf_fail(WEFT_INVALID,
				       "batch_size=0: all rows of a trainer are a batch, and there "
				       "are more than are in memory at a time; give a batch_size, "
				       "or a larger --data_window");
		}
	}
	job->batches.rows_max = largest_batch(job);
	job->batches.entries_max = job->batches.rows_max * job->data.source->row_entries_max;
	if (job->batches.entries_max > ENTRIES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "batch_size=%" PRIu64 ": %zu rows of up to %zu keys are more than "
			       "%u keys; give a smaller batch_size",
			       job->opts->batch_size, job->batches.rows_max,
			       job->data.source->row_entries_max, ENTRIES_MAX);
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
}

enum weft_status
wf_run_batch_init(const struct wf_run *job, struct wf_bag_batch *out)
{
	return wf_source_batch_init(job->env, job->data.source, job->batches.rows_max, out);
}

/* One process that plays several trainers has other work for its CPUs than a thread for each. */
bool
wf_run_reads_ahead(const struct wf_run *job)
{
	const bool is_one = !job->is_sequential || job->opts->session.num_gradient_servers == 1;

	return is_one && job->opts->session.progress == WEFT_PROGRESS_THREAD;
}

enum weft_status
wf_run_feed_init(const struct wf_run *job, uint32_t trainer, struct wf_feed *out)
{
	const struct wf_shard_opts shard = wf_run_shard(job, trainer);
	const struct wf_feed_opts feed = {
		.set = wf_run_set_of(job, trainer),
		.shard = &shard,
		.rows_max = job->batches.rows_max,
		.ahead_until = wf_run_reads_ahead(job) ? job->opts->num_passes : 0,
	};

	return wf_feed_init(job->env, &feed, out);
}
