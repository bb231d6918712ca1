/* SPDX-License-Identifier: Apache-2.0 */
/* shm_send: an accepted operation goes into the way at once if there is room and nothing waits
 * before it, otherwise into a queue. A message, and a PUT that is small or of memory that cannot be
 * shared, is copied: its buffer is then free. A longer PUT is published: the peer reads it where it
 * is, and completes it. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <string.h>

#include "base/crc32c.h"

/* post rings at once after this many bytes; less is announced together by the next poll. */
#define KICK_BYTES (16u << 10)
#define LOG_PERIOD_NS WF_NS_PER_S

WF_STATIC_ASSERT((WF_SHM_CELLS & (WF_SHM_CELLS - 1)) == 0, "a power of two");
WF_STATIC_ASSERT((WF_SHM_DATA_BYTES & (WF_SHM_DATA_BYTES - 1)) == 0, "a power of two");
WF_STATIC_ASSERT(WF_SHM_DATA_BYTES >= 4 * WF_SHM_CHUNK_BYTES, "a part always fits");
WF_STATIC_ASSERT(WF_SHM_CHUNK_BYTES >= WF_MSG_BODY_MAX, "so does a message");

static void
list_add(struct wf_shm_list *list, struct wf_shm_entry *entry)
{
	entry->next = NULL;
	if (list->last == NULL) {
		list->first = entry;
	} else {
		list->last->next = entry;
	}
	list->last = entry;
}

static struct wf_shm_entry *
list_pop(struct wf_shm_list *list)
{
	struct wf_shm_entry *entry = list->first;
	list->first = entry->next;
	if (list->first == NULL) {
		list->last = NULL;
	}
	return entry;
}

static void
entry_done(struct wf_shm_conn *c, struct wf_shm_entry *entry, bool lost)
{
	entry->state = WF_SHM_ENTRY_DONE;
	entry->lost = lost;
	list_add(&c->tx.done, entry);
}

/* ---- the way ---- */

bool
wf_shm_tx_look(struct wf_shm_conn *c)
{
	struct wf_shm_tx *tx = &c->tx;
	uint64_t consumed = atomic_load_explicit(&c->tx_way->consumed,
						 memory_order_seq_cst); /* S2, S4: consume */
	if (consumed < tx->consumed || consumed > tx->published) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "it has consumed %llu of %llu cells",
			     (unsigned long long)consumed, (unsigned long long)tx->published);
		return false;
	}
	if (consumed > tx->consumed) {
		tx->data_tail = tx->data_end[(consumed - 1) % WF_SHM_CELLS];
		tx->consumed = consumed;
	}
	return true;
}

static bool
has_cell(const struct wf_shm_tx *tx)
{
	return tx->published - tx->consumed < WF_SHM_CELLS;
}

/* Finds a position for `bytes` in one piece. Returns false if there is no room now. */
static bool
find_data(struct wf_shm_tx *tx, uint64_t bytes, uint64_t *at)
{
	if (tx->consumed == tx->published) {
		tx->data_head = 0; /* reuse the part that is in cache */
		tx->data_tail = 0;
	}
	uint64_t from = tx->data_head;
	uint64_t left = WF_SHM_DATA_BYTES - (from & (WF_SHM_DATA_BYTES - 1));
	if (left < bytes) {
		from += left;
	}
	if (from + bytes - tx->data_tail > WF_SHM_DATA_BYTES) {
		return false;
	}
	*at = from;
	return true;
}

/* Whether there is room for a cell with `bytes` of payload. `*at` is their position if they do not
 * fit into the cell. */
static bool
find_room(struct wf_shm_conn *c, uint64_t bytes, uint64_t *at)
{
	struct wf_shm_tx *tx = &c->tx;
	bool inlined = bytes <= WF_SHM_INLINE_BYTES;
	*at = tx->data_head;
	if (has_cell(tx) && (inlined || find_data(tx, bytes, at))) {
		return true;
	}
	return wf_shm_tx_look(c) && has_cell(tx) && (inlined || find_data(tx, bytes, at));
}

