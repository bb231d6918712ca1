/* SPDX-License-Identifier: Apache-2.0 */
/* target: the numbered files that a command writes, PREFIX-00000-of-00010 and so on. Each is
 * written beside its place under a hidden name. Only when all are whole and on the disk do they get
 * their names, and a name that is in use is left alone unless the user says otherwise. Thread: the
 * caller's. */
#pragma once

#include "base/env.h"
#include "trainer/readers/recordio.h"

#define WF_TARGET_FILES_MAX 99999u /* so that names have five digits, and sort as they count */

/* What the files are to be. */
struct wf_target_form {
	bool is_recordio;       /* else a text: a record is a line */
	const char *compressor; /* "none", "gzip"; of a text also "zstd", of RecordIO "snappy" */
};

struct wf_target;

struct wf_target_opts {
	const char *prefix; /* FOLDER/NAME; lent until close; the folder is made, not those above */
	uint32_t files;     /* at least 1 */
	struct wf_target_form form;
	bool replaces; /* files that exist, and sets of this name with another number of files */
};

/* WEFT_INVALID: the prefix, or a compressor that the form does not have; WEFT_IO: the folder cannot
 * be made or opened, or a file exists. */
enum weft_status wf_target_open(struct wf_env *env, const struct wf_target_opts *opts,
				struct wf_target **out) WEFT_MUST_CHECK;
/* Ends the file that is being written, and begins the next one. WEFT_IO; WEFT_NOMEM */
enum weft_status wf_target_next(struct wf_target *target) WEFT_MUST_CHECK;
/* Adds a record to the file. WEFT_DATA: it has a line feed, and the file is a text; WEFT_INVALID:
 * it is too long; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_target_write(struct wf_target *target,
				 const struct wf_record *record) WEFT_MUST_CHECK;
/* All of the files have been written: gives them their names. WEFT_IO: one of them exists by now,
 * or cannot be renamed. */
enum weft_status wf_target_finish(struct wf_target *target) WEFT_MUST_CHECK;
/* Removes what was not finished. Accepts NULL. */
void wf_target_close(struct wf_target *target);
