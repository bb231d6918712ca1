/* SPDX-License-Identifier: Apache-2.0 */
/* shm_recv: from cells to events. A note is copied out of its cell before anything in it is read,
 * and a message's body before it is shown to the user: the peer may write there at any time.
 *
 * A published PUT is read in the peer's memory. Its bytes are valid as long as the peer has to keep
 * what it posted, which ends with WF_SHM_NOW. So each PUT is marked as consumed first, and then the
 * peer's `closing` word is read once more: either this end sees the word and drops the PUT, or the
 * peer sees that it was consumed, and waits (shm_send.c, wf_shm_give_up). Thread: the transport's
 * owner. */
#include "transport/shm/shm_internal.h"

#include <string.h>

#include "base/crc32c.h"
#include "transport/shm/shm_copy.h"

#define RING_CELLS (WF_SHM_CELLS / 4)
#define RING_BYTES (WF_SHM_DATA_BYTES / 4)
WF_STATIC_ASSERT(RING_BYTES + 3 * WF_SHM_CHUNK_BYTES <= WF_SHM_DATA_BYTES,
		 "more lies in data without room, whatever its ends leave over");

enum step {
	STEP_ON,   /* something was consumed: continue */
	STEP_NONE, /* no cell has arrived */
	STEP_ROOM, /* room for events is needed, or another turn */
	STEP_DOWN,
};

/* There is room again. A peer that waits for room has filled all cells, or most of the data, so it
 * is enough to ring after a part of either: a peer that waits for an answer is not woken for less.
 */
static void
make_room(struct wf_shm_conn *c, uint64_t bytes)
{
	struct wf_shm_rx *rx = &c->rx;
	atomic_store_explicit(&c->rx_way->consumed, rx->next,
			      memory_order_release); /* S2: wf_shm_tx_look */
	rx->rung_bytes += bytes;
	if (rx->next - rx->rung >= RING_CELLS || rx->rung_bytes >= RING_BYTES) {
		rx->rung = rx->next;
		rx->rung_bytes = 0;
		c->tx.dirty = true;
	}
}

/* All cells before `next` are consumed, and from here on the peer must not take a published PUT
 * back. */
static void
consume(struct wf_shm_conn *c)
{
	atomic_store_explicit(&c->rx_way->consumed, c->rx.next,
			      memory_order_seq_cst); /* S2, S4: wf_shm_tx_look */
	c->tx.dirty = true;
}

static enum wf_shm_closing
peer_closing(const struct wf_shm_conn *c)
{
	/* S4: the peer stores its word, then looks at what was consumed. */
	uint32_t word = atomic_load_explicit(&c->peer_end->closing, memory_order_seq_cst);
	return word > WF_SHM_BROKEN ? WF_SHM_BROKEN : (enum wf_shm_closing)word;
}

/* The PUT is complete. */
static enum step
put_finish(struct wf_shm_conn *c, struct wf_events *events)
{
	struct wf_shm_rx *rx = &c->rx;
	rx->put_open = false;
	wf_grants_landed(&c->life.grants, &rx->put,
			 wf_events_add(events, &c->life.conn, WF_EVENT_PUT));
	c->t->medium.info.puts_received++;
	return STEP_ON;
}

/* A published PUT was read completely, or is lent: it is valid if the peer still has to keep it. */
static enum step
ref_finish(struct wf_shm_conn *c, struct wf_events *events)
{
	c->rx.next++;
	consume(c);
	enum wf_shm_closing closing = peer_closing(c);
	if (closing >= WF_SHM_NOW) {
		wf_shm_conn_ended(c, closing);
		return STEP_DOWN;
	}
	if (c->rx.put_src != NULL) {
		c->rx.put_src = NULL;
		wf_shm_completion_write(c, c->rx.put_op);
	}
	return put_finish(c, events);
}

/* Copies a published PUT into its place, a part in each turn. */
static enum step
ref_step(struct wf_shm_conn *c, struct wf_events *events, uint64_t budget)
{
	struct wf_shm_rx *rx = &c->rx;
	uint64_t n = rx->put.left < budget ? rx->put.left : budget;
	if (n >= WF_SHM_PAST_MIN && rx->foreign_bytes >= WF_SHM_PAST_BYTES) {
		wf_shm_copy_past(rx->put.at, rx->put_src, n);
	} else {
		memcpy(rx->put.at, rx->put_src, n);
	}
	rx->put.at += n;
	rx->put_src += n;
	rx->put.left -= n;
	c->t->medium.info.bytes_received += n;
	if (rx->put.left > 0 || wf_events_full(events)) {
		return STEP_ROOM;
	}
	return ref_finish(c, events);
}

