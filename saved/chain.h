/* SPDX-License-Identifier: Apache-2.0 */
/* chain: the snapshots on which a delta builds, down to a complete one, each of them read from end
 * to end. A base is older than what builds on it, so a chain ends; it has WF_SNAPSHOT_CHAIN_MAX at
 * the most. Private to this folder. Thread: the caller's. Blocks on the disk. */
#pragma once

#include "saved/blocks.h"

struct wf_chain_link;

/* All zeroes: the snapshot is complete. */
struct wf_chain {
	struct wf_chain_link *link; /* [count] of [room], the newest first */
	uint32_t count, room;
};

/**
 * Opens those on which `walk` builds, and lets `blocks`, which have been read of it, have them as
 * their base.
 * @return WEFT_OK; WEFT_DATA: file, block and reason, or the snapshot that is missing, damaged or
 *         of other tables; WEFT_IO; WEFT_NOMEM. wf_chain_close ends it in each case.
 */
enum weft_status wf_chain_open(const struct wf_block_walk *walk, struct wf_blocks *blocks,
			       struct wf_chain *out) WEFT_MUST_CHECK;
void wf_chain_close(struct wf_env *env, struct wf_chain *chain);
