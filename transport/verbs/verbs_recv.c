/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_recv: frames in receive buffers. A completion appends its buffer to its connection's list;
 * a visit delivers in order. Thread: the transport's owner. */
#include <arpa/inet.h>
#include <string.h>

#include "base/crc32c.h"
#include "transport/verbs/verbs_internal.h"

/* ---- completions ---- */

static void
on_error(struct wf_verbs_device *dev, struct wf_verbs_conn *c, struct wf_verbs_rx *rx,
	 const struct ibv_wc *wc)
{
	rx->conn = NULL;
	if (rx->chunk->conn == NULL) {
		wf_verbs_rx_forget(rx);
	}
	if (c == NULL) {
		return;
	}
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		wf_verbs_conn_suspect(c);
	} else {
		wf_verbs_conn_end(c, WEFT_PROTOCOL, "%s refused what the peer sent: %s", dev->name,
				  dev->t->lib->wc_status_str(wc->status));
	}
}

static void
on_receive(struct wf_verbs_device *dev, const struct ibv_wc *wc)
{
	struct wf_verbs_rx *rx = wf_verbs_rx_of(dev, wc->wr_id);
	if (rx == NULL) {
		return;
	}
	struct wf_verbs_conn *c = rx->chunk->conn;
	if (c == NULL) {
		c = wf_verbs_device_find(dev, wc->qp_num);
	} else if (--c->rx.posted == 0) {
		wf_life_ready(&c->life); /* it may have waited only for this */
	}
	if (wc->status != IBV_WC_SUCCESS) {
		on_error(dev, c, rx, wc);
		return;
	}
	rx->conn = c;
	rx->bytes = wc->byte_len;
	rx->notice = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	rx->tag = rx->notice ? ntohl(wc->imm_data) : 0;
	rx->counted = false;
	if (c == NULL || c->life.state >= WF_LIFE_DYING) {
		rx->conn = NULL;
		wf_verbs_rx_forget(rx);
		return;
	}
	c->rx.heard_ns = dev->t->medium.loop.now_ns;
	wf_verbs_rx_push(&c->rx.list, rx);
	wf_life_ready(&c->life);
}

unsigned
wf_verbs_poll_receive(struct wf_verbs_queues *q)
{
	struct ibv_wc wc[WF_VERBS_POLL];
	unsigned total = 0;
	unsigned n = 0;
	do {
		n = wf_verbs_queues_poll(q->dev, q->receive.cq, wc);
		for (unsigned i = 0; i < n; i++) {
			on_receive(q->dev, &wc[i]);
		}
		total += n;
	} while (n == WF_VERBS_POLL && total < WF_VERBS_POLL_MAX);
	return total;
}

void
wf_verbs_poll_receive_all(struct wf_verbs_queues *q)
{
	while (wf_verbs_poll_receive(q) >= WF_VERBS_POLL_MAX) {
	}
}

/* ---- frames ---- */

/* The buffer needs no attention any more, or is lent to an event. */
enum step {
	STEP_ON,
	STEP_ROOM, /* wait for room for its event; the buffer stays first */
	STEP_DOWN,
};

static enum step
violation(struct wf_verbs_conn *c, const char *text)
{
	wf_life_down(&c->life, WEFT_PROTOCOL, "%s", text);
	return STEP_DOWN;
}

/* Handles the peer's report on this end's frames. */
static bool
on_credits(struct wf_verbs_conn *c, const struct wf_verbs_frame *frame)
{
	struct wf_verbs_tx *tx = &c->tx;
	uint32_t returned = frame->credits - tx->frames_returned;
	if (returned > tx->frames_sent - tx->frames_returned) {
		return false;
	}
	if (frame->kind == WF_VERBS_CREDIT && returned < c->peer.credits / 2) {
		return false; /* such frames need no credit, so they are never delayed */
	}
	if (returned > 0) {
		tx->frames_returned = frame->credits;
		tx->progress_ns = c->t->medium.loop.now_ns;
	}
	c->t->medium.info.bytes_received += frame->put_bytes - c->rx.put_bytes;
	c->rx.put_bytes = frame->put_bytes;
	return true;
}

/* Counts a frame that needed a credit. The peer can have no more credits than were reported to it.
 */
static bool
count_frame(struct wf_verbs_conn *c, struct wf_verbs_rx *rx)
{
	if (rx->counted) {
		return true; /* it was counted in an earlier poll that had no room */
	}
	rx->counted = true;
	c->rx.frames_taken++;
	return c->rx.frames_taken - c->rx.frames_returned <= c->t->settings.credits;
}

static enum step
deliver_put(struct wf_verbs_conn *c, struct wf_events *events, const struct wf_verbs_rx *rx)
{
	struct wf_landing landing;
	enum weft_status st = rx->notice ? wf_verbs_put_notice(c, rx->tag, &landing)
					 : wf_verbs_put_claim(c, &rx->frame.head, &landing);
	if (st != WEFT_OK) {
		return violation(c, weft_last_error());
	}
	wf_grants_landed(&c->life.grants, &landing,
			 wf_events_add(events, &c->life.conn, WF_EVENT_PUT));
	c->t->medium.info.puts_received++;
	c->t->medium.info.bytes_received += rx->notice ? rx->bytes : rx->frame.head.step;
	return STEP_ON;
}

static enum step
on_put(struct wf_verbs_conn *c, struct wf_events *events, struct wf_verbs_rx *rx, bool discard)
{
	if (!discard) {
		if (wf_events_full(events)) {
			return STEP_ROOM;
		}
		enum step step = deliver_put(c, events, rx);
		if (step != STEP_ON) {
			return step;
		}
	}
	wf_verbs_rx_pop(&c->rx.list);
	wf_verbs_rx_forget(rx);
	return STEP_ON;
}

