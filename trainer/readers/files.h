/* SPDX-License-Identifier: Apache-2.0 */
/* files: the files of a data set, from the items that an option names, and which of them a trainer
 * keeps. Names and sizes only; nothing is opened but list files. The order does not depend on the
 * locale. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/env.h"

#define WF_FILES_MAX (1u << 20) /* of a set */

struct wf_file {
	char *path;              /* as it was named or found */
	uint64_t bytes;          /* of the file itself, packed or not */
	struct timespec changed; /* when it last was; 0: it was not listed */
	bool is_found; /* in a folder or by a pattern; else somebody named this very file */
};

struct wf_files {
	struct wf_file *file; /* [count] */
	size_t count;
	size_t alloc;
};

/**
 * Lists the files of a set.
 * @param items separated by commas, in their order:
 *   - a file;
 *   - a folder: its files in the order of their names' bytes;
 *   - a pattern of glob(7), if no file has that very name: the files that match, in that order;
 *   - a list file, whose name ends in ".list": one of the above in a line, but no list file. Empty
 *     lines say nothing, nor does what stands behind a # at the beginning of a line or behind a
 *     blank. A relative name is looked for in the working
 *     folder, and if it is not there beside the list file.
 *   Of folders and patterns only regular files count whose names neither begin with a dot nor end
 *   in ".lock" or ".list".
 * @param out ends with wf_files_fini
 * @return WEFT_OK: there is at least one file; WEFT_DATA: an item does not exist, is empty, or is
 *         no regular file, or a file is in the set twice: item, list file and line; WEFT_IO: it
 *         cannot be read; WEFT_NOMEM
 */
enum weft_status wf_files_list(struct wf_env *env, const char *items,
			       struct wf_files *out) WEFT_MUST_CHECK;
void wf_files_fini(struct wf_env *env, struct wf_files *files); /* accepts a zeroed one */

/**
 * Which trainer each file belongs to. Where each name ends in a number as in part-00003 or
 * part-00003-of-00010 (an extension may follow), this is the number modulo `trainers`; else the
 * place of the name among all names, sorted, modulo `trainers`.
 * @param out [files->count], in the order of the files
 * @return WEFT_OK; WEFT_NOMEM
 */
enum weft_status wf_files_owners(struct wf_env *env, const struct wf_files *files,
				 uint32_t trainers, uint32_t *out) WEFT_MUST_CHECK;
/* Warns of a file without a number among numbered ones, in the log, for it may be meant. It may be
 * what the others are parts of, and where the files are shared, none of them is by its number. */
void wf_files_warn_mixed(struct wf_env *env, const struct wf_files *files, bool is_shared);
/**
 * Keeps the files of one trainer, in their order: those that belong to `trainer`.
 * @return WEFT_OK; WEFT_DATA: no file is left, or wf_files_check_whole; WEFT_NOMEM
 */
enum weft_status wf_files_keep(struct wf_env *env, struct wf_files *files, uint32_t trainer,
			       uint32_t trainers) WEFT_MUST_CHECK;
#define WF_FILES_FINDINGS_MAX 64u /* of a set; one more counts the others */

/* Receives a finding, whose text is the last failure; `found` is WEFT_DATA. What it returns ends
 * the search, unless that is WEFT_OK. */
typedef enum weft_status wf_files_finding_fn(void *arg, enum weft_status found);

/* Of files called NAME-00003-of-00010 that were found in a folder or by a pattern, all ten have to
 * be there: 0 to 9, or, as the original counted, 0 to 10. Calls `fn` for each gap, a file that is
 * there twice, and each file too many. What `fn` returns; WEFT_NOMEM */
enum weft_status wf_files_find_gaps(struct wf_env *env, const struct wf_files *files,
				    wf_files_finding_fn *fn, void *arg) WEFT_MUST_CHECK;
/* Refuses the first of these. WEFT_DATA; WEFT_NOMEM */
enum weft_status wf_files_check_whole(struct wf_env *env,
				      const struct wf_files *files) WEFT_MUST_CHECK;
