/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_recv: from bytes of the stream to events. Heads and messages go through the receive buffer,
 * and events point into it until the next poll; the payload of a PUT goes straight to its range,
 * except bytes that were read together with its head. That is a whole PUT where one at a time
 * arrives that fits into the buffer: to copy it costs less than a second call.
 * Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/syscalls.h"

WF_STATIC_ASSERT(WF_TCP_RX_BYTES >= 2 * (WF_HEAD_BYTES + WF_MSG_BODY_MAX), "a frame always fits");

enum step {
	STEP_ON,    /* something was consumed: continue */
	STEP_BYTES, /* more bytes are needed */
	STEP_ROOM,  /* more events are needed */
	STEP_DOWN,
};

static uint32_t
buffered(const struct wf_tcp_rx *rx)
{
	return rx->end - rx->begin;
}

bool
wf_tcp_rx_partial(const struct wf_tcp_conn *c)
{
	if (c->life.state == WF_LIFE_UP) {
		return c->rx.put_open || buffered(&c->rx) > 0;
	}
	return c->life.state == WF_LIFE_WAITING && c->shake_got > 0;
}

/* Copies the buffered payload of `put`, and delivers its event once it is complete. */
static inline enum step
land(struct wf_tcp_conn *c, struct wf_events *events, struct wf_landing *put)
{
	struct wf_tcp_rx *rx = &c->rx;
	uint64_t n = buffered(rx) < put->left ? buffered(rx) : put->left;
	if (n > 0) {
		memcpy(put->at, rx->buffer + rx->begin, n);
		rx->begin += (uint32_t)n;
	}
	if (n < put->left) {
		put->at += n;
		put->left -= n;
		return STEP_BYTES;
	}
	put->left = 0;
	if (wf_events_full(events)) {
		return STEP_ROOM;
	}
	wf_grants_landed(&c->life.grants, put, wf_events_add(events, &c->life.conn, WF_EVENT_PUT));
	c->t->medium.info.puts_received++;
	return STEP_ON;
}

/* The PUT that was kept. Not inlined: one that arrives whole does not come here. */
static __attribute__((noinline)) enum step
put_step(struct wf_tcp_conn *c, struct wf_events *events)
{
	enum step step = land(c, events, &c->rx.put);
	c->rx.put_open = step != STEP_ON;
	return step;
}

static bool
payload_is_sound(const struct wf_head *head, const uint8_t *body)
{
	return (head->flags & WF_HEAD_PAYLOAD_CRC) == 0 ||
	       wf_crc32c(0, body, head->body_bytes) == head->payload_crc;
}

/* `at` is the head of a message, which was checked. Not inlined: most frames are PUTs. */
static __attribute__((noinline)) enum step
msg_step(struct wf_tcp_conn *c, struct wf_events *events, const uint8_t *at)
{
	struct wf_tcp_rx *rx = &c->rx;
	const struct wf_head head = wf_head_read(at);
	if (head.body_bytes > WF_MSG_BODY_MAX) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "a message of %llu bytes; %u are the most",
			     (unsigned long long)head.body_bytes, WF_MSG_BODY_MAX);
		return STEP_DOWN;
	}
	uint32_t frame_bytes = WF_HEAD_BYTES + (uint32_t)head.body_bytes;
	if (buffered(rx) < frame_bytes) {
		return STEP_BYTES;
	}
	if (wf_events_full(events) || c->t->heads_used == WF_TCP_HEADS_MAX) {
		return STEP_ROOM;
	}
	const uint8_t *body = at + WF_HEAD_BYTES;
	if (!payload_is_sound(&head, body)) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "the body of a message fails its CRC");
		return STEP_DOWN;
	}
	struct wf_head *kept = &c->t->heads[c->t->heads_used++];
	*kept = head;
	struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_MSG);
	event->msg.head = kept;
	event->msg.body = body;
	rx->begin += frame_bytes;
	rx->lent_turn = c->t->medium.loop.turn;
	rx->put_bytes = 0;
	c->t->medium.info.msgs_received++;
	return STEP_ON;
}

