/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_send: accepted operations are kept in a ring of entries, and frames in a ring of bytes
 * beside it. The pump turns them into work requests as far as the peer's credits and the slots of
 * the send queue allow, and posts them in lists; the last of each list is signalled. Thread: the
 * transport's owner. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "transport/verbs/verbs_internal.h"
#include "wire/little.h"

#define FRAME_CREDITS_AT 52u
#define FRAME_PUT_BYTES_AT 56u
#define BIND_LOOKS 256u /* polls of the queue before it is polled only now and then */
#define BIND_LOOK_NS (20 * WF_NS_PER_US)

WF_STATIC_ASSERT((WF_VERBS_RING_BYTES & (WF_VERBS_RING_BYTES - 1)) == 0, "a power of two");
WF_STATIC_ASSERT(WF_VERBS_RING_BYTES >= 4 * WF_VERBS_RX_BYTES, "a few messages");
WF_STATIC_ASSERT(WF_BLOB_ROOM <= WF_MSG_BODY_MAX, "a hello is a message");

static struct wf_verbs_entry *
entry_at(const struct wf_verbs_conn *c, uint64_t number)
{
	return &c->tx.entry[number & (c->tx.entry_count - 1)];
}

/* ---- taking ---- */

/* Allocates `bytes` in one piece. Returns false if there is no room now. */
static bool
ring_alloc(struct wf_verbs_tx *tx, uint64_t bytes, struct wf_verbs_entry *entry)
{
	if (tx->ring_head == tx->ring_tail) {
		tx->ring_head = 0; /* reuse the part that is in cache */
		tx->ring_tail = 0;
	}
	uint64_t at = tx->ring_head;
	uint64_t left = WF_VERBS_RING_BYTES - (at & (WF_VERBS_RING_BYTES - 1));
	if (left < bytes) {
		at += left;
	}
	if (at + bytes - tx->ring_tail > WF_VERBS_RING_BYTES) {
		return false;
	}
	entry->ring_at = at;
	entry->ring_end = at + bytes;
	tx->ring_head = entry->ring_end;
	return true;
}

static uint8_t *
ring_bytes(const struct wf_verbs_tx *tx, const struct wf_verbs_entry *entry)
{
	return tx->ring + (entry->ring_at & (WF_VERBS_RING_BYTES - 1));
}

static bool
queue_frame(struct wf_verbs_conn *c, const struct wf_verbs_frame *frame, const void *body,
	    struct wf_verbs_entry *entry)
{
	uint64_t bytes = WF_VERBS_FRAME_BYTES + frame->head.body_bytes;
	if (!ring_alloc(&c->tx, bytes, entry)) {
		return false;
	}
	entry->kind = frame->kind;
	if (frame->kind != WF_VERBS_PUT) {
		entry->bytes = bytes;
	}
	uint8_t *out = ring_bytes(&c->tx, entry);
	wf_verbs_frame_encode(frame, out);
	if (body != NULL) {
		memcpy(out + WF_VERBS_FRAME_BYTES, body, frame->head.body_bytes);
	}
	return true;
}

static bool
queue_send(struct wf_verbs_conn *c, const struct wf_op *op, struct wf_verbs_entry *entry)
{
	struct wf_verbs_frame frame = {.kind = WF_VERBS_MESSAGE, .head = *op->head};
	frame.head.body_bytes = op->body_bytes;
	frame.head.payload_crc = 0;
	if ((frame.head.flags & WF_HEAD_PAYLOAD_CRC) != 0) {
		frame.head.payload_crc = wf_crc32c(0, op->body, op->body_bytes);
	}
	return queue_frame(c, &frame, op->body, entry);
}

/* Whether the peer would refuse the PUT. Then it is announced but not written, because an invalid
 * WRITE ends the queue pair before the peer could report what was wrong. */
static bool
breaks_a_rule(const struct wf_verbs_conn *c, const struct wf_op *op, const struct wf_verbs_key *key)
{
	return key->mark != c->peer.mark || op->offset > key->bytes ||
	       op->bytes > key->bytes - op->offset || op->bytes > c->peer.put_bytes_max ||
	       (key->slots > 0 && op->offset != 0);
}