static enum step
bad_cell(struct wf_shm_conn *c, const char *what)
{
	wf_life_down(&c->life, WEFT_PROTOCOL, "cell %llu: %s", (unsigned long long)c->rx.next,
		     what);
	return STEP_DOWN;
}

/* The payload of a cell; NULL: the note is invalid. */
static const uint8_t *
payload(const struct wf_shm_conn *c, const struct wf_shm_cell *cell, uint8_t where, uint64_t at,
	uint32_t bytes)
{
	if (where == WF_SHM_INLINE) {
		return bytes <= WF_SHM_INLINE_BYTES ? cell->data : NULL;
	}
	if (where == WF_SHM_DATA && at <= WF_SHM_DATA_BYTES && bytes <= WF_SHM_DATA_BYTES - at) {
		return c->rx_way->data + at;
	}
	return NULL;
}

static void
fill_head(struct wf_head *head, const struct wf_shm_msg *msg, const uint8_t *body)
{
	*head = (struct wf_head){
		.version = WF_WIRE_VERSION,
		.service = msg->service,
		.type = msg->type,
		.flags = msg->flags,
		.body_bytes = msg->bytes,
		.request_id = msg->request_id,
		.step = msg->step,
		.slice = msg->slice,
		.region = msg->region,
		.offset = msg->offset,
		.epoch = msg->epoch,
	};
	if ((msg->flags & WF_HEAD_PAYLOAD_CRC) != 0) {
		head->payload_crc = wf_crc32c(0, body, msg->bytes);
	}
}

static bool
msg_is_sound(const struct wf_shm_msg *msg)
{
	return msg->bytes <= WF_MSG_BODY_MAX && msg->service != WF_SERVICE_TRANSPORT &&
	       (msg->flags & ~(unsigned)WF_HEAD_FLAGS_KNOWN) == 0;
}

static enum step
msg_step(struct wf_shm_conn *c, struct wf_events *events, const struct wf_shm_cell *cell,
	 const struct wf_shm_msg *msg)
{
	struct wf_shm *t = c->t;
	const uint8_t *from = payload(c, cell, msg->where, msg->data_at, msg->bytes);
	if (from == NULL || !msg_is_sound(msg)) {
		return bad_cell(c, "no message is like that");
	}
	if (wf_events_full(events) || t->msg_count == WF_SHM_MSGS_MAX ||
	    msg->bytes > WF_SHM_BODIES_BYTES - t->body_bytes) {
		return STEP_ROOM;
	}
	uint8_t *body = t->bodies + t->body_bytes;
	memcpy(body, from, msg->bytes);
	t->body_bytes += (msg->bytes + 7u) & ~7u;
	struct wf_head *head = &t->heads[t->msg_count++];
	fill_head(head, msg, body);
	struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_MSG);
	event->msg.head = head;
	event->msg.body = body;
	t->medium.info.msgs_received++;
	t->medium.info.bytes_received += WF_HEAD_BYTES + msg->bytes;
	c->rx.next++;
	return STEP_ON;
}

/* Handles a part of a PUT that comes through the way. */
static enum step
part_step(struct wf_shm_conn *c, struct wf_events *events, const struct wf_shm_cell *cell,
	  const struct wf_shm_put *put)
{
	struct wf_shm_rx *rx = &c->rx;
	const uint8_t *from = payload(c, cell, put->where, put->at, put->part_bytes);
	if (from == NULL || put->part_bytes == 0 || put->part_bytes > rx->put.left) {
		return bad_cell(c, "no part of a PUT is like that");
	}
	memcpy(rx->put.at, from, put->part_bytes);
	rx->put.at += put->part_bytes;
	rx->put.left -= put->part_bytes;
	rx->next++;
	c->t->medium.info.bytes_received += put->part_bytes;
	return rx->put.left > 0 ? STEP_ON : put_finish(c, events);
}

/* Whether the peer still has to keep the PUT, and its region, which is sent before it, has arrived.
 */
static bool
ref_may_begin(struct wf_shm_conn *c, const struct wf_shm_put *put)
{
	enum wf_shm_closing closing = peer_closing(c);
	if (closing >= WF_SHM_NOW) {
		wf_shm_conn_ended(c, closing);
	} else if (wf_shm_foreign_find(c, put->region) == NULL) {
		c->readable = true;
		wf_shm_read_socket(c);
	}
	return c->life.state < WF_LIFE_DYING;
}

