/* SPDX-License-Identifier: Apache-2.0 */
/* service_pull: answers pulls. Keys are copied out of their slots as they arrive. A pull is due
 * when all its keys are here and the step that it waits for is applied; then its rows are gathered
 * into buffers of the lane, part by part, and PUT from there. No step is applied until every due
 * pull is gathered to its end, so all rows of a pull are of one step. What service_ahead.c has sent
 * of it before, it corrects. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"

/* Pulls under way. */

static uint32_t
place_of(const struct wf_sparse_peer *own, const struct wf_pull *pull)
{
	uint32_t at = 0;
	while (own->pulls.order[at] != pull) {
		at++;
	}
	return at;
}

void
wf_pull_path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	while (own->pulls.count > 0) {
		wf_pull_drop(sparse, own, own->pulls.count - 1);
	}
	own->use = (struct wf_ahead_use){0};
	if (own->answer.due) { /* it was not posted, so no DONE will release its buffer */
		own->answer.due = false;
		(void)wf_staging_release(&sparse->answers, own->answer.buffer);
	}
}

/* Refuses parts that only a faulty trainer sends: the connection ends. */
static enum weft_status
check_parts(const struct wf_sparse *sparse, const struct wf_peer *peer,
	    const struct wf_sparse_pull *msg)
{
	const uint64_t rows_bytes = peer->places.bytes[0];
	for (uint32_t i = 0; i < msg->part_count; i++) {
		const struct wf_sparse_part *part = &msg->part[i];
		if (part->table >= sparse->desc_count) {
			return wf_fail(WEFT_PROTOCOL,
				       "PULL: part %u is of table %u, but there are %u", i,
				       part->table, sparse->desc_count);
		}
		const struct wf_served *served = &sparse->served[part->table];
		uint64_t keyed = (uint64_t)part->row_count * (served->front_bytes + WF_KEY_BYTES);
		uint64_t bytes = (uint64_t)part->row_count * served->row_bytes;
		if (keyed > sparse->size.slot_bytes) {
			return wf_fail(WEFT_PROTOCOL,
				       "PULL: part %u of %u rows x (%u bytes + key) does not fit a "
				       "slot of %" PRIu64 " bytes",
				       i, part->row_count, served->front_bytes,
				       sparse->size.slot_bytes);
		}
		if (bytes > rows_bytes || part->offset > rows_bytes - bytes) {
			return wf_fail(WEFT_PROTOCOL,
				       "PULL: part %u of %" PRIu64 " bytes at offset %" PRIu64
				       " is outside the granted range of %" PRIu64 " bytes",
				       i, bytes, part->offset, rows_bytes);
		}
	}
	return WEFT_OK;
}

/* Refuses what exceeds this lane's bounds: the pull fails, the connection stays. */
static enum weft_status
check_bounds(const struct wf_lane *lane, const struct wf_sparse_peer *own,
	     const struct wf_sparse_pull *msg)
{
	const struct wf_sparse *sparse = lane->own;
	uint64_t keys = 0;
	for (uint32_t i = 0; i < msg->part_count; i++) {
		keys += msg->part[i].row_count;
	}
	if (msg->step > lane->order.sum.step && !wf_sparse_is_async(sparse)) {
		return wf_fail(WEFT_INVALID,
			       "rows of step %" PRIu64 " are requested in step %" PRIu64, msg->step,
			       lane->order.sum.step);
	}
	if (own->pulls.count == WF_PULLS_MAX) {
		return wf_fail(WEFT_INVALID, "%u pulls are unanswered, a lane keeps no more",
			       own->pulls.count);
	}
	if (wf_keys_cells(keys) > own->pulls.cells.free_count) {
		return wf_fail(WEFT_INVALID,
			       "keys of unanswered pulls take more than the %" PRIu64
			       " bytes that this lane holds for a trainer; make batches smaller, "
			       "or use more sparse lanes",
			       sparse->size.held_bytes);
	}
	return WEFT_OK;
}

