/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_line: the lines of a manifest, read one after the other, and written. A failure names
 * the line. Private to this folder. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_LINE_BYTES 640u

struct wf_line_cursor {
	const char *text;
	size_t bytes; /* without the line of the checksum */
	size_t at;
	uint64_t has;             /* of WF_MANIFEST_FORMAT_ALL */
	uint32_t shape_count;     /* lines of shapes so far */
	unsigned number;          /* of the line read last */
	char line[WF_LINE_BYTES]; /* that line, and where in it we are */
	char *word;
};

struct wf_line_text {
	char *out;
	size_t room, bytes;
};

/* WEFT_DATA: the line read last, and `what` is wrong with it. */
enum weft_status wf_line_bad(const struct wf_line_cursor *cursor, const char *what) WEFT_MUST_CHECK;
/* Reads the next line into cursor->line, which must begin with `key` and a blank. WEFT_DATA */
enum weft_status wf_line_parse(struct wf_line_cursor *cursor, const char *key) WEFT_MUST_CHECK;
/* The next word, which a blank or the end of the line follows. NULL: none. */
const char *wf_line_parse_word(struct wf_line_cursor *cursor, char *out, size_t room);
/* The next word as a number without sign or leading zero; as a checksum of 8 digits. */
bool wf_line_parse_u64(struct wf_line_cursor *cursor, uint64_t *out);
bool wf_line_parse_crc(struct wf_line_cursor *cursor, uint32_t *out);
/* Whether all words of the line have been read. */
bool wf_line_at_end(const struct wf_line_cursor *cursor);
/* A line of one number, and of one word. WEFT_DATA */
enum weft_status wf_line_parse_number(struct wf_line_cursor *cursor, const char *key,
				      uint64_t *out) WEFT_MUST_CHECK;
enum weft_status wf_line_parse_one_word(struct wf_line_cursor *cursor, const char *key, char *out,
					size_t room) WEFT_MUST_CHECK;
/* A line of one number: how many entries there are. WEFT_DATA: there is no text for them, of which
 * each has at least `text_bytes_min` bytes. */
enum weft_status wf_line_parse_count(struct wf_line_cursor *cursor, const char *key,
				     size_t text_bytes_min, uint32_t *out) WEFT_MUST_CHECK;
/* Whether the next line begins with these bytes. */
bool wf_line_is_next(const struct wf_line_cursor *cursor, const char *words);

/* Appends as snprintf does: what fits, and text->bytes counts all of it. */
void wf_line_add(struct wf_line_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