static bool
body_is_sound(const struct wf_verbs_rx *rx)
{
	const struct wf_head *head = &rx->frame.head;
	return (head->flags & WF_HEAD_PAYLOAD_CRC) == 0 ||
	       wf_crc32c(0, rx->data + WF_VERBS_FRAME_BYTES, head->body_bytes) == head->payload_crc;
}

static enum step
on_message(struct wf_verbs_conn *c, struct wf_events *events, struct wf_verbs_rx *rx, bool discard)
{
	if (!discard && wf_events_full(events)) {
		return STEP_ROOM;
	}
	if (!discard && !body_is_sound(rx)) {
		return violation(c, "the body of a message fails its CRC");
	}
	wf_verbs_rx_pop(&c->rx.list);
	c->t->medium.info.bytes_received += rx->bytes;
	if (discard) {
		wf_verbs_rx_forget(rx);
		return STEP_ON;
	}
	struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_MSG);
	event->msg.head = &rx->frame.head;
	event->msg.body = rx->data + WF_VERBS_FRAME_BYTES;
	c->t->medium.info.msgs_received++;
	wf_verbs_rx_push(&c->t->lent, rx);
	return STEP_ON;
}

/* Copies a hello or verdict. */
static enum step
copy_blob(struct wf_verbs_conn *c, const struct wf_verbs_rx *rx)
{
	size_t bytes = rx->frame.head.body_bytes;
	if (bytes > c->t->medium.opts.blob_max) {
		return violation(c, "its hello or verdict is too long");
	}
	memcpy(c->blob, rx->data + WF_VERBS_FRAME_BYTES, bytes);
	wf_life_decide(&c->life, c->blob, bytes, rx->frame.kind == WF_VERBS_REFUSES);
	return STEP_ON;
}

static enum step
on_start(struct wf_verbs_conn *c)
{
	if (!c->life.incoming || c->may_send) {
		return violation(c, "START at the wrong time");
	}
	c->may_send = true;
	wf_verbs_link_connected(c);
	if (c->life.state == WF_LIFE_UP) {
		wf_life_deadline(&c->life,
				 c->t->medium.loop.now_ns + c->t->medium.opts.peer_timeout_ns / 4);
	}
	return STEP_ON;
}

static enum step
on_close(struct wf_verbs_conn *c)
{
	if (c->life.disconnected || c->life.refused) {
		c->peer_closed = true; /* this end still sends what it has to send */
		return STEP_ON;
	}
	if (!c->life.incoming && c->life.state == WF_LIFE_SHAKING) {
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "the peer closed instead of answering");
	} else {
		wf_life_down(&c->life, WEFT_CLOSED, "closed by the peer");
	}
	return STEP_DOWN;
}

/* Handles frames of the handshake and of the end. The buffer is freed in any case. */
static enum step
on_control(struct wf_verbs_conn *c, struct wf_verbs_rx *rx)
{
	enum step step = STEP_ON;
	bool shaking = c->life.state == WF_LIFE_SHAKING;
	enum wf_verbs_frame_kind kind = rx->frame.kind;
	wf_verbs_rx_pop(&c->rx.list);
	if (kind == WF_VERBS_START) {
		step = on_start(c);
	} else if (kind == WF_VERBS_CLOSE) {
		step = on_close(c);
	} else if (kind != WF_VERBS_CREDIT && c->life.state != WF_LIFE_ENDING) {
		bool expected = shaking && (kind == WF_VERBS_HELLO) == c->life.incoming;
		step = expected ? copy_blob(c, rx) : violation(c, "hello or verdict out of turn");
	}
	wf_verbs_rx_forget(rx);
	return step;
}

static enum step
on_frame(struct wf_verbs_conn *c, struct wf_events *events, struct wf_verbs_rx *rx, bool discard)
{
	if (wf_verbs_frame_decode(rx->data, rx->bytes, &rx->frame) != WEFT_OK) {
		return violation(c, weft_last_error());
	}
	if (rx->frame.put_bytes < c->rx.put_bytes) { /* it is counted as received here */
		return violation(c, "its count of what it has written goes backwards");
	}
	if (!on_credits(c, &rx->frame)) {
		return violation(c, "it returns credits that it has not, or that are too few");
	}
	enum wf_verbs_frame_kind kind = rx->frame.kind;
	if (kind != WF_VERBS_CREDIT && !count_frame(c, rx)) {
		return violation(c, "it sends more than it has credits for");
	}
	if (kind != WF_VERBS_MESSAGE && kind != WF_VERBS_PUT) {
		return on_control(c, rx);
	}
	if (c->life.state < WF_LIFE_UP) {
		return violation(c, "it sends data before it was answered");
	}
	return kind == WF_VERBS_PUT ? on_put(c, events, rx, discard)
				    : on_message(c, events, rx, discard);
}

static enum step
on_entry(struct wf_verbs_conn *c, struct wf_events *events, bool discard)
{
	struct wf_verbs_rx *rx = c->rx.list.first;
	if (!rx->notice) {
		return on_frame(c, events, rx, discard);
	}
	if (!count_frame(c, rx)) {
		return violation(c, "it sends more than it has credits for");
	}
	if (c->life.state < WF_LIFE_UP) {
		return violation(c, "it writes before it was answered");
	}
	return on_put(c, events, rx, discard);
}

void
wf_verbs_receive(struct wf_verbs_conn *c, struct wf_events *events, bool discard)
{
	enum step step = STEP_ON;
	while (step == STEP_ON && c->rx.list.first != NULL && c->life.state != WF_LIFE_DECIDED &&
	       c->life.state < WF_LIFE_DYING) {
		step = on_entry(c, events, discard);
	}
}
