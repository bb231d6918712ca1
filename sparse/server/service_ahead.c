/* SPDX-License-Identifier: Apache-2.0 */
/* service_ahead: rows that are sent before the step that they were asked for. While trainers
 * compute and push step s, a lane PUTs the rows of pulls for s as they are after s - 1. When s is
 * applied, rows whose keys it pushed, and a few others, are sent again in CHANGED, never by another
 * PUT: of two PUTs to one place an RDMA card may place the first one last. In a table whose rows
 * nothing but a push changes (wf_table_look_ahead), all other rows are right as they were sent, so
 * the trainer ends up with the bits of step s. It is done when nothing else is to be done for the
 * trainer. Synchronous mode only. Thread: the lane's. */
#include <string.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"
#include "wire/partition.h"

#define CHANGED_SHARE 4u /* it is of no use where more than one row in so many changed */
#define REST_MAX 64u     /* pulls without, after one of which much has changed */

void
wf_pull_ahead_begin(const struct wf_sparse *sparse, struct wf_pull *pull, bool allowed)
{
	pull->ahead = (struct wf_pull_ahead){.allowed = allowed && !wf_sparse_is_async(sparse)};
}

/* Whether the step of the pull is the one that is being pushed. Nothing is sent ahead while a
 * message of the trainer arrives: a push first of all. */
static bool
may_send(const struct wf_lane *lane, const struct wf_sparse_peer *own, const struct wf_pull *pull)
{
	return own->incoming.kind == WF_INCOMING_NONE && pull->ahead.allowed && !pull->is_due &&
	       pull->ahead.sent < pull->part_count && pull->step == lane->order.sum.step;
}

static struct wf_pull *
find_pull(const struct wf_lane *lane, const struct wf_sparse_peer *own)
{
	for (uint32_t i = 0; i < own->pulls.count; i++) {
		if (may_send(lane, own, own->pulls.order[i])) {
			return own->pulls.order[i];
		}
	}
	return NULL;
}

bool
wf_pull_ahead_may_send(const struct wf_lane *lane, const struct wf_peer *peer)
{
	const struct wf_sparse *sparse = lane->own;
	return find_pull(lane, peer->own) != NULL &&
	       wf_staging_has_free(&sparse->answers, peer->trainer);
}

bool
wf_pull_ahead_send(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_pull *pull = find_pull(lane, own);
	if (pull == NULL || !wf_staging_has_free(&sparse->answers, peer->trainer)) {
		return false;
	}
	if (pull->ahead.sent == 0 && own->use.rest > 0) {
		own->use.rest--;
		pull->ahead.allowed = false;
		return false;
	}
	struct wf_key_cursor from = pull->ahead.sent == 0 ? pull->from : pull->ahead.from;
	const struct wf_pull_part *part = &pull->part[pull->ahead.sent];
	if (wf_sparse_changed_most(sparse->served[part->table].row_bytes) == 0) {
		pull->ahead.allowed = false; /* a row that changes would not fit a message */
		return false;
	}
	const struct wf_gather what = {
		.cells = &own->pulls.cells,
		.table = part->table,
		.row_count = part->row_count,
		.ahead = true,
		.past = wf_pull_goes_past(sparse, own, part),
	};
	uint32_t buffer = wf_staging_claim(&sparse->answers, peer->trainer);
	uint64_t entered = wf_turn_enter(&lane->turn);
	enum weft_status st =
		wf_pull_gather(sparse, &what, &from, wf_staging_at(&sparse->answers, buffer));
	(void)wf_turn_leave(&lane->turn, WF_LANE_GATHER_TIME_NS, entered);
	if (st != WEFT_OK) {
		(void)wf_staging_release(&sparse->answers, buffer);
		pull->ahead.allowed = false;
		return false;
	}
	wf_pull_answer(sparse, own, pull, pull->ahead.sent++, buffer, pull->step - 1);
	pull->ahead.from = from;
	return true;
}

void
wf_pull_ahead_go_on(struct wf_lane *lane, struct wf_peer *peer)
{
	if (wf_pull_ahead_may_send(lane, peer)) {
		wf_peer_due(peer);
	}
}

/* The step. */

static uint32_t
bit_of(uint32_t table, uint64_t key)
{
	return (uint32_t)wf_key_mix(key + table) % WF_PUSHED_BITS;
}

static bool
was_sent_ahead(const struct wf_lane *lane, uint64_t step)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_pulls *pulls = &sparse->peer[t].pulls;
		for (uint32_t i = 0; i < pulls->count; i++) {
			if (pulls->order[i]->ahead.sent > 0 && pulls->order[i]->step == step) {
				return true;
			}
		}
	}
	return false;
}

static void
note_keys(uint64_t *pushed, uint32_t table, const struct wf_table_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		uint32_t bit = bit_of(table, batch->key[i]);
		pushed[bit / 64] |= (uint64_t)1 << bit % 64;
	}
}