/* Fills the next cell, for which find_room has found room. `payload_bytes` 0: only the note. */
static void
publish(struct wf_shm_conn *c, const union wf_shm_note *note, const void *payload,
	uint64_t payload_bytes, uint64_t at)
{
	struct wf_shm_tx *tx = &c->tx;
	WF_ASSERT(has_cell(tx));
	struct wf_shm_cell *cell = &c->tx_way->cell[tx->published % WF_SHM_CELLS];
	if (payload_bytes > WF_SHM_INLINE_BYTES) {
		uint64_t from = at & (WF_SHM_DATA_BYTES - 1);
		WF_ASSERT(payload_bytes <= WF_SHM_DATA_BYTES - from);
		memcpy(c->tx_way->data + from, payload, payload_bytes);
		tx->data_head = at + payload_bytes;
	} else if (payload_bytes > 0) {
		memcpy(cell->data, payload, payload_bytes);
	}
	memcpy(&cell->note, note, sizeof(*note));
	tx->data_end[tx->published % WF_SHM_CELLS] = tx->data_head;
	tx->published++;
	atomic_store_explicit(&cell->seq, tx->published, memory_order_release); /* S1: next_cell */
	tx->dirty = true;
}

static uint8_t
where_of(uint64_t bytes)
{
	return bytes <= WF_SHM_INLINE_BYTES ? WF_SHM_INLINE : WF_SHM_DATA;
}

static bool
publish_msg(struct wf_shm_conn *c, const struct wf_head *head, const void *body, size_t bytes)
{
	uint64_t at = 0;
	if (!find_room(c, bytes, &at)) {
		return false;
	}
	union wf_shm_note note = {.msg = {
					  .kind = WF_SHM_MSG,
					  .where = where_of(bytes),
					  .service = head->service,
					  .type = head->type,
					  .flags = head->flags,
					  .bytes = (uint32_t)bytes,
					  .data_at = (uint32_t)(at & (WF_SHM_DATA_BYTES - 1)),
					  .slice = head->slice,
					  .region = head->region,
					  .request_id = head->request_id,
					  .step = head->step,
					  .offset = head->offset,
					  .epoch = head->epoch,
				  }};
	publish(c, &note, body, bytes, at);
	c->t->medium.info.msgs_sent++;
	c->t->medium.info.bytes_sent += WF_HEAD_BYTES + bytes;
	return true;
}

/* Makes sure that the peer has the memfd of the entry's region. */
static bool
export_region(struct wf_shm_conn *c, const struct wf_shm_entry *entry)
{
	const struct wf_region *r = &c->t->medium.regions.region[entry->region - 1];
	uint64_t generation = c->t->medium.regions.generation[entry->region - 1];
	if (r->memfd < 0) {
		return false;
	}
	uint64_t *exported = &c->tx.exported[entry->region - 1];
	if (*exported == generation) {
		return true;
	}
	struct wf_shm_packet packet = {
		.type = WF_SHM_REGION,
		.region = wf_shm_region_id(entry->region, generation),
		.bytes = r->bytes,
	};
	int err = wf_shm_send(c->fd, &packet, r->memfd);
	if (err == 0) {
		*exported = generation;
	} else if (wf_log_limit_pass(&c->t->export_log, wf_loop_now_ns(&c->t->medium.loop),
				     LOG_PERIOD_NS)) {
		wf_log(c->t->medium.transport.env, WF_LOG_INFO,
		       "shm: %s: region %u cannot be passed on, errno %d; its PUTs are copied",
		       c->life.peer, entry->region, err);
	}
	return err == 0;
}

static struct wf_shm_put
note_of(const struct wf_shm_entry *entry)
{
	return (struct wf_shm_put){
		.kind = entry->sent == 0 ? WF_SHM_PUT : WF_SHM_MORE,
		.tag = entry->tag,
		.grant = entry->grant,
		.bytes = entry->bytes,
		.offset = entry->offset,
		.nonce = entry->nonce,
	};
}

/* Publishes a PUT: from now on the peer may read the source, until its completion. */
static bool
publish_ref(struct wf_shm_conn *c, struct wf_shm_entry *entry)
{
	uint64_t at = 0;
	if (c->tx.ref_count == WF_SHM_REFS || !find_room(c, 0, &at)) {
		return false;
	}
	const struct wf_region *r = &c->t->medium.regions.region[entry->region - 1];
	uint64_t generation = c->t->medium.regions.generation[entry->region - 1];
	union wf_shm_note note = {.put = note_of(entry)};
	note.put.where = WF_SHM_REF;
	note.put.region = wf_shm_region_id(entry->region, generation);
	note.put.op = (uint32_t)(entry - c->tx.entry);
	note.put.at = (uint64_t)(entry->src - (const uint8_t *)r->base);
	entry->position = c->tx.published;
	entry->state = WF_SHM_ENTRY_PUBLISHED;
	c->tx.ref_count++;
	publish(c, &note, NULL, 0, at);
	c->t->medium.info.puts_sent++;
	c->t->medium.info.bytes_sent += WF_HEAD_BYTES + entry->bytes;
	return true;
}