static struct wf_pull *
begin_pull(const struct wf_sparse *sparse, struct wf_sparse_peer *own,
	   const struct wf_sparse_pull *msg)
{
	struct wf_pull *pull = own->pulls.order[own->pulls.count++];
	pull->request_id = msg->request_id;
	pull->step = msg->step;
	pull->create = (msg->flags & WF_SPARSE_PULL_CREATE) != 0;
	pull->is_due = false;
	pull->part_count = msg->part_count;
	pull->next = 0;
	pull->from = (struct wf_key_cursor){.cell = WF_CELL_NONE};
	pull->last = WF_CELL_NONE;
	pull->write_at = 0;
	wf_pull_ahead_begin(sparse, pull, (msg->flags & WF_SPARSE_PULL_AHEAD) != 0);
	for (uint32_t i = 0; i < msg->part_count; i++) {
		pull->part[i] = (struct wf_pull_part){
			.table = msg->part[i].table,
			.row_count = msg->part[i].row_count,
			.offset = msg->part[i].offset,
		};
	}
	return pull;
}

enum weft_status
wf_pull_begin(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_pull *msg)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_incoming *incoming = &own->incoming;
	enum weft_status st = check_parts(sparse, peer, msg);
	if (st != WEFT_OK) {
		return st;
	}
	incoming->kind = WF_INCOMING_PULL;
	incoming->refused = false;
	incoming->step = msg->step;
	incoming->uncredited = 0;
	incoming->next = 0;
	incoming->count = msg->part_count;
	memcpy(incoming->part, msg->part, msg->part_count * sizeof(msg->part[0]));
	if (check_bounds(lane, own, msg) != WEFT_OK) {
		incoming->refused = true;
		return wf_nack_add(peer, msg->request_id, msg->step, 0)
			       ? WEFT_OK
			       : wf_fail(WEFT_PROTOCOL, "PULL: too many refusals");
	}
	incoming->pull = begin_pull(sparse, own, msg);
	return WEFT_OK;
}

/* Returns the slots of the first `count` parts, whose keys are copied. */
static void
credit_parts(struct wf_peer *peer, struct wf_pull *pull, uint32_t count)
{
	struct wf_sparse_peer *own = peer->own;
	for (uint32_t i = 0; i < count; i++) {
		if (pull->part[i].slot != WF_SLOT_NONE) {
			wf_peer_credit(peer, pull->part[i].slot);
			pull->part[i].slot = WF_SLOT_NONE;
		}
	}
	own->incoming.uncredited = 0;
}

/* Refuses a pull for one of its keys: the pull fails, the connection stays. */
static enum weft_status
refuse_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot)
{
	struct wf_sparse_peer *own = peer->own;
	struct wf_incoming *incoming = &own->incoming;
	struct wf_pull *pull = incoming->pull;
	if (!wf_nack_add(peer, pull->request_id, pull->step, incoming->next)) {
		return wf_fail(WEFT_PROTOCOL, "PULL: too many refusals");
	}
	credit_parts(peer, pull, incoming->next);
	wf_peer_credit(peer, slot);
	wf_pull_drop(lane->own, own, place_of(own, pull));
	incoming->pull = NULL;
	incoming->refused = true;
	if (++incoming->next == incoming->count) {
		incoming->kind = WF_INCOMING_NONE;
	}
	return WEFT_OK;
}

static void
make_due(struct wf_lane *lane, struct wf_peer *peer, struct wf_pull *pull)
{
	struct wf_sparse *sparse = lane->own;
	WF_ASSERT(!pull->is_due);
	pull->is_due = true;
	sparse->due_pulls++;
	wf_peer_due(peer);
}

static void
note_pull(const struct wf_lane *lane, const struct wf_peer *peer, const struct wf_pull *pull)
{
	uint64_t rows = 0;
	for (uint32_t i = 0; lane->trace.ring != NULL && i < pull->part_count; i++) {
		rows += pull->part[i].row_count;
	}
	wf_sparse_note(lane, WF_TRACE_ROWS_PULLED, peer->trainer, pull->step, rows);
}

