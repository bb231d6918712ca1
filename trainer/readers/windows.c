/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files through, window by window. Thread: the caller's. */
#include "trainer/readers/windows.h"

enum weft_status
wf_windows_spans(struct wf_env *env, const struct wf_files *files, struct wf_span **out)
{
	struct wf_span *span = wf_zalloc_array(env, files->count, sizeof(*span));

	if (span == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", files->count);
	}
	for (size_t i = 0; i < files->count; i++) {
		span[i] = (struct wf_span){
			.path = files->file[i].path,
			.first = 1,
			.last = SIZE_MAX,
			.listed = &files->file[i],
		};
	}
	*out = span;
	return WEFT_OK;
}

enum weft_status
wf_windows_visit(struct wf_env *env, const struct wf_files *files, size_t window_bytes,
		 wf_window_visit *visit, void *arg)
{
	struct wf_lines *lines = NULL;
	struct wf_span *span = NULL;
	struct wf_text text;
	bool is_over = false;

	enum weft_status st = wf_windows_spans(env, files, &span);
	if (st == WEFT_OK) {
		st = wf_lines_open(env, window_bytes, &lines);
	}
	if (st == WEFT_OK) {
		wf_lines_begin(lines, span, files->count);
	}
	while (st == WEFT_OK && !is_over) {
		st = wf_lines_next(lines, &text);
		is_over = st == WEFT_OK && text.count == 0;
		if (st == WEFT_OK && !is_over) {
			st = visit(env, arg, &text); /* which may leave nothing of it */
		}
	}
	wf_lines_close(lines);
	wf_free(env, span, files->count * sizeof(*span));
	return st;
}