void
wf_pull_ahead_note_step(struct wf_lane *lane, uint64_t step)
{
	struct wf_sparse *sparse = lane->own;
	if (!was_sent_ahead(lane, step)) {
		return;
	}
	memset(sparse->corrections.pushed, 0, WF_PUSHED_BITS / 8);
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		for (uint32_t b = 0; b < sparse->deal.next[i]; b++) {
			note_keys(sparse->corrections.pushed, i, &sparse->served[i].batch[b]);
		}
	}
}

/* Corrections. */

static bool
has_changed(const struct wf_sparse *sparse, uint32_t table, uint64_t key)
{
	uint32_t bit = bit_of(table, key);
	return (sparse->corrections.pushed[bit / 64] >> bit % 64 & 1) != 0;
}

static uint32_t
count_changed(const struct wf_sparse *sparse, const struct wf_key_cells *cells,
	      const struct wf_pull *pull)
{
	const struct wf_pull_part *part = &pull->part[pull->next];
	struct wf_key_cursor from = pull->from;
	uint32_t count = 0;
	for (uint32_t i = 0; i < part->row_count; i++) {
		count += has_changed(sparse, part->table, cells->cell[from.cell].key[from.at]);
		wf_keys_step(cells, &from, 1);
	}
	return count;
}

/* Lists the next rows that have changed, as many as a message has room for, with their keys, and
 * moves the cursor and `row` on. */
static void
list_changed(struct wf_sparse *sparse, const struct wf_key_cells *cells, const struct wf_pull *pull,
	     struct wf_key_cursor *from, uint32_t *row)
{
	const struct wf_pull_part *part = &pull->part[pull->next];
	struct wf_sparse_changed *msg = &sparse->corrections.msg;
	const uint32_t most = wf_sparse_changed_most(msg->row_bytes);
	msg->row_count = 0;
	for (; *row < part->row_count; (*row)++) {
		uint64_t key = cells->cell[from->cell].key[from->at];
		if (has_changed(sparse, part->table, key)) {
			if (msg->row_count == most) {
				break;
			}
			sparse->corrections.key[msg->row_count] = key;
			msg->row[msg->row_count++] = *row;
		}
		wf_keys_step(cells, from, 1);
	}
	msg->last = *row == part->row_count;
}

static enum weft_status
read_changed(struct wf_sparse *sparse, const struct wf_pull *pull)
{
	const uint32_t table = pull->part[pull->next].table;
	const struct wf_served *served = &sparse->served[table];
	struct wf_sparse_changed *msg = &sparse->corrections.msg;
	const struct wf_table_lookup lookup = {
		.key = sparse->corrections.key,
		.count = msg->row_count,
		.out = served->half != NULL ? sparse->wide : sparse->corrections.row,
		.create = pull->create,
		.again = true,
	};
	msg->values = (const uint8_t *)sparse->corrections.row;
	enum weft_status st = wf_table_lookup(served->table, &lookup);
	if (served->half != NULL && st == WEFT_OK) {
		served->half->narrow((uint16_t *)(void *)sparse->corrections.row, sparse->wide,
				     lookup.count * sparse->desc[table].set.dim);
	}
	return st;
}

/* Where much of what was sent ahead has to come again, nothing is, for a while. */
static void
judge_use(struct wf_ahead_use *use, bool was_useful)
{
	use->rested = was_useful ? 0 : use->rested == 0 ? 1 : 2 * use->rested;
	use->rested = use->rested < REST_MAX ? use->rested : REST_MAX;
	use->rest = use->rested;
}

bool
wf_pull_ahead_end_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t at)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_key_cells *cells = &own->pulls.cells;
	struct wf_pull *pull = own->pulls.order[at];
	if (!pull->ahead.judged) {
		pull->ahead.judged = true;
		judge_use(&own->use, count_changed(sparse, cells, pull) <=
					     pull->part[0].row_count / CHANGED_SHARE);
	}
	struct wf_key_cursor from = pull->from;
	uint32_t row = pull->ahead.row;
	sparse->corrections.msg.request_id = pull->request_id;
	sparse->corrections.msg.step = pull->step;
	sparse->corrections.msg.part = pull->next;
	sparse->corrections.msg.row_bytes = sparse->served[pull->part[pull->next].table].row_bytes;
	list_changed(sparse, cells, pull, &from, &row);
	enum weft_status st = read_changed(sparse, pull);
	WF_ASSERT(st == WEFT_OK); /* the keys were checked when they came */
	wf_sparse_changed_encode(&sparse->corrections.msg, &lane->msg);
	if (!wf_control_send(peer, &lane->msg)) {
		return false;
	}
	wf_pull_give_keys(cells, pull, from);
	pull->ahead.row = row;
	if (sparse->corrections.msg.last) {
		pull->ahead.row = 0;
		wf_pull_part_ends(sparse, own, at);
	}
	return true;
}
