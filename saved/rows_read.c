/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of rows. Nothing is trusted before it has been compared with what the file has room
 * for. Rows are returned as they are read, and the checksum of a partition is compared with its
 * last one, so a caller that must not use anything of a damaged file checks it from end to end
 * first. Thread: the caller's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/chunk.h"
#include "saved/rows_layout.h"
#include "wire/little.h"
#include "wire/partition.h"

struct wf_rows_reader {
	struct wf_env *env;
	char path[WF_SAVED_PATH_BYTES];
	struct wf_rows_head head;
	size_t row_bytes;

	uint32_t partitions; /* begun */
	uint64_t left;       /* rows of the last one */
	uint64_t row_count;  /* handed out */
	uint64_t last_key;
	bool has_last;
	uint32_t crc;      /* of the partition, so far */
	uint16_t *counter; /* [counter_count] */

	struct wf_chunk chunk;
	float floats[WF_ROW_RECORD_FLOATS_MAX];
};

WF_STATIC_ASSERT(WF_ROW_RECORD_BYTES_MAX <= WF_CHUNK_BYTES, "a row fits a chunk");

static enum weft_status
decode_head(struct wf_rows_reader *reader, const uint8_t *at)
{
	static const uint8_t zero[WF_ROWS_HEAD_CRC_AT - 48];
	struct wf_rows_head *head = &reader->head;
	const char *path = reader->chunk.file.path;
	const uint32_t flags = wf_load_u32(at + 20);

	if (memcmp(at, WF_ROWS_MAGIC, 8) != 0) {
		return wf_fail(WEFT_DATA, "%s: is not a file of rows", path);
	}
	if (wf_load_u32(at + 8) != WF_ROWS_FORMAT) {
		return wf_fail(WEFT_DATA,
			       "%s: format version %" PRIu32
			       ": this weft reads version %u only; use the one that wrote it",
			       path, wf_load_u32(at + 8), WF_ROWS_FORMAT);
	}
	if (wf_load_u32(at + WF_ROWS_HEAD_CRC_AT) !=
	    wf_saved_crc_stored(wf_crc32c(0, at, WF_ROWS_HEAD_CRC_AT))) {
		return wf_fail(WEFT_DATA, "%s: checksum of its first bytes: it is damaged", path);
	}
	*head = (struct wf_rows_head){
		.shape = {.dim = wf_load_u32(at + 12),
			  .state_floats = wf_load_u32(at + 16),
			  .has_score = (flags & WF_ROWS_FLAG_SCORE) != 0},
		.counter_count = wf_load_u32(at + 24),
		.vocabulary = wf_load_u64(at + 32),
		.step = wf_load_u64(at + 40),
	};
	if (wf_rows_check_head(head) != WEFT_OK || flags > WF_ROWS_FLAG_SCORE ||
	    wf_load_u32(at + 28) != WF_PARTITION_COUNT ||
	    memcmp(at + 48, zero, sizeof(zero)) != 0) {
		return wf_fail(WEFT_DATA, "%s: its header does not describe a table", path);
	}
	if (reader->chunk.file.bytes < wf_rows_file_bytes(head, 0)) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " bytes; must have %" PRIu64 " and its rows",
			       path, reader->chunk.file.bytes, wf_rows_file_bytes(head, 0));
	}
	return WEFT_OK;
}

static enum weft_status
read_head(struct wf_rows_reader *reader)
{
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&reader->chunk, WF_ROWS_HEAD_BYTES, &st);

	if (at != NULL) {
		st = decode_head(reader, at);
	}
	if (st != WEFT_OK) {
		return st;
	}
	reader->row_bytes = wf_row_record_bytes(&reader->head.shape);
	if (reader->head.counter_count == 0) {
		return WEFT_OK;
	}
	reader->counter =
		wf_zalloc_array(reader->env, reader->head.counter_count, sizeof(uint16_t));
	if (reader->counter == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %" PRIu32 " counters", reader->chunk.file.path,
			       reader->head.counter_count);
	}
	return WEFT_OK;
}

enum weft_status
wf_rows_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	     struct wf_rows_reader **out)
{
	struct wf_rows_reader *reader = wf_zalloc(env, sizeof(*reader));

	if (reader == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes to read it", path, sizeof(*reader));
	}
	reader->env = env;
	snprintf(reader->path, sizeof(reader->path), "%s", path);
	enum weft_status st = wf_chunk_open(&reader->chunk, calls, reader->path);
	if (st != WEFT_OK) {
		wf_free(env, reader, sizeof(*reader));
		return st;
	}
	st = read_head(reader);
	if (st != WEFT_OK) {
		wf_rows_close(reader);
		return st;
	}
	*out = reader;
	return WEFT_OK;
}

