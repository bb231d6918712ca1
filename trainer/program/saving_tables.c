/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a sequential run, to and from a save. Thread: the run's. */
#include "trainer/program/saving_tables.h"

#include "base/assert.h"
#include "sparse/server/scan.h"

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
					.vocabulary = job->source.key_count,
					.step = wf_table_step(table),
				},
			.fill = fill,
			.source = table,
		};
	}
	return job->model.table_count;
}

static enum weft_status
read_rows(struct wf_table *table, struct wf_rows_reader *from)
{
	const struct wf_rows_head *head = wf_rows_head(from);
	struct wf_rows_partition partition;
	struct wf_row_record row;

	enum weft_status st = wf_table_set_step(table, head->step);
	for (uint32_t p = 0; st == WEFT_OK && p < WF_LOCAL_PARTITIONS; p++) {
		st = wf_rows_next_partition(from, &partition);
		if (st == WEFT_OK && head->counter_count > 0) {
			st = wf_table_set_counters(table, partition.partition, partition.counter,
						   head->counter_count);
		}
		for (uint64_t i = 0; st == WEFT_OK && i < partition.row_count; i++) {
			st = wf_rows_next(from, &row);
			if (st == WEFT_OK) {
				st = wf_table_put_record(table, &row);
			}
		}
	}
	return st;
}

enum weft_status
wf_run_load_tables(const struct wf_run *job, const struct wf_saved *saved,
		   struct wf_local_tables *tables)
{
	struct wf_saved_table about[WF_MODEL_TABLES_MAX];
	const uint32_t count = wf_run_list_tables(job, tables, about);
	enum weft_status st = WEFT_OK;

	for (uint32_t t = 0; st == WEFT_OK && t < count; t++) {
		struct wf_rows_reader *from = NULL;
		st = wf_saved_open_table(saved, &about[t], &from);
		if (st == WEFT_OK) {
			st = read_rows(wf_local_tables_at(tables, t), from);
		}
		wf_rows_close(from);
	}
	return st;
}
