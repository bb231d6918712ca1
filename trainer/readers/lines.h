/* SPDX-License-Identifier: Apache-2.0 */
/* lines: the lines of several files as texts of bounded size, which have whole lines only. What is
 * in such a window depends on the files and the size of windows alone. A last line without line
 * feed gets one. Thread: its owner's. */
#pragma once

#include "trainer/readers/files.h"
#include "trainer/readers/text.h"

#define WF_WINDOW_BYTES_MIN 1024u
#define WF_WINDOW_BYTES_MAX (2ull << 30) /* so that 32 bits count the entries of a window */

/* Lines of one file. */
struct wf_span {
	const char *path;   /* lent until the last window has been read */
	size_t first, last; /* both included, from 1; last SIZE_MAX: to the end of the file */
	const struct wf_file *listed; /* lent likewise; NULL: the file may have changed */
};

struct wf_lines;

/* `window_bytes`: of a text; WF_WINDOW_BYTES_MIN..WF_WINDOW_BYTES_MAX. WEFT_NOMEM. */
enum weft_status wf_lines_open(struct wf_env *env, size_t window_bytes,
			       struct wf_lines **out) WEFT_MUST_CHECK;
void wf_lines_close(struct wf_lines *lines); /* accepts NULL */
/* Begins with the first window of these `count` spans, at any time. They are lent until the last
 * window has been read. */
void wf_lines_begin(struct wf_lines *lines, const struct wf_span *span, size_t count);
/**
 * The next window. Its pieces' `file` is the index of the span.
 * @param out lent until the next call; no bytes: there is none left. Readers may write to it
 * @return WEFT_OK; WEFT_DATA: a file is damaged, a line is longer than a window, or a file has
 *         fewer lines than its span: file and line; or a file has changed since it was listed;
 *         WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_lines_next(struct wf_lines *lines, struct wf_text *out) WEFT_MUST_CHECK;
/* Whether that was the last one. A window that is exactly full may be followed by an empty one. */
bool wf_lines_is_over(const struct wf_lines *lines);

/* What one file has. */
struct wf_scan {
	uint64_t bytes;   /* unpacked */
	uint64_t lines;   /* the last one may lack its line feed */
	size_t marks_max; /* the most that a line has of a mark */
	uint32_t crc;     /* CRC32C of the unpacked bytes */
	/* The first line that begins with a 0, and with a minus sign; 0: there is none. */
	uint64_t zero_line, minus_line;
};

/* Reads a file to its end, a chunk at a time. WEFT_DATA: it is damaged; WEFT_IO; WEFT_NOMEM. */
enum weft_status wf_lines_scan(struct wf_env *env, const char *path, char mark,
			       struct wf_scan *out) WEFT_MUST_CHECK;
