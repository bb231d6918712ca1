/* SPDX-License-Identifier: Apache-2.0 */
/* service_save: rows with their state, to trainer 0 and back: FETCH is answered with runs of a
 * scan, RESTORE fills tables before the first step. Thread: the lane's. A scan lists the rows of
 * one table once, a piece at a time, in wf_save_work, and is valid as long as no step is applied.
 * In a synchronous job no step can be applied while trainer 0 reads. In asynchronous modes all
 * trainers have to wait at the end of the pass: each has the APPLIED of every push that it made, so
 * all pushes are in the tables. A trainer that goes on meanwhile makes the read fail. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"
#include "wire/little.h"
#include "wire/partition.h"

#define SCAN_ROWS 16384u /* listed between two polls */

/* What FETCH and RESTORE both require. */
static enum weft_status
check_asker(const struct wf_peer *peer, const char *message, uint64_t step)
{
	if (peer->trainer != 0) {
		return wf_fail(WEFT_INVALID, "%s came from trainer %u, but only trainer 0 sends it",
			       message, peer->trainer);
	}
	if (step > WF_TABLE_STEP_MAX) {
		return wf_fail(WEFT_INVALID, "%s: step %" PRIu64 " is above the limit of %" PRIu64,
			       message, step, (uint64_t)WF_TABLE_STEP_MAX);
	}
	return WEFT_OK;
}

static enum weft_status
refuse(struct wf_peer *peer, uint64_t request_id, uint64_t step)
{
	return wf_nack_add(peer, request_id, step, 0)
		       ? WEFT_OK
		       : wf_fail(WEFT_PROTOCOL, "FETCH or RESTORE: too many refusals");
}

/* Fetch. */

static void
end_scan(struct wf_sparse *sparse)
{
	wf_scan_destroy(sparse->save.scan);
	sparse->save.scan = NULL;
	sparse->save.prepared = false;
}

static enum weft_status
refuse_beyond(void)
{
	return wf_fail(WEFT_INVALID, "FETCH: another trainer has begun the next pass; let all of "
				     "them wait (weft_barrier) until the tables are read");
}

static enum weft_status
check_fetch(const struct wf_lane *lane, const struct wf_peer *peer,
	    const struct wf_sparse_fetch *msg)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_served *served = &sparse->served[msg->table];
	enum weft_status st = check_asker(peer, "FETCH", msg->step);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t t = 1; t < lane->peers.count && wf_sparse_is_async(sparse); t++) {
		if (sparse->peer[t].push.said.pass >= msg->pass) {
			return refuse_beyond();
		}
	}
	if (msg->step != lane->order.sum.step - 1 && !wf_sparse_is_async(sparse)) {
		return wf_fail(WEFT_INVALID,
			       "FETCH of step %" PRIu64 ", but %" PRIu64 " is the last one "
			       "applied: read tables after weft_pass_end",
			       msg->step, lane->order.sum.step - 1);
	}
	if (msg->from.partition - served->partition_first >= served->partition_count) {
		return wf_fail(WEFT_INVALID, "FETCH: partition %u belongs to another lane",
			       msg->from.partition);
	}
	return WEFT_OK;
}

/* Keeps the scan if it is of this table as it is now; otherwise makes a new one. */
static enum weft_status
need_scan(struct wf_sparse *sparse, const struct wf_sparse_fetch *msg)
{
	struct wf_save *save = &sparse->save;
	if (save->scan != NULL && save->table == msg->table && save->step == msg->step &&
	    save->version == sparse->version) {
		return WEFT_OK;
	}
	end_scan(sparse);
	save->table = msg->table;
	save->step = msg->step;
	save->version = sparse->version;
	return wf_scan_create(sparse->served[msg->table].table, &save->scan);
}

/* Refuses the FETCH, with the recorded failure as the reason. */
static bool
give_up_fetch(struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	own->save.fetching = false;
	return wf_nack_add(peer, own->save.fetch.request_id, own->save.fetch.step, 0);
}

enum weft_status
wf_save_fetch(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_fetch *msg)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	const uint64_t rows_bytes = peer->places.bytes[0];
	if (msg->table >= sparse->desc_count || own->save.fetching || msg->bytes > rows_bytes ||
	    msg->offset > rows_bytes - msg->bytes) {
		return wf_fail(WEFT_PROTOCOL,
			       "FETCH: table %u of %u, room of %u bytes at offset %" PRIu64
			       " of %" PRIu64 "%s",
			       msg->table, sparse->desc_count, msg->bytes, msg->offset, rows_bytes,
			       own->save.fetching ? ", while another is unanswered" : "");
	}
	enum weft_status st = check_fetch(lane, peer, msg);
	if (st == WEFT_OK) {
		st = need_scan(sparse, msg);
	}
	if (st != WEFT_OK) {
		return refuse(peer, msg->request_id, msg->step);
	}
	own->save.fetching = true;
	own->save.fetch = *msg;
	sparse->save.asker = peer;
	lane->turn.works = lane->turn.works || !sparse->save.prepared;
	wf_peer_due(peer);
	return WEFT_OK;
}

