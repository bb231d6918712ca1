/* SPDX-License-Identifier: Apache-2.0 */
/* directory: how a pass gets its name: made as `.pass-00003.tmp-1`, renamed when everything in it
 * is on the disk. An older save of that name is `.pass-00003.old-1` for that moment. The number is
 * the first that is free. Thread: the caller's. */
#pragma once

#include "saved/folder.h"

#define WF_SAVED_LEAF_BYTES 128u

/* A save on its way. */
struct wf_saved_way {
	struct wf_saved_folder *folder; /* borrowed */
	uint64_t pass;
	int fd;                              /* of the directory to write into, */
	char temporary[WF_SAVED_LEAF_BYTES]; /* its name in the folder */
	char path[WF_SAVED_PATH_BYTES];      /* and its path, for messages */
};

/* Clean up after interrupted saves, see that nothing foreign has the pass's name, and make the
 * temporary directory. WEFT_IO */
enum weft_status wf_saved_way_begin(struct wf_saved_folder *folder, uint64_t pass,
				    struct wf_saved_way *out) WEFT_MUST_CHECK;
/* Ends a save; `st` is the result of writing into it. After WEFT_OK the new save has its name and
 * both are on the disk; otherwise nothing is left of it. */
enum weft_status wf_saved_way_end(struct wf_saved_way *way, enum weft_status st) WEFT_MUST_CHECK;
/* Whether there is no save of that pass, and nothing else of its name. WEFT_INVALID: there is. */
enum weft_status wf_saved_check_free(const struct wf_saved_folder *folder,
				     uint64_t pass) WEFT_MUST_CHECK;
/* A process that died while it replaced the save `path` left the older one aside: gives that its
 * name back, unless another process saves there at this moment. No error if there is none. */
void wf_saved_recover(struct wf_env *env, const struct wf_saved_calls *calls, const char *path);
