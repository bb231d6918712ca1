/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a table as a source of rows. Nothing is trusted before it has been compared with what
 * the file has room for. Rows are returned as they are read, and the checksum of a partition is
 * compared with its last one, so a caller that must not use anything of a damaged file checks it
 * from end to end first. Thread: the caller's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/chunk.h"
#include "saved/rows_source.h"
#include "wire/little.h"
#include "wire/partition.h"

struct file {
	struct wf_rows_reader reader; /* first */
	uint32_t crc;                 /* of the partition, so far */
	struct wf_chunk chunk;
};

WF_STATIC_ASSERT(WF_ROW_RECORD_BYTES_MAX <= WF_CHUNK_BYTES, "a row fits a chunk");

static struct file *
file_of(struct wf_rows_reader *reader)
{
	return (struct file *)reader;
}

static enum weft_status
decode_head(struct file *file, const uint8_t *at, struct wf_rows_head *head)
{
	static const uint8_t zero[WF_ROWS_HEAD_CRC_AT - 48];
	const char *path = file->reader.path;
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
	if (file->chunk.file.bytes < wf_rows_file_bytes(head, 0)) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " bytes; must have %" PRIu64 " and its rows",
			       path, file->chunk.file.bytes, wf_rows_file_bytes(head, 0));
	}
	return WEFT_OK;
}

static enum weft_status
read_head(struct file *file)
{
	struct wf_rows_head head;
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&file->chunk, WF_ROWS_HEAD_BYTES, &st);

	if (at != NULL) {
		st = decode_head(file, at, &head);
	}
	return st == WEFT_OK ? wf_rows_reader_set_head(&file->reader, &head) : st;
}

static enum weft_status
read_counters(struct file *file)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; i < file->reader.head.counter_count; i++) {
		const uint8_t *at = wf_chunk_pop(&file->chunk, sizeof(uint16_t), &st);
		if (at == NULL) {
			return st;
		}
		file->crc = wf_crc32c(file->crc, at, sizeof(uint16_t));
		file->reader.counter[i] = wf_load_u16(at);
	}
	return WEFT_OK;
}

static enum weft_status
begin(struct wf_rows_reader *reader, uint64_t *row_count)
{
	struct file *file = file_of(reader);
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&file->chunk, WF_ROWS_SECTION_BYTES, &st);

	if (at == NULL) {
		return st;
	}
	*row_count = wf_load_u64(at + 8);
	if (wf_load_u32(at) != reader->partitions || wf_load_u32(at + 4) != 0 ||
	    *row_count > wf_chunk_left(&file->chunk) / reader->row_bytes) {
		return wf_fail(WEFT_DATA,
			       "%s: this must be partition %" PRIu32
			       " with the rows that the header counts: it is truncated or damaged",
			       reader->path, reader->partitions);
	}
	file->crc = wf_crc32c(0, at, WF_ROWS_SECTION_BYTES);
	return read_counters(file);
}

static const uint8_t *
next(struct wf_rows_reader *reader, enum weft_status *st)
{
	struct file *file = file_of(reader);
	const uint8_t *at = wf_chunk_pop(&file->chunk, reader->row_bytes, st);

	if (at != NULL) {
		file->crc = wf_crc32c(file->crc, at, reader->row_bytes);
	}
	return at;
}

/* After the last row of a partition. */
static enum weft_status
end(struct wf_rows_reader *reader)
{
	struct file *file = file_of(reader);
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&file->chunk, WF_ROWS_CRC_BYTES, &st);

	if (at != NULL && wf_load_u32(at) != wf_saved_crc_stored(file->crc)) {
		return wf_fail(WEFT_DATA, "%s: checksum of partition %" PRIu32 ": it is damaged",
			       reader->path, reader->partitions - 1);
	}
	return st;
}

static enum weft_status
finish(const struct wf_rows_reader *reader)
{
	return wf_chunk_end(&((const struct file *)reader)->chunk);
}

static struct wf_rows_sum
sum(const struct wf_rows_reader *reader)
{
	const struct wf_chunk *chunk = &((const struct file *)reader)->chunk;

	return (struct wf_rows_sum){
		.bytes = chunk->file.bytes - wf_chunk_left(chunk),
		.crc = chunk->file.crc,
	};
}

static void
close_file(struct wf_rows_reader *reader)
{
	struct file *file = file_of(reader);

	if (file->chunk.file.calls != NULL) {
		wf_saved_file_close(&file->chunk.file);
	}
}

enum weft_status
wf_rows_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	     struct wf_rows_reader **out)
{
	static const struct wf_rows_source source = {
		.begin = begin,
		.next = next,
		.end = end,
		.finish = finish,
		.sum = sum,
		.close = close_file,
	};
	struct wf_rows_reader *reader =
		wf_rows_reader_create(env, &source, path, sizeof(struct file));

	if (reader == NULL) {
		return WEFT_NOMEM;
	}
	struct file *file = file_of(reader);
	enum weft_status st = wf_chunk_open(&file->chunk, calls, reader->path);
	if (st == WEFT_OK) {
		st = read_head(file);
	}
	if (st != WEFT_OK) {
		wf_rows_close(reader);
		return st;
	}
	*out = reader;
	return WEFT_OK;
}

enum weft_status
wf_rows_check(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_rows_head *head, struct wf_rows_sum *out)
{
	struct wf_rows_reader *reader = NULL;
	enum weft_status st = wf_rows_open(env, calls, path, &reader);

	if (st == WEFT_OK) {
		st = wf_rows_read_all(reader);
	}
	if (st == WEFT_OK) {
		*out = wf_rows_read_sum(reader);
		if (head != NULL) {
			*head = *wf_rows_head(reader);
		}
	}
	wf_rows_close(reader);
	return st;
}
