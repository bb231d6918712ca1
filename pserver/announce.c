/* SPDX-License-Identifier: Apache-2.0 */
/* announce: an inbox that does not hold a shard of gradients of every trainer (inbox_bytes).
 *
 * What is parked is bounded by what may be PUT. A push of a step is announced, and the lane *holds*
 * a slice when all who take part in the step have announced it and there is room for one gradient
 * of each trainer: it keeps that room until the slice is applied, and allows the push to all of
 * them. Slices are held in the order in which they became complete. A trainer that is allowed to
 * PUT has the gradient ready, and a window never blocks (a full one is parked, in reserved room),
 * so each held slice is applied whatever else waits: no order of pushes can block.
 *
 * An announcement ends with its connection. A slice that is held stays so, and a trainer that
 * reconnects is allowed at once what it announces of it again. Gradients that are applied as they
 * arrive, and initial values, wait for no trainer and are not announced. Model:
 * docs/model/announce.pml. Thread: the lane's. */
#include "pserver/announce.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "pserver/dense.h"

/* Of a trainer and a slice, as `push`. */
enum said {
	SAID_NOTHING,
	SAID_READY, /* announced */
	SAID_GO,    /* allowed, which waits in the trainer's ring */
	SAID_TOLD,  /* and announced to it, and not here yet */
};

static uint8_t *
said_of(const struct wf_inbox *inbox, const struct wf_lane *lane, uint32_t ordinal,
	uint32_t trainer)
{
	return &inbox->said[(uint64_t)ordinal * lane->peers.count + trainer];
}

/* Pushed together by all that take part in a step. */
static bool
is_shared(const struct wf_dense *dense, uint32_t ordinal)
{
	return !dense->store.stored[ordinal].tensor->is_static &&
	       !wf_slice_is_async(dense, ordinal);
}

static enum weft_status
check_room(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	uint64_t each = (uint64_t)lane->peers.count * store->park.bytes;
	if (store->hold_max == 0) {
		return wf_fail(WEFT_INVALID,
			       "lane %u: --inbox_bytes=%" PRIu64
			       " has no room for one slice of each of %u trainers; give %" PRIu64
			       " or more, or a smaller --slice_bytes than %" PRIu64,
			       lane->opts.idx, lane->opts.inbox_bytes, lane->peers.count, each,
			       dense->job.set.slice_bytes);
	}
	const char *setting = wf_features_need_step(lane);
	if (setting != NULL) {
		return wf_fail(
			WEFT_INVALID,
			"lane %u: --inbox_bytes=%" PRIu64
			" has no room for all gradients of a step, and with %s they wait for "
			"each other; give %" PRIu64 " or more, or %s 0",
			lane->opts.idx, lane->opts.inbox_bytes, setting,
			each * lane->order.summed_count, setting);
	}
	return WEFT_OK;
}

/* The inbox holds all that may come, or announcements are needed. */
static uint64_t
inbox_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_inbox *inbox = NULL;
	uint64_t stored = dense->store.stored_count;
	if (lane->order.summed_count <= dense->store.hold_max) {
		return 0;
	}
	return sizeof(*inbox) + lane->peers.count * sizeof(*inbox->peer) +
	       stored * (sizeof(*inbox->slice) + sizeof(*inbox->complete.ordinal)) +
	       stored * lane->peers.count * (sizeof(*inbox->said) + sizeof(*inbox->allow));
}

