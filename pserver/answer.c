/* SPDX-License-Identifier: Apache-2.0 */
/* answer: everything that the dense service sends. Nothing is queued as bytes: what is due is kept
 * as flags, cursors and a ring of ordinals, and becomes operations when the transport accepts them.
 * Thread: the lane's. */
#include "pserver/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void
wf_answer_path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	own->init_due = dense->store.stored_count > 0 || dense->is_loaded || own->start.joins;
	wf_async_path_begins(lane, peer);
	wf_features_path_begins(lane, peer);
}

/* Take `count` answers out of the ring: they are on their way. */
static void
drop_answers(struct wf_peer *peer, unsigned count)
{
	struct wf_dense_peer *own = peer->own;
	for (unsigned i = 0; i < count; i++) {
		uint32_t ordinal = wf_ordinal_ring_pop(&own->answers);
		wf_push_of(peer->lane, ordinal, peer->trainer)->answer_due = false;
	}
}

void
wf_answer_forget(struct wf_peer *peer)
{
	struct wf_dense_peer *own = peer->own;
	drop_answers(peer, own->answers.count);
	wf_async_forget(peer->lane, peer);
	peer->member.held_since_ns = 0;
}

/* A job that continues from step k begins with step k + 1, which the trainers have to know. */
static bool
flush_init(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	struct wf_msg_init init = dense->init;
	init.step = own->start.step != 0 ? own->start.step : init.step;
	init.samples = own->start.joins ? own->start.samples : init.samples;
	wf_msg_init_encode(&init, &lane->msg);
	own->init_due = init.step > 0 && !wf_control_send(peer, &lane->msg);
	return !own->init_due;
}

bool
wf_answer_open_path(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_dense_peer *own = peer->own;
	if (!dense->is_loaded && !own->start.joins) {
		return true;
	}
	return wf_features_open_path(lane, peer) && (!own->init_due || flush_init(lane, peer));
}

static bool
flush_nack(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense_peer *own = peer->own;
	wf_msg_nack_encode(&own->pulls.nack, &lane->msg);
	own->pulls.nack_due = !wf_control_send(peer, &lane->msg);
	return !own->pulls.nack_due;
}

/* Sends everything that is a message, in order of urgency. False: the transport accepts no more. */
static bool
flush_messages(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	if (own->init_due && dense->uninitialised == 0 && !flush_init(lane, peer)) {
		return false;
	}
	if (own->features_due != 0 && !wf_features_flush(lane, peer)) {
		return false;
	}
	return !own->pulls.nack_due || flush_nack(lane, peer);
}

/* Inline, as part of the cost of a small step. */
__attribute__((always_inline)) static inline void
fill_put(const struct wf_lane *lane, uint32_t ordinal, bool *copied, struct wf_op *op)
{
	struct wf_dense *dense = lane->own;
	const struct wf_stored *stored = &dense->store.stored[ordinal];
	op->kind = WF_OP_PUT; /* fields of SENDs are not read; the key follows */
	op->cookie = (uint64_t)ordinal + 1;
	op->copied = copied;
	*copied = false;
	op->region = dense->store_region;
	op->src = wf_store_values(&dense->store, stored);
	op->bytes = wf_slice_is_piece(dense, ordinal)
			    ? wf_pieces_answer_bytes(dense, ordinal)
			    : wf_store_on_wire(&dense->store, stored->count * sizeof(float));
	op->offset = wf_store_on_wire(&dense->store, stored->place_offset);
	op->tag = wf_tag(ordinal, dense->round[ordinal].next - 1);
}

/* A pull is answered like a push. Cold: nobody asks for it. */
__attribute__((cold, noinline)) static void
mark_posted(struct wf_lane *lane, const struct wf_peer *peer, const struct wf_op *op,
	    unsigned taken)
{
	for (unsigned i = 0; i < taken; i++) {
		wf_features_mark(lane, peer, WF_TRACE_ANSWER_POSTED, wf_answer_ordinal(op[i].tag));
	}
}

/* Records which of the operations the transport accepted. Copies of the others are released, and so
 * are those that the transport has copied once more: no DONE will release them. */
static inline void
count_posted(struct wf_lane *lane, struct wf_peer *peer, const struct wf_op *op, unsigned count,
	     unsigned taken)
{
	struct wf_dense *dense = lane->own;
	if (wf_dense_has_hook(dense, WF_AT_MARK)) {
		mark_posted(lane, peer, op, taken);
	}
	for (unsigned i = count; i-- > 0;) {
		if ((op[i].cookie & WF_COPY_COOKIE) != 0) {
			wf_async_posted(lane, peer, &op[i], i < taken);
		} else if (i < taken && !*op[i].copied) {
			dense->round[op[i].cookie - 1].lent++;
		}
	}
}

