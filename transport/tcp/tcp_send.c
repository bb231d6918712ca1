/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_send: the queue of a connection and how it is sent. Heads, messages and small payloads of
 * accepted operations are stored one behind the other in a ring of bytes; larger payloads are sent
 * from where they are. The resulting pieces wait in order, adjacent ones are merged, and several
 * are sent in one call. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/syscalls.h"

#define IOV_MAX_USED 64u
/* post sends at once when this much waits; less is sent together by the next poll or arm. */
#define FLUSH_BYTES (16u << 10)
/* Who gathers and sends as much in a turn is busy with it for long. What arrives meanwhile may be
 * more urgent than what would be sent next: a push is, where rows are sent ahead. */
#define LONG_TURN_BYTES (128u << 10)
/* A payload up to this size is copied behind its head, which is cheaper than a piece of its own. */
#define COPY_BYTES_MAX 256u
/* While no more of the ring is in use, a PUT that is copied needs no entry: it gets no DONE. The
 * entry of a later operation frees its space, and promises the DONE if the ring is full. */
#define NO_ENTRY_BYTES (WF_TCP_RING_BYTES / 2)

WF_STATIC_ASSERT((WF_TCP_RING_BYTES & (WF_TCP_RING_BYTES - 1)) == 0, "a power of two");
WF_STATIC_ASSERT(WF_TCP_RING_BYTES >= 4 * (WF_HEAD_BYTES + WF_MSG_BODY_MAX), "a few messages");
WF_STATIC_ASSERT(COPY_BYTES_MAX <= WF_MSG_BODY_MAX, "no longer than a message");

static struct wf_tcp_entry *
entry_at(const struct wf_tcp_conn *c, uint64_t number)
{
	return &c->tx.entry[number & c->t->entry_mask];
}

static struct iovec *
piece_at(const struct wf_tcp_conn *c, uint64_t number)
{
	return &c->tx.piece[number & c->t->piece_mask];
}

/* Frees the space of entries that are out. The entry that was DONE last is still in the table,
 * because there is one entry more than needed. */
static __attribute__((noinline)) void
reclaim(struct wf_tcp_conn *c)
{
	struct wf_tcp_tx *tx = &c->tx;
	uint64_t i = tx->freed < tx->done ? tx->done - 1 : tx->freed;
	for (; i < tx->posted && entry_at(c, i)->end <= tx->sent_bytes; i++) {
		tx->ring_tail = entry_at(c, i)->ring_end;
	}
	tx->freed = i;
}

static bool
ring_has(const struct wf_tcp_tx *tx, uint32_t end)
{
	return end - tx->ring_tail <= WF_TCP_RING_BYTES;
}

/* Allocates `bytes` of the ring, which end at its head; NULL: there is no room now. */
static inline uint8_t *
ring_alloc(struct wf_tcp_conn *c, uint32_t bytes)
{
	struct wf_tcp_tx *tx = &c->tx;
	if (wf_tcp_tx_idle(c)) {
		tx->freed = tx->posted;
		tx->ring_head = 0; /* reuse the part that is in cache */
		tx->ring_tail = 0;
	}
	uint32_t at = tx->ring_head;
	uint32_t left = WF_TCP_RING_BYTES - (at & (WF_TCP_RING_BYTES - 1));
	if (left < bytes) {
		at += left;
	}
	if (!ring_has(tx, at + bytes)) {
		reclaim(c);
		if (!ring_has(tx, at + bytes)) {
			return NULL;
		}
	}
	tx->ring_head = at + bytes;
	return tx->ring + (at & (WF_TCP_RING_BYTES - 1));
}

/* Adds a piece; bytes that follow the last piece directly extend it. */
static void
add_piece(struct wf_tcp_conn *c, const uint8_t *at, uint64_t bytes)
{
	struct wf_tcp_tx *tx = &c->tx;
	struct iovec *last = piece_at(c, tx->piece_end - 1);
	if (tx->piece_end != tx->piece_first &&
	    (const uint8_t *)last->iov_base + last->iov_len == at) {
		last->iov_len += bytes;
		return;
	}
	/* sendmsg only reads; struct iovec cannot say so. */
	*piece_at(c, tx->piece_end++) = (struct iovec){(void *)(uintptr_t)at, bytes};
}

static inline void
encode_send(const struct wf_op *op, uint8_t *out)
{
	struct wf_head head = *op->head;
	head.version = 0;
	head.body_bytes = op->body_bytes;
	head.payload_crc = 0;
	if ((head.flags & WF_HEAD_PAYLOAD_CRC) != 0) {
		head.payload_crc = wf_crc32c(0, op->body, op->body_bytes);
	}
	wf_head_encode(&head, out);
}

static inline void
encode_put(const struct wf_op *op, uint8_t *out)
{
	struct wf_head head = {
		.service = WF_SERVICE_TRANSPORT,
		.type = WF_TCP_PUT,
		.body_bytes = op->bytes,
		.slice = op->tag,
		.offset = op->offset,
	};
	wf_grant_key_read(&op->key, &head.region, &head.request_id);
	wf_head_encode(&head, out);
}

