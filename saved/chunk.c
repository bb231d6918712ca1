/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the caller's. */
#include "saved/chunk.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

enum weft_status
wf_chunk_open(struct wf_chunk *chunk, const struct wf_saved_calls *calls, const char *path)
{
	enum weft_status st = wf_saved_file_open(calls, path, &chunk->file);

	chunk->used = 0;
	chunk->filled = 0;
	chunk->is_sought = false;
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
	chunk->to_come = at < chunk->file.bytes ? chunk->file.bytes - at : 0;
}

/* Behind the `left` bytes that the buffer has. */
static enum weft_status
read_more(struct wf_chunk *chunk, size_t left, size_t count)
{
	struct wf_saved_file *file = &chunk->file;

	return chunk->is_sought ? wf_saved_file_read_at(file, file->bytes - chunk->to_come,
							chunk->bytes + left, count)
				: wf_saved_file_read(file, chunk->bytes + left, count);
}

const uint8_t *
wf_chunk_pop(struct wf_chunk *chunk, size_t count, enum weft_status *st)
{
	const size_t left = chunk->filled - chunk->used;

	WF_ASSERT(count <= WF_CHUNK_BYTES);
	if (left < count) {
		size_t room = WF_CHUNK_BYTES - left;
		size_t more = chunk->to_come < room ? (size_t)chunk->to_come : room;
		if (left + more < count) {
			*st = wf_fail(WEFT_DATA, "%s: ends %zu bytes too early", chunk->file.path,
				      count - left - more);
			return NULL;
		}
		memmove(chunk->bytes, chunk->bytes + chunk->used, left);
		*st = read_more(chunk, left, more);
		if (*st != WEFT_OK) {
			return NULL;
		}
		chunk->to_come -= more;
		chunk->used = 0;
		chunk->filled = left + more;
	}
	const uint8_t *at = chunk->bytes + chunk->used;
	chunk->used += count;
	return at;
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
