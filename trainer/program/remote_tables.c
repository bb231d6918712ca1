/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on the sparse lanes. Thread: the run's. */
#include "trainer/program/remote_tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

static struct weft_row_optimizer_opts
optimizer_opts(const struct wf_run *job)
{
	struct weft_row_optimizer_opts out = job->terms.row_optimizer.set;
	out.method = job->opts->sparse_optimizer;
	out.schedule = job->terms.session_optimizer.schedule;
	return out;
}

static enum weft_status
add_table(struct wf_remote_tables *tables, struct weft_session *session, unsigned t)
{
	const struct wf_run *job = tables->job;
	const struct wf_model_table *about = &job->model.table[t];
	const size_t most = job->batches.entries_max > wf_run_lookup_max(job)
				    ? job->batches.entries_max
				    : wf_run_lookup_max(job);
	struct weft_table_opts table;

	weft_table_opts_init(&table);
	table.name = about->name;
	table.dim = about->width;
	table.vocabulary = job->data.source->key_count;
	table.batch_keys_max = (uint32_t)most;
	table.rest = job->terms.row_rest;
	table.wire = job->terms.row_wire;
	table.optimizer = optimizer_opts(job);
	table.init = about->limit > 0.0f ? "uniform" : "zero";
	table.init_a = about->limit > 0.0f ? -(double)about->limit : 0.0;
	table.init_b = (double)about->limit;
	table.init_seed = job->seed;
	table.admit_count = (uint32_t)job->opts->admit_count;
	table.admit_probability = job->opts->admit_probability;
	table.evict_age_steps = job->opts->evict_age;
	table.evict_score_least = job->opts->evict_score;
	table.evict_show_weight = job->opts->evict_show_weight;
	table.evict_click_weight = job->opts->evict_click_weight;
	table.evict_fade = job->opts->evict_fade;
	table.evict_fade_steps = job->opts->evict_fade_steps;
	table.evict_at_cap = job->opts->evict_at_cap;
	table.memory_cap_bytes = job->opts->table_memory;
	return weft_table_add(session, &table, &tables->table[t]);
}

enum weft_status
wf_remote_tables_add(struct wf_remote_tables *tables, struct wf_run *job,
		     struct weft_session *session)
{
	enum weft_status st = WEFT_OK;

	tables->job = job;
	tables->session = session;
	for (unsigned t = 0; st == WEFT_OK && t < job->model.table_count; t++) {
		st = add_table(tables, session, t);
	}
	return st;
}

static uint32_t
entries_of(const struct wf_bag_batch *rows)
{
	return rows->first[rows->rows * rows->slots];
}

enum weft_status
wf_remote_batch_pull(const struct wf_remote_tables *tables, struct wf_remote_batch *batch)
{
	enum weft_status st = WEFT_OK;

	for (unsigned t = 0; st == WEFT_OK && t < tables->job->model.table_count; t++) {
		WF_ASSERT(batch->pulled[t] == NULL);
		st = weft_rows_pull(tables->table[t], batch->rows.key, entries_of(&batch->rows),
				    WEFT_ROWS_CREATE, &batch->pulled[t]);
	}
	return st;
}

enum weft_status
wf_remote_batch_wait(const struct wf_remote_tables *tables, const struct wf_remote_batch *batch,
		     struct wf_batch *out)
{
	*out = (struct wf_batch){.rows = &batch->rows};
	for (unsigned t = 0; t < tables->job->model.table_count; t++) {
		enum weft_status st = weft_rows_wait(batch->pulled[t]);
		if (st != WEFT_OK) {
			return st;
		}
		out->row[t] = weft_rows_values(batch->pulled[t]);
		out->place[t] = weft_rows_place(batch->pulled[t]);
		out->entry_grad[t] = tables->job->batches.entry_grad[t];
	}
	return WEFT_OK;
}

enum weft_status
wf_remote_batch_push(const struct wf_remote_tables *tables, struct wf_remote_batch *batch,
		     const struct wf_batch *computed)
{
	enum weft_status st = WEFT_OK;

	wf_run_fill_clicks(tables->job, computed->rows);
	for (unsigned t = 0; st == WEFT_OK && t < tables->job->model.table_count; t++) {
		st = weft_rows_push(batch->pulled[t], computed->entry_grad[t], NULL,
				    tables->job->batches.entry_click);
		batch->pulled[t] = NULL;
	}
	return st;
}

enum weft_status
wf_remote_tables_report_lost(struct wf_remote_tables *tables)
{
	struct weft_sparse_stats stats = {.struct_bytes = sizeof(stats)};

	enum weft_status st = weft_sparse_stats(tables->session, &stats);
	if (st == WEFT_OK && stats.pushes_lost > tables->lost) {
		wf_log(tables->job->env, WF_LOG_WARN,
		       "pass %" PRIu64 ": the sparse lanes dropped %" PRIu64
		       " rows that were pushed, %s",
		       tables->job->pass, stats.pushes_lost - tables->lost,
		       tables->job->opts->session.sparse_mode == WEFT_SPARSE_SYNC
			       ? "at a table's memory cap"
			       : "for their lag or at a table's memory cap");
		tables->lost = stats.pushes_lost;
	}
	return st;
}

enum weft_status
wf_remote_tables_rows(void *arg, unsigned table, const uint64_t *key, uint32_t count, float *out)
{
	const struct wf_remote_tables *tables = arg;
	const uint32_t width = tables->job->model.table[table].width;
	struct weft_rows *rows = NULL;

	enum weft_status st = weft_rows_pull(tables->table[table], key, count, 0, &rows);
	if (st == WEFT_OK) {
		st = weft_rows_wait(rows);
	}
	if (st == WEFT_OK) {
		const float *value = weft_rows_values(rows);
		const uint32_t *place = weft_rows_place(rows);
		for (uint32_t i = 0; i < count; i++) {
			memcpy(out + (size_t)i * width, value + (size_t)place[i] * width,
			       width * sizeof(float));
		}
	}
	weft_rows_free(rows);
	return st;
}
