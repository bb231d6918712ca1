/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a file of rows; and what writer and reader agree on. Thread: the caller's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/chunk.h"
#include "saved/rows_layout.h"
#include "wire/little.h"
#include "wire/partition.h"

struct wf_rows_writer {
	struct wf_env *env;
	struct wf_saved_file file;
	struct wf_rows_head head;
	size_t row_bytes;

	uint32_t partitions; /* begun */
	uint64_t left;       /* rows of the last one */
	uint64_t row_count;
	uint64_t last_key;
	bool has_last;
	uint32_t crc; /* of the partition, so far */

	size_t used; /* bytes of chunk */
	uint8_t chunk[WF_CHUNK_BYTES + WF_ROW_RECORD_BYTES_MAX];
};

enum weft_status
wf_rows_check_head(const struct wf_rows_head *head)
{
	if (!wf_row_shape_is_valid(&head->shape)) {
		return wf_fail(WEFT_INVALID,
			       "rows of %" PRIu32 " values and %" PRIu32
			       " floats of state: give 1 to %u values, and at most two of state "
			       "for each and one more",
			       head->shape.dim, head->shape.state_floats, WF_ROW_RECORD_DIM_MAX);
	}
	if (head->counter_count > WF_ROWS_COUNTERS_MAX) {
		return wf_fail(WEFT_INVALID, "%" PRIu32 " counters of a partition: at most %u",
			       head->counter_count, WF_ROWS_COUNTERS_MAX);
	}
	if (head->step >= UINT32_MAX) {
		return wf_fail(WEFT_INVALID, "rows of step %" PRIu64 ": steps have 32 bits",
			       head->step);
	}
	return WEFT_OK;
}

uint64_t
wf_rows_file_bytes(const struct wf_rows_head *head, uint64_t row_count)
{
	const uint64_t row_bytes = wf_row_record_bytes(&head->shape);
	const uint64_t around =
		WF_ROWS_HEAD_BYTES +
		WF_PARTITION_COUNT * (WF_ROWS_SECTION_BYTES + WF_ROWS_CRC_BYTES +
				      (uint64_t)head->counter_count * sizeof(uint16_t));

	if (row_count > ((uint64_t)INT64_MAX - around) / row_bytes) {
		return 0;
	}
	return around + row_count * row_bytes;
}

const char *
wf_rows_objection(const struct wf_rows_head *head, uint32_t partition, const uint64_t *last,
		  const struct wf_row_record *row)
{
	const bool is_fixed = head->vocabulary > 0;

	if (is_fixed && row->key >= head->vocabulary) {
		return "is outside the vocabulary";
	}
	if ((is_fixed ? wf_partition_of_fixed(row->key) : wf_partition_of(row->key)) != partition) {
		return "belongs to another partition";
	}
	if (last != NULL && row->key <= *last) {
		return "does not ascend";
	}
	if (row->stamp > head->step || row->born > head->step) {
		return "is of a step that was not made yet";
	}
	return NULL;
}

/* Writes the chunk to the file. */
static enum weft_status
flush(struct wf_rows_writer *writer)
{
	enum weft_status st = wf_saved_file_write(&writer->file, writer->chunk, writer->used);
	writer->used = 0;
	return st;
}

static enum weft_status
write_head(struct wf_rows_writer *writer)
{
	const struct wf_rows_head *head = &writer->head;
	uint8_t *at = writer->chunk;

	memset(at, 0, WF_ROWS_HEAD_BYTES);
	memcpy(at, WF_ROWS_MAGIC, 8);
	wf_store_u32(at + 8, WF_ROWS_FORMAT);
	wf_store_u32(at + 12, head->shape.dim);
	wf_store_u32(at + 16, head->shape.state_floats);
	wf_store_u32(at + 20, head->shape.has_score ? WF_ROWS_FLAG_SCORE : 0);
	wf_store_u32(at + 24, head->counter_count);
	wf_store_u32(at + 28, WF_PARTITION_COUNT);
	wf_store_u64(at + 32, head->vocabulary);
	wf_store_u64(at + 40, head->step);
	wf_store_u32(at + WF_ROWS_HEAD_CRC_AT,
		     wf_saved_crc_stored(wf_crc32c(0, at, WF_ROWS_HEAD_CRC_AT)));
	writer->used = WF_ROWS_HEAD_BYTES;
	return flush(writer);
}

