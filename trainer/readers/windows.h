/* SPDX-License-Identifier: Apache-2.0 */
/* windows: all windows of a list of files, one after the other, for what has to be known of all of
 * them before the training. Thread: the caller's. */
#pragma once

#include "trainer/readers/files.h"
#include "trainer/readers/lines.h"

/* `text` is not empty; lent for the call, and may be written to. */
typedef enum weft_status wf_window_visit(struct wf_env *env, void *arg, struct wf_text *text);

/* A span for each file, with all of its lines. `out` [files->count] ends with wf_free.
 * WEFT_NOMEM. */
enum weft_status wf_windows_spans(struct wf_env *env, const struct wf_files *files,
				  struct wf_span **out) WEFT_MUST_CHECK;
/* As wf_lines_next, or what `visit` returns. */
enum weft_status wf_windows_visit(struct wf_env *env, const struct wf_files *files,
				  size_t window_bytes, wf_window_visit *visit,
				  void *arg) WEFT_MUST_CHECK;
