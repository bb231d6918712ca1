/* SPDX-License-Identifier: Apache-2.0 */
/* history: the snapshots of a directory that belong to the history that remains (rule 12 of
 * docs/architecture.md, section 4), and which of them a job goes on from. Thread: one at a time.
 * Blocks on the disk. */
#pragma once

#include "saved/epochs.h"
#include "saved/snapshot.h"

/* Lists them, newest first. wf_snapshot_list_fini ends `out`. WEFT_IO; WEFT_NOMEM */
enum weft_status wf_history_read(struct wf_env *env, const char *dir,
				 const struct wf_epochs *epochs,
				 struct wf_snapshot_list *out) WEFT_MUST_CHECK;
/* WEFT_INVALID: there is one; its name, and the options that decide what becomes of it. */
enum weft_status wf_history_check_empty(struct wf_env *env, const char *dir,
					const struct wf_epochs *epochs) WEFT_MUST_CHECK;

/* Leaves those of a list, newest first, that are no longer kept: the newest `keep` from which a job
 * could go on stay, and all on which one of them builds. Who removes them in this order removes
 * none on which another one builds. WEFT_IO; WEFT_NOMEM */
enum weft_status wf_history_drop_kept(struct wf_env *env, const char *dir, uint32_t keep,
				      struct wf_snapshot_list *list) WEFT_MUST_CHECK;

/* The one to go on from. */
struct wf_history_choice {
	struct wf_snapshot_id id; /* step 0: there is none */
	uint64_t samples;         /* of the steps up to it */
	uint32_t crc;             /* CRC32C of its manifest */
};

/* The newest one that is whole; those that are newer and damaged are named in the log. All files of
 * a snapshot are read, and of those on which it builds. WEFT_DATA: there are some, and none is
 * whole; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_history_choose(struct wf_env *env, const char *dir,
				   const struct wf_epochs *epochs,
				   struct wf_history_choice *out) WEFT_MUST_CHECK;
