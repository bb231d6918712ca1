/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: what a lane of either service does for snapshots of its pserver (snapshots.h): where it
 * stands, its part on the way to the disk, and what it reports. The service copies. Thread: the
 * lane's. */
#pragma once

#include "pserver/outgoing.h"
#include "pserver/service.h"
#include "pserver/snapshots.h"

/* Loads what a lane begins with, if the job goes on from a snapshot. */
extern const struct wf_lane_source wf_snapshot_lane_source; /* snapshot_load.c */

#define WF_SNAPSHOT_PIECE_BYTES (1u << 20) /* copied between two polls */

struct wf_snapshot_lane {
	struct wf_snapshots *all;
	struct wf_snapshot_seat *seat;
	struct wf_outgoing *outgoing;
	uint64_t border; /* of the last snapshot that the lane took part in, or refused */
	bool is_copying; /* of `border`: not everything has been copied */
	bool is_holding; /* an apply waits for room */
	bool retries;    /* what waits is tried again */
};

/* What a service has for snapshots. */
struct wf_snapshot_content {
	uint64_t longest;                        /* bytes of the longest block */
	uint64_t all_bytes;                      /* of all blocks, as far as that is known */
	const struct wf_snapshot_tables *tables; /* as for wf_snapshots_join */
	const struct wf_slab *slab; /* that keeps it, not freed before close; or NULL */
};

/* WEFT_INVALID: the ring has no room for the longest block; WEFT_NOMEM. */
enum weft_status wf_snapshot_lane_open(struct wf_lane *lane,
				       const struct wf_snapshot_content *content,
				       struct wf_snapshot_lane *out) WEFT_MUST_CHECK;
void wf_snapshot_lane_close(struct wf_snapshot_lane *self); /* accepts zeroed */
/* A step was applied. True: a snapshot begins here; the lane adds its first blocks now, and copies
 * everything else before it changes. */
bool wf_snapshot_lane_applied(struct wf_snapshot_lane *self, struct wf_lane *lane, uint64_t step);
/* The same in jobs whose snapshots are vectors of versions: one begins when it is ordered, wherever
 * the lane is. `step`: the highest that a trainer has begun. */
bool wf_snapshot_lane_ordered(struct wf_snapshot_lane *self, struct wf_lane *lane, uint64_t step);
/* All is copied. */
void wf_snapshot_lane_copied(struct wf_snapshot_lane *self);
/* An apply has no room for its copy, and waits. */
void wf_snapshot_lane_hold(struct wf_snapshot_lane *self, struct wf_lane *lane);
/* Moves the part on, and reports it; then `retry` tries again what waits. */
void wf_snapshot_lane_tick(struct wf_snapshot_lane *self, struct wf_lane *lane, uint64_t now_ns,
			   void (*retry)(struct wf_lane *lane));
