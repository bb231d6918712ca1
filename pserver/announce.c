/* SPDX-License-Identifier: Apache-2.0 */
/* announce: an inbox that does not hold a shard of gradients of every trainer (inbox_bytes).
 *
 * What is parked is bounded by what may be PUT. A push of a step is announced, and the lane *holds*
 * a slice when all who take part in the step have announced it and there is room for one gradient
 * of each trainer: it keeps that room until the slice is applied, and allows the push to them all.
 * Slices are held in the order in which they became complete. Who is allowed to PUT has the
 * gradient ready, and a window never blocks (a full one is parked, in room that is kept), so each
 * held slice is applied whatever else waits: no order of pushes can block.
 *
 * An announcement dies with its connection; a slice that is held stays so, and who comes back is
 * allowed at once what it announces of it again. Gradients that are applied when they come, and
 * initial values, wait for nobody and are not announced. Model: docs/model/announce.pml.
 * Thread: the lane's. */
#include <inttypes.h>

#include "base/assert.h"
#include "pserver/dense.h"

/* Of a trainer and a slice, as `push`. */
enum said {
	SAID_NOTHING,
	SAID_READY, /* announced */
	SAID_GO,    /* allowed, which waits in the peer's ring */
	SAID_TOLD,  /* and told, and not here yet */
};

static uint8_t *
said_of(const struct wf_lane *lane, uint32_t ordinal, uint32_t trainer)
{
	const struct wf_dense *dense = lane->own;
	return &dense->inbox_said[(uint64_t)ordinal * lane->peer_count + trainer];
}

/* Pushed by all who take part in a step, together. */
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
	uint64_t each = (uint64_t)lane->peer_count * store->park_bytes;
	if (store->hold_max == 0) {
		return wf_fail(WEFT_INVALID,
			       "lane %u: --inbox_bytes=%" PRIu64
			       " has no room for one slice of each of %u trainers; give %" PRIu64
			       " or more, or a smaller --slice_bytes than %" PRIu64,
			       lane->opts.idx, lane->opts.inbox_bytes, lane->peer_count, each,
			       dense->job.slice_bytes);
	}
	if (wf_clips_norm(dense)) {
		return wf_fail(WEFT_INVALID,
			       "lane %u: --inbox_bytes=%" PRIu64
			       " has no room for all gradients of a step, and with clip_norm they "
			       "wait for each other; give %" PRIu64 " or more, or clip_norm 0",
			       lane->opts.idx, lane->opts.inbox_bytes,
			       each * lane->order.summed_count);
	}
	return WEFT_OK;
}

enum weft_status
wf_announce_open(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	if (lane->order.summed_count <= store->hold_max) {
		return WEFT_OK;
	}
	enum weft_status st = check_room(lane);
	if (st != WEFT_OK) {
		return st;
	}
	uint64_t pushes = (uint64_t)store->stored_count * lane->peer_count;
	dense->inbox_said = wf_zalloc_array(lane->env, pushes, sizeof(*dense->inbox_said));
	dense->inbox_slice =
		wf_zalloc_array(lane->env, store->stored_count, sizeof(*dense->inbox_slice));
	dense->complete = (struct wf_ordinal_ring){
		.ordinal = wf_zalloc_array(lane->env, store->stored_count, sizeof(uint32_t)),
		.capacity = store->stored_count,
		.priority = dense->priority,
	};
	dense->allow = wf_zalloc_array(lane->env, pushes, sizeof(*dense->allow));
	dense->announces = true;
	if (dense->inbox_said == NULL || dense->inbox_slice == NULL ||
	    dense->complete.ordinal == NULL || dense->allow == NULL) {
		return wf_fail(WEFT_NOMEM,
			       "lane %u: no memory for announcements of %" PRIu64 " pushes",
			       lane->opts.idx, pushes);
	}
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		struct wf_dense_peer *own = lane->peer[t].own;
		own->allow = (struct wf_ordinal_ring){
			.ordinal = dense->allow + (uint64_t)t * store->stored_count,
			.capacity = store->stored_count,
		};
	}
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: an inbox of %" PRIu64 " bytes has room for %u of %u slices of each "
	       "trainer: pushes are announced",
	       lane->opts.idx, lane->opts.inbox_bytes, store->hold_max, lane->order.summed_count);
	return WEFT_OK;
}

