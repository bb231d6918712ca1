/* SPDX-License-Identifier: Apache-2.0 */
/* progress: how far long work has come, on stderr: a bar on a terminal, from the first second on;
 * elsewhere a line after 10 seconds and every 10 seconds. Short work shows nothing.
 *
 * What moves bytes needs no hook: a thread looks at what the system counts of this process's reads
 * or writes (/proc/self/io) and draws. Where the system does not count, nothing is shown.
 * Thread: the caller's, besides that one. */
#pragma once

#include "base/env.h"

struct wf_progress_opts {
	struct wf_env *env;
	const char *program; /* opens each line: "weft import" */
	const char *what;    /* "writing" */
	uint64_t total;      /* bytes; 0: not known */
	bool of_writes;      /* what is written counts, and not what is read */
};

struct wf_progress;

/* Begins to look. NULL if there is no thread or memory for it: the work goes on without. */
struct wf_progress *wf_progress_start(const struct wf_progress_opts *opts);
/* More is to be done than was known. Accepts NULL. */
void wf_progress_add_total(struct wf_progress *progress, uint64_t bytes);
/* Removes the bar, so that a line can be printed; it comes again. Accepts NULL. */
void wf_progress_hide(struct wf_progress *progress);
/* Removes the bar and ends. Accepts NULL. */
void wf_progress_stop(struct wf_progress *progress);

/* Bytes of a file, or of the files in a folder; 0: there are none, or it cannot be read. */
uint64_t wf_progress_size(const char *path);
/* Writes "weft import: writing  42 % [#####       ]  1.2 of 3.0 GiB, 0:12 left" or, without a bar,
 * the same as a sentence. `out` has `bytes`; `total` 0: not known. */
void wf_progress_format(const struct wf_progress_opts *opts, uint64_t done, uint64_t elapsed_ns,
			bool with_bar, char *out, size_t bytes);