/* All keys are here. The answers free the slots of a pull that is due at once, and CREDIT those of
 * one that is held. */
static void
finish_pull(struct wf_lane *lane, struct wf_peer *peer, struct wf_pull *pull)
{
	note_pull(lane, peer, pull);
	if (pull->step < lane->order.sum.step || wf_sparse_is_async(lane->own)) {
		make_due(lane, peer, pull);
		return;
	}
	credit_parts(peer, pull, pull->part_count);
	wf_stats_add(&lane->stats, WF_LANE_PULL_HELD_COUNT, 1);
	if (pull->ahead.allowed) {
		wf_peer_due(peer);
	}
}

enum weft_status
wf_pull_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot, const void *data)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_incoming *incoming = &own->incoming;
	const struct wf_sparse_part *part = &incoming->part[incoming->next];
	struct wf_pull *pull = incoming->pull;
	const struct wf_keys_in in = {
		.coding = (enum wf_key_coding)part->coding,
		.at = data,
		.bytes = part->key_bytes,
		.count = part->row_count,
	};
	enum weft_status st = wf_keys_decode(&in, sparse->key_scratch);
	if (st != WEFT_OK) {
		return st;
	}
	wf_slots_read(&peer->slots, peer->conn, slot);
	st = wf_sparse_check_keys(sparse, part, sparse->key_scratch);
	if (st != WEFT_OK) {
		return refuse_part(lane, peer, slot);
	}
	pull->part[incoming->next].slot = slot;
	incoming->uncredited++;
	wf_keys_add(&own->pulls.cells, pull, sparse->key_scratch, part->row_count);
	wf_stats_add(&lane->stats, WF_LANE_KEY_PULLED_COUNT, part->row_count);
	if (++incoming->next == incoming->count) {
		incoming->kind = WF_INCOMING_NONE;
		finish_pull(lane, peer, pull);
	} else if (peer->slots.held + incoming->uncredited == sparse->size.slot_count) {
		credit_parts(peer, pull, incoming->next); /* its window is full, and more follow */
	}
	return WEFT_OK;
}

void
wf_pull_step_is_applied(struct wf_lane *lane, uint64_t step)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		struct wf_peer *peer = &lane->peers.all[t];
		const struct wf_sparse_peer *own = &sparse->peer[t];
		for (uint32_t i = 0; i < own->pulls.count; i++) {
			struct wf_pull *pull = own->pulls.order[i];
			bool coming = own->incoming.kind == WF_INCOMING_PULL &&
				      !own->incoming.refused && own->incoming.pull == pull;
			if (pull->step == step && !coming) {
				make_due(lane, peer, pull);
			}
		}
	}
}

/* Answers. */

/* Gathers the next part of pull number `at` into an answer. */
static enum weft_status
gather_answer(struct wf_lane *lane, struct wf_peer *peer, uint32_t at)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_pull *pull = own->pulls.order[at];
	struct wf_pull_part *part = &pull->part[pull->next];
	const struct wf_gather what = {
		.cells = &own->pulls.cells,
		.table = part->table,
		.row_count = part->row_count,
		.create = pull->create,
		.past = wf_pull_goes_past(sparse, own, part),
	};
	struct wf_key_cursor from = pull->from;
	uint32_t buffer = wf_staging_claim(&sparse->answers, peer->trainer);
	uint64_t entered = wf_turn_enter(&lane->turn);
	enum weft_status st =
		wf_pull_gather(sparse, &what, &from, wf_staging_at(&sparse->answers, buffer));
	(void)wf_turn_leave(&lane->turn, WF_LANE_GATHER_TIME_NS, entered);
	if (st != WEFT_OK) {
		(void)wf_staging_release(&sparse->answers, buffer);
		return st;
	}
	wf_pull_give_keys(&own->pulls.cells, pull, from);
	if (pull->create && wf_sparse_is_async(sparse)) {
		wf_view_note_rows(sparse, own, pull->step);
	}
	if (part->slot != WF_SLOT_NONE) {
		wf_slots_answered(&peer->slots, part->slot);
		part->slot = WF_SLOT_NONE;
	}
	/* In asynchronous modes the lane has no step of its own: name the one requested. */
	uint64_t step = wf_sparse_is_async(sparse) ? pull->step : lane->order.sum.step - 1;
	wf_pull_answer(sparse, own, pull, pull->next, buffer, step);
	wf_pull_part_ends(sparse, own, at);
	return WEFT_OK;
}