/* Finds the entry's lkey. Returns false while the region is being registered. */
static bool
find_lkey(struct wf_verbs_conn *c, struct wf_verbs_entry *entry)
{
	const struct ibv_mr *mr = wf_verbs_region_mr(c, entry->region);
	if (mr != NULL) {
		entry->lkey = mr->lkey;
	}
	return mr != NULL;
}

static bool
queue_put(struct wf_verbs_conn *c, const struct wf_op *op, struct wf_verbs_entry *entry)
{
	struct wf_verbs_key key;
	wf_verbs_key_read(&op->key, &key);
	entry->kind = WF_VERBS_PUT;
	entry->src = op->src;
	entry->bytes = op->bytes;
	entry->tag = op->tag;
	entry->rkey = key.rkey;
	entry->unwritten = breaks_a_rule(c, op, &key);
	/* A notice has only the tag, which is not enough for a part of a slot. */
	entry->claim = entry->unwritten || !c->link.dev->caps.immediate ||
		       !c->peer.takes_immediate || (key.slots > 0 && op->offset != 0);
	entry->remote = key.at + op->offset;
	if (key.slots > 0) {
		entry->remote += (wf_tag_slot(op->tag) & (key.slots - 1)) * key.bytes;
	}
	entry->region = op->region;
	entry->keyed = find_lkey(c, entry);
	if (!entry->claim) {
		return true;
	}
	struct wf_verbs_frame frame = {.kind = WF_VERBS_PUT};
	wf_grant_key_read(&op->key, &frame.head.region, &frame.head.request_id);
	frame.head.flags = entry->unwritten ? WF_VERBS_UNWRITTEN : 0;
	frame.head.slice = op->tag;
	frame.head.offset = op->offset;
	frame.head.step = op->bytes;
	return queue_frame(c, &frame, NULL, entry);
}

/* An idle queue begins to wait now. The next reading of the clock sets the time, because on some
 * machines a reading takes as long as a post. */
static void
note_begin(struct wf_verbs_conn *c)
{
	if (c->tx.sq.posted == c->tx.sq.completed) {
		c->tx.progress_ns = WF_NEVER;
	}
}

static bool
post_op(struct wf_life *life, const struct wf_op *op)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	struct wf_verbs_tx *tx = &c->tx;
	if (tx->user_taken - tx->user_done == c->t->medium.opts.op_max) {
		return false;
	}
	struct wf_verbs_entry *entry = entry_at(c, tx->taken); /* not in use until it is counted */
	memset(entry, 0, sizeof(*entry));
	entry->cookie = op->cookie;
	bool taken = op->kind == WF_OP_SEND ? queue_send(c, op, entry) : queue_put(c, op, entry);
	if (taken) {
		note_begin(c);
		tx->taken++;
		tx->user_taken++;
	}
	return taken;
}

void
wf_verbs_send_frame(struct wf_verbs_conn *c, enum wf_verbs_frame_kind kind, const void *body,
		    size_t bytes)
{
	struct wf_verbs_tx *tx = &c->tx;
	struct wf_verbs_entry entry = {.internal = true};
	struct wf_verbs_frame frame = {.kind = kind, .head.body_bytes = bytes};
	WF_ASSERT(tx->taken - tx->done < tx->entry_count);
	/* Only CLOSE may find the ring full; then the peer detects the end without it. */
	if (queue_frame(c, &frame, body, &entry)) {
		note_begin(c);
		*entry_at(c, tx->taken) = entry;
		tx->taken++;
	}
	wf_life_ready(&c->life);
}

/* ---- work requests ---- */

static uint64_t
wr_id_of(const struct wf_verbs_conn *c, uint64_t position)
{
	return (uint64_t)c->idx << 48 | (uint64_t)(c->generation & 0xffff) << 32 |
	       (uint32_t)position;
}

