/* SPDX-License-Identifier: Apache-2.0 */
/* outgoing: a part of a snapshot on its way from a lane to the disk. The lane copies blocks into a
 * ring, and the env's helper thread writes them into the part's file, so that the lane never waits
 * for a disk by itself.
 *
 *     state    | the lane may                       | the helper thread
 *     ---------+------------------------------------+--------------------------------------
 *     IDLE     | begin                              | does nothing
 *     OPEN     | add blocks if there is room, end   | writes the blocks that are there
 *     ENDING   | pump                               | writes the rest, syncs, names the file
 *     DURABLE  | read the sum, rest                 | does nothing
 *     FAILED   | read why, rest                     | does nothing; nothing of the part is left
 *
 * The ring is used for another part only after rest, which is refused while the helper thread has
 * something to do (rule 9 of docs/architecture.md, section 4). Thread: the lane's. */
#pragma once

#include "base/env.h"
#include "saved/part.h"
#include "saved/snapshot.h"

enum wf_outgoing_state {
	WF_OUTGOING_IDLE,
	WF_OUTGOING_OPEN,
	WF_OUTGOING_ENDING,
	WF_OUTGOING_DURABLE,
	WF_OUTGOING_FAILED,
};

struct wf_outgoing;

struct wf_outgoing_opts {
	struct wf_env *env;
	struct wf_saved_folder *folder; /* lent until close */
	uint64_t ring_bytes;            /* at least wf_outgoing_ring_bytes of the longest block */
	uint64_t rate;                  /* bytes per second that are written; 0: no limit */
	int numa_node;
	/* Whose memory the helper thread makes present before the ring, because a snapshot may be
	 * loaded into it; not freed before close. NULL, or empty: none. */
	const struct wf_slab *before;
};

/* The least ring for blocks of at most this many bytes of payload. */
uint64_t wf_outgoing_ring_bytes(uint64_t payload_bytes);
/* WEFT_NOMEM. */
enum weft_status wf_outgoing_open(const struct wf_outgoing_opts *opts,
				  struct wf_outgoing **out) WEFT_MUST_CHECK;
/* Waits for the helper thread. A part that is not durable is given up, and nothing is left of it.
 * Accepts NULL. */
void wf_outgoing_close(struct wf_outgoing *outgoing);

enum wf_outgoing_state wf_outgoing_state(const struct wf_outgoing *outgoing);
/* IDLE: a part of this snapshot begins. `leaf`: the name of its file. */
void wf_outgoing_begin(struct wf_outgoing *outgoing, struct wf_snapshot_id id, const char *leaf,
		       const struct wf_part_head *head);
/* OPEN: where the payload of the block is to be written, of block->bytes, or NULL: there is no room
 * yet. The block counts from wf_outgoing_add on, which comes next. */
void *wf_outgoing_claim(struct wf_outgoing *outgoing, const struct wf_part_block *block);
void wf_outgoing_add(struct wf_outgoing *outgoing);
/* OPEN: there are no more blocks. */
void wf_outgoing_end(struct wf_outgoing *outgoing);
/* OPEN or ENDING: the snapshot is given up, and the state becomes FAILED when the helper thread has
 * removed what it wrote. */
void wf_outgoing_give_up(struct wf_outgoing *outgoing);
/* Lets the helper thread write what is there and what the rate allows, or make memory of the ring
 * ready. Returns until when it should be called again: WF_NEVER if nothing is under way. */
uint64_t wf_outgoing_pump(struct wf_outgoing *outgoing, uint64_t now_ns);
/* DURABLE: what was written. */
struct wf_part_sum wf_outgoing_sum(const struct wf_outgoing *outgoing);
/* FAILED: why, lent until rest. */
const struct wf_error *wf_outgoing_failure(const struct wf_outgoing *outgoing);
/* DURABLE or FAILED: IDLE again. */
void wf_outgoing_rest(struct wf_outgoing *outgoing);
