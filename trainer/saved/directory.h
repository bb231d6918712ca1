/* SPDX-License-Identifier: Apache-2.0 */
/* directory: how a pass gets its name: made as `.pass-00003.tmp-PID`, renamed when everything in it
 * is on the disk. An older save of that name is `.pass-00003.old-PID` for that moment. Thread: the
 * caller's. */
#pragma once

#include "trainer/saved/saved.h"

/* A save on its way. */
struct wf_saved_way {
	const struct wf_saved_calls *calls;
	const char *dir;                     /* the folder of passes */
	char temporary[WF_SAVED_PATH_BYTES]; /* the directory to write into */
	char aside[WF_SAVED_PATH_BYTES];
	char final[WF_SAVED_PATH_BYTES];
};

/* Clean up after dead processes and make the temporary directory. WEFT_IO */
enum weft_status wf_saved_way_begin(const struct wf_saved_place *place, uint64_t pass,
				    struct wf_saved_way *out) WEFT_MUST_CHECK;
/* `st` is what writing into it came to. After WEFT_OK the new save has its name and both are on the
 * disk; else nothing is left of it. */
enum weft_status wf_saved_way_end(struct wf_saved_way *way, enum weft_status st) WEFT_MUST_CHECK;
/* A process that died while it replaced the save `path` left the older one aside: give that its
 * name back. No error if there is none. */
void wf_saved_recover(const struct wf_saved_calls *calls, const char *path);
/* Remove a directory with its files; it has no folders of ours. As much as can be. -1: errno. */
int wf_saved_remove_folder(const char *path);
