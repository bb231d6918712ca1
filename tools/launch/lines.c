/* SPDX-License-Identifier: Apache-2.0 */
/* lines: see lines.h. */
#include "tools/launch/lines.h"

#include "base/assert.h"

static void
hand_out(struct wf_lines *lines, wf_line_fn *line, void *arg)
{
	WF_ASSERT(lines->used < sizeof(lines->text));
	lines->text[lines->used] = '\0';
	lines->used = 0;
	line(arg, lines->text);
}

void
wf_lines_feed(struct wf_lines *lines, const char *bytes, size_t count, wf_line_fn *line, void *arg)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n') {
			hand_out(lines, line, arg);
			continue;
		}
		/* A NUL would hide the rest of the line. */
		lines->text[lines->used++] = bytes[i] != '\0' ? bytes[i] : '?';
		if (lines->used + 1 == sizeof(lines->text)) {
			hand_out(lines, line, arg);
		}
	}
}

void
wf_lines_end(struct wf_lines *lines, wf_line_fn *line, void *arg)
{
	if (lines->used > 0) {
		hand_out(lines, line, arg);
	}
}