uint64_t
wf_announce_table_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	uint64_t stored = dense->store.stored_count;
	return stored * (sizeof(*dense->inbox_slice) + sizeof(*dense->complete.ordinal)) +
	       stored * lane->peer_count * (sizeof(*dense->inbox_said) + sizeof(*dense->allow));
}

void
wf_announce_close(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	uint32_t stored = dense->store.stored_count;
	uint64_t pushes = (uint64_t)stored * lane->peer_count;
	wf_free(lane->env, dense->inbox_said, pushes * sizeof(*dense->inbox_said));
	wf_free(lane->env, dense->inbox_slice, stored * sizeof(*dense->inbox_slice));
	wf_free(lane->env, dense->complete.ordinal, stored * sizeof(*dense->complete.ordinal));
	wf_free(lane->env, dense->allow, pushes * sizeof(*dense->allow));
}

bool
wf_announce_is_allowed(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	return *said_of(lane, ordinal, peer->trainer) == SAID_TOLD || !is_shared(dense, ordinal);
}

static void
allow(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal)
{
	struct wf_dense_peer *own = peer->own;
	WF_ASSERT(peer->conn != NULL);
	*said_of(lane, ordinal, peer->trainer) = SAID_GO;
	wf_ordinal_ring_push(&own->allow, ordinal);
	wf_peer_due(peer);
}

/* Keep room for the slice until it is applied, and let everybody push it. */
static void
hold(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	dense->inbox_slice[ordinal].is_held = true;
	dense->held_count++;
	wf_stats_add(&lane->stats, WF_LANE_SLICE_HELD_COUNT, 1);
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		if (*said_of(lane, ordinal, t) == SAID_READY) {
			allow(lane, &lane->peer[t], ordinal);
		}
	}
}

static bool
is_complete(const struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	uint32_t ready = dense->inbox_slice[ordinal].ready;
	return ready > 0 && ready == wf_order_taking_part(&lane->order);
}

/* Hold what there is room for. Who was ready may have been lost since: its slice comes again when
 * it has come back. */
static void
hold_next(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	while (dense->complete.count > 0 && dense->held_count < dense->store.hold_max) {
		uint32_t ordinal = wf_ordinal_ring_pop(&dense->complete);
		dense->inbox_slice[ordinal].is_queued = false;
		if (is_complete(lane, ordinal)) {
			hold(lane, ordinal);
		}
	}
}

static void
queue_if_complete(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	struct wf_inbox_slice *slice = &dense->inbox_slice[ordinal];
	if (slice->is_held || slice->is_queued || !is_complete(lane, ordinal)) {
		return;
	}
	slice->is_queued = true;
	wf_ordinal_ring_push(&dense->complete, ordinal);
}

/* For what does the announcement wait? */
static void
count_wait(struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_inbox_slice *slice = &dense->inbox_slice[ordinal];
	if (!slice->is_held) {
		wf_stats_add(&lane->stats,
			     slice->is_queued ? WF_LANE_WAIT_INBOX_COUNT
					      : WF_LANE_WAIT_ANNOUNCE_COUNT,
			     1);
	}
}

static enum weft_status
take_slice(struct wf_lane *lane, struct wf_peer *peer, uint64_t step, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	struct wf_inbox_slice *slice = &dense->inbox_slice[ordinal];
	uint8_t *said = said_of(lane, ordinal, peer->trainer);
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
	own->announced++;
	wf_stats_add(&lane->stats, WF_LANE_SLICE_ANNOUNCED_COUNT, 1);
	if (slice->is_held) { /* back on a new path */
		allow(lane, peer, ordinal);
		return WEFT_OK;
	}
	slice->ready++;
	queue_if_complete(lane, ordinal);
	hold_next(lane);
	count_wait(lane, ordinal);
	return WEFT_OK;
}