bool
wf_save_work(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_save *save = &sparse->save;
	if (save->scan == NULL || save->prepared) {
		return false;
	}
	enum weft_status st = save->version == sparse->version
				      ? wf_scan_prepare(save->scan, SCAN_ROWS, &save->prepared)
				      : refuse_beyond();
	if (st != WEFT_OK) {
		(void)give_up_fetch(save->asker);
		end_scan(sparse);
		return false;
	}
	if (save->prepared) {
		wf_peer_due(save->asker);
	}
	return !save->prepared;
}

/* The piece that is being written. */
struct piece {
	uint8_t *out;
	uint32_t used, bytes;
	struct wf_run_cursor at;
};

static bool
has_room(const struct piece *piece, uint64_t bytes)
{
	return bytes <= piece->bytes - piece->used;
}

/* Writes the partition's counters. False: there is no room. */
static bool
write_counters(const struct wf_table *table, struct piece *piece)
{
	uint32_t count = 0;
	const uint16_t *counter = wf_table_counters(table, piece->at.partition, &count);
	if (counter != NULL && !has_room(piece, WF_RUN_SECTION_BYTES + 2ull * count)) {
		return false;
	}
	if (counter != NULL) {
		const struct wf_run_section section = {
			.partition = piece->at.partition, .kind = WF_RUN_COUNTERS, .count = count};
		wf_run_section_put(&section, piece->out + piece->used);
		piece->used += WF_RUN_SECTION_BYTES;
		for (uint32_t i = 0; i < count; i++, piece->used += 2) {
			wf_store_u16(piece->out + piece->used, counter[i]);
		}
	}
	piece->at.kind = WF_RUN_ROWS;
	return true;
}

/* Writes rows of the partition from the cursor's key on. False: there is no room for all. */
static bool
write_rows(struct wf_scan *scan, const struct wf_row_shape *shape, struct piece *piece)
{
	const uint32_t record = (uint32_t)wf_row_record_bytes(shape);
	const uint32_t begin = piece->used;
	struct wf_run_section section = {.partition = piece->at.partition, .kind = WF_RUN_ROWS};
	struct wf_row_record row;
	bool all = true;
	(void)wf_scan_partition(scan, piece->at.partition);
	while (all && wf_scan_next(scan, &row)) {
		if (row.key < piece->at.key) {
			continue;
		}
		uint32_t front = section.count == 0 ? WF_RUN_SECTION_BYTES : 0;
		if (!has_room(piece, front + record)) {
			piece->at.key = row.key;
			all = false;
			break;
		}
		wf_row_record_put(shape, &row, piece->out + piece->used + front);
		piece->used += front + record;
		section.count++;
	}
	if (section.count > 0) {
		wf_run_section_put(&section, piece->out + begin);
	}
	return all;
}

static void
write_piece(struct wf_sparse *sparse, const struct wf_served *served, struct piece *piece)
{
	const struct wf_row_shape shape = wf_table_shape(served->table);
	const uint32_t end = served->partition_first + served->partition_count;
	while (piece->at.partition < end) {
		if (piece->at.kind == WF_RUN_COUNTERS && !write_counters(served->table, piece)) {
			return;
		}
		if (!write_rows(sparse->save.scan, &shape, piece)) {
			return;
		}
		piece->at = (struct wf_run_cursor){.partition = piece->at.partition + 1,
						   .kind = WF_RUN_COUNTERS};
	}
}

bool
wf_save_is_due(const struct wf_lane *lane, const struct wf_sparse_peer *own)
{
	return own->save.fetching && wf_sparse_of(lane)->save.prepared;
}

