/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_send: the queue of a connection and its way into the socket. Operations that were taken sit
 * in a ring of entries; messages are copied into a ring of bytes beside it; several frames leave in
 * one sendmsg. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "base/crc32c.h"

#define IOV_MAX_USED 64
/* post sends at once when so much waits; less goes with the next poll, together. */
#define FLUSH_BYTES (16u << 10)

WF_STATIC_ASSERT((WF_TCP_MSG_RING_BYTES & (WF_TCP_MSG_RING_BYTES - 1)) == 0, "a power of two");
WF_STATIC_ASSERT(WF_TCP_MSG_RING_BYTES >= 4 * (WF_HEAD_BYTES + WF_MSG_BODY_MAX), "a few messages");

static struct wf_tcp_entry *
entry_at(const struct wf_tcp_conn *c, uint64_t number)
{
	return &c->tx.entry[number & c->t->entry_mask];
}

/* Position for `bytes` in one piece; false: no room now. */
static bool
ring_take(struct wf_tcp_tx *tx, uint64_t bytes, struct wf_tcp_entry *entry)
{
	if (tx->ring_head == tx->ring_tail) {
		tx->ring_head = 0; /* stay where the cache is warm */
		tx->ring_tail = 0;
	}
	uint64_t at = tx->ring_head;
	uint64_t left = WF_TCP_MSG_RING_BYTES - (at & (WF_TCP_MSG_RING_BYTES - 1));
	if (left < bytes) {
		at += left;
	}
	if (at + bytes - tx->ring_tail > WF_TCP_MSG_RING_BYTES) {
		return false;
	}
	entry->ring_at = at;
	entry->ring_end = at + bytes;
	tx->ring_head = entry->ring_end;
	return true;
}

static uint8_t *
ring_bytes(const struct wf_tcp_tx *tx, const struct wf_tcp_entry *entry)
{
	return tx->ring + (entry->ring_at & (WF_TCP_MSG_RING_BYTES - 1));
}

static bool
take_send(struct wf_tcp_conn *c, const struct wf_op *op, struct wf_tcp_entry *entry)
{
	uint64_t bytes = WF_HEAD_BYTES + op->body_bytes;
	if (!ring_take(&c->tx, bytes, entry)) {
		return false;
	}
	entry->src = NULL;
	entry->frame_bytes = bytes;
	struct wf_head head = *op->head;
	head.version = 0;
	head.body_bytes = op->body_bytes;
	head.payload_crc = 0;
	if ((head.flags & WF_HEAD_PAYLOAD_CRC) != 0) {
		head.payload_crc = wf_crc32c(0, op->body, op->body_bytes);
	}
	uint8_t *out = ring_bytes(&c->tx, entry);
	wf_head_encode(&head, out);
	if (op->body_bytes > 0) {
		memcpy(out + WF_HEAD_BYTES, op->body, op->body_bytes);
	}
	return true;
}

static void
take_put(const struct wf_op *op, struct wf_tcp_entry *entry)
{
	struct wf_head head = {
		.service = WF_SERVICE_TRANSPORT,
		.type = WF_TCP_PUT,
		.body_bytes = op->bytes,
		.slice = op->tag,
		.offset = op->offset,
	};
	wf_grant_key_read(&op->key, &head.region, &head.request_id);
	wf_head_encode(&head, entry->head);
	entry->src = op->src;
	entry->frame_bytes = WF_HEAD_BYTES + op->bytes;
}

static bool
take(struct wf_tcp_conn *c, const struct wf_op *op)
{
	if (c->tx.posted - c->tx.done == c->t->opts.op_max) {
		return false;
	}
	struct wf_tcp_entry *entry = entry_at(c, c->tx.posted);
	if (op->kind == WF_OP_SEND) {
		if (!take_send(c, op, entry)) {
			return false;
		}
	} else {
		take_put(op, entry);
	}
	entry->cookie = op->cookie;
	c->tx.posted++;
	c->tx.waiting_bytes += entry->frame_bytes;
	return true;
}

static enum weft_status
check_open(const struct wf_tcp_conn *c)
{
	if (c->state == WF_TCP_UP && c->tx.error == 0) {
		return WEFT_OK;
	}
	if (c->state >= WF_TCP_UP) {
		return wf_fail(WEFT_CLOSED, "%s: the connection is going down", c->peer);
	}
	return wf_fail(WEFT_INVALID, "post to %s: the connection is not up yet", c->peer);
}

/* Take until one breaks a rule, or there is no room. */
static enum weft_status
take_all(struct wf_tcp_conn *c, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	for (unsigned i = 0; i < op_count; i++) {
		const struct wf_op *op = &ops[i];
		if (op->kind == WF_OP_PUT &&
		    !wf_regions_hold(&c->t->regions, op->region, op->src, op->bytes)) {
			return wf_fail(WEFT_INVALID,
				       "put to %s: %llu bytes at %p, not in region %u", c->peer,
				       (unsigned long long)op->bytes, op->src, op->region);
		}
		if (!take(c, op)) {
			c->t->info.posts_again++;
			return WEFT_AGAIN;
		}
		*taken = i + 1;
	}
	return WEFT_OK;
}