/* A frame after which nothing is received. */
static __attribute__((cold)) enum step
last_step(struct wf_tcp_conn *c, struct wf_head head)
{
	if (head.type == WF_TCP_CLOSE && head.body_bytes == 0) {
		wf_life_down(&c->life, WEFT_CLOSED, "closed by the peer");
	} else {
		wf_life_down(&c->life, WEFT_PROTOCOL, "a frame of type %u with %llu bytes",
			     head.type, (unsigned long long)head.body_bytes);
	}
	return STEP_DOWN;
}

/* Accepts the PUT that `head` announces, or WEFT_PROTOCOL. */
static inline enum weft_status
open_put(struct wf_tcp_conn *c, const struct wf_head *head, struct wf_landing *out)
{
	const struct wf_put_claim claim = {
		.grant = head->region,
		.tag = head->slice,
		.nonce = head->request_id,
		.offset = head->offset,
		.bytes = head->body_bytes,
	};
	bool fits = claim.bytes - 1 < c->t->medium.opts.put_bytes_max; /* 0 does not fit */
	if (!fits || head->flags != 0) {
		return wf_put_claim_refuse(claim, "its length or flags are not allowed");
	}
	return wf_grants_open(&c->life.grants, &claim, out);
}

/* `at` is the head of a frame of the transport, which was checked. A PUT is kept only while it
 * waits for bytes, or for room for its event. */
static enum step
frame_step(struct wf_tcp_conn *c, struct wf_events *events, const uint8_t *at)
{
	const struct wf_head head = wf_head_read(at);
	struct wf_landing put;
	c->rx.begin += WF_HEAD_BYTES;
	if (head.type != WF_TCP_PUT) {
		return last_step(c, head);
	}
	if (open_put(c, &head, &put) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
		return STEP_DOWN;
	}
	c->rx.put_bytes = head.body_bytes;
	enum step step = land(c, events, &put);
	if (step != STEP_ON) {
		c->rx.put = put;
		c->rx.put_open = true;
	}
	return step;
}

static enum step
head_step(struct wf_tcp_conn *c, struct wf_events *events)
{
	struct wf_tcp_rx *rx = &c->rx;
	const uint8_t *at = rx->buffer + rx->begin;
	if (wf_head_check(at, c->t->body_max) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
		return STEP_DOWN;
	}
	bool is_frame = wf_head_service(at) == WF_SERVICE_TRANSPORT;
	return is_frame ? frame_step(c, events, at) : msg_step(c, events, at);
}

/* Handles all frames in the buffer, and as much of the last as there is. */
static enum step
parse(struct wf_tcp_conn *c, struct wf_events *events)
{
	const struct wf_tcp_rx *rx = &c->rx;
	enum step step = STEP_ON;
	while (step == STEP_ON) {
		if (rx->put_open) {
			step = put_step(c, events);
		} else if (buffered(rx) < WF_HEAD_BYTES) {
			step = STEP_BYTES;
		} else {
			step = head_step(c, events);
		}
	}
	return step;
}

/* Makes room behind `end`. Returns false if events of this poll point into bytes that would have to
 * move. */
static bool
make_room(struct wf_tcp_conn *c)
{
	struct wf_tcp_rx *rx = &c->rx;
	if (rx->lent_turn == c->t->medium.loop.turn) {
		/* Whether the rest of any incomplete frame fits. */
		return WF_TCP_RX_BYTES - rx->begin >= WF_HEAD_BYTES + WF_MSG_BODY_MAX;
	}
	if (buffered(rx) == 0) {
		rx->begin = 0;
		rx->end = 0;
	} else if (rx->begin > 0) {
		memmove(rx->buffer, rx->buffer + rx->begin, buffered(rx));
		rx->end -= rx->begin;
		rx->begin = 0;
	}
	return true;
}

/* Whether the next PUT should be read together with its head: it comes alone, and, if it is like
 * the one before, fits into the buffer. */
static inline bool
awaits_whole_put(const struct wf_tcp_rx *rx)
{
	return rx->was_empty && !rx->put_open && rx->put_bytes <= WF_TCP_RX_BYTES - WF_HEAD_BYTES;
}

