/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest as a file: its text, whole. Thread: the caller's. */
#include <inttypes.h>

#include "base/assert.h"
#include "saved/file.h"
#include "saved/manifest.h"

static enum weft_status
decode(struct wf_env *env, struct wf_saved_file *file, char *text, struct wf_manifest *out)
{
	enum weft_status st = wf_saved_file_read(file, text, (size_t)file->bytes);

	if (st != WEFT_OK) {
		return st;
	}
	st = wf_manifest_decode(env, text, (size_t)file->bytes, out);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%s: %s", file->path, why.text);
	}
	return WEFT_OK;
}

enum weft_status
wf_manifest_read(struct wf_env *env, struct wf_saved_file *file, struct wf_manifest *out)
{
	const size_t bytes = (size_t)file->bytes + 1; /* not none */

	if (file->bytes > WF_MANIFEST_BYTES_MAX) {
		return wf_fail(WEFT_DATA, "%s: has %" PRIu64 " bytes; at most %u are read",
			       file->path, file->bytes, WF_MANIFEST_BYTES_MAX);
	}
	char *text = wf_zalloc(env, bytes);
	enum weft_status st = text == NULL ? wf_fail(WEFT_NOMEM, "%s: %zu bytes", file->path, bytes)
					   : decode(env, file, text, out);
	wf_free(env, text, bytes);
	return st;
}

enum weft_status
wf_manifest_load(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
		 struct wf_manifest *out)
{
	char name[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;

	enum weft_status st = wf_saved_join(path, WF_MANIFEST_FILE, name);
	if (st == WEFT_OK) {
		st = wf_saved_file_open(calls, name, &file);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_manifest_read(env, &file, out);
	wf_saved_file_close(&file);
	return st;
}

enum weft_status
wf_manifest_write(struct wf_env *env, const struct wf_saved_spot *spot,
		  const struct wf_manifest *manifest)
{
	const size_t bytes = wf_manifest_encode(manifest, NULL, 0);
	struct wf_saved_file file;

	if (bytes > WF_MANIFEST_BYTES_MAX) {
		return wf_fail(WEFT_INVALID, "manifest: %zu bytes; at most %u can be read back",
			       bytes, WF_MANIFEST_BYTES_MAX);
	}
	char *text = wf_zalloc(env, bytes + 1);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %zu bytes", bytes);
	}
	size_t again = wf_manifest_encode(manifest, text, bytes + 1);
	WF_ASSERT(again == bytes);
	enum weft_status st = wf_saved_file_create(spot, &file);
	if (st == WEFT_OK) {
		st = wf_saved_file_finish(&file, wf_saved_file_write(&file, text, bytes));
	}
	wf_free(env, text, bytes + 1);
	return st;
}