/* Keeps what becomes of an operation of `bytes` after its head, until it is out. */
static inline void
add_entry(struct wf_tcp_conn *c, const struct wf_op *op, uint64_t bytes)
{
	struct wf_tcp_tx *tx = &c->tx;
	*entry_at(c, tx->posted++) = (struct wf_tcp_entry){
		.cookie = op->cookie,
		.begin = tx->taken_bytes - WF_HEAD_BYTES - bytes,
		.end = tx->taken_bytes,
		.ring_end = tx->ring_head,
	};
}

/* Not inlined: most operations are PUTs. */
static __attribute__((noinline)) bool
post_send(struct wf_tcp_conn *c, const struct wf_op *op)
{
	const uint32_t bytes = (uint32_t)op->body_bytes;
	uint8_t *out = ring_alloc(c, WF_HEAD_BYTES + bytes);
	if (out == NULL) {
		return false;
	}
	encode_send(op, out);
	if (bytes > 0) {
		memcpy(out + WF_HEAD_BYTES, op->body, bytes);
	}
	add_piece(c, out, WF_HEAD_BYTES + bytes);
	c->tx.taken_bytes += WF_HEAD_BYTES + bytes;
	c->t->medium.info.msgs_sent++;
	add_entry(c, op, bytes);
	return true;
}

static inline bool
post_put(struct wf_tcp_conn *c, const struct wf_op *op)
{
	struct wf_tcp_tx *tx = &c->tx;
	const uint64_t bytes = op->bytes;
	const bool is_short = bytes <= COPY_BYTES_MAX;
	const uint32_t copied = is_short ? (uint32_t)bytes : 0;
	uint8_t *out = ring_alloc(c, WF_HEAD_BYTES + copied);
	if (out == NULL) {
		return false;
	}
	encode_put(op, out);
	add_piece(c, out, WF_HEAD_BYTES + copied);
	tx->taken_bytes += WF_HEAD_BYTES + bytes;
	c->t->medium.info.puts_sent++;
	if (is_short) {
		memcpy(out + WF_HEAD_BYTES, op->src, bytes);
		if (op->copied != NULL && tx->ring_head - tx->ring_tail <= NO_ENTRY_BYTES) {
			*op->copied = true;
			return true;
		}
	} else {
		add_piece(c, op->src, bytes);
	}
	add_entry(c, op, bytes);
	return true;
}

static inline bool
post_op(struct wf_life *life, const struct wf_op *op)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	if (c->tx.posted - c->tx.done == c->t->medium.opts.op_max) {
		return false;
	}
	return op->kind == WF_OP_PUT ? post_put(c, op) : post_send(c, op);
}

enum weft_status
wf_tcp_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	if (c->tx.error != 0 && c->life.state == WF_LIFE_UP) {
		return wf_fail(WEFT_CLOSED, "post to %s: the connection is going down",
			       c->life.peer);
	}
	enum weft_status st = wf_life_post(&c->life, ops, op_count, taken, post_op);
	if (*taken > 0) {
		wf_tcp_conn_ready(c);
		if (c->tx.taken_bytes - c->tx.sent_bytes >= FLUSH_BYTES && c->tx.writable) {
			wf_tcp_flush(c);
		}
	}
	return st;
}

void
wf_tcp_control(struct wf_tcp_conn *c, enum wf_tcp_frame type, const void *body, size_t bytes)
{
	WF_ASSERT(bytes <= WF_BLOB_ROOM);
	WF_ASSERT(c->tx.control_sent == c->tx.control_bytes);
	struct wf_head head = {
		.service = WF_SERVICE_TRANSPORT,
		.type = (uint8_t)type,
		.body_bytes = bytes,
		.request_id = type == WF_TCP_HELLO ? WF_TCP_LINE_ENDS : 0,
	};
	wf_head_encode(&head, c->control);
	if (bytes > 0) {
		memcpy(c->control + WF_HEAD_BYTES, body, bytes);
	}
	c->tx.control_bytes = (uint32_t)(WF_HEAD_BYTES + bytes);
	c->tx.control_sent = 0;
	c->tx.taken_bytes += c->tx.control_bytes;
	wf_tcp_conn_ready(c);
}

/* Finds the first entry that is not out. */
static uint64_t
find_unsent(const struct wf_tcp_conn *c)
{
	uint64_t number = c->tx.done;
	while (number < c->tx.posted && entry_at(c, number)->end <= c->tx.sent_bytes) {
		number++;
	}
	return number;
}

bool
wf_tcp_tx_cut(struct wf_tcp_conn *c)
{
	uint64_t cut = find_unsent(c);
	c->tx.cut = cut;
	/* Whether a PUT without an entry is partly out is not known. */
	return c->tx.control_sent == c->tx.control_bytes &&
	       (wf_tcp_tx_idle(c) ||
		(cut != c->tx.posted && entry_at(c, cut)->begin == c->tx.sent_bytes));
}

