/* SPDX-License-Identifier: Apache-2.0 */
/* records: see records.h. Thread: the caller's. */
#include "saved/records.h"

#include <inttypes.h>

static enum weft_status
save_partition(void *arg, const struct weft_table_partition *partition)
{
	return wf_rows_begin(arg, partition->record_count, partition->counter);
}

static enum weft_status
save_record(void *arg, const struct weft_table_record *record)
{
	const struct wf_row_record row = {
		.key = record->key,
		.stamp = record->stamp,
		.born = record->born,
		.show = record->show,
		.click = record->click,
		.floats = record->floats,
	};

	return wf_rows_put(arg, &row);
}

void
wf_records_save(struct wf_rows_writer *to, struct weft_table_reader *out)
{
	*out = (struct weft_table_reader){
		.partition = save_partition,
		.record = save_record,
		.arg = to,
	};
}

enum weft_status
wf_records_next_partition(struct wf_rows_reader *from, uint32_t partition,
			  struct weft_table_partition *out)
{
	struct wf_rows_partition found;

	enum weft_status st = wf_rows_next_partition(from, &found);
	if (st != WEFT_OK) {
		return st;
	}
	if (found.partition != partition) {
		return wf_fail(WEFT_DATA, "partition %" PRIu32 " where %" PRIu32 " is due",
			       found.partition, partition);
	}
	*out = (struct weft_table_partition){
		.partition = partition,
		.record_count = found.row_count,
		.counter = found.counter,
		.counter_count = found.counter == NULL ? 0 : wf_rows_head(from)->counter_count,
	};
	return WEFT_OK;
}

struct weft_table_record
wf_record_of_row(const struct wf_row_record *row)
{
	return (struct weft_table_record){
		.key = row->key,
		.stamp = row->stamp,
		.born = row->born,
		.show = row->show,
		.click = row->click,
		.floats = row->floats,
	};
}

static enum weft_status
load_partition(void *arg, uint32_t partition, struct weft_table_partition *out)
{
	return wf_records_next_partition(arg, partition, out);
}

static enum weft_status
load_record(void *arg, struct weft_table_record *out)
{
	struct wf_row_record row;

	enum weft_status st = wf_rows_next(arg, &row);
	if (st == WEFT_OK) {
		*out = wf_record_of_row(&row);
	}
	return st;
}

void
wf_records_load(struct wf_rows_reader *from, struct weft_table_writer *out)
{
	*out = (struct weft_table_writer){
		.partition = load_partition,
		.record = load_record,
		.arg = from,
		.step = wf_rows_head(from)->step,
	};
}