/* Posts `count` PUTs, out of the store and out of copies; true if all were accepted. */
__attribute__((always_inline)) static inline bool
post_puts(struct wf_lane *lane, struct wf_peer *peer, const struct wf_op *op, unsigned count,
	  unsigned *taken)
{
	*taken = 0;
	enum weft_status st = wf_transport_post(peer->conn, op, count, taken);
	count_posted(lane, peer, op, count, *taken);
	if (st == WEFT_INVALID) { /* the grant has not the required size */
		wf_lane_offence(lane, peer);
	}
	return st == WEFT_OK;
}

/* The first of the `due` answers that can leave now. 0: none can; a DONE will change that. */
static unsigned
fill_answers(struct wf_lane *lane, struct wf_peer *peer, struct wf_op op[WF_OPS_PER_POST],
	     bool copied[WF_OPS_PER_POST], uint32_t due)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	unsigned count = 0;
	for (; count < WF_OPS_PER_POST && count < due; count++) {
		uint32_t ordinal = *wf_ordinal_ring_at(&own->answers, count);
		fill_put(lane, ordinal, &copied[count], &op[count]);
		op[count].key = peer->places.key[WF_PLACE_VALUES];
		if (!wf_slice_is_async(dense, ordinal)) {
			continue;
		}
		if (!wf_async_answer(lane, peer, ordinal, &op[count])) {
			break;
		}
		op[count].tag |= wf_async_verdict(lane, peer, ordinal);
	}
	return count;
}

/* With that lead the answer waits for others. */
static bool
is_held(const struct wf_dense *dense, uint32_t ordinal, uint64_t lead)
{
	const struct wf_async_slice *slice = &dense->async.slice[ordinal];
	return slice->is_async && !wf_order_may_answer(&slice->terms, lead);
}

/* Moves answers that wait for other trainers behind the others; both keep their order. Some of the
 * others may have waited behind those of lower priority. Returns the number that need not wait. */
static uint32_t
sort_answers(struct wf_lane *lane, struct wf_peer *peer, uint64_t lead)
{
	const struct wf_dense *dense = lane->own;
	struct wf_ordinal_ring *ring = &((struct wf_dense_peer *)peer->own)->answers;
	uint32_t free_count = 0;
	for (uint32_t i = 0; i < ring->count; i++) {
		uint32_t ordinal = *wf_ordinal_ring_at(ring, i);
		if (is_held(dense, ordinal, lead)) {
			continue;
		}
		for (uint32_t to = i; to > free_count; to--) {
			*wf_ordinal_ring_at(ring, to) = *wf_ordinal_ring_at(ring, to - 1);
		}
		*wf_ordinal_ring_at(ring, free_count++) = ordinal;
		if (ring->priority != NULL) {
			wf_priority_sift(ring, free_count);
		}
	}
	return free_count;
}

/* How many answers go now: none of a slice that waits for others, and those come last. */
static uint32_t
due_answers(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	if (dense->async.count == 0 || own->answers.count == 0) {
		return own->answers.count;
	}
	uint64_t lead = wf_order_lead(&lane->order, &peer->member);
	bool in_order = dense->priority == NULL || peer->member.held_since_ns == 0;
	bool all_wait = lane->order.own_steps && lead > dense->async.staleness_max;
	uint32_t due = all_wait ? 0 : own->answers.count;
	if (!all_wait && (lead > lane->order.staleness || !in_order)) {
		due = sort_answers(lane, peer, lead);
	}
	wf_order_hold(&peer->member, lane->env, due < own->answers.count);
	return due;
}

