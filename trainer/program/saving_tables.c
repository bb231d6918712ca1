/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a sequential run, to and from a save. Thread: the run's. */
#include "trainer/program/saving_tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/table/scan.h"

static enum weft_status
write_rows(struct wf_table *table, struct wf_scan *scan, struct wf_rows_writer *to)
{
	for (uint32_t partition = 0; partition < WF_LOCAL_PARTITIONS; partition++) {
		struct wf_row_record row;
		uint32_t counters = 0;
		const uint16_t *counter = wf_table_counters(table, partition, &counters);

		enum weft_status st =
			wf_rows_begin(to, wf_scan_partition(scan, partition), counter);
		while (st == WEFT_OK && wf_scan_next(scan, &row)) {
			st = wf_rows_put(to, &row);
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static enum weft_status
fill(const struct wf_saved_table *about, struct wf_rows_writer *to)
{
	struct wf_table *table = about->source;
	struct wf_scan *scan = NULL;
	bool is_done = false;

	enum weft_status st = wf_scan_create(table, &scan);
	while (st == WEFT_OK && !is_done) {
		st = wf_scan_prepare(scan, UINT32_MAX, &is_done);
	}
	if (st == WEFT_OK) {
		st = write_rows(table, scan, to);
	}
	wf_scan_destroy(scan);
	return st;
}

uint32_t
wf_run_list_tables(const struct wf_run *job, struct wf_local_tables *tables,
		   struct wf_saved_table *out)
{
	for (unsigned t = 0; t < job->model.table_count; t++) {
		struct wf_table *table = wf_local_tables_at(tables, t);
		uint32_t counters = 0;
		(void)wf_table_counters(table, 0, &counters);
		out[t] = (struct wf_saved_table){
			.name = job->model.table[t].name,
			.optimizer = job->opts->sparse_optimizer,
			.head =
				{
					.shape = wf_table_shape(table),
					.counter_count = counters,
					.vocabulary = job->data.source->key_count,
					.step = wf_table_step(table),
				},
			.fill = fill,
			.source = table,
		};
	}
	return job->model.table_count;
}

void
wf_row_initial_apply(struct wf_row_initial *initial, struct wf_row_record *row)
{
	memset(initial->value, 0, initial->floats * sizeof(float));
	memcpy(initial->value, row->floats, initial->dim * sizeof(float));
	row->stamp = 0;
	row->born = 0;
	row->show = 0.0f;
	row->click = 0.0f;
	row->floats = initial->value;
}

static enum weft_status
read_row(struct wf_table *table, struct wf_rows_reader *from, struct wf_row_initial *initial)
{
	struct wf_row_record row;
	enum weft_status st = wf_rows_next(from, &row);

	if (st == WEFT_OK && initial != NULL) {
		wf_row_initial_apply(initial, &row);
	}
	return st == WEFT_OK ? wf_table_put_record(table, &row) : st;
}

/* `initial` NULL: rows with all that they are. */
static enum weft_status
read_rows(struct wf_table *table, struct wf_rows_reader *from, struct wf_row_initial *initial)
{
	const struct wf_rows_head *head = wf_rows_head(from);
	struct wf_rows_partition partition;

	enum weft_status st = wf_table_set_step(table, initial == NULL ? head->step : 0);
	for (uint32_t p = 0; st == WEFT_OK && p < WF_LOCAL_PARTITIONS; p++) {
		st = wf_rows_next_partition(from, &partition);
		if (st == WEFT_OK && head->counter_count > 0 && initial == NULL) {
			st = wf_table_set_counters(table, partition.partition, partition.counter,
						   head->counter_count);
		}
		for (uint64_t i = 0; st == WEFT_OK && i < partition.row_count; i++) {
			st = read_row(table, from, initial);
		}
	}
	return st;
}

static enum weft_status
load_table(const struct wf_saved *saved, struct wf_saved_table *about, bool is_init)
{
	struct wf_table *table = about->source;
	struct wf_rows_reader *from = NULL;
	struct wf_row_initial initial = {
		.dim = about->head.shape.dim,
		.floats = about->head.shape.dim + about->head.shape.state_floats,
	};

	about->optimizer = is_init ? NULL : about->optimizer;
	enum weft_status st = wf_saved_open_table(saved, about, &from);
	if (st == WEFT_OK && !is_init && wf_rows_head(from)->step != wf_saved_about(saved)->step) {
		st = wf_fail(WEFT_DATA,
			     "table %s: saved at step %" PRIu64
			     ", but the tensors after step %" PRIu64
			     ", as in an asynchronous job; go on with sparse_mode=async, "
			     "or take the values alone with init_model_path",
			     about->name, wf_rows_head(from)->step, wf_saved_about(saved)->step);
	}
	if (st == WEFT_OK) {
		st = read_rows(table, from, is_init ? &initial : NULL);
	}
	wf_rows_close(from);
	return st;
}

enum weft_status
wf_run_load_tables(const struct wf_run *job, const struct wf_saved *saved,
		   struct wf_local_tables *tables, bool is_init)
{
	struct wf_saved_table about[WF_MODEL_TABLES_MAX];
	const uint32_t count = wf_run_list_tables(job, tables, about);
	enum weft_status st = WEFT_OK;

	for (uint32_t t = 0; st == WEFT_OK && t < count; t++) {
		st = load_table(saved, &about[t], is_init);
	}
	return st;
}
