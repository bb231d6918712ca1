/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a part of a snapshot. Nothing is trusted before it has been compared with what the file has
 * room for, and the reader's memory is the same for all files. Thread: the caller's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/chunk.h"
#include "saved/part_layout.h"
#include "wire/little.h"

#define DIRECT_BYTES (32u << 10) /* fewer are copied out of the buffer */

struct wf_part_reader {
	struct wf_env *env;
	char path[WF_SAVED_PATH_BYTES];
	struct wf_part_head head;
	uint64_t blocks;   /* begun */
	uint64_t left;     /* bytes of the last one's payload */
	uint32_t head_crc; /* of the file's head, from which those of the blocks go on */
	uint32_t crc;      /* of the last block, so far */
	bool is_at_end;    /* the end mark has been read */
	struct wf_chunk chunk;
};

static enum weft_status
decode_head(struct wf_part_reader *reader, const uint8_t *at)
{
	static const uint8_t zero[WF_PART_HEAD_CRC_AT - 48];
	const char *path = reader->path;

	if (memcmp(at, WF_PART_MAGIC, 8) != 0) {
		return wf_fail(WEFT_DATA, "%s: is not a part of a snapshot", path);
	}
	if (wf_load_u32(at + 8) != WF_PART_FORMAT) {
		return wf_fail(WEFT_DATA,
			       "%s: format version %" PRIu32
			       ": this weft reads version %u only; use the one that wrote it",
			       path, wf_load_u32(at + 8), WF_PART_FORMAT);
	}
	reader->head_crc = wf_crc32c(0, at, WF_PART_HEAD_CRC_AT);
	if (wf_load_u32(at + WF_PART_HEAD_CRC_AT) != wf_saved_crc_stored(reader->head_crc)) {
		return wf_fail(WEFT_DATA, "%s: checksum of its first bytes: it is damaged", path);
	}
	reader->head = (struct wf_part_head){
		.service = at[12],
		.lane = wf_load_u32(at + 16),
		.lane_count = wf_load_u32(at + 20),
		.epoch = wf_load_u64(at + 24),
		.step = wf_load_u64(at + 32),
		.job_digest = wf_load_u64(at + 40),
	};
	const char *why = wf_part_head_objection(&reader->head);
	if (why == NULL && (memcmp(at + 13, zero, 3) != 0 || memcmp(at + 48, zero, sizeof(zero)))) {
		why = "its head has bytes that this version does not write";
	}
	return why == NULL ? WEFT_OK : wf_fail(WEFT_DATA, "%s: %s", path, why);
}

enum weft_status
wf_part_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	     struct wf_part_reader **out)
{
	struct wf_part_reader *reader = wf_zalloc(env, sizeof(*reader));

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
	const uint8_t *at = wf_chunk_pop(&reader->chunk, WF_PART_HEAD_BYTES, &st);
	if (at != NULL) {
		st = decode_head(reader, at);
	}
	if (st != WEFT_OK) {
		wf_part_close(reader);
		return st;
	}
	*out = reader;
	return WEFT_OK;
}

void
wf_part_close(struct wf_part_reader *reader)
{
	if (reader != NULL) {
		wf_saved_file_close(&reader->chunk.file);
		wf_free(reader->env, reader, sizeof(*reader));
	}
}

const struct wf_part_head *
wf_part_head(const struct wf_part_reader *reader)
{
	return &reader->head;
}

/* `number`: of the block. */
static enum weft_status
refuse(const struct wf_part_reader *reader, uint64_t number, const char *why)
{
	return wf_fail(WEFT_DATA, "%s: block %" PRIu64 ": %s", reader->path, number, why);
}

/* The payload of the block that was begun last is complete. */
static enum weft_status
check_crc(struct wf_part_reader *reader)
{
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&reader->chunk, WF_PART_CRC_BYTES, &st);

	if (at != NULL && wf_load_u32(at) != wf_saved_crc_stored(reader->crc)) {
		return refuse(reader, reader->blocks - 1, "checksum of its payload: it is damaged");
	}
	return st;
}

/* The end mark has nothing but the number of blocks. */
static enum weft_status
check_end(struct wf_part_reader *reader, const struct wf_part_block *end)
{
	if (end->item != 0 || end->first != 0 || end->count != 0 || end->bytes != 0) {
		return refuse(reader, reader->blocks, "is an end mark with a payload");
	}
	reader->is_at_end = true;
	return wf_chunk_end(&reader->chunk);
}

static enum weft_status
check_block(struct wf_part_reader *reader, const struct wf_part_block *block)
{
	const char *why = wf_part_block_objection(block);

	if (why == NULL && block->bytes > wf_chunk_left(&reader->chunk)) {
		why = "its payload is longer than the rest of the file: it is truncated";
	}
	return why == NULL ? WEFT_OK : refuse(reader, reader->blocks, why);
}