static void
batch_flush(struct wf_verbs_conn *c)
{
	struct wf_verbs_batch *batch = &c->t->batch;
	if (batch->count == 0) {
		return;
	}
	struct ibv_send_wr *bad = NULL;
	unsigned count = batch->count;
	batch->wr[count - 1].send_flags |= IBV_SEND_SIGNALED;
	batch->wr[count - 1].next = NULL;
	batch->count = 0;
	int err = ibv_post_send(c->link.qp, batch->wr, &bad);
	if (err != 0) {
		unsigned kept = bad != NULL ? (unsigned)(bad - batch->wr) : 0;
		wf_verbs_sq_give_back(&c->tx.sq, count - (kept < count ? kept : 0));
		wf_verbs_conn_end(c, WEFT_LOST, "%s took no more work: %s", c->link.dev->name,
				  strerror(err));
	}
}

/* Adds a work request without memory. The caller sets what its opcode needs. Some devices use the
 * first piece of the list even if their number is 0 (irdma, for a WRITE), so there is no list
 * either. */
static struct ibv_send_wr *
batch_add(struct wf_verbs_conn *c, enum ibv_wr_opcode opcode, uint64_t *position)
{
	struct wf_verbs_batch *batch = &c->t->batch;
	if (batch->count == WF_VERBS_BATCH) {
		batch_flush(c);
	}
	struct ibv_send_wr *wr = &batch->wr[batch->count];
	if (batch->count > 0) {
		batch->wr[batch->count - 1].next = wr;
	}
	batch->count++;
	*position = wf_verbs_sq_reserve(&c->tx.sq);
	wr->wr_id = wr_id_of(c, *position);
	wr->next = NULL;
	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->opcode = opcode;
	wr->send_flags = 0;
	wr->imm_data = 0; /* rxe reads it even if there is none */
	return wr;
}

static void
set_memory(struct wf_verbs_conn *c, struct ibv_send_wr *wr, uint64_t at, uint32_t bytes,
	   uint32_t lkey)
{
	struct wf_verbs_batch *batch = &c->t->batch;
	if (bytes > 0) {
		wr->sg_list = &batch->sge[wr - batch->wr];
		wr->num_sge = 1;
		*wr->sg_list = (struct ibv_sge){.addr = at, .length = bytes, .lkey = lkey};
	}
}

/* The credits that may be reported: none for a buffer that is not posted, and any of those that
 * wait to be posted may be one that this peer used. */
static uint32_t
sayable(const struct wf_verbs_conn *c)
{
	const struct wf_verbs_rx_list *fresh =
		c->link.queues->srq != NULL ? &c->link.queues->fresh : &c->rx.fresh;
	uint32_t unsaid = c->rx.frames_returned - c->rx.returned_said;
	return c->rx.frames_returned - (fresh->count < unsaid ? fresh->count : unsaid);
}

static void
add_frame(struct wf_verbs_conn *c, uint8_t *frame, uint32_t bytes, uint64_t *position)
{
	c->rx.returned_said = sayable(c);
	wf_store_u32(frame + FRAME_CREDITS_AT, c->rx.returned_said);
	wf_store_u64(frame + FRAME_PUT_BYTES_AT, c->tx.put_bytes);
	struct ibv_send_wr *wr = batch_add(c, IBV_WR_SEND, position);
	set_memory(c, wr, (uintptr_t)frame, bytes, c->tx.mr->lkey);
	if (bytes <= c->link.dev->inline_bytes) {
		wr->send_flags |= IBV_SEND_INLINE;
	}
	c->t->medium.info.bytes_sent += bytes;
}

static bool
has_credit(const struct wf_verbs_conn *c)
{
	return c->tx.frames_sent - c->tx.frames_returned < c->peer.credits;
}