/* False: the transport accepts no more, or the connection is going down. */
static bool
post_answer(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	const struct wf_op op = {
		.kind = WF_OP_PUT,
		.cookie = (uint64_t)own->answer.buffer + 1,
		.region = sparse->answers.memory.region,
		.src = wf_staging_at(&sparse->answers, own->answer.buffer),
		.bytes = own->answer.bytes,
		.key = peer->places.key[0],
		.offset = own->answer.offset,
		.tag = own->answer.tag,
	};
	unsigned taken = 0;
	enum weft_status st = wf_transport_post(peer->conn, &op, 1, &taken);
	if (st == WEFT_INVALID) { /* the trainer's grant is too small */
		wf_lane_offence(lane, peer);
	}
	own->answer.due = taken == 0;
	return taken == 1;
}

static bool
find_due(const struct wf_sparse_peer *own, uint32_t *out)
{
	for (uint32_t i = 0; i < own->pulls.count; i++) {
		if (own->pulls.order[i]->is_due) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* Ends the next part of a due pull: corrects it, if it was sent ahead, or answers it. FULL: the
 * transport accepts no more; LEFT: no buffer is free; DONE: go on. */
static enum wf_flush
end_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t at)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_sparse_peer *own = peer->own;
	if (wf_pull_ahead_has_next(own->pulls.order[at])) {
		return wf_pull_ahead_end_part(lane, peer, at) ? WF_FLUSH_DONE : WF_FLUSH_FULL;
	}
	if (!wf_staging_has_free(&sparse->answers, peer->trainer)) {
		return WF_FLUSH_LEFT;
	}
	enum weft_status st = gather_answer(lane, peer, at);
	if (st == WEFT_OK) {
		return WF_FLUSH_DONE;
	}
	wf_lane_fail(lane, st, lane->order.sum.step, "a pull has failed: %.200s",
		     weft_last_error());
	return WF_FLUSH_LEFT;
}

/* Leaves for the next turn what the transport did not accept, and what may be sent ahead, a part in
 * each turn. Whatever waits for a free buffer or for a step comes back to the due list with DONE of
 * an answer, or with the apply. */
enum wf_flush
wf_pull_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	for (bool sent = false;;) {
		if (own->answer.due && !post_answer(lane, peer)) {
			return peer->closing ? WF_FLUSH_DONE : WF_FLUSH_FULL;
		}
		uint32_t at = 0;
		if (wf_save_is_due(lane, own)) {
			if (!wf_staging_has_free(&sparse->answers, peer->trainer)) {
				return WF_FLUSH_DONE;
			}
			wf_save_gather(lane, peer);
		} else if (find_due(own, &at)) {
			enum wf_flush end = end_part(lane, peer, at);
			if (end != WF_FLUSH_DONE) {
				return end == WF_FLUSH_LEFT ? WF_FLUSH_DONE : end;
			}
		} else if (sent || !wf_pull_ahead_send(lane, peer)) {
			return wf_pull_ahead_may_send(lane, peer) ? WF_FLUSH_LEFT : WF_FLUSH_DONE;
		} else {
			sent = true;
		}
	}
}

void
wf_pull_done(struct wf_lane *lane, uint64_t cookie)
{
	struct wf_sparse *sparse = lane->own;
	WF_ASSERT(lane->job.is_ready);
	uint32_t trainer = wf_staging_release(&sparse->answers, (uint32_t)(cookie - 1));
	wf_pull_look_for_buffers(lane);
	struct wf_peer *peer = &lane->peers.all[trainer];
	const struct wf_sparse_peer *own = peer->own;
	if (own->pulls.count > 0 || own->save.fetching) {
		wf_peer_due(peer);
	}
}