/* `bytes` of the pieces are out, which is less than the kernel was given. */
static __attribute__((noinline)) void
drop_pieces(struct wf_tcp_conn *c, uint64_t bytes)
{
	while (bytes > 0) {
		struct iovec *piece = piece_at(c, c->tx.piece_first);
		if (bytes < piece->iov_len) {
			piece->iov_base = (uint8_t *)piece->iov_base + bytes;
			piece->iov_len -= bytes;
			return;
		}
		bytes -= piece->iov_len;
		c->tx.piece_first++;
	}
}

/* Makes epoll report room to send. This stays on from the first time, because a connection that
 * fills its socket once will do so again. */
static void
wait_for_room(struct wf_tcp_conn *c)
{
	c->tx.writable = false;
	if (!c->room_watched) {
		wf_tcp_watch_room(c, true);
	}
}

/* What could not be sent is lost, but what the peer sent before may still be read: reading finds
 * the end of the stream and reports how it ended. */
static void
flush_failed(struct wf_tcp_conn *c, int err)
{
	if (err == EINTR) {
		return;
	}
	if (err == EAGAIN || err == EWOULDBLOCK) {
		wait_for_room(c);
		return;
	}
	c->tx.writable = false;
	c->tx.error = err;
	c->rx.readable = true;
	c->rx.hung_up = true;
	wf_tcp_conn_ready(c);
}

/* Sends what precedes the entries. Returns true if it is out. */
static bool
flush_control(struct wf_tcp_conn *c)
{
	struct wf_tcp_tx *tx = &c->tx;
	uint32_t left = tx->control_bytes - tx->control_sent;
	ssize_t n = send(c->fd, c->control + tx->control_sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0) {
		flush_failed(c, errno);
		return false;
	}
	wf_tcp_control_sent(c, (uint32_t)n);
	if ((uint64_t)n < left) {
		wait_for_room(c);
	}
	return (uint64_t)n == left;
}

/* Sends the first `*count` pieces in one call, `*bytes` together, up to about the budget. */
static ssize_t
send_pieces(struct wf_tcp_conn *c, unsigned *count, uint64_t *bytes)
{
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	struct iovec *first = piece_at(c, c->tx.piece_first);
	uint64_t most = c->tx.piece_end - c->tx.piece_first;
	uint64_t in_row = (uint64_t)(c->tx.piece + c->t->piece_mask + 1 - first);
	most = most < in_row ? most : in_row;
	most = most < IOV_MAX_USED ? most : IOV_MAX_USED;
	WF_ASSERT(most > 0);
	*bytes = first->iov_len;
	*count = 1;
	if (most == 1) {
		return wf_sys_send(c->fd, first->iov_base, first->iov_len, flags);
	}
	for (; *count < most && *bytes < WF_TCP_TX_BUDGET; (*count)++) {
		*bytes += first[*count].iov_len;
	}
	if (*bytes >= LONG_TURN_BYTES) {
		wf_loop_look_next(&c->t->medium.loop);
	}
	const struct msghdr msg = {.msg_iov = first, .msg_iovlen = *count};
	return sendmsg(c->fd, &msg, flags);
}

void
wf_tcp_flush_now(struct wf_tcp_conn *c)
{
	int64_t budget = WF_TCP_TX_BUDGET;
	if (c->tx.control_sent < c->tx.control_bytes && (!flush_control(c) || wf_tcp_tx_idle(c))) {
		return;
	}
	do {
		unsigned count = 0;
		uint64_t bytes = 0;
		ssize_t n = send_pieces(c, &count, &bytes);
		if (n < 0) {
			flush_failed(c, errno);
			return;
		}
		c->t->medium.info.bytes_sent += (uint64_t)n;
		c->tx.sent_bytes += (uint64_t)n;
		if ((uint64_t)n == bytes) {
			c->tx.piece_first += count;
		} else {
			drop_pieces(c, (uint64_t)n);
			wait_for_room(c);
		}
		budget -= n;
	} while (c->tx.writable && budget > 0 && !wf_tcp_tx_idle(c));
}

void
wf_tcp_emit_done(struct wf_tcp_conn *c, struct wf_events *events)
{
	const uint64_t posted = c->tx.posted;
	const uint64_t sent_bytes = c->tx.sent_bytes;
	uint64_t done = c->tx.done;
	for (; done != posted && !wf_events_full(events); done++) {
		const struct wf_tcp_entry *entry = entry_at(c, done);
		if (entry->end > sent_bytes) {
			break;
		}
		struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_DONE);
		event->done.cookie = entry->cookie;
		event->done.status = WEFT_OK;
	}
	c->tx.done = done;
}

void
wf_tcp_emit_lost(struct wf_tcp_conn *c, struct wf_events *events)
{
	while (c->tx.done < c->tx.posted && !wf_events_full(events)) {
		struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_DONE);
		event->done.cookie = entry_at(c, c->tx.done)->cookie;
		event->done.status = c->tx.done < c->tx.cut ? WEFT_OK : WEFT_LOST;
		c->tx.done++;
	}
}