static enum weft_status
open_inbox(struct wf_feature *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const uint32_t stored = store->stored_count;
	enum weft_status st = check_room(lane);
	if (st != WEFT_OK) {
		return st;
	}
	uint64_t pushes = (uint64_t)stored * lane->peers.count;
	struct wf_inbox *inbox = wf_zalloc(lane->env, sizeof(*inbox));
	self->state = inbox;
	if (inbox != NULL) {
		inbox->said = wf_zalloc_array(lane->env, pushes, sizeof(*inbox->said));
		inbox->slice = wf_zalloc_array(lane->env, stored, sizeof(*inbox->slice));
		inbox->peer = wf_zalloc_array(lane->env, lane->peers.count, sizeof(*inbox->peer));
		inbox->allow = wf_zalloc_array(lane->env, pushes, sizeof(*inbox->allow));
		inbox->complete = (struct wf_ordinal_ring){
			.ordinal = wf_zalloc_array(lane->env, stored, sizeof(uint32_t)),
			.capacity = stored,
			.priority = dense->priority,
		};
	}
	if (inbox == NULL || inbox->said == NULL || inbox->slice == NULL || inbox->peer == NULL ||
	    inbox->allow == NULL || inbox->complete.ordinal == NULL) {
		return wf_fail(WEFT_NOMEM,
			       "lane %u: no memory for announcements of %" PRIu64 " pushes",
			       lane->opts.idx, pushes);
	}
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		inbox->peer[t].allow = (struct wf_ordinal_ring){
			.ordinal = inbox->allow + (uint64_t)t * stored,
			.capacity = stored,
		};
	}
	lane->windows.announced = true;
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: an inbox of %" PRIu64 " bytes has room for %u of %u slices of each "
	       "trainer: pushes are announced",
	       lane->opts.idx, lane->opts.inbox_bytes, store->hold_max, lane->order.summed_count);
	return WEFT_OK;
}

static void
close_inbox(struct wf_feature *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	struct wf_inbox *inbox = self->state;
	const uint32_t stored = dense->store.stored_count;
	uint64_t pushes = (uint64_t)stored * lane->peers.count;
	if (inbox == NULL) {
		return;
	}
	wf_free(lane->env, inbox->said, pushes * sizeof(*inbox->said));
	wf_free(lane->env, inbox->slice, stored * sizeof(*inbox->slice));
	wf_free(lane->env, inbox->peer, lane->peers.count * sizeof(*inbox->peer));
	wf_free(lane->env, inbox->allow, pushes * sizeof(*inbox->allow));
	wf_free(lane->env, inbox->complete.ordinal, stored * sizeof(uint32_t));
	wf_free(lane->env, inbox, sizeof(*inbox));
}

static void
allow(const struct wf_feature *self, struct wf_peer *peer, uint32_t ordinal)
{
	const struct wf_inbox *inbox = self->state;
	WF_ASSERT(peer->conn != NULL);
	*said_of(inbox, peer->lane, ordinal, peer->trainer) = SAID_GO;
	wf_ordinal_ring_push(&inbox->peer[peer->trainer].allow, ordinal);
	wf_feature_due(self, peer);
}

/* Keeps room for the slice until it is applied, and lets all trainers push it. */
static void
hold(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_inbox *inbox = self->state;
	inbox->slice[ordinal].is_held = true;
	inbox->held_count++;
	wf_stats_add(&lane->stats, WF_LANE_SLICE_HELD_COUNT, 1);
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		if (*said_of(inbox, lane, ordinal, t) == SAID_READY) {
			allow(self, &lane->peers.all[t], ordinal);
		}
	}
}

static bool
is_complete(const struct wf_inbox *inbox, const struct wf_lane *lane, uint32_t ordinal)
{
	uint32_t ready = inbox->slice[ordinal].ready;
	return ready > 0 && ready == wf_order_taking_part(&lane->order);
}

/* Holds as many slices as there is room for. A trainer that was ready may have been lost since: its
 * slice is announced again when it has reconnected. */
static void
hold_next(const struct wf_feature *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	struct wf_inbox *inbox = self->state;
	while (inbox->complete.count > 0 && inbox->held_count < dense->store.hold_max) {
		uint32_t ordinal = wf_ordinal_ring_pop(&inbox->complete);
		inbox->slice[ordinal].is_queued = false;
		if (is_complete(inbox, lane, ordinal)) {
			hold(self, lane, ordinal);
		}
	}
}

