/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the caller's. */
#include "saved/chunk.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

#define SEEK_BYTES ((size_t)4096) /* read behind a seek: a head, perhaps, and then another seek */

enum weft_status
wf_chunk_open(struct wf_chunk *chunk, const struct wf_saved_calls *calls, const char *path)
{
	enum weft_status st = wf_saved_file_open(calls, path, &chunk->file);

	chunk->used = 0;
	chunk->filled = 0;
	chunk->is_sought = false;
	chunk->ahead = WF_CHUNK_BYTES;
	chunk->to_come = st == WEFT_OK ? chunk->file.bytes : 0;
	return st;
}

void
wf_chunk_seek(struct wf_chunk *chunk, uint64_t at)
{
	const uint64_t end = chunk->file.bytes - chunk->to_come; /* of what is in the buffer */

	chunk->is_sought = true;
	if (at <= end && end - at <= chunk->filled) {
		chunk->used = chunk->filled - (size_t)(end - at);
		return;
	}
	chunk->used = 0;
	chunk->filled = 0;
	chunk->ahead = SEEK_BYTES;
	chunk->to_come = at < chunk->file.bytes ? chunk->file.bytes - at : 0;
}

/* The next bytes that are not in the buffer. */
static enum weft_status
read_next(struct wf_chunk *chunk, void *out, size_t count)
{
	struct wf_saved_file *file = &chunk->file;

	enum weft_status st =
		chunk->is_sought
			? wf_saved_file_read_at(file, file->bytes - chunk->to_come, out, count)
			: wf_saved_file_read(file, out, count);
	if (st == WEFT_OK) {
		chunk->to_come -= count;
	}
	return st;
}

/* How many bytes are read where `need` are needed and the buffer has room for `room`. */
static size_t
choose_count(struct wf_chunk *chunk, size_t need, size_t room)
{
	size_t count = need > chunk->ahead ? need : chunk->ahead;

	chunk->ahead = chunk->ahead < WF_CHUNK_BYTES / 2 ? 2 * chunk->ahead : WF_CHUNK_BYTES;
	count = count < room ? count : room;
	return chunk->to_come < count ? (size_t)chunk->to_come : count;
}

const uint8_t *
wf_chunk_pop(struct wf_chunk *chunk, size_t count, enum weft_status *st)
{
	const size_t left = chunk->filled - chunk->used;

	WF_ASSERT(count <= WF_CHUNK_BYTES);
	if (left < count) {
		size_t more = choose_count(chunk, count - left, WF_CHUNK_BYTES - left);
		if (left + more < count) {
			*st = wf_fail(WEFT_DATA, "%s: ends %zu bytes too early", chunk->file.path,
				      count - left - more);
			return NULL;
		}
		memmove(chunk->bytes, chunk->bytes + chunk->used, left);
		*st = read_next(chunk, chunk->bytes + left, more);
		if (*st != WEFT_OK) {
			return NULL;
		}
		chunk->used = 0;
		chunk->filled = left + more;
	}
	const uint8_t *at = chunk->bytes + chunk->used;
	chunk->used += count;
	return at;
}

enum weft_status
wf_chunk_read(struct wf_chunk *chunk, void *out, size_t count)
{
	const size_t left = chunk->filled - chunk->used;
	const size_t here = left < count ? left : count;

	if (wf_chunk_left(chunk) < count) {
		return wf_fail(WEFT_DATA, "%s: ends %" PRIu64 " bytes too early", chunk->file.path,
			       count - wf_chunk_left(chunk));
	}
	memcpy(out, chunk->bytes + chunk->used, here);
	chunk->used += here;
	return count > here ? read_next(chunk, (uint8_t *)out + here, count - here) : WEFT_OK;
}

uint64_t
wf_chunk_left(const struct wf_chunk *chunk)
{
	return chunk->to_come + (chunk->filled - chunk->used);
}

enum weft_status
wf_chunk_end(const struct wf_chunk *chunk)
{
	if (wf_chunk_left(chunk) > 0) {
		return wf_fail(WEFT_DATA, "%s: has %" PRIu64 " bytes after its end",
			       chunk->file.path, wf_chunk_left(chunk));
	}
	return WEFT_CLOSED;
}
