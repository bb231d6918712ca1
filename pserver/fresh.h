/* SPDX-License-Identifier: Apache-2.0 */
/* fresh: buffers into which the pass that applies a push writes the new values a second time, for
 * the answer to that push. The answer leaves from there if nobody has changed the slice meanwhile:
 * then its copy cost no pass of its own. Thread: the lane's. */
#pragma once

#include "exchange/staging.h"

/* A buffer of a trainer that has, or is about to have, the values of a slice. */
struct wf_fresh_copy {
	uint64_t version; /* of the slice, with the trainer's push */
	uint32_t ordinal;
	uint32_t buffer; /* of the staging, claimed; WF_STAGING_NONE: no copy is here */
};

/* Zero: none. A trainer has one place for all ordinals with the same remainder: its answers leave
 * soon after its pushes, so two of those are hardly ever due at a time. */
struct wf_fresh {
	struct wf_staging *staging; /* not owned */
	struct wf_fresh_copy *copy; /* [trainer_count * each], as the staging's buffers */
};

/* `staging` is open, and lives until close. WEFT_NOMEM. */
enum weft_status wf_fresh_open(struct wf_fresh *fresh, struct wf_env *env,
			       struct wf_staging *staging) WEFT_MUST_CHECK;
/* Precedes the close of the staging. Accepts what was never opened. */
void wf_fresh_close(struct wf_fresh *fresh, struct wf_env *env);

/* The bytes that open allocates for one trainer. */
static inline uint64_t
wf_fresh_table_bytes(uint32_t each)
{
	return each * sizeof(struct wf_fresh_copy);
}

/* Where the trainer's push, which makes the slice's values those of `version`, is to leave them a
 * second time: written completely before the next call. NULL: nowhere. One buffer of the trainer at
 * least stays free or on its way, so that no other answer has to wait for this one. */
void *wf_fresh_begin(struct wf_fresh *fresh, uint32_t trainer, uint32_t ordinal, uint64_t version);

/* The buffer that was begun for the slice, which is the caller's from now on; WF_STAGING_NONE:
 * there is none. `*is_current`: it has the values of `version`, and need not be filled. */
uint32_t wf_fresh_pop(struct wf_fresh *fresh, uint32_t trainer, uint32_t ordinal, uint64_t version,
		      bool *is_current);

/* Releases all buffers that were begun for the trainer: none of its answers is due any more. */
void wf_fresh_forget(struct wf_fresh *fresh, uint32_t trainer);
