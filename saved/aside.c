/* SPDX-License-Identifier: Apache-2.0 */
/* aside: see aside.h. Thread: the caller's. */
#include "saved/aside.h"

#include <inttypes.h>

#include "base/assert.h"

#define CHUNK_BYTES (32u << 10)

static size_t
chunk_of(uint64_t left)
{
	return left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
}

enum weft_status
wf_aside_write(const struct wf_saved_spot *spot, const void *bytes, uint64_t count, uint32_t *crc)
{
	struct wf_saved_file to;
	enum weft_status st = wf_saved_file_create(spot, &to);

	if (st != WEFT_OK) {
		return st;
	}
	for (uint64_t at = 0; st == WEFT_OK && at < count; at += chunk_of(count - at)) {
		st = wf_saved_file_write(&to, (const uint8_t *)bytes + at, chunk_of(count - at));
	}
	*crc = to.crc;
	return wf_saved_file_finish(&to, st);
}

static enum weft_status
read_all(struct wf_saved_file *from, const struct wf_aside_file *file, uint8_t *out,
	 struct wf_saved_file *to)
{
	uint8_t chunk[CHUNK_BYTES];
	enum weft_status st = WEFT_OK;

	if (from->bytes != file->bytes) {
		return wf_fail(WEFT_DATA, "%s: has %" PRIu64 " bytes; must have %" PRIu64,
			       file->path, from->bytes, file->bytes);
	}
	for (uint64_t at = 0; st == WEFT_OK && at < file->bytes; at += chunk_of(file->bytes - at)) {
		const size_t part = chunk_of(file->bytes - at);
		uint8_t *into = out == NULL ? chunk : out + at;
		st = wf_saved_file_read(from, into, part);
		if (st == WEFT_OK && to != NULL) {
			st = wf_saved_file_write(to, into, part);
		}
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
wf_aside_read(const struct wf_saved_calls *calls, const struct wf_aside_file *file, void *out,
	      struct wf_saved_file *to)
{
	struct wf_saved_file from;
	enum weft_status st = wf_saved_file_open(calls, file->path, &from);

	if (st != WEFT_OK) {
		return st;
	}
	st = read_all(&from, file, out, to);
	wf_saved_file_close(&from);
	return st;
}