/* A source that the device reads has the device's address; inline data is read by the process. */
static void
set_source(struct wf_verbs_conn *c, struct ibv_send_wr *wr, const struct wf_verbs_entry *entry,
	   uint32_t bytes)
{
	const uint8_t *at = entry->src + entry->written;
	if (bytes <= c->link.dev->inline_bytes) {
		set_memory(c, wr, (uintptr_t)at, bytes, entry->lkey);
		wr->send_flags |= IBV_SEND_INLINE;
		return;
	}
	const void *base = c->t->medium.regions.region[entry->region - 1].base;
	set_memory(c, wr, wf_verbs_iova(&c->link.dev->caps, base, at), bytes, entry->lkey);
}

static void
add_write(struct wf_verbs_conn *c, struct wf_verbs_entry *entry, uint32_t bytes, bool notice)
{
	struct ibv_send_wr *wr =
		batch_add(c, notice ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, &entry->last);
	wr->wr.rdma.remote_addr = entry->remote + entry->written;
	wr->wr.rdma.rkey = entry->rkey;
	if (notice) {
		wr->imm_data = htonl(entry->tag);
		wr->send_flags |= IBV_SEND_SOLICITED;
	}
	set_source(c, wr, entry, bytes);
	entry->written += bytes;
	c->t->medium.info.bytes_sent += bytes;
}

/* Posts the remaining WRITEs of an entry. Returns false if there are no slots. */
static bool
post_writes(struct wf_verbs_conn *c, struct wf_verbs_entry *entry)
{
	while (entry->written < entry->bytes) {
		if (wf_verbs_sq_room(&c->tx.sq) == 0) {
			return false;
		}
		uint64_t left = entry->bytes - entry->written;
		uint64_t most = c->link.dev->caps.message_max;
		add_write(c, entry, (uint32_t)(left < most ? left : most), false);
	}
	return true;
}

/* WRITEs that may take different routes and be placed in any order precede a separate notice; a
 * short one is its own notice. */
static bool
post_put(struct wf_verbs_conn *c, struct wf_verbs_entry *entry)
{
	bool small = entry->bytes <= c->t->settings.small_put_bytes && !entry->claim;
	entry->keyed = entry->keyed || find_lkey(c, entry);
	if (!entry->keyed) {
		return false;
	}
	if (!small && !entry->unwritten && !post_writes(c, entry)) {
		return false;
	}
	if (!has_credit(c) || wf_verbs_sq_room(&c->tx.sq) == 0) {
		return false;
	}
	c->tx.frames_sent++;
	if (entry->claim) {
		add_frame(c, ring_bytes(&c->tx, entry), WF_VERBS_FRAME_BYTES, &entry->last);
	} else {
		c->tx.put_bytes += small ? 0 : entry->bytes;
		add_write(c, entry, small ? (uint32_t)entry->bytes : 0, true);
	}
	c->t->medium.info.puts_sent++;
	return true;
}

static bool
post_frame(struct wf_verbs_conn *c, struct wf_verbs_entry *entry)
{
	if (!has_credit(c) || wf_verbs_sq_room(&c->tx.sq) == 0) {
		return false;
	}
	c->tx.frames_sent++;
	add_frame(c, ring_bytes(&c->tx, entry), (uint32_t)entry->bytes, &entry->last);
	c->t->medium.info.msgs_sent += entry->internal ? 0 : 1;
	return true;
}

void
wf_verbs_pump(struct wf_verbs_conn *c)
{
	struct wf_verbs_tx *tx = &c->tx;
	if (!wf_verbs_can_send(c) || c->access.waiting > 0) {
		return;
	}
	while (tx->posted < tx->taken && c->life.state <= WF_LIFE_LINGERING) {
		struct wf_verbs_entry *entry = entry_at(c, tx->posted);
		bool whole =
			entry->kind == WF_VERBS_PUT ? post_put(c, entry) : post_frame(c, entry);
		if (!whole) {
			break;
		}
		tx->posted++;
	}
	batch_flush(c);
}