enum weft_status
wf_tcp_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	enum weft_status st = check_open(c);
	if (st != WEFT_OK) {
		return st;
	}
	st = take_all(c, ops, op_count, taken);
	if (*taken > 0) {
		wf_tcp_conn_ready(c);
		if (c->tx.waiting_bytes >= FLUSH_BYTES && c->tx.writable) {
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
	};
	wf_head_encode(&head, c->control);
	if (bytes > 0) {
		memcpy(c->control + WF_HEAD_BYTES, body, bytes);
	}
	c->tx.control_bytes = (uint32_t)(WF_HEAD_BYTES + bytes);
	c->tx.control_sent = 0;
	wf_tcp_conn_ready(c);
}

bool
wf_tcp_tx_between_frames(const struct wf_tcp_conn *c)
{
	return c->tx.frame_sent == 0 && c->tx.control_sent == c->tx.control_bytes;
}

/* Append [base + skip, base + bytes) unless it is out already; `*skip` shrinks. */
static void
iov_add(struct iovec *iov, unsigned *count, const uint8_t *base, uint64_t bytes, uint64_t *skip)
{
	if (*skip >= bytes) {
		*skip -= bytes;
		return;
	}
	/* sendmsg only reads; struct iovec cannot say so. */
	iov[*count].iov_base = (void *)(uintptr_t)(base + *skip);
	iov[*count].iov_len = bytes - *skip;
	*skip = 0;
	(*count)++;
}

static unsigned
gather(const struct wf_tcp_conn *c, struct iovec *iov, uint64_t *bytes)
{
	unsigned count = 0;
	uint64_t skip = c->tx.control_sent;
	*bytes = c->tx.control_bytes - c->tx.control_sent;
	if (*bytes > 0) {
		iov_add(iov, &count, c->control, c->tx.control_bytes, &skip);
	}
	skip = c->tx.frame_sent;
	for (uint64_t i = c->tx.sent; i < c->tx.posted && count + 2 <= IOV_MAX_USED; i++) {
		const struct wf_tcp_entry *entry = entry_at(c, i);
		*bytes += entry->frame_bytes - skip;
		if (entry->src == NULL) {
			iov_add(iov, &count, ring_bytes(&c->tx, entry), entry->frame_bytes, &skip);
		} else {
			iov_add(iov, &count, entry->head, WF_HEAD_BYTES, &skip);
			iov_add(iov, &count, entry->src, entry->frame_bytes - WF_HEAD_BYTES, &skip);
		}
		if (*bytes >= WF_TCP_TX_BUDGET) {
			break;
		}
	}
	return count;
}

static void
entry_sent(struct wf_tcp_conn *c, const struct wf_tcp_entry *entry)
{
	c->tx.frame_sent = 0;
	c->tx.sent++;
	if (entry->src == NULL) {
		c->tx.ring_tail = entry->ring_end;
		c->t->info.msgs_sent++;
	} else {
		c->t->info.puts_sent++;
	}
}

static void
advance(struct wf_tcp_conn *c, uint64_t bytes)
{
	c->t->info.bytes_sent += bytes;
	uint64_t control_left = c->tx.control_bytes - c->tx.control_sent;
	uint64_t control = bytes < control_left ? bytes : control_left;
	c->tx.control_sent += (uint32_t)control;
	bytes -= control;
	c->tx.waiting_bytes -= bytes;
	while (bytes > 0) {
		const struct wf_tcp_entry *entry = entry_at(c, c->tx.sent);
		uint64_t left = entry->frame_bytes - c->tx.frame_sent;
		if (bytes < left) {
			c->tx.frame_sent += bytes;
			return;
		}
		bytes -= left;
		entry_sent(c, entry);
	}
}

/* Epoll says when there is some. It is asked to from the first time on, for who sends this much
 * once will do so again. */
static void
wait_for_room(struct wf_tcp_conn *c)
{
	c->tx.writable = false;
	if (!c->room_watched) {
		wf_tcp_watch_room(c, true);
	}
}

/* What could not be sent is lost, but what the peer sent before may still be read: reading finds
 * the end of the stream and says how it ended. */
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

void
wf_tcp_flush(struct wf_tcp_conn *c)
{
	uint64_t budget = WF_TCP_TX_BUDGET;
	while (c->tx.writable && budget > 0 && !wf_tcp_tx_idle(c)) {
		struct iovec iov[IOV_MAX_USED];
		uint64_t bytes = 0;
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = gather(c, iov, &bytes)};
		WF_ASSERT(msg.msg_iovlen > 0);
		ssize_t n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0) {
			flush_failed(c, errno);
			return;
		}
		advance(c, (uint64_t)n);
		if ((uint64_t)n < bytes) {
			wait_for_room(c);
		}
		budget -= (uint64_t)n < budget ? (uint64_t)n : budget;
	}
}

void
wf_tcp_emit_done(struct wf_tcp_conn *c, struct wf_events *events, enum weft_status status)
{
	uint64_t end = status == WEFT_OK ? c->tx.sent : c->tx.posted;
	while (c->tx.done < end && !wf_events_full(events)) {
		const struct wf_tcp_entry *entry = entry_at(c, c->tx.done);
		struct wf_event *event = wf_events_add(events, &c->conn, WF_EVENT_DONE);
		event->done.cookie = entry->cookie;
		event->done.status = c->tx.done < c->tx.sent ? WEFT_OK : status;
		c->tx.done++;
	}
}
