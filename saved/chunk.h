/* SPDX-License-Identifier: Apache-2.0 */
/* chunk: a file that is read from its beginning to its end in pieces of a buffer. The buffer has
 * one size, whatever the file says. Private to this folder. Thread: the caller's. */
#pragma once

#include "saved/file.h"

#define WF_CHUNK_BYTES (256u << 10)

struct wf_chunk {
	struct wf_saved_file file;
	uint64_t to_come;    /* bytes of the file that are not in the buffer yet */
	bool is_sought;      /* they are read where they are, and the checksum does not see them */
	size_t ahead;        /* as many are read at once, at least: few behind a seek, then more */
	size_t used, filled; /* bytes of the buffer */
	uint8_t bytes[WF_CHUNK_BYTES];
};

/* wf_saved_file_close(&chunk->file) ends it. `path` is lent while it is open. WEFT_DATA: it is
 * missing, or not a regular file; WEFT_IO */
enum weft_status wf_chunk_open(struct wf_chunk *chunk, const struct wf_saved_calls *calls,
			       const char *path) WEFT_MUST_CHECK;
/* The next `count` bytes of the file, at most WF_CHUNK_BYTES, good until the next call; NULL and
 * `*st`: there are fewer. */
const uint8_t *wf_chunk_pop(struct wf_chunk *chunk, size_t count, enum weft_status *st);
/* The next `count` bytes of the file to `out`, however many: most of them without the buffer.
 * WEFT_DATA: there are fewer; WEFT_IO */
enum weft_status wf_chunk_read(struct wf_chunk *chunk, void *out, size_t count) WEFT_MUST_CHECK;
/* The next byte is `at`, or the end where the file is shorter. */
void wf_chunk_seek(struct wf_chunk *chunk, uint64_t at);
/* Bytes after those that were popped. */
uint64_t wf_chunk_left(const struct wf_chunk *chunk);
/* WEFT_CLOSED: all bytes have been popped (nothing is recorded); WEFT_DATA: some follow. */
enum weft_status wf_chunk_end(const struct wf_chunk *chunk) WEFT_MUST_CHECK;
