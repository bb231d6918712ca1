/* SPDX-License-Identifier: Apache-2.0 */
/* answer: everything a lane sends. Nothing is queued as bytes: what is due is kept as flags,
 * cursors and a ring of ordinals, and turned into operations when the transport takes them. Thread:
 * the lane's. */
#include "pserver/lane_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void
wf_answer_path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	WF_ASSERT(lane->ready && peer->held == 0);
	peer->slots_due = lane->store.stored_count > 0;
	peer->resume_next = 0;
	peer->init_due = lane->store.stored_count > 0;
	wf_peer_due(peer);
}

/* Place in the ring of answers, `count` behind its first. Both are at most `capacity`; dividing
 * would cost as much as the rest of this. */
static inline uint32_t
ring_place(const struct wf_peer *peer, uint32_t count, uint32_t capacity)
{
	uint32_t at = peer->answer_first + count;
	return at >= capacity ? at - capacity : at;
}

void
wf_answer_push(struct wf_peer *peer, uint32_t ordinal)
{
	if (peer->conn == NULL || ordinal >= peer->had) {
		return; /* HAVE will tell that it lacks this */
	}
	struct wf_push *push = wf_push_of(peer->lane, ordinal, peer->trainer);
	if (push->answer_due) {
		return; /* what goes out will be the newest */
	}
	push->answer_due = true;
	uint32_t capacity = peer->lane->store.stored_count;
	WF_ASSERT(peer->answer_count < capacity);
	peer->answer[ring_place(peer, peer->answer_count, capacity)] = ordinal;
	peer->answer_count++;
	wf_peer_due(peer);
}

/* Take `count` answers out of the ring: they are on their way. */
static void
drop_answers(struct wf_peer *peer, unsigned count)
{
	uint32_t capacity = peer->lane->store.stored_count;
	for (unsigned i = 0; i < count; i++) {
		uint32_t ordinal = peer->answer[peer->answer_first];
		wf_push_of(peer->lane, ordinal, peer->trainer)->answer_due = false;
		peer->answer_first = ring_place(peer, 1, capacity);
		peer->answer_count--;
	}
}

void
wf_answer_forget(struct wf_peer *peer)
{
	drop_answers(peer, peer->answer_count);
	peer->had = 0;
}

static bool
send_msg(struct wf_peer *peer, const struct wf_msg *msg)
{
	const struct wf_op op = {
		.kind = WF_OP_SEND,
		.head = &msg->head,
		.body = msg->body,
		.body_bytes = msg->body_bytes,
	};
	unsigned taken = 0;
	enum weft_status st = wf_transport_post(peer->conn, &op, 1, &taken);
	WF_ASSERT(st != WEFT_INVALID);
	return taken == 1;
}

static bool
flush_abort(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_msg_abort abort = {.status = (uint16_t)lane->cause.status,
				     .step = lane->cause.step};
	memcpy(abort.who, lane->cause.who, sizeof(abort.who));
	memcpy(abort.reason, lane->cause.reason, sizeof(abort.reason));
	wf_msg_abort_encode(&abort, &lane->msg);
	if (!send_msg(peer, &lane->msg)) {
		return false;
	}
	peer->abort_due = false;
	peer->closing = true;
	wf_transport_disconnect(peer->conn, WF_DISCONNECT_DRAIN);
	return true;
}

/* Grant the window. False: it cannot be now, or the connection is on its way down. */
static bool
grant_slots(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_grant grant = {
		.kind = WF_GRANT_SLOTS,
		.region = lane->inbox_region,
		.offset = (uint64_t)peer->trainer * lane->opts.slot_count * lane->slot_bytes,
		.bytes = lane->slot_bytes,
		.slot_count = lane->opts.slot_count,
	};
	enum weft_status st = wf_transport_grant(peer->conn, &grant, &peer->slots_key);
	if (st != WEFT_OK && st != WEFT_CLOSED) {
		wf_lane_offence(lane, peer);
	}
	peer->slots_granted = st == WEFT_OK;
	return peer->slots_granted;
}

static bool
flush_slots(struct wf_lane *lane, struct wf_peer *peer)
{
	if (!peer->slots_granted && !grant_slots(lane, peer)) {
		return false;
	}
	struct wf_msg_grant msg = {
		.kind = WF_GRANT_WIRE_SLOTS,
		.slot_count = lane->opts.slot_count,
		.slot_bytes = lane->slot_bytes,
	};
	memcpy(msg.key, peer->slots_key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &lane->msg);
	peer->slots_due = !send_msg(peer, &lane->msg);
	return !peer->slots_due;
}

