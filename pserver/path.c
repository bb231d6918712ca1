/* SPDX-License-Identifier: Apache-2.0 */
/* path: what a lane and a trainer exchange on every path, whatever the service. The lane grants a
 * window of slots and reports what it has received (RESUME); the trainer grants the places of
 * answers and reports which answers it has (HAVE); CREDIT returns slots. What was received stays
 * when the path ends. Thread: the lane's. */
#include "pserver/service.h"

#include <string.h>

enum weft_status
wf_path_open(struct wf_lane *lane, uint32_t slot_count, uint64_t slot_bytes)
{
	struct wf_windows *windows = &lane->windows;
	uint64_t bytes = (uint64_t)lane->peers.count * slot_count * slot_bytes;
	windows->slot_bytes = slot_bytes;
	windows->slot_count = slot_count;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		enum weft_status st =
			wf_slots_open(lane->env, slot_count, &lane->peers.all[i].slots);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return wf_buffers_open(&windows->inbox, lane->env, lane->turn.transport, bytes,
			       lane->opts.numa_node);
}

void
wf_path_close(struct wf_lane *lane)
{
	struct wf_windows *windows = &lane->windows;
	bool taken = windows->slot_bytes > 0; /* otherwise the peers may be untouched memory */
	for (uint32_t i = 0; taken && i < lane->peers.count; i++) {
		wf_slots_close(lane->env, &lane->peers.all[i].slots);
	}
	wf_buffers_close(&windows->inbox, lane->env, lane->turn.transport);
	*windows = (struct wf_windows){0};
}

static uint64_t
park(void *arg, uint32_t word)
{
	struct wf_peer *peer = arg;
	return peer->lane->service->park(peer->lane, peer, word);
}

void
wf_path_park(struct wf_lane *lane, struct wf_peer *peer)
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

/* Where pushes stay in the trainer's memory, slots cost nothing, and a wide window spares the copy
 * of a full one. Elsewhere a few that are used again and again stay in the processor's cache. */
static void
size_window(const struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_path_info path;
	wf_transport_path(peer->conn, &path);
	wf_slots_resize(&peer->slots,
			path.in_place ? lane->windows.slot_count : lane->opts.slot_count);
}

void
wf_path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	WF_ASSERT(lane->job.is_ready && peer->slots.held == 0);
	if (peer->slots.capacity > 0) {
		size_window(lane, peer);
	}
	peer->opening.grant_due = peer->slots.count > 0;
	wf_cursor_begin(&peer->opening.resume, lane->job.unit_count);
	if (lane->service->path_begins != NULL) {
		lane->service->path_begins(lane, peer);
	}
	wf_peer_due(peer);
}

void
wf_path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	peer->opening.grant_due = false;
	wf_cursor_end(&peer->opening.resume);
	wf_cursor_end(&peer->opening.have);
	peer->places.known = 0;
	if (peer->slots.held > 0) {
		wf_path_park(lane, peer);
	}
	wf_slots_path_ends(&peer->slots);
	lane->service->path_ends(lane, peer);
}

enum weft_status
wf_path_recv_grant(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_grant *msg)
{
	return wf_answer_places_recv(&peer->places, msg, lane->job.place_count);
}

enum weft_status
wf_path_recv_have(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_steps *msg)
{
	enum weft_status st = wf_cursor_recv(&peer->opening.have, "HAVE", msg);
	for (uint32_t i = 0; i < msg->count && st == WEFT_OK; i++) {
		st = lane->service->has(lane, peer, msg->first + i, msg->step_of[i] + 1, msg->step);
	}
	return st;
}

static bool
flush_grant(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_windows *windows = &lane->windows;
	uint64_t each = windows->slot_count * windows->slot_bytes;
	enum weft_status st = wf_slots_grant(&peer->slots, peer->conn, windows->inbox.region,
					     peer->trainer * each, windows->slot_bytes);
	if (st != WEFT_OK && st != WEFT_CLOSED) {
		wf_lane_offence(lane, peer);
	}
	if (st != WEFT_OK) {
		return false; /* the connection is on its way down */
	}
	struct wf_msg_grant msg = {
		.kind = WF_GRANT_WIRE_SLOTS,
		.announced = windows->announced,
		.slot_count = peer->slots.count,
		.bytes = windows->slot_bytes,
		.held_bytes = windows->held_bytes,
	};
	memcpy(msg.key, peer->slots.key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &lane->msg);
	peer->opening.grant_due = !wf_control_send(peer, &lane->msg);
	return !peer->opening.grant_due;
}

/* The next part of RESUME: of each unit the last step received from this trainer. HAVE answers the
 * last one. */
static bool
flush_resume(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_msg_steps *msg = &lane->windows.steps;
	wf_cursor_fill(&peer->opening.resume, msg);
	msg->step = peer->member.step_next - 1;
	msg->initialised = lane->job.owed == NULL;
	for (uint32_t i = 0; i < msg->count; i++) {
		msg->step_of[i] = lane->service->next(lane, peer, msg->first + i) - 1;
	}
	wf_msg_resume_encode(msg, &lane->msg);
	if (!wf_control_send(peer, &lane->msg)) {
		return false;
	}
	wf_cursor_advance(&peer->opening.resume, msg);
	if (!wf_cursor_is_open(&peer->opening.resume)) {
		wf_cursor_begin(&peer->opening.have, lane->job.unit_count);
	}
	return true;
}

static bool
flush_credit(struct wf_lane *lane, struct wf_peer *peer)
{
	wf_slots_fill_credit(&peer->slots, &lane->windows.credit);
	wf_msg_credit_encode(&lane->windows.credit, &lane->msg);
	if (!wf_control_send(peer, &lane->msg)) {
		return false;
	}
	wf_slots_credit_sent(&peer->slots);
	return true;
}

bool
wf_path_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	if (peer->opening.grant_due && !flush_grant(lane, peer)) {
		return false;
	}
	if (wf_cursor_is_open(&peer->opening.resume) && lane->service->open_path != NULL &&
	    !lane->service->open_path(lane, peer)) {
		return false;
	}
	while (wf_cursor_is_open(&peer->opening.resume)) {
		if (!flush_resume(lane, peer)) {
			return false;
		}
	}
	return peer->slots.credit_count == 0 || flush_credit(lane, peer);
}

void
wf_path_gather(struct wf_lane *lane)
{
	const struct wf_windows *windows = &lane->windows;
	uint64_t held = 0, granted = 0;
	for (uint32_t i = 0; lane->job.is_ready && i < lane->peers.count; i++) {
		held += lane->peers.all[i].slots.held;
		granted += lane->peers.all[i].slots.count;
	}
	wf_stats_set(&lane->stats, WF_LANE_SLOT_USED_COUNT, held);
	wf_stats_set(&lane->stats, WF_LANE_SLOT_GRANTED_COUNT, granted);
	wf_stats_set(&lane->stats, WF_LANE_SLOT_ALLOCATED_BYTES, windows->inbox.slab.bytes);
}
