/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from whatever source, each of which belongs where it stands. Thread: the caller's. */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "saved/rows_source.h"
#include "wire/partition.h"

struct wf_rows_reader *
wf_rows_reader_create(struct wf_env *env, const struct wf_rows_source *source, const char *path,
		      size_t own_bytes)
{
	struct wf_rows_reader *reader = wf_zalloc(env, own_bytes);

	WF_ASSERT(own_bytes >= sizeof(*reader));
	if (reader == NULL) {
		(void)wf_fail(WEFT_NOMEM, "%s: %zu bytes to read its rows", path, own_bytes);
		return NULL;
	}
	reader->env = env;
	reader->source = source;
	reader->own_bytes = own_bytes;
	snprintf(reader->path, sizeof(reader->path), "%s", path);
	return reader;
}

enum weft_status
wf_rows_reader_set_head(struct wf_rows_reader *reader, const struct wf_rows_head *head)
{
	uint16_t *counter =
		wf_zalloc_array(reader->env, head->counter_count, sizeof(*reader->counter));

	if (counter == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %" PRIu32 " counters", reader->path,
			       head->counter_count);
	}
	reader->counter = counter;
	reader->head = *head;
	reader->row_bytes = wf_row_record_bytes(&head->shape);
	return WEFT_OK;
}

void
wf_rows_close(struct wf_rows_reader *reader)
{
	if (reader == NULL) {
		return;
	}
	reader->source->close(reader);
	wf_free(reader->env, reader->counter,
		reader->head.counter_count * sizeof(*reader->counter));
	wf_free(reader->env, reader, reader->own_bytes);
}

const struct wf_rows_head *
wf_rows_head(const struct wf_rows_reader *reader)
{
	return &reader->head;
}

static enum weft_status
end_partition(struct wf_rows_reader *reader)
{
	return reader->source->end == NULL ? WEFT_OK : reader->source->end(reader);
}

enum weft_status
wf_rows_next_partition(struct wf_rows_reader *reader, struct wf_rows_partition *out)
{
	uint64_t rows = 0;

	WF_ASSERT(reader->left == 0);
	if (reader->partitions == WF_PARTITION_COUNT) {
		return reader->source->finish(reader);
	}
	enum weft_status st = reader->source->begin(reader, &rows);
	if (st != WEFT_OK) {
		return st;
	}
	*out = (struct wf_rows_partition){
		.partition = reader->partitions++, .row_count = rows, .counter = reader->counter};
	reader->left = rows;
	reader->has_last = false;
	return rows == 0 ? end_partition(reader) : WEFT_OK;
}

enum weft_status
wf_rows_next(struct wf_rows_reader *reader, struct wf_row_record *out)
{
	const uint32_t partition = reader->partitions - 1;
	enum weft_status st = WEFT_OK;

	WF_ASSERT(reader->left > 0);
	const uint8_t *at = reader->source->next(reader, &st);
	if (at == NULL) {
		return st;
	}
	wf_row_record_get(&reader->head.shape, at, reader->floats, out);
	const char *why = wf_rows_objection(&reader->head, partition,
					    reader->has_last ? &reader->last_key : NULL, out);
	if (why != NULL) {
		return wf_fail(WEFT_DATA, "%s: partition %" PRIu32 ", row of key %" PRIu64 ": %s",
			       reader->path, partition, out->key, why);
	}
	reader->last_key = out->key;
	reader->has_last = true;
	reader->row_count++;
	reader->left--;
	return reader->left == 0 ? end_partition(reader) : WEFT_OK;
}

struct wf_rows_sum
wf_rows_read_sum(const struct wf_rows_reader *reader)
{
	struct wf_rows_sum sum = reader->source->sum(reader);

	sum.row_count = reader->row_count;
	return sum;
}

enum weft_status
wf_rows_read_all(struct wf_rows_reader *reader)
{
	struct wf_rows_partition partition;
	struct wf_row_record row;
	enum weft_status st = WEFT_OK;

	for (;;) {
		st = wf_rows_next_partition(reader, &partition);
		for (uint64_t i = 0; st == WEFT_OK && i < partition.row_count; i++) {
			st = wf_rows_next(reader, &row);
		}
		if (st != WEFT_OK) {
			return st == WEFT_CLOSED ? WEFT_OK : st;
		}
	}
}