/* Sends a frame that bypasses the queue. Returns false if there is no place or no slot. */
static bool
send_beside(struct wf_verbs_conn *c, enum wf_verbs_frame_kind kind)
{
	struct wf_verbs_tx *tx = &c->tx;
	unsigned place = tx->credit_next;
	if (wf_verbs_sq_room_all(&tx->sq) == 0 ||
	    (tx->credit_last[place] > 0 &&
	     !wf_verbs_sq_is_over(&tx->sq, tx->credit_last[place] - 1))) {
		return false;
	}
	uint8_t *out = tx->ring + WF_VERBS_RING_BYTES + place * WF_VERBS_FRAME_BYTES;
	struct wf_verbs_frame frame = {.kind = kind};
	uint64_t position = 0;
	wf_verbs_frame_encode(&frame, out);
	note_begin(c);
	add_frame(c, out, WF_VERBS_FRAME_BYTES, &position);
	tx->credit_last[place] = position + 1;
	tx->credit_next = (place + 1) % WF_VERBS_CREDIT_FRAMES;
	batch_flush(c);
	return true;
}

void
wf_verbs_return_credits(struct wf_verbs_conn *c)
{
	uint32_t unsaid = c->rx.frames_returned - c->rx.returned_said;
	if (unsaid >= c->t->settings.credits / 2 && wf_verbs_can_send(c)) {
		wf_verbs_rx_flush(c); /* so that all credits can be reported */
		/* If it fails, each completion leads here again. */
		(void)send_beside(c, WF_VERBS_CREDIT);
	}
}

/* The peer's device answers an empty WRITE, whatever its process does, and no memory is touched. On
 * iWARP a WRITE is complete when it is sent, and no other operation probes the device there (siw
 * now and then answers an empty READ with bytes of another operation), so there is no probe. */
void
wf_verbs_ask_alive(struct wf_verbs_conn *c)
{
	if (!wf_verbs_can_send(c) || c->link.dev->caps.iwarp || wf_verbs_sq_room(&c->tx.sq) == 0) {
		return;
	}
	uint64_t position = 0;
	note_begin(c);
	struct ibv_send_wr *wr = batch_add(c, IBV_WR_RDMA_WRITE, &position);
	wr->wr.rdma.remote_addr = 0;
	wr->wr.rdma.rkey = 0;
	batch_flush(c);
}

bool
wf_verbs_bind(struct wf_verbs_conn *c, const struct wf_verbs_access *access, struct ibv_mr *mr)
{
	if (wf_verbs_sq_room_all(&c->tx.sq) == 0) {
		return false;
	}
	uint64_t position = 0;
	note_begin(c);
	struct ibv_send_wr *wr = batch_add(c, IBV_WR_BIND_MW, &position);
	wr->bind_mw.mw = access->window;
	wr->bind_mw.rkey = access->rkey;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = access->at,
		.length = access->bytes,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	batch_flush(c);
	return true;
}

/* Operations posted behind a binding wait for it; a caller that sends the key in another way has to
 * wait here. */
enum weft_status
wf_verbs_bind_settle(struct wf_verbs_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	uint64_t limit_ns = wf_now_ns(env) + WF_VERBS_BIND_NS;
	uint64_t position = c->tx.sq.posted;
	unsigned looks = 0; /* a device takes microseconds, but long if its peer is silent */
	while (position > 0 && !wf_verbs_sq_is_over(&c->tx.sq, position - 1) &&
	       c->life.state == WF_LIFE_UP && wf_now_ns(env) < limit_ns) {
		(void)wf_verbs_poll_send(c->link.queues);
		if (++looks > BIND_LOOKS) {
			wf_wait(env, -1, wf_now_ns(env) + BIND_LOOK_NS);
		}
	}
	if (c->life.state != WF_LIFE_UP) {
		return wf_fail(WEFT_CLOSED, "grant to %s: %s", c->life.peer, c->end.why);
	}
	return WEFT_OK;
}

/* ---- the caller's calls ---- */

enum weft_status
wf_verbs_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(conn);
	enum weft_status st = wf_life_post(&c->life, ops, op_count, taken, post_op);
	if (*taken > 0) {
		wf_verbs_pump(c);
	}
	return st;
}