void
wf_rows_close(struct wf_rows_reader *reader)
{
	if (reader == NULL) {
		return;
	}
	wf_saved_file_close(&reader->chunk.file);
	wf_free(reader->env, reader->counter, reader->head.counter_count * sizeof(uint16_t));
	wf_free(reader->env, reader, sizeof(*reader));
}

const struct wf_rows_head *
wf_rows_head(const struct wf_rows_reader *reader)
{
	return &reader->head;
}

static enum weft_status
read_counters(struct wf_rows_reader *reader)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; i < reader->head.counter_count; i++) {
		const uint8_t *at = wf_chunk_pop(&reader->chunk, sizeof(uint16_t), &st);
		if (at == NULL) {
			return st;
		}
		reader->crc = wf_crc32c(reader->crc, at, sizeof(uint16_t));
		reader->counter[i] = wf_load_u16(at);
	}
	return WEFT_OK;
}

/* After the last row of a partition. */
static enum weft_status
check_partition(struct wf_rows_reader *reader)
{
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&reader->chunk, WF_ROWS_CRC_BYTES, &st);

	if (at != NULL && wf_load_u32(at) != wf_saved_crc_stored(reader->crc)) {
		return wf_fail(WEFT_DATA, "%s: checksum of partition %" PRIu32 ": it is damaged",
			       reader->chunk.file.path, reader->partitions - 1);
	}
	return st;
}

enum weft_status
wf_rows_next_partition(struct wf_rows_reader *reader, struct wf_rows_partition *out)
{
	enum weft_status st = WEFT_OK;

	WF_ASSERT(reader->left == 0);
	if (reader->partitions == WF_PARTITION_COUNT) {
		return wf_chunk_end(&reader->chunk);
	}
	const uint8_t *at = wf_chunk_pop(&reader->chunk, WF_ROWS_SECTION_BYTES, &st);
	if (at == NULL) {
		return st;
	}
	uint64_t rows = wf_load_u64(at + 8);
	if (wf_load_u32(at) != reader->partitions || wf_load_u32(at + 4) != 0 ||
	    rows > wf_chunk_left(&reader->chunk) / reader->row_bytes) {
		return wf_fail(WEFT_DATA,
			       "%s: this must be partition %" PRIu32
			       " with the rows that the header counts: it is truncated or damaged",
			       reader->chunk.file.path, reader->partitions);
	}
	reader->crc = wf_crc32c(0, at, WF_ROWS_SECTION_BYTES);
	*out = (struct wf_rows_partition){
		.partition = reader->partitions++, .row_count = rows, .counter = reader->counter};
	reader->left = rows;
	reader->has_last = false;
	st = read_counters(reader);
	return st == WEFT_OK && rows == 0 ? check_partition(reader) : st;
}

enum weft_status
wf_rows_next(struct wf_rows_reader *reader, struct wf_row_record *out)
{
	const uint32_t partition = reader->partitions - 1;
	enum weft_status st = WEFT_OK;

	WF_ASSERT(reader->left > 0);
	const uint8_t *at = wf_chunk_pop(&reader->chunk, reader->row_bytes, &st);
	if (at == NULL) {
		return st;
	}
	reader->crc = wf_crc32c(reader->crc, at, reader->row_bytes);
	wf_row_record_get(&reader->head.shape, at, reader->floats, out);
	const char *why = wf_rows_objection(&reader->head, partition,
					    reader->has_last ? &reader->last_key : NULL, out);
	if (why != NULL) {
		return wf_fail(WEFT_DATA, "%s: partition %" PRIu32 ", row of key %" PRIu64 ": %s",
			       reader->chunk.file.path, partition, out->key, why);
	}
	reader->last_key = out->key;
	reader->has_last = true;
	reader->row_count++;
	reader->left--;
	return reader->left == 0 ? check_partition(reader) : WEFT_OK;
}

struct wf_rows_sum
wf_rows_read_sum(const struct wf_rows_reader *reader)
{
	return (struct wf_rows_sum){
		.row_count = reader->row_count,
		.bytes = reader->chunk.file.bytes - wf_chunk_left(&reader->chunk),
		.crc = reader->chunk.file.crc,
	};
}

static enum weft_status
read_all(struct wf_rows_reader *reader)
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

enum weft_status
wf_rows_check(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_rows_head *head, struct wf_rows_sum *out)
{
	struct wf_rows_reader *reader = NULL;
	enum weft_status st = wf_rows_open(env, calls, path, &reader);

	if (st == WEFT_OK) {
		st = read_all(reader);
	}
	if (st == WEFT_OK) {
		*out = wf_rows_read_sum(reader);
		if (head != NULL) {
			*head = reader->head;
		}
	}
	wf_rows_close(reader);
	return st;
}
