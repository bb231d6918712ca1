/* SPDX-License-Identifier: Apache-2.0 */
/* control: GOODBYE, ABORT and REDUCE, sent and received (BEAT: beats.c), and when the service may
 * send. Nothing is queued as bytes: what is due is kept as flags. Thread: the lane's. */
#include "pserver/members.h"
#include "pserver/service.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

static enum weft_status
handle_abort(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	struct wf_msg_abort msg;
	enum weft_status st = wf_msg_abort_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK || wf_members_lose_aborted(lane, peer, (enum weft_status)msg.status,
						     msg.who, msg.reason)) {
		return st;
	}
	struct wf_lane_cause cause = {.status = (enum weft_status)msg.status, .step = msg.step};
	memcpy(cause.who, msg.who, sizeof(cause.who));
	memcpy(cause.reason, msg.reason, sizeof(cause.reason));
	wf_lane_abort(lane, &cause);
	return WEFT_OK;
}

static void
finish(struct wf_lane *lane)
{
	wf_end_finish(lane);
	if (lane->service->ended != NULL) {
		lane->service->ended(lane);
	}
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		if (lane->peers.all[i].conn != NULL) {
			wf_peer_due(&lane->peers.all[i]);
		}
	}
}

void
wf_control_finish_if_left(struct wf_lane *lane)
{
	if (lane->peers.gone_count == lane->peers.count && lane->state == WF_LANE_RUNNING) {
		finish(lane);
	}
}

static enum weft_status
handle_goodbye(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	struct wf_msg_goodbye msg;
	enum weft_status st = wf_msg_goodbye_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (msg.ack && (peer->state != WF_PEER_GONE || peer->farewell.answer_due)) {
		return wf_fail(WEFT_PROTOCOL, "GOODBYE: it acknowledges one that was never sent");
	}
	if (msg.ack) {
		peer->farewell.is_over = true;
		return WEFT_OK;
	}
	if (!lane->job.is_ready) {
		return wf_fail(WEFT_PROTOCOL, "GOODBYE: before the job has begun");
	}
	if (msg.leaves && peer->state != WF_PEER_GONE) {
		return wf_members_on_leave(lane, peer);
	}
	peer->farewell.answer_due = true;
	wf_peer_due(peer);
	if (peer->state == WF_PEER_GONE) {
		return WEFT_OK; /* repeated after a reconnect */
	}
	peer->state = WF_PEER_GONE;
	peer->member.left = true;
	lane->peers.gone_count++;
	bool owes = lane->job.owed != NULL && peer->trainer == 0;
	if (owes || wf_order_others_need(&lane->order, &peer->member) ||
	    (wf_reduce_since(lane) != 0 && wf_reduce_lacks(lane, peer))) {
		wf_lane_fail(
			lane, WEFT_LOST, lane->order.sum.step,
			"trainer %u left in good order while others wait for it in step %" PRIu64,
			peer->trainer, lane->order.sum.step);
	} else {
		wf_control_finish_if_left(lane);
	}
	return WEFT_OK;
}

enum weft_status
wf_control_on_message(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	union {
		struct wf_msg_reduce reduce;
		struct wf_msg_grant grant;
		struct wf_msg_steps have;
	} msg;
	enum weft_status st;
	switch (head->type) {
	case WF_MSG_GOODBYE:
		return handle_goodbye(lane, peer, event);
	case WF_MSG_ABORT:
		return handle_abort(lane, peer, event);
	case WF_MSG_BEAT:
		return wf_peer_on_beat(lane, peer, event);
	case WF_MSG_REDUCE:
		st = wf_msg_reduce_decode(head, event->msg.body, &msg.reduce);
		return st != WEFT_OK ? st : wf_reduce_on_message(lane, peer, &msg.reduce);
	case WF_MSG_GRANT:
		st = wf_msg_grant_decode(head, event->msg.body, &msg.grant);
		return st != WEFT_OK ? st : wf_path_recv_grant(lane, peer, &msg.grant);
	case WF_MSG_HAVE:
		st = wf_msg_have_decode(head, event->msg.body, &msg.have);
		return st != WEFT_OK ? st : wf_path_recv_have(lane, peer, &msg.have);
	default:
		return wf_fail(WEFT_PROTOCOL,
			       "control message of type %u, which a lane does not take",
			       head->type);
	}
}

static bool
flush_abort(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_msg_abort abort = {.status = (uint16_t)lane->end.cause.status,
				     .step = lane->end.cause.step};
	memcpy(abort.who, lane->end.cause.who, sizeof(abort.who));
	memcpy(abort.reason, lane->end.cause.reason, sizeof(abort.reason));
	wf_msg_abort_encode(&abort, &lane->msg);
	if (!wf_control_send(peer, &lane->msg)) {
		return false;
	}
	peer->abort_due = false;
	peer->closing = true;
	wf_transport_disconnect(peer->conn, WF_DISCONNECT_DRAIN);
	return true;
}

static bool
may_leave(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return lane->state == WF_LANE_FINISHED || !wf_lane_ends_together(lane) ||
	       peer->leaving.is_dropped;
}

static bool
flush_goodbye(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_msg_goodbye msg = {.ack = true};
	wf_msg_goodbye_encode(&msg, &lane->msg);
	peer->farewell.answer_due = !wf_control_send(peer, &lane->msg);
	return !peer->farewell.answer_due;
}

void
wf_control_path_begins(struct wf_peer *peer)
{
	peer->farewell.is_over = false;
}

void
wf_control_path_ends(struct wf_peer *peer)
{
	peer->farewell.answer_due = false;
	peer->abort_due = false;
}

bool
wf_control_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	if (peer->conn == NULL || peer->closing) {
		return false; /* forgotten with the path */
	}
	if (lane->state == WF_LANE_FAILED) {
		return peer->abort_due && !flush_abort(lane, peer);
	}
	if (!lane->job.is_here) {
		return false;
	}
	if (wf_beat_speaks(&peer->beat) && !wf_peer_beat_flush(lane, peer)) {
		return true;
	}
	if (!lane->job.is_ready) {
		return false;
	}
	if (wf_path_is_due(peer) && !wf_path_flush(lane, peer)) {
		return true;
	}
	enum wf_flush own = lane->service->flush(lane, peer);
	if (own == WF_FLUSH_FULL) {
		return true;
	}
	if (peer->reduce.answer_due && !wf_reduce_flush(lane, peer)) {
		return true;
	}
	if (peer->absent_due && !wf_absent_flush(lane, peer)) {
		return true;
	}
	if (peer->farewell.answer_due && may_leave(lane, peer) && !flush_goodbye(lane, peer)) {
		return true;
	}
	return own == WF_FLUSH_LEFT;
}