void
wf_save_gather(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	const struct wf_sparse_fetch *fetch = &own->save.fetch;
	if (sparse->save.version != sparse->version) {
		(void)refuse_beyond();
		(void)give_up_fetch(peer);
		end_scan(sparse);
		return;
	}
	uint32_t buffer = wf_staging_claim(&sparse->answers, peer->trainer);
	struct piece piece = {
		.out = wf_staging_at(&sparse->answers, buffer),
		.used = WF_RUN_HEAD_BYTES,
		.bytes = fetch->bytes < sparse->size.slot_bytes ? fetch->bytes
								: (uint32_t)sparse->size.slot_bytes,
		.at = fetch->from,
	};
	own->save.fetching = false;
	write_piece(sparse, &sparse->served[fetch->table], &piece);
	if (piece.used == WF_RUN_HEAD_BYTES && piece.at.partition == fetch->from.partition) {
		(void)wf_staging_release(&sparse->answers, buffer);
		(void)wf_fail(WEFT_UNSUPPORTED,
			      "table %.60s: the next row with its state, or the counters of a "
			      "partition, take more than %u bytes: give the pservers larger slots",
			      sparse->desc[fetch->table].name, piece.bytes);
		(void)wf_nack_add(peer, fetch->request_id, fetch->step, 0);
		return;
	}
	const struct wf_run_head head = {
		.request_id = fetch->request_id,
		.bytes = piece.used,
		.step = (uint32_t)sparse->version,
		.next = piece.at,
	};
	wf_run_head_put(&head, piece.out);
	own->answer = (struct wf_answer){
		.due = true,
		.buffer = buffer,
		.bytes = piece.used,
		.offset = fetch->offset,
		.tag = wf_sparse_answer_tag(fetch->request_id, WF_SPARSE_FETCH_PART, fetch->step),
	};
	if (piece.at.partition == sparse->served[fetch->table].partition_first +
					  sparse->served[fetch->table].partition_count) {
		end_scan(sparse);
	}
}

/* Restore. */

/* Whether no step was applied and no table has rows, expired ones included. */
static bool
is_untouched(const struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	bool empty = lane->order.sum.step == 1;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		empty = empty && lane->peers.all[t].member.step_next == 1;
	}
	for (uint32_t i = 0; i < sparse->desc_count && empty; i++) {
		const struct wf_table *table = sparse->served[i].table;
		empty = table == NULL ||
			wf_stats_get(wf_table_stats(table), WF_TABLE_ROWS_LIVE) == 0;
	}
	return empty;
}

