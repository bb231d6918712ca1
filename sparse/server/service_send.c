/* SPDX-License-Identifier: Apache-2.0 */
/* service_send: everything the sparse service sends. Nothing is queued as bytes: what is due is
 * kept as flags and turned into operations when the transport takes them. CREDIT goes before what
 * frees buffers by itself (APPLIED, answers), so that it never names one that is in use again.
 * Thread: the lane's. */
#include <string.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"

void
wf_sparse_path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	WF_ASSERT(lane->ready && peer->slots.held == 0);
	own->slots_due = true;
	own->resume_due = true;
	wf_peer_due(peer);
}

static bool
flush_slots(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	if (!wf_window_grant(lane, peer)) {
		return false;
	}
	struct wf_msg_grant msg = {
		.kind = WF_GRANT_WIRE_SLOTS,
		.slot_count = sparse->slot_count,
		.bytes = sparse->slot_bytes,
		.held_bytes = sparse->held_bytes,
	};
	memcpy(msg.key, peer->slots.key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &lane->msg);
	own->slots_due = !wf_control_send(peer, &lane->msg);
	return !own->slots_due;
}

static uint64_t
last_or_none(uint64_t next)
{
	return next > 1 ? next - 1 : WF_STEP_NONE;
}

static bool
flush_resume(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	bool async = wf_sparse_is_async(lane->own);
	const struct wf_msg_steps msg = {
		.step = last_or_none(peer->member.step_next),
		.last = true,
		.initialised = true,
		.count = 1,
		.step_of = {last_or_none(async ? peer->member.step_next : lane->order.sum.step)},
	};
	wf_msg_resume_encode(&msg, &lane->msg);
	own->resume_due = !wf_control_send(peer, &lane->msg);
	return !own->resume_due;
}

static bool
flush_credit(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	wf_slots_fill_credit(&peer->slots, &sparse->credit);
	wf_msg_credit_encode(&sparse->credit, &lane->msg);
	if (!wf_control_send(peer, &lane->msg)) {
		return false;
	}
	wf_slots_credit_sent(&peer->slots);
	return true;
}

static bool
flush_nacks(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	while (own->nack_count > 0) {
		wf_sparse_nack_encode(&own->nack[0], &lane->msg);
		if (!wf_control_send(peer, &lane->msg)) {
			return false;
		}
		own->nack_count--;
		memmove(&own->nack[0], &own->nack[1], own->nack_count * sizeof(own->nack[0]));
	}
	return true;
}

static bool
flush_applied(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	wf_sparse_applied_encode(&own->applied, &lane->msg);
	own->applied_due = !wf_control_send(peer, &lane->msg);
	return !own->applied_due;
}

static bool
flush_restored(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	wf_sparse_restored_encode(&own->restored, &lane->msg);
	own->restored_due = !wf_control_send(peer, &lane->msg);
	return !own->restored_due;
}

/* False: the transport takes no more. */
static bool
flush_messages(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	if (own->slots_due && !flush_slots(lane, peer)) {
		return false;
	}
	if (own->resume_due && !flush_resume(lane, peer)) {
		return false;
	}
	if (peer->slots.credit_count > 0 && !flush_credit(lane, peer)) {
		return false;
	}
	if (own->nack_count > 0 && !flush_nacks(lane, peer)) {
		return false;
	}
	if (own->restored_due && !flush_restored(lane, peer)) {
		return false;
	}
	return !own->applied_due || wf_async_waits(lane, peer) || flush_applied(lane, peer);
}

enum wf_flush
wf_sparse_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	if (!flush_messages(lane, peer)) {
		return WF_FLUSH_FULL;
	}
	enum wf_flush flush = wf_pull_flush(lane, peer);
	const struct wf_sparse_peer *own = peer->own;
	return flush == WF_FLUSH_DONE && own->applied_due ? WF_FLUSH_LEFT : flush;
}
