/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a part of a snapshot. Thread: the caller's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/chunk.h"
#include "saved/part_layout.h"
#include "wire/little.h"

struct wf_part_writer {
	struct wf_env *env;
	struct wf_saved_file file;
	uint64_t blocks;   /* begun */
	uint64_t left;     /* bytes of the last one's payload */
	uint32_t head_crc; /* of the file's head, from which those of the blocks go on */
	uint32_t crc;      /* of the last block, so far */
	size_t used;       /* bytes of chunk */
	uint8_t chunk[WF_CHUNK_BYTES];
};

/* Writes the chunk to the file. */
static enum weft_status
flush(struct wf_part_writer *writer)
{
	enum weft_status st = wf_saved_file_write(&writer->file, writer->chunk, writer->used);
	writer->used = 0;
	return st;
}

static enum weft_status
append(struct wf_part_writer *writer, const void *bytes, size_t count)
{
	const uint8_t *from = bytes;
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && count > 0) {
		size_t room = WF_CHUNK_BYTES - writer->used;
		size_t piece = count < room ? count : room;
		memcpy(writer->chunk + writer->used, from, piece);
		writer->used += piece;
		from += piece;
		count -= piece;
		st = piece == room ? flush(writer) : WEFT_OK;
	}
	return st;
}

static enum weft_status
append_head(struct wf_part_writer *writer, const struct wf_part_head *head)
{
	uint8_t at[WF_PART_HEAD_BYTES] = {0};

	memcpy(at, WF_PART_MAGIC, 8);
	wf_store_u32(at + 8, WF_PART_FORMAT);
	at[12] = head->service;
	wf_store_u32(at + 16, head->lane);
	wf_store_u32(at + 20, head->lane_count);
	wf_store_u64(at + 24, head->epoch);
	wf_store_u64(at + 32, head->step);
	wf_store_u64(at + 40, head->job_digest);
	writer->head_crc = wf_crc32c(0, at, WF_PART_HEAD_CRC_AT);
	wf_store_u32(at + WF_PART_HEAD_CRC_AT, wf_saved_crc_stored(writer->head_crc));
	return append(writer, at, sizeof(at));
}

enum weft_status
wf_part_create(struct wf_env *env, const struct wf_saved_spot *spot,
	       const struct wf_part_head *head, struct wf_part_writer **out)
{
	const char *why = wf_part_head_objection(head);
	if (why != NULL) {
		return wf_fail(WEFT_INVALID, "%s: %s", spot->path, why);
	}
	struct wf_part_writer *writer = wf_zalloc(env, sizeof(*writer));
	if (writer == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes to write it", spot->path,
			       sizeof(*writer));
	}
	writer->env = env;
	enum weft_status st = wf_saved_file_create(spot, &writer->file);
	if (st != WEFT_OK) {
		wf_free(env, writer, sizeof(*writer));
		return st;
	}
	st = append_head(writer, head);
	if (st != WEFT_OK) {
		struct wf_part_sum unused;
		return wf_part_finish(writer, st, &unused);
	}
	*out = writer;
	return WEFT_OK;
}

static enum weft_status
append_block_head(struct wf_part_writer *writer, const struct wf_part_block *block)
{
	uint8_t at[WF_PART_BLOCK_HEAD_BYTES] = {0};

	wf_store_u64(at, writer->blocks);
	wf_store_u32(at + 8, block->kind);
	wf_store_u32(at + 12, block->item);
	wf_store_u64(at + 16, block->first);
	wf_store_u64(at + 24, block->count);
	wf_store_u64(at + 32, block->bytes);
	writer->crc = wf_crc32c(writer->head_crc, at, WF_PART_BLOCK_CRC_AT);
	wf_store_u32(at + WF_PART_BLOCK_CRC_AT, wf_saved_crc_stored(writer->crc));
	return append(writer, at, sizeof(at));
}

/* Behind the last byte of a payload. */
static enum weft_status
append_crc(struct wf_part_writer *writer)
{
	uint8_t at[WF_PART_CRC_BYTES];

	wf_store_u32(at, wf_saved_crc_stored(writer->crc));
	return append(writer, at, sizeof(at));
}

static enum weft_status
check_complete(const struct wf_part_writer *writer)
{
	return writer->left == 0
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID, "%s: block %" PRIu64 " lacks %" PRIu64 " bytes",
				 writer->file.path, writer->blocks - 1, writer->left);
}

enum weft_status
wf_part_begin(struct wf_part_writer *writer, const struct wf_part_block *block)
{
	const char *why = wf_part_block_objection(block);
	enum weft_status st = check_complete(writer);

	if (st == WEFT_OK && why != NULL) {
		st = wf_fail(WEFT_INVALID, "%s: block %" PRIu64 ": %s", writer->file.path,
			     writer->blocks, why);
	}
	if (st == WEFT_OK) {
		st = append_block_head(writer, block);
	}
	if (st != WEFT_OK) {
		return st;
	}
	writer->blocks++;
	writer->left = block->bytes;
	return writer->left == 0 ? append_crc(writer) : WEFT_OK;
}

enum weft_status
wf_part_write(struct wf_part_writer *writer, const void *bytes, size_t count)
{
	WF_ASSERT(writer->blocks > 0);
	if (count == 0) {
		return WEFT_OK;
	}
	if (count > writer->left) {
		return wf_fail(WEFT_INVALID,
			       "%s: block %" PRIu64 ": %zu bytes, where %" PRIu64 " are left",
			       writer->file.path, writer->blocks - 1, count, writer->left);
	}
	writer->crc = wf_crc32c_long(writer->crc, bytes, count);
	writer->left -= count;
	enum weft_status st = append(writer, bytes, count);
	return st == WEFT_OK && writer->left == 0 ? append_crc(writer) : st;
}

enum weft_status
wf_part_put(struct wf_part_writer *writer, const struct wf_part_block *block, const void *payload)
{
	enum weft_status st = wf_part_begin(writer, block);
	return st == WEFT_OK ? wf_part_write(writer, payload, (size_t)block->bytes) : st;
}

/* A block head whose number is the count of blocks. */
static enum weft_status
end_file(struct wf_part_writer *writer)
{
	static const struct wf_part_block end = {.kind = WF_PART_END};
	enum weft_status st = check_complete(writer);

	if (st == WEFT_OK) {
		st = append_block_head(writer, &end);
	}
	return st == WEFT_OK ? flush(writer) : st;
}

enum weft_status
wf_part_finish(struct wf_part_writer *writer, enum weft_status st, struct wf_part_sum *out)
{
	if (st == WEFT_OK) {
		st = end_file(writer);
	}
	*out = (struct wf_part_sum){
		.bytes = writer->file.bytes,
		.blocks = writer->blocks,
		.crc = writer->file.crc,
	};
	st = wf_saved_file_finish(&writer->file, st);
	wf_free(writer->env, writer, sizeof(*writer));
	return st;
}
