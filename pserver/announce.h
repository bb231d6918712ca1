/* SPDX-License-Identifier: Apache-2.0 */
/* announce: the state of a lane that announces, for announce.c and its test alone. Thread: the
 * lane's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/messages.h"
#include "wire/priority.h"

/* A slice in the lane's step. */
struct wf_inbox_slice {
	uint32_t ready; /* trainers that have announced it; it counts until the slice is held */
	bool is_queued; /* in the ring of complete ones */
	bool is_held;   /* there is room for it, until it is applied */
};

/* Of one trainer; forgotten at DOWN. */
struct wf_inbox_peer {
	struct wf_ordinal_ring allow; /* slices that it may PUT and that were not announced to it
				       * yet */
};

struct wf_inbox {
	uint8_t *said;                   /* [stored_count * peers.count] as `push` */
	struct wf_inbox_slice *slice;    /* [stored_count] */
	struct wf_inbox_peer *peer;      /* [peers.count] */
	uint32_t *allow;                 /* [peers.count * stored_count] of their rings */
	uint32_t held_count;             /* slices that are held */
	struct wf_ordinal_ring complete; /* slices that all have announced */
	struct wf_msg_runs runs;         /* scratch of one encode */
};
