/* SPDX-License-Identifier: Apache-2.0 */
/* service: the sparse service of a lane: hands each message and each part to the file that handles
 * it. Thread: the lane's. */
#include "sparse/server/service.h"

#include <inttypes.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"

/* The next step of the rows, which are one unit: the step of the lane's order, or, in asynchronous
 * modes, where each push is applied by itself, the trainer's. */
static uint64_t
next_step(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t unit)
{
	(void)unit;
	return wf_sparse_is_async(lane->own) ? peer->member.step_next : lane->order.sum.step;
}

/* HAVE: sends the last APPLIED again if the trainer lacks it. */
static enum weft_status
has(struct wf_lane *lane, struct wf_peer *peer, uint32_t unit, uint64_t next, uint64_t begun)
{
	struct wf_sparse_peer *own = peer->own;
	uint64_t heard = next > 0 ? next - 1 : 0;
	if (next > begun + 1) {
		return wf_fail(WEFT_PROTOCOL,
			       "HAVE says that step %" PRIu64 " was applied, but %" PRIu64
			       " is the last one that the trainer has begun",
			       heard, begun);
	}
	if (heard >= next_step(lane, peer, unit)) {
		return wf_fail(WEFT_PROTOCOL,
			       "HAVE says that step %" PRIu64 " was applied, but %" PRIu64
			       " is next",
			       heard, next_step(lane, peer, unit));
	}
	own->applied_due = own->applied.step > heard;
	wf_peer_due(peer);
	return WEFT_OK;
}

static enum weft_status
check_ready(const struct wf_peer *peer, const char *message)
{
	const struct wf_sparse_peer *own = peer->own;
	if (!wf_path_has_unit(peer, 0) || !wf_answer_places_has(&peer->places, 0)) {
		return wf_fail(WEFT_PROTOCOL, "%s came before GRANT and HAVE", message);
	}
	if (own->incoming.kind != WF_INCOMING_NONE) {
		return wf_fail(WEFT_PROTOCOL, "%s: the previous message still lacks %u of %u parts",
			       message, own->incoming.count - own->incoming.next,
			       own->incoming.count);
	}
	return WEFT_OK;
}

static enum weft_status
on_push(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse *sparse = lane->own;
	enum weft_status st = wf_sparse_push_decode(head, body, &sparse->msg.push);
	if (st == WEFT_OK) {
		st = check_ready(peer, "PUSH");
	}
	return st != WEFT_OK ? st : wf_push_begin(lane, peer, &sparse->msg.push);
}

static enum weft_status
on_pull(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse *sparse = lane->own;
	enum weft_status st = wf_sparse_pull_decode(head, body, &sparse->msg.pull);
	if (st == WEFT_OK) {
		st = check_ready(peer, "PULL");
	}
	return st != WEFT_OK ? st : wf_pull_begin(lane, peer, &sparse->msg.pull);
}

static enum weft_status
on_fetch(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head,
	 const uint8_t *body)
{
	struct wf_sparse_fetch msg;
	enum weft_status st = wf_sparse_fetch_decode(head, body, &msg);
	if (st == WEFT_OK) {
		st = check_ready(peer, "FETCH");
	}
	return st != WEFT_OK ? st : wf_save_fetch(lane, peer, &msg);
}

static enum weft_status
on_restore(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head,
	   const uint8_t *body)
{
	struct wf_sparse_restore msg;
	enum weft_status st = wf_sparse_restore_decode(head, body, &msg);
	if (st == WEFT_OK) {
		st = check_ready(peer, "RESTORE");
	}
	return st != WEFT_OK ? st : wf_save_restore(lane, peer, &msg);
}

static enum weft_status
on_message(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head,
	   const uint8_t *body)
{
	struct wf_sparse_table table;
	enum weft_status st;
	switch (head->type) {
	case WF_SPARSE_PUSH:
		return on_push(lane, peer, head, body);
	case WF_SPARSE_PULL:
		return on_pull(lane, peer, head, body);
	case WF_SPARSE_FETCH:
		return on_fetch(lane, peer, head, body);
	case WF_SPARSE_RESTORE:
		return on_restore(lane, peer, head, body);
	case WF_SPARSE_TABLE:
		st = wf_sparse_table_decode(head, body, &table);
		return st != WEFT_OK ? st : wf_sparse_on_table(lane, peer, head, &table);
	default:
		return wf_fail(WEFT_PROTOCOL, "sparse message of type %u, which no lane accepts",
			       head->type);
	}
}

/* Bytes of the next part, as announced by the message. */
static uint64_t
due_bytes(const struct wf_sparse *sparse, const struct wf_sparse_peer *own)
{
	const struct wf_incoming *incoming = &own->incoming;
	const struct wf_sparse_part *part = &incoming->part[incoming->next];
	if (incoming->kind == WF_INCOMING_RESTORE) {
		return own->save.restore.bytes;
	}
	bool pushes = incoming->kind == WF_INCOMING_PUSH;
	uint64_t front_bytes = pushes ? sparse->served[part->table].front_bytes : 0;
	return part->row_count * front_bytes + part->key_bytes;
}