/* False: the transport accepts no more. */
static inline bool
flush_answers(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_op op[WF_OPS_PER_POST];
	bool copied[WF_OPS_PER_POST];
	for (uint32_t left = due_answers(lane, peer); left > 0;) {
		unsigned count = fill_answers(lane, peer, op, copied, left);
		if (count == 0) {
			break;
		}
		unsigned taken;
		bool all = post_puts(lane, peer, op, count, &taken);
		drop_answers(peer, taken);
		left -= taken;
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
	struct wf_dense *dense = lane->own;
	uint64_t next = dense->round[ordinal].next;
	if (wf_slice_is_async(dense, ordinal)) {
		return !wf_is_initial(next); /* steps are each trainer's own */
	}
	bool fixed = dense->store.stored[ordinal].tensor->is_static;
	return !wf_is_initial(next) && (fixed || next > step);
}

/* State, or the parameters after it: f32 on every wire. */
static void
fill_state(const struct wf_store *store, const struct wf_stored *stored, unsigned idx,
	   struct wf_op *op)
{
	op->src = idx == store->state_count ? wf_store_param(store, stored)
					    : wf_store_state(store, stored, idx);
	op->bytes = stored->count * sizeof(float);
	op->offset = stored->place_offset;
}

/* Sends as much of one range as has been applied and as the transport accepts. False: it accepts no
 * more. */
static bool
flush_pull(struct wf_lane *lane, struct wf_peer *peer, struct wf_pull_range *range)
{
	struct wf_dense *dense = lane->own;
	while (range->next < range->end && is_applied(lane, range->next, range->step)) {
		struct wf_op op;
		bool is_copied;
		fill_put(lane, range->next, &is_copied, &op);
		op.key = peer->places.key[WF_PLACE_VALUES];
		if (range->state) {
			op.key = peer->places.key[WF_PLACE_STATE + range->state_idx];
			fill_state(&dense->store, &dense->store.stored[range->next],
				   range->state_idx, &op);
		}
		unsigned taken;
		bool copied = wf_slice_is_async(dense, range->next);
		if (copied && !wf_async_copy(lane, peer, range->next, &op)) {
			return false;
		}
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
	struct wf_dense_peer *own = peer->own;
	for (uint32_t i = 0; i < own->pulls.count; i++) {
		if (!flush_pull(lane, peer, &own->pulls.range[i])) {
			break;
		}
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < own->pulls.count; i++) {
		if (own->pulls.range[i].next < own->pulls.range[i].end) {
			own->pulls.range[kept++] = own->pulls.range[i];
		}
	}
	own->pulls.count = kept;
}

static __attribute__((noinline)) bool
flush_all_answers(struct wf_lane *lane, struct wf_peer *peer)
{
	return flush_answers(lane, peer);
}

bool
wf_answer_flush_owed(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense_peer *own = peer->own;
	bool granted = wf_answer_places_has(&peer->places, WF_PLACE_VALUES);
	return (granted && !flush_answers(lane, peer)) || own->answers.count > 0;
}

enum wf_flush
wf_answer_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense_peer *own = peer->own;
	bool granted = wf_answer_places_has(&peer->places, WF_PLACE_VALUES);
	if (!flush_messages(lane, peer) || (granted && !flush_all_answers(lane, peer))) {
		return WF_FLUSH_FULL;
	}
	if (own->pulls.count > 0) {
		flush_pulls(lane, peer);
	}
	bool left = own->answers.count > 0 || own->pulls.count > 0;
	return left ? WF_FLUSH_LEFT : WF_FLUSH_DONE;
}

/* A piece is answered, never pulled. */
static bool
has_piece(const struct wf_dense *dense, const struct wf_msg_pull *msg)
{
	bool any = false;
	for (uint32_t i = 0; i < msg->count && dense->pieces.count > 0; i++) {
		any = any || wf_slice_is_piece(dense, msg->first + i);
	}
	return any;
}

static bool
all_have_state(const struct wf_store *store, const struct wf_msg_pull *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		if (!store->stored[msg->first + i].has_state) {
			return false;
		}
	}
	return true;
}

enum weft_status
wf_answer_pull(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_pull *msg)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	bool state = msg->section == WF_SECTION_STATE;
	if (!lane->job.is_ready || (uint64_t)msg->first + msg->count > dense->store.stored_count) {
		return wf_fail(WEFT_PROTOCOL, "PULL: slices %u and %u more, of %u", msg->first,
			       msg->count, dense->store.stored_count);
	}
	if (has_piece(dense, msg)) {
		return wf_fail(WEFT_PROTOCOL, "PULL: slices %u and %u more, one is a piece",
			       msg->first, msg->count);
	}
	unsigned place = state ? WF_PLACE_STATE + msg->state_idx : WF_PLACE_VALUES;
	if (place >= lane->job.place_count || !wf_answer_places_has(&peer->places, place)) {
		return wf_fail(WEFT_PROTOCOL, "PULL: nothing was granted to answer into");
	}
	const char *why = NULL;
	if (state && msg->state_idx >= wf_store_pullable(&dense->store)) {
		why = "the optimizer has no such state";
	} else if (state && msg->state_idx < dense->store.state_count &&
		   !all_have_state(&dense->store, msg)) {
		why = "a static or reduced tensor has no state";
	} else if (own->pulls.count == WF_PULLS_MAX) {
		why = "too many pulls are unanswered";
	}
	wf_peer_due(peer);
	if (why != NULL && own->pulls.nack_due) {
		return wf_fail(WEFT_PROTOCOL, "PULL: %s, as the NACK before said", why);
	}
	if (why != NULL) {
		own->pulls.nack = (struct wf_msg_nack){
			.request_id = msg->request_id, .first = msg->first, .status = WEFT_INVALID};
		(void)snprintf(own->pulls.nack.reason, sizeof(own->pulls.nack.reason), "%s", why);
		own->pulls.nack_due = true;
		return WEFT_OK;
	}
	own->pulls.range[own->pulls.count++] = (struct wf_pull_range){
		.request_id = msg->request_id,
		.step = msg->step,
		.next = msg->first,
		.end = msg->first + msg->count,
		.state = state,
		.state_idx = msg->state_idx,
	};
	return WEFT_OK;
}
