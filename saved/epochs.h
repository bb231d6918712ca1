/* SPDX-License-Identifier: Apache-2.0 */
/* epochs: the records of a snapshot directory. An epoch is one life of a job: it begins with
 * nothing, or with a snapshot of an earlier epoch, and a process that died is followed by the next
 * epoch. Record e is a file, made once: either "epoch e begins with this", or "the job has ended in
 * epoch e - 1" (rules 11 and 12 of docs/architecture.md, section 4). Thread: one at a time. */
#pragma once

#include "base/env.h"
#include "saved/snapshot.h"

struct wf_epoch_record {
	bool is_end;   /* of the job of the epoch before */
	bool has_base; /* it begins with a snapshot: */
	struct wf_snapshot_id base;
};

/* All zeroes: none. */
struct wf_epochs {
	struct wf_epoch_record *record; /* [count], of the epochs 1 .. count */
	uint64_t count;
};

/* Reads them all. WEFT_DATA: the file, and what is wrong with it, also if one is missing before
 * another; WEFT_IO; WEFT_NOMEM. */
enum weft_status wf_epochs_read(struct wf_env *env, struct wf_saved_folder *folder,
				struct wf_epochs *out) WEFT_MUST_CHECK;
void wf_epochs_fini(struct wf_env *env, struct wf_epochs *epochs);
/* Makes the next record, durably. WEFT_IO: also if another process has made it: then that one goes
 * on with the job, and this one must not. */
enum weft_status wf_epochs_add(struct wf_env *env, struct wf_saved_folder *folder,
			       const struct wf_epoch_record *record,
			       struct wf_epochs *epochs) WEFT_MUST_CHECK;
/* Whether a job goes on from the newest epoch, rather than having ended in it or never begun. */
bool wf_epochs_are_open(const struct wf_epochs *epochs);
/* Whether the state of the newest epoch stands on the snapshot: it is of this epoch, or not newer
 * than the one with which the epoch began, and so on down the records. */
bool wf_epochs_have(const struct wf_epochs *epochs, const struct wf_snapshot_id *id);