/* Reads the rest of a PUT into its place, and what follows into the buffer. Returns as readv does.
 */
static ssize_t
read_stream(struct wf_tcp_conn *c, uint64_t *asked)
{
	struct wf_tcp_rx *rx = &c->rx;
	uint8_t *at = rx->buffer + rx->end;
	uint32_t room = WF_TCP_RX_BYTES - rx->end;
	if (rx->put_bytes > 0 && room > WF_TCP_RX_BULK_BYTES && !awaits_whole_put(rx)) {
		room = WF_TCP_RX_BULK_BYTES;
	}
	WF_ASSERT(room > 0); /* make_room */
	*asked = room;
	if (!rx->put_open) {
		return wf_sys_recv(c->fd, at, room, 0);
	}
	WF_ASSERT(rx->put.left > 0 && buffered(rx) == 0);
	*asked += rx->put.left;
	const struct iovec iov[] = {{rx->put.at, rx->put.left}, {at, room}};
	return readv(c->fd, iov, WF_ARRAY_COUNT(iov));
}

static void
took_in(struct wf_tcp_conn *c, uint64_t bytes)
{
	struct wf_tcp_rx *rx = &c->rx;
	c->t->medium.info.bytes_received += bytes;
	rx->was_empty = false;
	if (rx->put_open) {
		uint64_t n = bytes < rx->put.left ? bytes : rx->put.left;
		rx->put.at += n;
		rx->put.left -= n;
		bytes -= n;
	}
	rx->end += (uint32_t)bytes;
	WF_ASSERT(rx->end <= WF_TCP_RX_BYTES);
}

static void
read_failed(struct wf_tcp_conn *c, int err)
{
	if (err == EINTR) {
		return;
	}
	if (err != EAGAIN && err != EWOULDBLOCK) {
		wf_tcp_conn_broken(c, err);
		return;
	}
	c->rx.readable = false;
	c->rx.hung_up = false;
	c->rx.was_empty = true;
	if (c->tx.error != 0) {
		wf_tcp_conn_broken(c, c->tx.error);
	}
}

/* Returns how many bytes were read; 0: the socket is empty, or the connection is down. */
static uint64_t
read_more(struct wf_tcp_conn *c)
{
	uint64_t asked = 0;
	ssize_t n = read_stream(c, &asked);
	if (n < 0) {
		read_failed(c, errno);
		return 0;
	}
	if (n == 0) {
		wf_tcp_conn_broken(c, c->tx.error);
		return 0;
	}
	took_in(c, (uint64_t)n);
	if ((uint64_t)n < asked && !c->rx.hung_up) {
		c->rx.readable = false; /* empty; later bytes cause a new edge */
	}
	return (uint64_t)n;
}

void
wf_tcp_receive(struct wf_tcp_conn *c, struct wf_events *events)
{
	int64_t budget = WF_TCP_RX_BUDGET;
	enum step step = STEP_BYTES;
	bool begun = c->rx.put_open || buffered(&c->rx) > 0; /* buffered bytes are handled first */
	while (begun || (c->rx.readable && budget > 0 && make_room(c))) {
		uint64_t n = begun ? 0 : read_more(c);
		if (n == 0 && !begun) {
			break;
		}
		budget -= (int64_t)n;
		begun = false;
		step = parse(c, events);
		if (step != STEP_BYTES) {
			break;
		}
	}
	c->rx.stalled = step == STEP_ROOM;
}

void
wf_tcp_discard(struct wf_tcp_conn *c)
{
	uint64_t budget = WF_TCP_RX_BUDGET;
	while (c->rx.readable && budget > 0) {
		ssize_t n = recv(c->fd, c->rx.buffer, WF_TCP_RX_BYTES, MSG_DONTWAIT);
		if (n < 0) {
			read_failed(c, errno);
			return;
		}
		if (n == 0) {
			wf_tcp_conn_broken(c, 0);
			return;
		}
		if (n < (ssize_t)WF_TCP_RX_BYTES && !c->rx.hung_up) {
			c->rx.readable = false;
		}
		budget -= (uint64_t)n < budget ? (uint64_t)n : budget;
	}
}