/* The next part of RESUME: per slice the last step received from this trainer. */
static bool
flush_resume(struct wf_lane *lane, struct wf_peer *peer)
{
	uint32_t left = lane->store.stored_count - peer->resume_next;
	struct wf_msg_steps *msg = &lane->steps;
	*msg = (struct wf_msg_steps){
		.step = peer->step_next - 1,
		.epoch = 0,
		.initialised = lane->uninitialised == 0,
		.first = peer->resume_next,
		.count = left < WF_STEPS_PER_MSG ? left : WF_STEPS_PER_MSG,
	};
	msg->last = msg->count == left;
	for (uint32_t i = 0; i < msg->count; i++) {
		msg->step_of[i] = wf_push_of(lane, msg->first + i, peer->trainer)->next - 1;
	}
	wf_msg_resume_encode(msg, &lane->msg);
	if (!send_msg(peer, &lane->msg)) {
		return false;
	}
	peer->resume_next = msg->last ? UINT32_MAX : msg->first + msg->count;
	return true;
}

static bool
flush_credit(struct wf_lane *lane, struct wf_peer *peer)
{
	lane->credit.count = peer->credit_count;
	memcpy(lane->credit.buffer, peer->credit, peer->credit_count * sizeof(*peer->credit));
	wf_msg_credit_encode(&lane->credit, &lane->msg);
	if (!send_msg(peer, &lane->msg)) {
		return false;
	}
	peer->credit_count = 0;
	return true;
}

static bool
flush_goodbye(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_msg_goodbye msg = {.ack = true};
	wf_msg_goodbye_encode(&msg, &lane->msg);
	peer->goodbye_due = !send_msg(peer, &lane->msg);
	return !peer->goodbye_due;
}

/* A job that goes on from step k begins with step k + 1: the trainers have to know. */
static bool
flush_init(struct wf_lane *lane, struct wf_peer *peer)
{
	wf_msg_init_encode(&lane->init, &lane->msg);
	peer->init_due = lane->init.step > 0 && !send_msg(peer, &lane->msg);
	return !peer->init_due;
}

static bool
flush_nack(struct wf_lane *lane, struct wf_peer *peer)
{
	wf_msg_nack_encode(&peer->nack, &lane->msg);
	peer->nack_due = !send_msg(peer, &lane->msg);
	return !peer->nack_due;
}

static bool
flush_reduced(struct wf_lane *lane, struct wf_peer *peer)
{
	wf_reduce_encode(lane, &lane->msg);
	peer->reduced_due = !send_msg(peer, &lane->msg);
	return !peer->reduced_due;
}

/* Everything that is a message, in order of urgency. False: the transport takes no more. */
static bool
flush_messages(struct wf_lane *lane, struct wf_peer *peer)
{
	if (peer->slots_due && !flush_slots(lane, peer)) {
		return false;
	}
	while (peer->resume_next != UINT32_MAX) {
		if (!flush_resume(lane, peer)) {
			return false;
		}
	}
	if (peer->init_due && lane->uninitialised == 0 && !flush_init(lane, peer)) {
		return false;
	}
	if (peer->credit_count > 0 && !flush_credit(lane, peer)) {
		return false;
	}
	if (peer->reduced_due && !flush_reduced(lane, peer)) {
		return false;
	}
	if (peer->nack_due && !flush_nack(lane, peer)) {
		return false;
	}
	return !peer->goodbye_due || flush_goodbye(lane, peer);
}

static void
fill_put(const struct wf_lane *lane, uint32_t ordinal, struct wf_op *op)
{
	const struct wf_stored *stored = &lane->store.stored[ordinal];
	*op = (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = (uint64_t)ordinal + 1,
		.region = lane->store_region,
		.src = wf_store_param(&lane->store, stored),
		.bytes = stored->count * sizeof(float),
		.offset = stored->place_offset,
		.tag = wf_tag(ordinal, lane->round[ordinal].next - 1),
	};
}

/* Post `count` PUTs; true if all were taken. */
static bool
post_puts(struct wf_lane *lane, struct wf_peer *peer, const struct wf_op *op, unsigned count,
	  unsigned *taken)
{
	*taken = 0;
	enum weft_status st = wf_transport_post(peer->conn, op, count, taken);
	for (unsigned i = 0; i < *taken; i++) {
		lane->round[op[i].cookie - 1].lent++;
	}
	if (st == WEFT_INVALID) { /* a grant that does not hold what it must */
		wf_lane_offence(lane, peer);
	}
	return st == WEFT_OK;
}