static enum weft_status
set_table_steps(struct wf_sparse *sparse, uint64_t step)
{
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		enum weft_status st = sparse->served[i].table == NULL
					      ? WEFT_OK
					      : wf_table_set_step(sparse->served[i].table, step);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

/* Makes the lane continue from that step. If one table cannot, all return to step 0, where each can
 * be. */
static enum weft_status
set_step(struct wf_lane *lane, const struct wf_sparse_restore *msg)
{
	struct wf_sparse *sparse = lane->own;
	enum weft_status st = set_table_steps(sparse, msg->table_step);
	if (st != WEFT_OK) {
		enum weft_status back = set_table_steps(sparse, 0);
		WF_ASSERT(back == WEFT_OK);
		return st;
	}
	wf_order_begin(&lane->order, msg->step, msg->samples);
	sparse->version = msg->table_step;
	sparse->save.version = WF_STEP_NONE; /* rows follow that no scan has listed */
	return WEFT_OK;
}

static enum weft_status
begin_restore(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_restore *msg)
{
	struct wf_save *save = &wf_sparse_of(lane)->save;
	enum weft_status st = check_asker(peer, "RESTORE", msg->step);
	if (st == WEFT_OK) {
		st = check_asker(peer, "RESTORE", msg->table_step);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (msg->table_step != msg->step && !wf_sparse_is_async(wf_sparse_of(lane))) {
		return wf_fail(WEFT_INVALID,
			       "RESTORE: step %" PRIu64 " with rows of step %" PRIu64
			       ": they were saved by an asynchronous job; go on in that mode, or "
			       "load their values alone",
			       msg->step, msg->table_step);
	}
	bool goes_on = save->restored_by == peer->hello.incarnation &&
		       lane->order.sum.step == msg->step + 1 && lane->order.sum.heard == 0 &&
		       lane->order.sum.samples_before == msg->samples &&
		       wf_sparse_of(lane)->version == msg->table_step;
	if (goes_on) {
		return WEFT_OK;
	}
	if (!is_untouched(lane)) {
		return wf_fail(WEFT_INVALID,
			       "RESTORE: tables have been used already, step %" PRIu64
			       " is next; restore before the first pull of any trainer",
			       lane->order.sum.step);
	}
	save->restored_by = peer->hello.incarnation;
	save->restored_id = 0;
	return set_step(lane, msg);
}

static enum weft_status
put_rows(struct wf_table *table, const struct wf_row_shape *shape,
	 const struct wf_run_section *section, struct wf_save *save)
{
	const size_t record = wf_row_record_bytes(shape);
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < section->count && st == WEFT_OK; i++) {
		struct wf_row_record row;
		wf_row_record_get(shape, section->at + i * record, save->floats, &row);
		st = wf_table_put_record(table, &row);
	}
	return st;
}

static enum weft_status
put_counters(struct wf_table *table, const struct wf_run_section *section, struct wf_save *save)
{
	uint32_t count = 0;
	(void)wf_table_counters(table, section->partition, &count);
	if (count != section->count || count > WF_RUN_BYTES_MAX / 2) {
		return wf_fail(WEFT_INVALID,
			       "RESTORE: %u counters of admission, but the table has %u",
			       section->count, count);
	}
	for (uint32_t i = 0; i < count; i++) {
		save->counter[i] = wf_load_u16(section->at + 2 * (size_t)i);
	}
	return wf_table_set_counters(table, section->partition, save->counter, count);
}

static enum weft_status
put_run(struct wf_sparse *sparse, const struct wf_sparse_restore *msg, const uint8_t *data,
	uint64_t *rows)
{
	const struct wf_served *served = &sparse->served[msg->table];
	uint64_t used = 0;
	enum weft_status st = WEFT_OK;
	if (served->table == NULL) {
		return wf_fail(WEFT_INVALID, "RESTORE: no partition falls to this lane");
	}
	const struct wf_row_shape shape = wf_table_shape(served->table);
	while (used < msg->bytes && st == WEFT_OK) {
		struct wf_run_section section;
		st = wf_run_section_get(&shape, data, msg->bytes, &used, &section);
		if (st == WEFT_OK &&
		    section.partition - served->partition_first >= served->partition_count) {
			return wf_fail(WEFT_INVALID,
				       "RESTORE: partition %u belongs to another lane",
				       section.partition);
		}
		if (st == WEFT_OK && section.kind == WF_RUN_COUNTERS) {
			st = put_counters(served->table, &section, &sparse->save);
		} else if (st == WEFT_OK) {
			st = put_rows(served->table, &shape, &section, &sparse->save);
			*rows += section.count;
		}
	}
	return st;
}

static void
is_restored(struct wf_peer *peer, uint64_t rows)
{
	struct wf_sparse_peer *own = peer->own;
	own->save.restored = (struct wf_sparse_restored){.request_id = own->save.restore.request_id,
							 .rows = rows};
	own->save.restored_due = true;
	wf_peer_due(peer);
}

enum weft_status
wf_save_restore(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_restore *msg)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_incoming *incoming = &own->incoming;
	if (msg->table >= sparse->desc_count || msg->bytes > sparse->size.slot_bytes ||
	    own->save.restored_due) {
		return wf_fail(WEFT_PROTOCOL,
			       "RESTORE: table %u of %u, %u bytes in a slot of %" PRIu64,
			       msg->table, sparse->desc_count, msg->bytes, sparse->size.slot_bytes);
	}
	own->save.restore = *msg;
	incoming->kind = msg->bytes > 0 ? WF_INCOMING_RESTORE : WF_INCOMING_NONE;
	incoming->refused = false;
	incoming->step = msg->step;
	incoming->next = 0;
	incoming->count = msg->bytes > 0 ? 1 : 0;
	incoming->part[0] = (struct wf_sparse_part){.table = (uint16_t)msg->table};
	if (begin_restore(lane, peer, msg) != WEFT_OK) {
		incoming->refused = true;
		return refuse(peer, msg->request_id, msg->step);
	}
	if (msg->bytes == 0) {
		is_restored(peer, 0);
	}
	return WEFT_OK;
}

/* Puts the piece into its table. One that was put before the path broke is only acknowledged
 * again. */
enum weft_status
wf_save_restore_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot, const void *data)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	uint64_t rows = 0;
	enum weft_status st = WEFT_OK;
	own->incoming.kind = WF_INCOMING_NONE;
	if (own->save.restore.request_id > sparse->save.restored_id) {
		st = put_run(sparse, &own->save.restore, data, &rows);
	}
	wf_peer_credit(peer, slot);
	if (st != WEFT_OK) {
		return refuse(peer, own->save.restore.request_id, own->save.restore.step);
	}
	sparse->save.restored_id = own->save.restore.request_id;
	is_restored(peer, rows);
	return WEFT_OK;
}

void
wf_save_path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	if (own->save.fetching) {
		end_scan(sparse);
	}
	own->save.fetching = false;
	own->save.restored_due = false;
}

void
wf_save_release(struct wf_sparse *sparse)
{
	end_scan(sparse);
}
