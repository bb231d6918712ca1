/* SPDX-License-Identifier: Apache-2.0 */
/* internal: an opened save, for this folder's own files. Thread: the caller's. */
#pragma once

#include "saved/blocks.h"
#include "saved/chain.h"
#include "saved/manifest.h"
#include "saved/tensors.h"

/* A pass, whose arrays and tables have a file each; or a snapshot, whose parts have blocks of them.
 * What differs is behind wf_saved_read_tensor and wf_saved_open_rows. */
struct wf_saved {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	char path[WF_SAVED_PATH_BYTES];
	struct wf_manifest manifest;
	struct wf_blocks blocks; /* of a snapshot; all zeroes in a pass */
	struct wf_chain chain;   /* of a delta; all zeroes in all else */
};

/* saved.c. wf_saved_open of a pass that has its name; `path` has at most WF_SAVED_PATH_BYTES - 1
 * bytes. */
enum weft_status wf_saved_read(struct wf_env *env, const struct wf_saved_calls *calls,
			       const char *path, struct wf_saved **out) WEFT_MUST_CHECK;
/* The same of a pass or a snapshot. */
enum weft_status wf_saved_read_any(struct wf_env *env, const struct wf_saved_calls *calls,
				   const char *path, struct wf_saved **out) WEFT_MUST_CHECK;
/* Whether the shape of tensor `idx` is not known, as pservers do not know it: its elements are one
 * row, which may stand for any shape. */
bool wf_saved_is_flat(const struct wf_saved *saved, uint32_t idx);
/* Array `array` of tensor `idx` (0: its values), which is checked meanwhile. WEFT_DATA, WEFT_IO */
enum weft_status wf_saved_read_tensor(const struct wf_saved *saved, uint32_t idx, unsigned array,
				      const struct wf_tensor_target *to) WEFT_MUST_CHECK;
/* The rows of table `idx`. wf_rows_close ends it; the save is lent until then. WEFT_DATA, WEFT_IO,
 * WEFT_NOMEM */
enum weft_status wf_saved_open_rows(const struct wf_saved *saved, uint32_t idx,
				    struct wf_rows_reader **out) WEFT_MUST_CHECK;
/* Array `idx` that is kept aside, to `out` [bytes] and `to`, each of which may be NULL. WEFT_DATA,
 * WEFT_IO */
enum weft_status wf_saved_read_aside(const struct wf_saved *saved, uint32_t idx, void *out,
				     struct wf_saved_file *to) WEFT_MUST_CHECK;

static inline bool
wf_saved_has_shape(const struct wf_saved_tensor *tensor)
{
	return tensor->shape != NULL && tensor->shape[0] != '\0';
}
