/* SPDX-License-Identifier: Apache-2.0 */
/* folder: the folder in which passes are saved, opened once and locked for as long as it is open.
 * Everything in it is created, renamed and removed through its descriptor, so a link that is placed
 * on the path later leads nowhere. Private to this folder. Thread: the caller's. */
#pragma once

#include <dirent.h>

#include "saved/saved.h"

#define WF_SAVED_LOCK_FILE ".weft-lock"

struct wf_saved_folder {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	int fd;
	int lock_fd;                    /* -1: none */
	bool is_locked;                 /* false: the file system has no locks */
	char path[WF_SAVED_PATH_BYTES]; /* for messages */
};

/* Opens and locks an existing folder and leaves its contents as they are. WEFT_UNAVAILABLE: another
 * process has the lock; WEFT_IO; WEFT_NOMEM. wf_saved_folder_close ends it. */
enum weft_status wf_saved_folder_lock(const struct wf_saved_place *place,
				      struct wf_saved_folder **out) WEFT_MUST_CHECK;
/* The same without a lock, for several processes that agree on names. */
enum weft_status wf_saved_folder_share(const struct wf_saved_place *place,
				       struct wf_saved_folder **out) WEFT_MUST_CHECK;
/* The names in an open folder, to be read and closed; NULL: errno. */
DIR *wf_saved_names(const struct wf_saved_calls *calls, int folder);