static void
queue_if_complete(struct wf_inbox *inbox, const struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_inbox_slice *slice = &inbox->slice[ordinal];
	if (slice->is_held || slice->is_queued || !is_complete(inbox, lane, ordinal)) {
		return;
	}
	slice->is_queued = true;
	wf_ordinal_ring_push(&inbox->complete, ordinal);
}

/* For what does the announcement wait? */
static void
count_wait(const struct wf_inbox *inbox, struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_inbox_slice *slice = &inbox->slice[ordinal];
	if (!slice->is_held) {
		wf_stats_add(&lane->stats,
			     slice->is_queued ? WF_LANE_WAIT_INBOX_COUNT
					      : WF_LANE_WAIT_ANNOUNCE_COUNT,
			     1);
	}
}

static enum weft_status
recv_slice(const struct wf_feature *self, struct wf_peer *peer, uint64_t step, uint32_t ordinal)
{
	struct wf_lane *lane = peer->lane;
	const struct wf_dense *dense = lane->own;
	struct wf_inbox *inbox = self->state;
	struct wf_inbox_slice *slice = &inbox->slice[ordinal];
	uint8_t *said = said_of(inbox, lane, ordinal, peer->trainer);
	uint64_t next = wf_push_of(lane, ordinal, peer->trainer)->next;
	if (!is_shared(dense, ordinal) || next != step || *said != SAID_NOTHING) {
		return wf_fail(WEFT_PROTOCOL,
			       "ANNOUNCE: slice %u of %s for step %" PRIu64
			       ", waited for is step %" PRIu64 "%s",
			       dense->store.stored[ordinal].slice,
			       dense->store.stored[ordinal].tensor->name, step, next,
			       *said != SAID_NOTHING ? ", which was announced" : "");
	}
	*said = SAID_READY;
	peer->member.offered++;
	wf_stats_add(&lane->stats, WF_LANE_SLICE_ANNOUNCED_COUNT, 1);
	if (slice->is_held) { /* back on a new path */
		allow(self, peer, ordinal);
		return WEFT_OK;
	}
	slice->ready++;
	queue_if_complete(inbox, lane, ordinal);
	hold_next(self, lane);
	count_wait(inbox, lane, ordinal);
	return WEFT_OK;
}

static enum weft_status
recv_announce(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	      const struct wf_head *head, const uint8_t *body)
{
	const struct wf_dense *dense = lane->own;
	struct wf_msg_runs msg;
	enum weft_status st = wf_msg_announce_decode(head, body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	bool begun = !peer->member.out && msg.step + 1 == peer->member.step_next &&
		     msg.step == lane->order.sum.step;
	if (!begun || lane->order.sum.heard == 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "ANNOUNCE: for step %" PRIu64 ", the lane is in step %" PRIu64,
			       msg.step, lane->order.sum.step);
	}
	for (uint32_t i = 0; i < msg.count; i++) {
		const struct wf_run *run = &msg.run[i];
		if ((uint64_t)run->first + run->count > dense->store.stored_count) {
			return wf_fail(WEFT_PROTOCOL, "ANNOUNCE: slices %u and %u more, of %u",
				       run->first, run->count, dense->store.stored_count);
		}
		for (uint32_t s = run->first; s < run->first + run->count; s++) {
			st = recv_slice(self, peer, msg.step, s);
			if (st != WEFT_OK) {
				return st;
			}
		}
	}
	return WEFT_OK;
}

static bool
may_put(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal)
{
	const struct wf_inbox *inbox = self->state;
	uint8_t *said = said_of(inbox, lane, ordinal, peer->trainer);
	if (!is_shared(lane->own, ordinal)) {
		return true;
	}
	if (*said != SAID_TOLD) {
		return false;
	}
	WF_ASSERT(peer->member.offered > 0);
	*said = SAID_NOTHING;
	peer->member.offered--;
	return true;
}