static enum weft_status
read_block_head(struct wf_part_reader *reader, struct wf_part_block *out)
{
	enum weft_status st = WEFT_OK;
	const uint8_t *at = wf_chunk_pop(&reader->chunk, WF_PART_BLOCK_HEAD_BYTES, &st);

	if (at == NULL) {
		return st;
	}
	reader->crc = wf_crc32c(reader->head_crc, at, WF_PART_BLOCK_CRC_AT);
	if (wf_load_u32(at + WF_PART_BLOCK_CRC_AT) != wf_saved_crc_stored(reader->crc)) {
		return refuse(reader, reader->blocks, "checksum of its head: it is damaged");
	}
	if (wf_load_u64(at) != reader->blocks || wf_load_u32(at + 40) != 0) {
		return refuse(reader, reader->blocks, "its head is that of another one");
	}
	*out = (struct wf_part_block){
		.kind = wf_load_u32(at + 8),
		.item = wf_load_u32(at + 12),
		.first = wf_load_u64(at + 16),
		.count = wf_load_u64(at + 24),
		.bytes = wf_load_u64(at + 32),
	};
	return WEFT_OK;
}

enum weft_status
wf_part_next(struct wf_part_reader *reader, struct wf_part_block *out)
{
	struct wf_part_block block;

	WF_ASSERT(reader->left == 0);
	if (reader->is_at_end) {
		return WEFT_CLOSED;
	}
	enum weft_status st = read_block_head(reader, &block);
	if (st == WEFT_OK && block.kind == WF_PART_END) {
		return check_end(reader, &block);
	}
	if (st == WEFT_OK) {
		st = check_block(reader, &block);
	}
	if (st != WEFT_OK) {
		return st;
	}
	reader->blocks++;
	if (block.bytes == 0) {
		st = check_crc(reader);
	}
	if (st != WEFT_OK) {
		return st;
	}
	reader->left = block.bytes;
	*out = block;
	return WEFT_OK;
}

/* Some bytes of a payload, to `out`, or NULL: where they are meanwhile. */
static const uint8_t *
read_piece(struct wf_part_reader *reader, uint8_t *out, size_t count, enum weft_status *st)
{
	if (out == NULL || count < DIRECT_BYTES) {
		const uint8_t *at = wf_chunk_pop(&reader->chunk, count, st);
		if (at != NULL && out != NULL) {
			memcpy(out, at, count);
		}
		return at;
	}
	*st = wf_chunk_read(&reader->chunk, out, count);
	return *st == WEFT_OK ? out : NULL;
}

/* `out` may be NULL. The checksum is computed while the bytes are near. */
static enum weft_status
read_payload(struct wf_part_reader *reader, uint8_t *out, uint64_t count)
{
	enum weft_status st = WEFT_OK;

	while (count > 0) {
		size_t piece = count < WF_CHUNK_BYTES ? (size_t)count : WF_CHUNK_BYTES;
		const uint8_t *at = read_piece(reader, out, piece, &st);
		if (at == NULL) {
			return st;
		}
		reader->crc = wf_crc32c_long(reader->crc, at, piece);
		out = out != NULL ? out + piece : NULL;
		count -= piece;
		reader->left -= piece;
		if (reader->left == 0) {
			return check_crc(reader);
		}
	}
	return st;
}

enum weft_status
wf_part_read(struct wf_part_reader *reader, void *out, size_t count)
{
	WF_ASSERT(count <= reader->left);
	return read_payload(reader, out, count);
}

enum weft_status
wf_part_skip(struct wf_part_reader *reader)
{
	return read_payload(reader, NULL, reader->left);
}

void
wf_part_leave(struct wf_part_reader *reader)
{
	const uint64_t at = reader->chunk.file.bytes - wf_chunk_left(&reader->chunk);

	if (reader->left > 0) { /* else its checksum has been read, too */
		wf_part_seek(reader, reader->blocks, at + reader->left + WF_PART_CRC_BYTES);
	}
}

void
wf_part_forgo_sum(struct wf_part_reader *reader)
{
	wf_chunk_seek(&reader->chunk, reader->chunk.file.bytes - wf_chunk_left(&reader->chunk));
}

uint32_t
wf_part_block_crc(const struct wf_part_reader *reader)
{
	WF_ASSERT(reader->left == 0);
	return reader->crc;
}

void
wf_part_seek(struct wf_part_reader *reader, uint64_t number, uint64_t at)
{
	wf_chunk_seek(&reader->chunk, at);
	reader->blocks = number;
	reader->left = 0;
	reader->is_at_end = false;
}

enum weft_status
wf_part_refuse(const struct wf_part_reader *reader, const char *why)
{
	return refuse(reader, reader->blocks == 0 ? 0 : reader->blocks - 1, why);
}

struct wf_part_sum
wf_part_sum(const struct wf_part_reader *reader)
{
	return (struct wf_part_sum){
		.bytes = reader->chunk.file.bytes - wf_chunk_left(&reader->chunk),
		.blocks = reader->blocks,
		.crc = reader->chunk.file.crc,
	};
}

enum weft_status
wf_part_check(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_part_head *head, struct wf_part_sum *sum)
{
	struct wf_part_reader *reader = NULL;
	struct wf_part_block block;

	enum weft_status st = wf_part_open(env, calls, path, &reader);
	if (st != WEFT_OK) {
		return st;
	}
	while ((st = wf_part_next(reader, &block)) == WEFT_OK) {
		st = wf_part_skip(reader);
		if (st != WEFT_OK) {
			break;
		}
	}
	if (st == WEFT_CLOSED) {
		*head = reader->head;
		*sum = wf_part_sum(reader);
		st = WEFT_OK;
	}
	wf_part_close(reader);
	return st;
}