static bool
flush_answers(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_op op[WF_OPS_PER_POST];
	uint32_t capacity = lane->store.stored_count;
	while (peer->answer_count > 0) {
		unsigned count = 0;
		for (; count < WF_OPS_PER_POST && count < peer->answer_count; count++) {
			fill_put(lane, peer->answer[ring_place(peer, count, capacity)], &op[count]);
			op[count].key = peer->values_key;
		}
		unsigned taken;
		bool all = post_puts(lane, peer, op, count, &taken);
		drop_answers(peer, taken);
		if (!all) {
			return false;
		}
	}
	return true;
}

/* A static slice has its initial values, and never others. */
static bool
is_applied(const struct wf_lane *lane, uint32_t ordinal, uint64_t step)
{
	uint64_t next = lane->round[ordinal].next;
	bool fixed = lane->store.stored[ordinal].tensor->is_static;
	return !wf_is_initial(next) && (fixed || next > step);
}

/* As much of one range as has been applied and is taken. False: the transport takes no more. */
static bool
flush_pull(struct wf_lane *lane, struct wf_peer *peer, struct wf_pull_range *range)
{
	while (range->next < range->end && is_applied(lane, range->next, range->step)) {
		struct wf_op op;
		fill_put(lane, range->next, &op);
		op.key = peer->values_key;
		if (range->state) {
			op.key = peer->state_key[range->state_idx];
			op.src = wf_store_state(&lane->store, &lane->store.stored[range->next],
						range->state_idx);
		}
		unsigned taken;
		if (!post_puts(lane, peer, &op, 1, &taken)) {
			return false;
		}
		range->next++;
	}
	return true;
}

static void
flush_pulls(struct wf_lane *lane, struct wf_peer *peer)
{
	for (uint32_t i = 0; i < peer->pull_count; i++) {
		if (!flush_pull(lane, peer, &peer->pull[i])) {
			break;
		}
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < peer->pull_count; i++) {
		if (peer->pull[i].next < peer->pull[i].end) {
			peer->pull[kept++] = peer->pull[i];
		}
	}
	peer->pull_count = kept;
}

bool
wf_answer_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	if (peer->conn == NULL || peer->closing) {
		return false; /* forgotten with the path */
	}
	if (lane->state == WF_LANE_FAILED) {
		return peer->abort_due && !flush_abort(lane, peer);
	}
	if (!lane->ready) {
		return false;
	}
	if (!flush_messages(lane, peer) || (peer->have_values && !flush_answers(lane, peer))) {
		return true;
	}
	if (peer->pull_count > 0) {
		flush_pulls(lane, peer);
	}
	return peer->answer_count > 0 || peer->pull_count > 0;
}

enum weft_status
wf_answer_pull(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_pull *msg)
{
	bool state = msg->section == WF_SECTION_STATE;
	if (!lane->ready || (uint64_t)msg->first + msg->count > lane->store.stored_count) {
		return wf_fail(WEFT_PROTOCOL, "PULL: slices %u and %u more, of %u", msg->first,
			       msg->count, lane->store.stored_count);
	}
	bool granted = state ? msg->state_idx < WF_STATE_MAX && peer->have_state[msg->state_idx]
			     : peer->have_values;
	if (!granted) {
		return wf_fail(WEFT_PROTOCOL, "PULL: nothing was granted to answer into");
	}
	const char *why = NULL;
	if (state && msg->state_idx >= lane->store.state_count) {
		why = "the optimizer has no such state";
	} else if (peer->pull_count == WF_PULLS_MAX) {
		why = "too many pulls are unanswered";
	}
	wf_peer_due(peer);
	if (why != NULL && peer->nack_due) {
		return wf_fail(WEFT_PROTOCOL, "PULL: %s, as was just said", why);
	}
	if (why != NULL) {
		peer->nack = (struct wf_msg_nack){
			.request_id = msg->request_id, .first = msg->first, .status = WEFT_INVALID};
		(void)snprintf(peer->nack.reason, sizeof(peer->nack.reason), "%s", why);
		peer->nack_due = true;
		return WEFT_OK;
	}
	peer->pull[peer->pull_count++] = (struct wf_pull_range){
		.request_id = msg->request_id,
		.step = msg->step,
		.next = msg->first,
		.end = msg->first + msg->count,
		.state = state,
		.state_idx = msg->state_idx,
	};
	return WEFT_OK;
}
