/* SPDX-License-Identifier: Apache-2.0 */
/* removal: of a save, whole or half-written, and of nothing else. A folder of a pass is weft's if
 * every name in it is one that its manifest, or the draft of a half-written one, has, and each is a
 * regular file. Else all of it is left as it is. Private to this folder. Thread: the caller's. */
#pragma once

#include <sys/stat.h>

#include "saved/folder.h"

/* Whether `name` in the folder is a save that may be removed; `*out` is that of its folder.
 * WEFT_IO: the file in it that weft did not make, and the remedy. */
enum weft_status wf_saved_check_ours(const struct wf_saved_folder *folder, const char *name,
				     struct stat *out) WEFT_MUST_CHECK;
/* Removes it if it may be removed: its manifest last, so that what a crash leaves is still
 * recognised as weft's. As above. */
enum weft_status wf_saved_remove(const struct wf_saved_folder *folder,
				 const char *name) WEFT_MUST_CHECK;
/* Of a directory in which all names have to satisfy `is_ours`, and all are regular files: removes
 * the files whose names satisfy `is_wanted`, durably. No such directory: WEFT_OK. WEFT_IO as
 * above. */
enum weft_status wf_saved_remove_files(const struct wf_saved_folder *folder, const char *name,
				       bool (*is_ours)(const char *name),
				       bool (*is_wanted)(const char *name)) WEFT_MUST_CHECK;
