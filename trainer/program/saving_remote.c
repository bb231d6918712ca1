/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on the sparse lanes, to and from a save: trainer 0 fetches them partition by partition,
 * and puts them back before the first step. Thread: the run's. */
#include "trainer/program/saving_remote.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "saved/records.h"
#include "trainer/program/saving_tables.h"

static enum weft_status
fill(const struct wf_saved_table *about, struct wf_rows_writer *to)
{
	struct weft_table_reader reader;

	wf_records_save(to, &reader);
	return weft_table_read(about->source, &reader);
}

uint32_t
wf_run_list_remote(const struct wf_run *job, const struct wf_remote_tables *tables,
		   struct wf_saved_table *out)
{
	for (unsigned t = 0; t < job->model.table_count; t++) {
		struct weft_table *table = tables->table[t];
		out[t] = (struct wf_saved_table){
			.name = job->model.table[t].name,
			.optimizer = job->opts->sparse_optimizer,
			.head =
				{
					.shape =
						{
							.dim = weft_table_dim(table),
							.state_floats =
								weft_table_record_floats(table) -
								weft_table_dim(table),
							.has_score = job->opts->evict_score > 0.0,
						},
					.counter_count = weft_table_counter_count(table),
					.vocabulary = job->data.source->key_count,
					.step = weft_steps(tables->session),
				},
			.fill = fill,
			.source = table,
		};
	}
	return job->model.table_count;
}

enum weft_status
wf_run_stamp_remote(struct wf_saved_table *about, uint32_t count)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t t = 0; st == WEFT_OK && t < count; t++) {
		st = weft_table_step(about[t].source, &about[t].head.step);
	}
	return st;
}

/* Writing, from a file. */

struct loading {
	struct wf_rows_reader *from;
	bool is_init;
	struct wf_row_initial initial;
};

static bool
is_sync(const struct wf_run *job)
{
	return job->opts->session.sparse_mode == WEFT_SPARSE_SYNC;
}

static enum weft_status
load_partition(void *arg, uint32_t partition, struct weft_table_partition *out)
{
	const struct loading *loading = arg;

	enum weft_status st = wf_records_next_partition(loading->from, partition, out);
	if (st == WEFT_OK && loading->is_init) {
		out->counter = NULL;
		out->counter_count = 0;
	}
	return st;
}

static enum weft_status
load_record(void *arg, struct weft_table_record *out)
{
	struct loading *loading = arg;
	struct wf_row_record row;

	enum weft_status st = wf_rows_next(loading->from, &row);
	if (st == WEFT_OK && loading->is_init) {
		wf_row_initial_apply(&loading->initial, &row);
	}
	if (st == WEFT_OK) {
		*out = wf_record_of_row(&row);
	}
	return st;
}

static enum weft_status
load_table(const struct wf_remote_tables *tables, struct weft_table *table, struct loading *loading)
{
	const uint64_t step = wf_rows_head(loading->from)->step;
	const uint64_t past = weft_steps(tables->session);
	const struct weft_table_writer writer = {
		.partition = load_partition,
		.record = load_record,
		.arg = loading,
		.step = loading->is_init ? 0 : step,
	};

	if (!loading->is_init && step != past && is_sync(tables->job)) {
		return wf_fail(WEFT_DATA,
			       "table %s: saved at step %" PRIu64
			       ", but the tensors after step %" PRIu64
			       ", as in an asynchronous job; go on with sparse_mode=async, "
			       "or take the values alone with init_model_path",
			       weft_table_name(table), step, past);
	}
	return weft_table_write(table, &writer);
}

enum weft_status
wf_run_load_remote(const struct wf_run *job, const struct wf_saved *saved,
		   const struct wf_remote_tables *tables, bool is_init)
{
	struct wf_saved_table about[WF_MODEL_TABLES_MAX];
	const uint32_t count = wf_run_list_remote(job, tables, about);
	enum weft_status st = WEFT_OK;

	for (uint32_t t = 0; st == WEFT_OK && t < count; t++) {
		struct loading loading = {
			.is_init = is_init,
			.initial = {.dim = about[t].head.shape.dim,
				    .floats = about[t].head.shape.dim +
					      about[t].head.shape.state_floats},
		};
		about[t].optimizer = is_init ? NULL : about[t].optimizer;
		st = wf_saved_open_table(saved, &about[t], &loading.from);
		if (st == WEFT_OK) {
			st = load_table(tables, about[t].source, &loading);
		}
		wf_rows_close(loading.from);
	}
	return st;
}
