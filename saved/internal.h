/* SPDX-License-Identifier: Apache-2.0 */
/* internal: an opened save, for this folder's own files. Thread: the caller's. */
#pragma once

#include "saved/manifest.h"
#include "saved/tensors.h"

struct wf_saved {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	char path[WF_SAVED_PATH_BYTES];
	struct wf_manifest manifest;
};

/* A file of the save, and the memory of its path. */
struct wf_saved_file_place {
	struct wf_tensor_file file;
	char path[WF_SAVED_PATH_BYTES];
};

/* saved.c. wf_saved_open of a save that has its name; `path` has at most WF_SAVED_PATH_BYTES - 1
 * bytes. */
enum weft_status wf_saved_read(struct wf_env *env, const struct wf_saved_calls *calls,
			       const char *path, struct wf_saved **out) WEFT_MUST_CHECK;
/* File `file` of tensor `idx`; 0: values. `out` must not move. */
enum weft_status wf_saved_file_of(const struct wf_saved *saved, uint32_t idx, unsigned file,
				  struct wf_saved_file_place *out) WEFT_MUST_CHECK;
/* The path of a table's file. `out` is [WF_SAVED_PATH_BYTES]. */
enum weft_status wf_saved_rows_path(const struct wf_saved *saved, uint32_t idx,
				    char *out) WEFT_MUST_CHECK;

/* Array `idx` that is kept aside, to `out` [bytes] and `to`, each of which may be NULL. WEFT_DATA,
 * WEFT_IO */
enum weft_status wf_saved_read_aside(const struct wf_saved *saved, uint32_t idx, void *out,
				     struct wf_saved_file *to) WEFT_MUST_CHECK;

static inline bool
wf_saved_has_shape(const struct wf_saved_tensor *tensor)
{
	return tensor->shape != NULL && tensor->shape[0] != '\0';
}