/* Checks that this is the next part, whole, in a slot that is free. */
static enum weft_status
check_put(const struct wf_lane *lane, const struct wf_peer *peer, const struct wf_put *put)
{
	uint32_t tag = put->tag;
	const struct wf_sparse *sparse = lane->own;
	const struct wf_sparse_peer *own = peer->own;
	const struct wf_incoming *incoming = &own->incoming;
	if (!lane->job.is_ready || incoming->kind == WF_INCOMING_NONE) {
		return wf_fail(WEFT_PROTOCOL, "PUT: no part was announced");
	}
	uint32_t part = wf_tag_slot(tag) / sparse->size.slot_count;
	if (part != incoming->next || wf_tag_step(tag) != (uint8_t)incoming->step) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: part %u of step %u (modulo 256) came in the place of part %u "
			       "of step %" PRIu64,
			       part, wf_tag_step(tag), incoming->next, incoming->step);
	}
	enum weft_status st = wf_slots_check(&peer->slots, wf_slots_of_tag(&peer->slots, tag));
	if (st != WEFT_OK) {
		return st;
	}
	uint64_t due = due_bytes(sparse, own);
	if (!wf_put_is(put, due)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: part %u has %" PRIu64 " bytes, but its message says %" PRIu64,
			       part, put->bytes, due);
	}
	return WEFT_OK;
}

/* Ignores a part of a message that was refused. */
static enum weft_status
drop_part(struct wf_peer *peer, uint32_t slot)
{
	struct wf_sparse_peer *own = peer->own;
	wf_peer_credit(peer, slot);
	if (++own->incoming.next == own->incoming.count) {
		own->incoming.kind = WF_INCOMING_NONE;
	}
	return WEFT_OK;
}

static enum weft_status
on_put(struct wf_lane *lane, struct wf_peer *peer, const struct wf_put *put)
{
	struct wf_sparse_peer *own = peer->own;
	enum weft_status st = check_put(lane, peer, put);
	if (st != WEFT_OK) {
		return st;
	}
	uint32_t slot = wf_slots_of_tag(&peer->slots, put->tag);
	wf_stats_add(&lane->stats, WF_LANE_KEY_RECEIVED_BYTES,
		     own->incoming.part[own->incoming.next].key_bytes);
	if (own->incoming.refused) {
		return drop_part(peer, slot);
	}
	if (own->incoming.kind == WF_INCOMING_PUSH) {
		return wf_push_part(lane, peer, slot, put->data);
	}
	if (own->incoming.kind == WF_INCOMING_PULL) {
		return wf_pull_part(lane, peer, slot, put->data);
	}
	return wf_save_restore_part(lane, peer, slot, put->data);
}

/* The service. */

static void
path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	struct wf_path_info path;
	(void)lane;
	wf_transport_path(peer->conn, &path);
	own->in_place = path.in_place;
}

static void
path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	own->nack_count = 0;
	own->applied_due = false;
	peer->member.held_since_ns = 0;
	if (!lane->job.is_ready) {
		return;
	}
	wf_push_path_ends(lane, peer);
	wf_pull_path_ends(lane, peer);
	wf_save_path_ends(lane, peer);
	own->incoming.kind = WF_INCOMING_NONE;
	wf_push_try_apply(lane); /* a due pull of this path may have held the step up */
}

static bool
work(struct wf_lane *lane)
{
	bool lists = wf_save_work(lane);
	return wf_push_tend(lane) || lists;
}

static void
tick(struct wf_lane *lane, uint64_t now_ns)
{
	wf_sparse_snapshot_tick(lane, now_ns, wf_push_try_apply);
}

const struct wf_table *
wf_sparse_service_table(const struct wf_lane *lane, uint32_t table)
{
	const struct wf_sparse *sparse = lane->own;
	WF_ASSERT(lane->service == &wf_sparse_service);
	return lane->job.is_ready && table < sparse->desc_count ? sparse->served[table].table
								: NULL;
}

const struct wf_lane_service wf_sparse_service = {
	.number = WF_SERVICE_SPARSE,
	.name = "sparse",
	.payload = "tables",
	.ports = "ports_num_for_sparse",
	.own_bytes = sizeof(struct wf_sparse),
	.peer_bytes = sizeof(struct wf_sparse_peer),
	.release = wf_sparse_release,
	.path_begins = path_begins,
	.path_ends = path_ends,
	.message = on_message,
	.put = on_put,
	.park = wf_push_park,
	.done = wf_pull_done,
	.next = next_step,
	.has = has,
	.flush = wf_sparse_flush,
	.work = work,
	.stands = wf_push_stands,
	.drop = wf_push_drop,
	.enter = wf_push_enter,
	.go_on = wf_push_try_apply,
	.tick = tick,
	.load = wf_sparse_load,
	.begin = wf_sparse_begin,
	.gather = wf_sparse_gather,
	.words = wf_sparse_words,
	.lines = wf_sparse_lines,
	.watch = wf_sparse_watch,
	.trace = wf_sparse_trace,
};