static enum step
put_step(struct wf_shm_conn *c, struct wf_events *events, const struct wf_shm_cell *cell,
	 const struct wf_shm_put *put)
{
	if (wf_events_full(events)) {
		return STEP_ROOM;
	}
	if (put->kind == WF_SHM_MORE) {
		bool expected = c->rx.put_open && put->where != WF_SHM_REF;
		return expected ? part_step(c, events, cell, put) : bad_cell(c, "a part of no PUT");
	}
	if (c->rx.put_open) {
		return bad_cell(c, "a PUT within a PUT");
	}
	if (put->where == WF_SHM_REF && !ref_may_begin(c, put)) {
		return STEP_DOWN;
	}
	if (wf_shm_put_open(c, put) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
		return STEP_DOWN;
	}
	c->t->medium.info.bytes_received += WF_HEAD_BYTES;
	if (put->where != WF_SHM_REF) {
		return part_step(c, events, cell, put);
	}
	if (c->rx.put_src != NULL) {
		return STEP_ON; /* copied from the next step on */
	}
	c->t->medium.info.bytes_received += put->bytes; /* lent, where they are */
	return ref_finish(c, events);
}

/* Discards without an event: the PUT is completed, the message dropped. */
static enum step
discard_step(struct wf_shm_conn *c, const union wf_shm_note *note)
{
	c->rx.put_open = false;
	c->rx.put_src = NULL;
	c->rx.next++;
	if (note->put.kind == WF_SHM_PUT && note->put.where == WF_SHM_REF) {
		consume(c);
		wf_shm_completion_write(c, note->put.op);
	}
	return STEP_ON;
}

/* The next cell; NULL: none. */
static const struct wf_shm_cell *
next_cell(const struct wf_shm_conn *c)
{
	const struct wf_shm_cell *cell = &c->rx_way->cell[c->rx.next % WF_SHM_CELLS];
	uint64_t seq = atomic_load_explicit(&cell->seq, memory_order_acquire); /* S1: publish */
	return seq == c->rx.next + 1 ? cell : NULL;
}

static enum step
cell_step(struct wf_shm_conn *c, struct wf_events *events, bool discard)
{
	const struct wf_shm_cell *cell = next_cell(c);
	if (cell == NULL) {
		return STEP_NONE;
	}
	union wf_shm_note note;
	memcpy(&note, &cell->note, sizeof(note));
	if (discard) {
		return discard_step(c, &note);
	}
	if (note.msg.kind == WF_SHM_MSG) {
		return c->rx.put_open ? bad_cell(c, "a message within a PUT")
				      : msg_step(c, events, cell, &note.msg);
	}
	if (note.msg.kind == WF_SHM_PUT || note.msg.kind == WF_SHM_MORE) {
		return put_step(c, events, cell, &note.put);
	}
	return bad_cell(c, "neither a message nor a PUT");
}

/* Nothing has arrived: finds out whether anything can still arrive. */
static void
look_for_end(struct wf_shm_conn *c, enum wf_shm_closing closing, bool eof)
{
	if (closing != WF_SHM_OPEN || eof) {
		wf_shm_conn_ended(c, closing);
	}
}

void
wf_shm_receive(struct wf_shm_conn *c, struct wf_events *events, bool discard)
{
	/* Read before the cells: a peer that has set `closing` has filled its last cell. */
	bool eof = c->eof;
	enum wf_shm_closing closing = peer_closing(c);
	uint64_t before = c->rx.next;
	uint64_t bytes = c->t->medium.info.bytes_received;
	enum step step = STEP_ON;
	while (step == STEP_ON) {
		uint64_t received = c->t->medium.info.bytes_received - bytes;
		if (received >= WF_SHM_RX_BUDGET || c->rx.next - before >= WF_SHM_CELLS) {
			step = STEP_ROOM;
		} else if (c->rx.put_open && c->rx.put_src != NULL && !discard) {
			step = ref_step(c, events, WF_SHM_RX_BUDGET - received);
		} else {
			step = cell_step(c, events, discard);
		}
	}
	if (c->rx.next != before && c->life.state < WF_LIFE_DYING) {
		make_room(c, c->t->medium.info.bytes_received - bytes);
	}
	if (step == STEP_ROOM) {
		c->t->medium.loop.left = true;
	} else if (step == STEP_NONE) {
		look_for_end(c, closing, eof);
	}
}