/* Writes a PUT to the way, part by part. Returns true if all of it is written. */
static bool
publish_parts(struct wf_shm_conn *c, struct wf_shm_entry *entry)
{
	while (entry->sent < entry->bytes) {
		uint64_t n = entry->bytes - entry->sent;
		n = n < WF_SHM_CHUNK_BYTES ? n : WF_SHM_CHUNK_BYTES;
		uint64_t at = 0;
		if (!find_room(c, n, &at)) {
			return false;
		}
		union wf_shm_note note = {.put = note_of(entry)};
		note.put.where = where_of(n);
		note.put.part_bytes = (uint32_t)n;
		note.put.at = at & (WF_SHM_DATA_BYTES - 1);
		publish(c, &note, entry->src + entry->sent, n, at);
		entry->sent += n;
		c->t->medium.info.bytes_sent += n;
	}
	c->t->medium.info.puts_sent++;
	c->t->medium.info.bytes_sent += WF_HEAD_BYTES;
	entry->state = WF_SHM_ENTRY_COPIED;
	return true;
}

/* Returns true if the way has all of it: it is copied, or published until its completion. */
static bool
publish_put(struct wf_shm_conn *c, struct wf_shm_entry *entry)
{
	bool copied = entry->sent > 0 || entry->bytes <= WF_SHM_COPY_BYTES;
	if (copied || !export_region(c, entry)) {
		return publish_parts(c, entry);
	}
	return publish_ref(c, entry);
}

/* ---- the queue ---- */

static bool
ring_alloc(struct wf_shm_tx *tx, uint64_t bytes, struct wf_shm_entry *entry)
{
	if (tx->ring_head == tx->ring_tail) {
		tx->ring_head = 0;
		tx->ring_tail = 0;
	}
	uint64_t at = tx->ring_head;
	uint64_t left = WF_SHM_MSG_RING_BYTES - (at & (WF_SHM_MSG_RING_BYTES - 1));
	if (left < bytes) {
		at += left;
	}
	if (at + bytes - tx->ring_tail > WF_SHM_MSG_RING_BYTES) {
		return false;
	}
	entry->ring_at = at;
	entry->ring_end = at + bytes;
	tx->ring_head = entry->ring_end;
	return true;
}

static uint8_t *
ring_bytes(const struct wf_shm_tx *tx, const struct wf_shm_entry *entry)
{
	return tx->ring + (entry->ring_at & (WF_SHM_MSG_RING_BYTES - 1));
}

static bool
publish_queued(struct wf_shm_conn *c, struct wf_shm_entry *entry)
{
	if (entry->is_put) {
		bool all = publish_put(c, entry);
		if (entry->state == WF_SHM_ENTRY_COPIED) {
			entry_done(c, entry, false);
		}
		return all;
	}
	struct wf_head head;
	const uint8_t *from = ring_bytes(&c->tx, entry);
	memcpy(&head, from, sizeof(head));
	if (!publish_msg(c, &head, from + sizeof(head), entry->bytes)) {
		return false;
	}
	c->tx.ring_tail = entry->ring_end;
	entry_done(c, entry, false);
	return true;
}

void
wf_shm_flush(struct wf_shm_conn *c)
{
	struct wf_shm_tx *tx = &c->tx;
	while (tx->queue.first != NULL && c->life.state < WF_LIFE_DYING) {
		/* Removed from the queue first, because it joins another list when it is done. */
		struct wf_shm_entry *entry = tx->queue.first;
		struct wf_shm_entry *next = entry->next;
		if (!publish_queued(c, entry)) {
			return;
		}
		tx->queue.first = next;
		if (next == NULL) {
			tx->queue.last = NULL;
		}
	}
}

static bool
post_send(struct wf_shm_conn *c, const struct wf_op *op, struct wf_shm_entry *entry)
{
	struct wf_shm_tx *tx = &c->tx;
	entry->bytes = op->body_bytes;
	if (tx->queue.first == NULL && publish_msg(c, op->head, op->body, op->body_bytes)) {
		entry_done(c, entry, false);
		return true;
	}
	if (c->life.state >= WF_LIFE_DYING ||
	    !ring_alloc(tx, sizeof(*op->head) + op->body_bytes, entry)) {
		return false;
	}
	uint8_t *to = ring_bytes(tx, entry);
	memcpy(to, op->head, sizeof(*op->head));
	if (op->body_bytes > 0) {
		memcpy(to + sizeof(*op->head), op->body, op->body_bytes);
	}
	list_add(&tx->queue, entry);
	return true;
}