bool
wf_verbs_tx_idle(const struct wf_verbs_conn *c)
{
	const struct wf_verbs_tx *tx = &c->tx;
	return tx->posted == tx->taken &&
	       (tx->taken == tx->done ||
		wf_verbs_sq_is_over(&tx->sq, entry_at(c, tx->taken - 1)->last));
}

void
wf_verbs_emit_done(struct wf_verbs_conn *c, struct wf_events *events, enum weft_status status)
{
	struct wf_verbs_tx *tx = &c->tx;
	while (tx->done < tx->taken) {
		const struct wf_verbs_entry *entry = entry_at(c, tx->done);
		bool over = tx->done < tx->posted && wf_verbs_sq_is_over(&tx->sq, entry->last);
		if (!over && status == WEFT_OK) {
			return;
		}
		if (!entry->internal) {
			if (wf_events_full(events)) {
				return;
			}
			struct wf_event *event =
				wf_events_add(events, &c->life.conn, WF_EVENT_DONE);
			event->done.cookie = entry->cookie;
			event->done.status = over ? WEFT_OK : status;
			tx->user_done++;
		}
		if (entry->ring_end > 0) {
			tx->ring_tail = entry->ring_end;
		}
		tx->done++;
	}
}

/* ---- completions ---- */

static struct wf_verbs_conn *
conn_of(const struct wf_verbs *t, uint64_t wr_id)
{
	uint32_t idx = (uint32_t)(wr_id >> 48);
	struct wf_verbs_conn *c = idx < wf_places_table(&t->medium.places) ? t->conn[idx] : NULL;
	return c != NULL && (c->generation & 0xffff) == (wr_id >> 32 & 0xffff) ? c : NULL;
}

static void
on_error(struct wf_verbs_conn *c, const struct ibv_wc *wc)
{
	const struct wf_verbs_settings *s = &c->t->settings;
	const char *text = c->t->lib->wc_status_str(wc->status);
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		wf_verbs_conn_suspect(c);
	} else if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR) {
		wf_verbs_conn_end(c, WEFT_TIMEOUT,
				  "%s, %u tries of %llu ms on %s: is the host gone, the link "
				  "down, its MTU less, or UDP port 4791 closed?",
				  text, s->retry_count + 1, (4096ull << s->ack_timeout) / 1000000,
				  c->link.dev->name);
	} else if (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR ||
		   wc->status == IBV_WC_REM_OP_ERR) {
		wf_verbs_conn_end(c, WEFT_LOST, "the peer's device refused a request: %s", text);
	} else {
		wf_verbs_conn_end(c, WEFT_LOST, "%s failed: %s", c->link.dev->name, text);
	}
}

unsigned
wf_verbs_poll_send(struct wf_verbs_queues *q)
{
	struct wf_verbs *t = q->dev->t;
	struct ibv_wc wc[WF_VERBS_POLL];
	unsigned total = 0;
	unsigned n = 0;
	do {
		n = wf_verbs_queues_poll(q->dev, q->send.cq, wc);
		for (unsigned i = 0; i < n; i++) {
			struct wf_verbs_conn *c = conn_of(t, wc[i].wr_id);
			if (c == NULL || c->link.qp == NULL) {
				continue;
			}
			if (wc[i].status != IBV_WC_SUCCESS) {
				wf_verbs_sq_fail(&c->tx.sq, (uint32_t)wc[i].wr_id);
				on_error(c, &wc[i]);
				wf_life_ready(&c->life); /* that may be all that it waited for */
			} else if (wf_verbs_sq_complete(&c->tx.sq, (uint32_t)wc[i].wr_id)) {
				c->tx.progress_ns = t->medium.loop.now_ns;
				if (!q->dev->caps.iwarp) { /* the peer's device acknowledged it */
					c->rx.heard_ns = t->medium.loop.now_ns;
				}
				wf_life_ready(&c->life);
			}
		}
		total += n;
	} while (n == WF_VERBS_POLL && total < WF_VERBS_POLL_MAX);
	return total;
}