enum weft_status
wf_rows_create(struct wf_env *env, const struct wf_saved_spot *spot,
	       const struct wf_rows_head *head, struct wf_rows_writer **out)
{
	enum weft_status st = wf_rows_check_head(head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_rows_writer *writer = wf_zalloc(env, sizeof(*writer));
	if (writer == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes to write it", spot->path,
			       sizeof(*writer));
	}
	writer->env = env;
	writer->head = *head;
	writer->row_bytes = wf_row_record_bytes(&head->shape);
	st = wf_saved_file_create(spot, &writer->file);
	if (st != WEFT_OK) {
		wf_free(env, writer, sizeof(*writer));
		return st;
	}
	st = write_head(writer);
	if (st != WEFT_OK) {
		struct wf_rows_sum unused;
		return wf_rows_finish(writer, st, &unused);
	}
	*out = writer;
	return WEFT_OK;
}

/* Appends to the file, and to the checksum of the partition. `count` fits after a full chunk. */
static enum weft_status
append(struct wf_rows_writer *writer, size_t count)
{
	writer->crc = wf_crc32c(writer->crc, writer->chunk + writer->used, count);
	writer->used += count;
	return writer->used < WF_CHUNK_BYTES ? WEFT_OK : flush(writer);
}

static enum weft_status
end_partition(struct wf_rows_writer *writer)
{
	const uint32_t crc = wf_saved_crc_stored(writer->crc);

	if (writer->left > 0) {
		return wf_fail(WEFT_INVALID, "%s: partition %" PRIu32 " lacks %" PRIu64 " rows",
			       writer->file.path, writer->partitions - 1, writer->left);
	}
	if (writer->partitions == 0) {
		return WEFT_OK;
	}
	wf_store_u32(writer->chunk + writer->used, crc);
	return append(writer, WF_ROWS_CRC_BYTES);
}

static enum weft_status
append_counters(struct wf_rows_writer *writer, const uint16_t *counter)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < writer->head.counter_count; i++) {
		wf_store_u16(writer->chunk + writer->used, counter == NULL ? 0 : counter[i]);
		st = append(writer, sizeof(uint16_t));
	}
	return st;
}

enum weft_status
wf_rows_begin(struct wf_rows_writer *writer, uint64_t row_count, const uint16_t *counter)
{
	enum weft_status st = end_partition(writer);

	if (st != WEFT_OK) {
		return st;
	}
	if (writer->partitions == WF_PARTITION_COUNT) {
		return wf_fail(WEFT_INVALID, "%s: already has its %u partitions", writer->file.path,
			       WF_PARTITION_COUNT);
	}
	uint8_t *at = writer->chunk + writer->used;
	wf_store_u32(at, writer->partitions);
	wf_store_u32(at + 4, 0);
	wf_store_u64(at + 8, row_count);
	writer->partitions++;
	writer->left = row_count;
	writer->has_last = false;
	writer->crc = 0;
	st = append(writer, WF_ROWS_SECTION_BYTES);
	return st == WEFT_OK ? append_counters(writer, counter) : st;
}

enum weft_status
wf_rows_put(struct wf_rows_writer *writer, const struct wf_row_record *row)
{
	const uint32_t partition = writer->partitions - 1;

	WF_ASSERT(writer->partitions > 0);
	const char *why =
		writer->left == 0
			? "is one more than the partition announced"
			: wf_rows_objection(&writer->head, partition,
					    writer->has_last ? &writer->last_key : NULL, row);
	if (why != NULL) {
		return wf_fail(WEFT_INVALID,
			       "%s: partition %" PRIu32 ", row of key %" PRIu64 ": %s",
			       writer->file.path, partition, row->key, why);
	}
	wf_row_record_put(&writer->head.shape, row, writer->chunk + writer->used);
	writer->last_key = row->key;
	writer->has_last = true;
	writer->left--;
	writer->row_count++;
	return append(writer, writer->row_bytes);
}

static enum weft_status
end_file(struct wf_rows_writer *writer)
{
	enum weft_status st = end_partition(writer);

	if (st == WEFT_OK && writer->partitions < WF_PARTITION_COUNT) {
		return wf_fail(WEFT_INVALID, "%s: has %" PRIu32 " of %u partitions",
			       writer->file.path, writer->partitions, WF_PARTITION_COUNT);
	}
	return st == WEFT_OK ? flush(writer) : st;
}

enum weft_status
wf_rows_finish(struct wf_rows_writer *writer, enum weft_status st, struct wf_rows_sum *out)
{
	if (st == WEFT_OK) {
		st = end_file(writer);
	}
	*out = (struct wf_rows_sum){
		.row_count = writer->row_count,
		.bytes = writer->file.bytes,
		.crc = writer->file.crc,
	};
	st = wf_saved_file_finish(&writer->file, st);
	wf_free(writer->env, writer, sizeof(*writer));
	return st;
}
