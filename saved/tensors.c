/* SPDX-License-Identifier: Apache-2.0 */
/* Values go through a chunk on the stack, so that the file is little-endian on every machine and no
 * size from a file decides how much memory is allocated. Thread: the caller's. */
#include "saved/tensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "saved/manifest.h"

#define VALUE_BYTES 4u

WF_STATIC_ASSERT(sizeof(float) == VALUE_BYTES, "a value of the file is a float of ours");

static void
put_le(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		at[i] = (uint8_t)(value >> (8 * i));
	}
}

static uint64_t
get_le(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++) {
		value |= (uint64_t)at[i] << (8 * i);
	}
	return value;
}

static void
make_header(uint64_t count, uint8_t out[WF_TENSOR_HEADER_BYTES])
{
	put_le(out, 0, 4);
	put_le(out + 4, VALUE_BYTES, 4);
	put_le(out + 8, count, 8);
}

static size_t
chunk_of(uint64_t left)
{
	return left < WF_TENSOR_CHUNK_COUNT ? (size_t)left : WF_TENSOR_CHUNK_COUNT;
}

static enum weft_status
write_values(struct wf_saved_file *file, const float *value, uint64_t count)
{
	uint8_t chunk[WF_TENSOR_CHUNK_COUNT * VALUE_BYTES];

	for (uint64_t first = 0; first < count; first += chunk_of(count - first)) {
		const size_t part = chunk_of(count - first);
		for (size_t i = 0; i < part; i++) {
			uint32_t bits = 0;
			memcpy(&bits, &value[first + i], sizeof(bits));
			put_le(chunk + i * VALUE_BYTES, bits, VALUE_BYTES);
		}
		enum weft_status st = wf_saved_file_write(file, chunk, part * VALUE_BYTES);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_tensor_write_header(struct wf_saved_file *to, uint64_t count)
{
	uint8_t header[WF_TENSOR_HEADER_BYTES];

	make_header(count, header);
	return wf_saved_file_write(to, header, sizeof(header));
}

enum weft_status
wf_tensor_write(const struct wf_saved_spot *spot, const float *value, uint64_t count, uint32_t *crc)
{
	struct wf_saved_file to;
	enum weft_status st = wf_saved_file_create(spot, &to);

	if (st != WEFT_OK) {
		return st;
	}
	st = wf_tensor_write_header(&to, count);
	if (st == WEFT_OK) {
		st = write_values(&to, value, count);
	}
	*crc = to.crc;
	return wf_saved_file_finish(&to, st);
}

enum weft_status
wf_tensor_store(const uint8_t *chunk, size_t count, uint64_t first,
		const struct wf_tensor_target *to)
{
	for (size_t i = 0; to->value != NULL && i < count; i++) {
		uint32_t bits = (uint32_t)get_le(chunk + i * VALUE_BYTES, VALUE_BYTES);
		memcpy(&to->value[first + i], &bits, sizeof(bits));
	}
	return to->file == NULL ? WEFT_OK
				: wf_saved_file_write(to->file, chunk, count * VALUE_BYTES);
}

static enum weft_status
read_values(struct wf_saved_file *from, uint64_t count, const struct wf_tensor_target *to)
{
	uint8_t chunk[WF_TENSOR_CHUNK_COUNT * VALUE_BYTES];

	for (uint64_t first = 0; first < count; first += chunk_of(count - first)) {
		const size_t part = chunk_of(count - first);
		enum weft_status st = wf_saved_file_read(from, chunk, part * VALUE_BYTES);
		if (st == WEFT_OK) {
			st = wf_tensor_store(chunk, part, first, to);
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_header(struct wf_saved_file *from, uint64_t count)
{
	uint8_t header[WF_TENSOR_HEADER_BYTES];
	enum weft_status st = wf_saved_file_read(from, header, sizeof(header));

	if (st != WEFT_OK) {
		return st;
	}
	if (get_le(header, 4) != 0 || get_le(header + 4, 4) != VALUE_BYTES) {
		return wf_fail(WEFT_DATA,
			       "%s: format %" PRIu64 " with %" PRIu64
			       " bytes a value; must be format 0 with 4",
			       from->path, get_le(header, 4), get_le(header + 4, 4));
	}
	if (get_le(header + 8, 8) != count) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " values by its header; must have %" PRIu64,
			       from->path, get_le(header + 8, 8), count);
	}
	return WEFT_OK;
}

static enum weft_status
read_all(struct wf_saved_file *from, const struct wf_tensor_file *file,
	 const struct wf_tensor_target *to)
{
	const uint64_t wanted = WF_TENSOR_HEADER_BYTES + file->count * VALUE_BYTES;

	if (from->bytes != wanted) {
		return wf_fail(WEFT_DATA, "%s: has %" PRIu64 " bytes; must have %" PRIu64,
			       file->path, from->bytes, wanted);
	}
	enum weft_status st = check_header(from, file->count);
	if (st == WEFT_OK) {
		st = read_values(from, file->count, to);
	}
	if (st == WEFT_OK && from->crc != file->crc) {
		return wf_fail(WEFT_DATA,
			       "%s: checksum %08" PRIx32 "; the manifest has %08" PRIx32
			       ": it is damaged",
			       file->path, from->crc, file->crc);
	}
	return st;
}

enum weft_status
wf_tensor_read(const struct wf_saved_calls *calls, const struct wf_tensor_file *file,
	       const struct wf_tensor_target *to)
{
	struct wf_saved_file from;
	enum weft_status st = wf_saved_file_open(calls, file->path, &from);

	if (st != WEFT_OK) {
		return st;
	}
	st = read_all(&from, file, to);
	wf_saved_file_close(&from);
	return st;
}
