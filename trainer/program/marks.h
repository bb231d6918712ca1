/* SPDX-License-Identifier: Apache-2.0 */
/* marks: a few characters by which two trainers whose files are not the same find out which one is
 * the first that differs. Consecutive files are a group; a group has a mark of 12 bits. What
 * trainers compare is a code: a digest of all files, and the marks. So are the columns of a table.
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_MARKS_MAX 7u
#define WF_MARKS_CODE_BYTES (10u + 1u + 2u * WF_MARKS_MAX + 1u) /* with NUL */

/* A group: up to WF_MARKS_MAX files are one each. */
struct wf_mark {
	uint64_t digest; /* its last 12 bits are the mark */
	size_t files;
	char name[80]; /* of the first one, without folders; it may be cut */
	uint64_t bytes;
};

struct wf_marks {
	bool is_columns;    /* and no files: they have names and no bytes */
	size_t group_files; /* of each group but the last */
	unsigned count;
	struct wf_mark mark[WF_MARKS_MAX];
	uint64_t digest; /* of all files */
};

void wf_marks_begin(struct wf_marks *marks, size_t file_count);
/* File `idx`; they come in their order. `digest` is of what is compared of it. */
void wf_marks_add(struct wf_marks *marks, size_t idx, const char *path, uint64_t bytes,
		  uint64_t digest);
/* `out` has WF_MARKS_CODE_BYTES. */
void wf_marks_code(const struct wf_marks *marks, char *out);
/* Says in half a sentence where the files differ from those of a trainer with another code. */
void wf_marks_explain(const struct wf_marks *marks, const char *other_code, char *out,
		      size_t bytes);
