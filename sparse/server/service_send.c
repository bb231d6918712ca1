/* SPDX-License-Identifier: Apache-2.0 */
/* service_send: everything that the sparse service sends. No bytes are queued: flags record what is
 * due, and it is encoded when the transport accepts it. Thread: the lane's. */
#include "sparse/server/service_internal.h"

static bool
flush_applied(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	wf_sparse_applied_encode(&own->applied, &lane->msg);
	own->applied_due = !wf_control_send(peer, &lane->msg);
	if (!own->applied_due) {
		wf_sparse_note(lane, WF_TRACE_ANSWER_POSTED, peer->trainer, own->applied.step, 0);
	}
	return !own->applied_due;
}

/* Whether the trainer is too far ahead of another one to get its APPLIED. */
static bool
is_held(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_order_terms *terms = &wf_sparse_of(lane)->async.terms;
	if (terms->staleness == WF_ORDER_NEVER) {
		return false;
	}
	uint64_t lead = wf_order_lead(&lane->order, &peer->member);
	bool held = !wf_order_may_answer(terms, lead);
	wf_order_hold(&peer->member, lane->env, held);
	return held;
}

static bool
flush_restored(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	wf_sparse_restored_encode(&own->save.restored, &lane->msg);
	own->save.restored_due = !wf_control_send(peer, &lane->msg);
	return !own->save.restored_due;
}

/* False: the transport accepts no more. */
static bool
flush_messages(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	if (own->nack_count > 0 && !wf_nack_flush(lane, peer)) {
		return false;
	}
	if (own->save.restored_due && !flush_restored(lane, peer)) {
		return false;
	}
	return !own->applied_due || is_held(lane, peer) || flush_applied(lane, peer);
}

/* Sends answers, and applies the step if it waited for the last of them to be gathered. */
static enum wf_flush
flush_pulls(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_sparse *sparse = lane->own;
	bool held_up = sparse->due_pulls > 0;
	enum wf_flush flush = wf_pull_flush(lane, peer);
	if (held_up && sparse->due_pulls == 0) {
		wf_push_try_apply(lane);
	}
	return flush;
}

enum wf_flush
wf_sparse_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	if (!flush_messages(lane, peer)) {
		return WF_FLUSH_FULL;
	}
	enum wf_flush flush = flush_pulls(lane, peer);
	wf_pull_look_for_buffers(lane);
	const struct wf_sparse_peer *own = peer->own;
	return flush == WF_FLUSH_DONE && own->applied_due ? WF_FLUSH_LEFT : flush;
}
