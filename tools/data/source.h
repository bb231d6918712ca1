/* SPDX-License-Identifier: Apache-2.0 */
/* source: the records of one file: those of RecordIO, or the lines of a text, which may be packed.
 * What a file is its first bytes say. A line's record is the line without its line feed. Thread:
 * the caller's. */
#pragma once

#include "base/env.h"
#include "trainer/readers/recordio.h"

#define WF_SOURCE_LINE_BYTES_MAX (64u << 20)

struct wf_source;

/* What a file was found to be. */
struct wf_source_kind {
	bool is_recordio;
	/* "none", "gzip", "zstd" or "snappy"; of RecordIO that of the first chunk, "none" if there
	 * is no chunk. */
	const char *compressor;
};

/* `path` is lent until close. WEFT_IO; WEFT_DATA: its beginning is damaged; WEFT_NOMEM */
enum weft_status wf_source_open(struct wf_env *env, const char *path,
				struct wf_source **out) WEFT_MUST_CHECK;
void wf_source_close(struct wf_source *source); /* accepts NULL */
/* The next record; its bytes are NULL at the end. WEFT_DATA: file, place and what is wrong there;
 * WEFT_IO; WEFT_NOMEM */
enum weft_status wf_source_read(struct wf_source *source, struct wf_record *out) WEFT_MUST_CHECK;
/* After WEFT_DATA of wf_source_read: goes on behind the damage. false: nobody knows where that
 * is. */
bool wf_source_skip_damage(struct wf_source *source);
struct wf_source_kind wf_source_kind(const struct wf_source *source);
/* Of what was read so far: text with its line feeds, records with their lengths. */
uint64_t wf_source_unpacked_bytes(const struct wf_source *source);