enum weft_status
wf_announce_take(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_runs *msg)
{
	const struct wf_dense *dense = lane->own;
	bool begun = !peer->member.out && msg->step + 1 == peer->member.step_next &&
		     msg->step == lane->order.sum.step;
	if (!lane->ready || !dense->announces || !begun || lane->order.sum.heard == 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "ANNOUNCE: for step %" PRIu64 ", the lane is in step %" PRIu64 "%s",
			       msg->step, lane->order.sum.step,
			       dense->announces ? "" : " and asked for no announcements");
	}
	for (uint32_t i = 0; i < msg->count; i++) {
		const struct wf_run *run = &msg->run[i];
		if ((uint64_t)run->first + run->count > dense->store.stored_count) {
			return wf_fail(WEFT_PROTOCOL, "ANNOUNCE: slices %u and %u more, of %u",
				       run->first, run->count, dense->store.stored_count);
		}
		for (uint32_t s = run->first; s < run->first + run->count; s++) {
			enum weft_status st = take_slice(lane, peer, msg->step, s);
			if (st != WEFT_OK) {
				return st;
			}
		}
	}
	return WEFT_OK;
}

void
wf_announce_received(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal)
{
	struct wf_dense_peer *own = peer->own;
	uint8_t *said = said_of(lane, ordinal, peer->trainer);
	WF_ASSERT(*said == SAID_TOLD && own->announced > 0);
	*said = SAID_NOTHING;
	own->announced--;
}

void
wf_announce_applied(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	struct wf_inbox_slice *slice = &dense->inbox_slice[ordinal];
	WF_ASSERT(slice->is_held && dense->held_count > 0);
	slice->is_held = false;
	slice->ready = 0;
	dense->held_count--;
	hold_next(lane);
}

void
wf_announce_member_is_out(struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		queue_if_complete(lane, i);
	}
	hold_next(lane);
}

void
wf_announce_path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	for (uint32_t i = 0; i < dense->store.stored_count && own->announced > 0; i++) {
		uint8_t *said = said_of(lane, i, peer->trainer);
		if (*said == SAID_READY) {
			WF_ASSERT(!dense->inbox_slice[i].is_held &&
				  dense->inbox_slice[i].ready > 0);
			dense->inbox_slice[i].ready--;
		}
		own->announced -= *said != SAID_NOTHING ? 1 : 0;
		*said = SAID_NOTHING;
	}
	WF_ASSERT(own->announced == 0);
	own->allow.first = 0;
	own->allow.count = 0;
}

/* As many of the peer's as fit, in order; neighbours as one run. Returns how many. */
static uint32_t
fill_runs(struct wf_lane *lane, const struct wf_dense_peer *own)
{
	struct wf_dense *dense = lane->own;
	struct wf_msg_runs *msg = &dense->runs;
	msg->step = lane->order.sum.step;
	msg->count = 0;
	for (uint32_t i = 0; i < own->allow.count; i++) {
		if (!wf_runs_add(msg, *wf_ordinal_ring_at(&own->allow, i))) {
			return i;
		}
	}
	return own->allow.count;
}

bool
wf_announce_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	while (own->allow.count > 0) {
		uint32_t count = fill_runs(lane, own);
		wf_msg_allow_encode(&dense->runs, &lane->msg);
		if (!wf_control_send(peer, &lane->msg)) {
			return false;
		}
		for (uint32_t i = 0; i < count; i++) {
			uint32_t ordinal = wf_ordinal_ring_pop(&own->allow);
			*said_of(lane, ordinal, peer->trainer) = SAID_TOLD;
		}
	}
	return true;
}