/* Its gradients are summed, and their room is free. */
static void
after_apply(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_inbox *inbox = self->state;
	struct wf_inbox_slice *slice = &inbox->slice[ordinal];
	WF_ASSERT(slice->is_held && inbox->held_count > 0);
	slice->is_held = false;
	slice->ready = 0;
	inbox->held_count--;
	hold_next(self, lane);
}

/* A trainer that no longer takes part in the step is not waited for. */
static void
step_said(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	  const struct wf_msg_step *msg)
{
	const struct wf_dense *dense = lane->own;
	(void)peer;
	if ((msg->flags & WF_STEP_OUT_OF_DATA) == 0 || lane->order.sum.heard == 0) {
		return;
	}
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		queue_if_complete(self->state, lane, i);
	}
	hold_next(self, lane);
}

static void
path_ends(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	struct wf_inbox *inbox = self->state;
	struct wf_inbox_peer *own = &inbox->peer[peer->trainer];
	uint32_t *offered = &peer->member.offered;
	for (uint32_t i = 0; i<dense->store.stored_count && * offered> 0; i++) {
		uint8_t *said = said_of(inbox, lane, i, peer->trainer);
		if (*said == SAID_READY) {
			WF_ASSERT(!inbox->slice[i].is_held && inbox->slice[i].ready > 0);
			inbox->slice[i].ready--;
		}
		*offered -= *said != SAID_NOTHING ? 1 : 0;
		*said = SAID_NOTHING;
	}
	WF_ASSERT(*offered == 0);
	own->allow.first = 0;
	own->allow.count = 0;
}

/* As many of the trainer's as fit, in order; neighbours as one run. Returns how many. */
static uint32_t
fill_runs(struct wf_inbox *inbox, uint64_t step, const struct wf_ordinal_ring *ring)
{
	struct wf_msg_runs *msg = &inbox->runs;
	msg->step = step;
	msg->count = 0;
	for (uint32_t i = 0; i < ring->count; i++) {
		if (!wf_runs_add(msg, *wf_ordinal_ring_at(ring, i))) {
			return i;
		}
	}
	return ring->count;
}

/* Sends what may be PUT. */
static bool
flush(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_inbox *inbox = self->state;
	struct wf_ordinal_ring *ring = &inbox->peer[peer->trainer].allow;
	while (ring->count > 0) {
		uint32_t count = fill_runs(inbox, lane->order.sum.step, ring);
		wf_msg_allow_encode(&inbox->runs, &lane->msg);
		if (!wf_control_send(peer, &lane->msg)) {
			return false;
		}
		for (uint32_t i = 0; i < count; i++) {
			uint32_t ordinal = wf_ordinal_ring_pop(ring);
			*said_of(inbox, lane, ordinal, peer->trainer) = SAID_TOLD;
		}
	}
	return true;
}

static void
words(const struct wf_feature *self, const struct wf_lane *lane, const struct wf_report_line *line,
      char *out, size_t bytes)
{
	const uint64_t *d = line->since;
	(void)snprintf(out, bytes,
		       " slices_announced %" PRIu64 " slices_held %" PRIu64
		       " waits_announce %" PRIu64 " waits_inbox %" PRIu64,
		       d[WF_LANE_SLICE_ANNOUNCED_COUNT], d[WF_LANE_SLICE_HELD_COUNT],
		       d[WF_LANE_WAIT_ANNOUNCE_COUNT], d[WF_LANE_WAIT_INBOX_COUNT]);
}

const struct wf_feature_hooks wf_announce_hooks = {
	.name = "announced inbox",
	.message = WF_MSG_ANNOUNCE,
	.bytes = inbox_bytes,
	.open = open_inbox,
	.close = close_inbox,
	.recv = recv_announce,
	.flush = flush,
	.path_ends = path_ends,
	.step_said = step_said,
	.may_put = may_put,
	.after_apply = after_apply,
	.words = words,
};
