/* SPDX-License-Identifier: Apache-2.0 */
/* lines: cuts a stream of bytes into lines. A line longer than the limit is returned in pieces.
 * Thread: any one. */
#pragma once

#include <stddef.h>

#define WF_LINE_BYTES 4096u

/* `text` has no newline, ends with NUL, and lives for the call. */
typedef void wf_line_fn(void *arg, const char *text);

struct wf_lines {
	size_t used;
	char text[WF_LINE_BYTES]; /* the unfinished line */
};

void wf_lines_feed(struct wf_lines *lines, const char *bytes, size_t count, wf_line_fn *line,
		   void *arg);
/* The stream has ended: hand out what has no newline. */
void wf_lines_end(struct wf_lines *lines, wf_line_fn *line, void *arg);
