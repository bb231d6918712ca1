/* SPDX-License-Identifier: Apache-2.0 */
/* window: the windows of a lane's trainers (exchange/slots.h): their memory, the grant, parking.
 * Thread: the lane's. */
#include "pserver/service.h"

enum weft_status
wf_window_open(struct wf_lane *lane, uint64_t slot_bytes)
{
	struct wf_windows *windows = &lane->windows;
	uint64_t bytes = (uint64_t)lane->peer_count * lane->opts.slot_count * slot_bytes;
	windows->slot_bytes = slot_bytes;
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		enum weft_status st =
			wf_slots_open(lane->env, lane->opts.slot_count, &lane->peer[i].slots);
		if (st != WEFT_OK) {
			return st;
		}
	}
	enum weft_status st =
		lane->env->ops->slab_open(lane->env, bytes, lane->opts.numa_node, &windows->inbox);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_region inbox = {windows->inbox.base, windows->inbox.bytes,
					windows->inbox.memfd};
	st = wf_transport_region_add(lane->turn.transport, &inbox, &windows->region);
	windows->added = st == WEFT_OK;
	return st;
}

void
wf_window_close(struct wf_lane *lane)
{
	struct wf_windows *windows = &lane->windows;
	if (windows->slot_bytes == 0) {
		return; /* nobody has touched the peers */
	}
	if (lane->turn.transport != NULL && windows->added) {
		wf_transport_region_remove(lane->turn.transport, windows->region);
	}
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		wf_slots_close(lane->env, &lane->peer[i].slots);
	}
	if (windows->inbox.base != NULL) {
		lane->env->ops->slab_close(lane->env, &windows->inbox);
	}
	*windows = (struct wf_windows){0};
}

bool
wf_window_grant(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_windows *windows = &lane->windows;
	uint64_t each = lane->opts.slot_count * windows->slot_bytes;
	enum weft_status st = wf_slots_grant(&peer->slots, peer->conn, windows->region,
					     peer->trainer * each, windows->slot_bytes);
	if (st != WEFT_OK && st != WEFT_CLOSED) {
		wf_lane_offence(lane, peer);
	}
	return st == WEFT_OK;
}

static uint64_t
park(void *arg, uint32_t word)
{
	struct wf_peer *peer = arg;
	return peer->lane->service->park(peer->lane, peer, word);
}

void
wf_window_park(struct wf_lane *lane, struct wf_peer *peer)
{
	uint64_t entered = wf_turn_enter(&lane->turn);
	struct wf_slots_parked parked = wf_slots_park(&peer->slots, peer->conn, park, peer);
	(void)wf_turn_leave(&lane->turn, WF_LANE_PARK_TIME_NS, entered);
	wf_stats_add(&lane->stats, WF_LANE_SLICE_PARKED_COUNT, parked.slots);
	wf_stats_add(&lane->stats, WF_LANE_SLICE_PARKED_BYTES, parked.bytes);
	if (peer->conn != NULL) {
		wf_peer_due(peer); /* CREDIT */
	}
}

void
wf_window_gather(struct wf_lane *lane)
{
	const struct wf_windows *windows = &lane->windows;
	uint64_t held = 0;
	for (uint32_t i = 0; lane->ready && i < lane->peer_count; i++) {
		held += lane->peer[i].slots.held;
	}
	bool open = lane->ready && windows->slot_bytes > 0;
	uint64_t granted = open ? (uint64_t)lane->peer_count * lane->opts.slot_count : 0;
	wf_stats_set(&lane->stats, WF_LANE_SLOT_USED_COUNT, held);
	wf_stats_set(&lane->stats, WF_LANE_SLOT_GRANTED_COUNT, granted);
	wf_stats_set(&lane->stats, WF_LANE_SLOT_ALLOCATED_BYTES, granted * windows->slot_bytes);
}