static bool
post_put(struct wf_shm_conn *c, const struct wf_op *op, struct wf_shm_entry *entry)
{
	entry->is_put = true;
	entry->region = op->region;
	entry->tag = op->tag;
	entry->src = op->src;
	entry->bytes = op->bytes;
	entry->offset = op->offset;
	wf_grant_key_read(&op->key, &entry->grant, &entry->nonce);
	if (c->tx.queue.first == NULL && publish_put(c, entry)) {
		if (entry->state == WF_SHM_ENTRY_COPIED && op->copied == NULL) {
			entry_done(c, entry, false);
		}
		return true;
	}
	if (c->life.state >= WF_LIFE_DYING) {
		return false;
	}
	list_add(&c->tx.queue, entry);
	return true;
}

static bool
post_op(struct wf_life *life, const struct wf_op *op)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	struct wf_shm_tx *tx = &c->tx;
	struct wf_shm_entry *entry = tx->free;
	if (entry == NULL) {
		return false;
	}
	struct wf_shm_entry *next = entry->next;
	*entry = (struct wf_shm_entry){.cookie = op->cookie, .state = WF_SHM_ENTRY_QUEUED};
	bool taken = op->kind == WF_OP_SEND ? post_send(c, op, entry) : post_put(c, op, entry);
	if (taken && entry->state != WF_SHM_ENTRY_COPIED) {
		tx->free = next;
		return true;
	}
	if (taken) {
		*op->copied = true; /* and needs no entry */
	}
	entry->state = WF_SHM_ENTRY_FREE;
	entry->next = next;
	return taken;
}

enum weft_status
wf_shm_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct wf_shm_conn *c = wf_shm_conn_of(conn);
	uint64_t bytes = c->t->medium.info.bytes_sent;
	enum weft_status st = wf_life_post(&c->life, ops, op_count, taken, post_op);
	if (c->t->medium.info.bytes_sent - bytes >= KICK_BYTES && c->life.state == WF_LIFE_UP) {
		wf_shm_conn_kick(c);
	}
	return st;
}

/* ---- the end of operations ---- */

void
wf_shm_complete(struct wf_shm_conn *c)
{
	struct wf_shm_tx *tx = &c->tx;
	while (tx->ref_count > 0) {
		uint64_t word = atomic_load_explicit(
			&c->tx_way->completion[tx->completed % WF_SHM_REFS],
			memory_order_acquire); /* S3: wf_shm_completion_write */
		if (word >> 32 != (uint32_t)(tx->completed + 1)) {
			return;
		}
		uint32_t op = (uint32_t)word;
		if (op >= c->t->medium.opts.op_max ||
		    tx->entry[op].state != WF_SHM_ENTRY_PUBLISHED) {
			wf_life_down(&c->life, WEFT_PROTOCOL,
				     "it has completed operation %u, which it does not have", op);
			return;
		}
		tx->completed++;
		tx->ref_count--;
		entry_done(c, &tx->entry[op], false);
	}
}

void
wf_shm_emit_done(struct wf_shm_conn *c, struct wf_events *events)
{
	struct wf_shm_tx *tx = &c->tx;
	while (tx->done.first != NULL && !wf_events_full(events)) {
		struct wf_shm_entry *entry = list_pop(&tx->done);
		struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_DONE);
		event->done.cookie = entry->cookie;
		event->done.status = entry->lost ? WEFT_LOST : WEFT_OK;
		*entry = (struct wf_shm_entry){.next = tx->free};
		tx->free = entry;
	}
}

bool
wf_shm_tx_idle(const struct wf_shm_conn *c)
{
	return c->tx.queue.first == NULL && c->tx.ref_count == 0;
}

/* How far the peer has consumed now, regardless of earlier readings. */
static uint64_t
consumed_now(const struct wf_shm_conn *c)
{
	return c->segment == NULL ? 0
				  : atomic_load_explicit(&c->tx_way->consumed,
							 memory_order_seq_cst); /* S4: consume */
}

bool
wf_shm_give_up(struct wf_shm_conn *c, bool wait)
{
	struct wf_shm_tx *tx = &c->tx;
	while (tx->queue.first != NULL) {
		entry_done(c, list_pop(&tx->queue), true);
	}
	if (tx->ref_count > 0) {
		wf_shm_complete(c);
	}
	uint64_t consumed = consumed_now(c);
	for (uint32_t i = 0; i < c->t->medium.opts.op_max && tx->ref_count > 0; i++) {
		struct wf_shm_entry *entry = &tx->entry[i];
		bool held = entry->position < consumed;
		if (entry->state == WF_SHM_ENTRY_PUBLISHED && !(wait && held)) {
			tx->ref_count--;
			entry_done(c, entry, !held);
		}
	}
	return tx->ref_count == 0;
}
