/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_cm: events of the connection manager. Each event is copied and acknowledged before it is
 * handled, because destroying an identifier would wait for it. Thread: the transport's owner. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

#define EVENTS_PER_LOOK 64u
/* InfiniBand's reasons for a rejection; iWARP reports an errno, below 0. */
#define REJECTED_NO_QUEUE_PAIR 1
#define REJECTED_NO_RESOURCES 3
#define REJECTED_TIMEOUT 4
#define REJECTED_NOBODY 8 /* invalid service */
#define REJECTED_STALE 10 /* our queue pair's number is that of an older connection there */
#define REJECTED_BY_CONSUMER 28

struct cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	size_t data_bytes;
	uint8_t data[256];
};

/* ---- connecting end ---- */

/* Both ends have their queue pairs. The connecting end sends first: iWARP requires it, and on
 * InfiniBand it makes up for a lost RTU. */
static void
established(struct wf_verbs_conn *c, const struct wf_verbs_private *p)
{
	wf_verbs_link_connected(c);
	wf_verbs_link_receives(c); /* on iWARP the kernel has done it */
	c->may_send = true;
	wf_verbs_conn_adopt(c, p);
	c->rx.heard_ns = c->t->medium.loop.now_ns;
	wf_life_enter(&c->life, WF_LIFE_SHAKING);
	wf_life_deadline(&c->life, c->life.attempt_ns);
	wf_verbs_send_frame(c, WF_VERBS_START, NULL, 0);
	if (c->blob_bytes > WF_VERBS_HELLO_SHORT) {
		wf_verbs_send_frame(c, WF_VERBS_HELLO, c->blob, c->blob_bytes);
	}
	wf_verbs_pump(c);
	if (c->life.state == WF_LIFE_SHAKING && (p->features & WF_VERBS_BLOB_FOLLOWS) == 0) {
		memcpy(c->blob, p->blob, p->blob_bytes);
		wf_life_decide(&c->life, c->blob, p->blob_bytes, false);
	}
	wf_life_ready(&c->life);
}

static void
on_reply(struct wf_verbs_conn *c, const struct cm_event *event)
{
	struct wf_verbs_private p;
	enum weft_status st = wf_verbs_private_decode(event->data, event->data_bytes, &p);
	if (st == WEFT_OK && p.type != WF_VERBS_REPLY) {
		st = wf_fail(WEFT_PROTOCOL, "private data: type %d in a reply", (int)p.type);
	}
	if (st != WEFT_OK) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
		return;
	}
	if (event->type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		st = wf_verbs_link_start(c);
		if (st == WEFT_OK && c->t->lib->establish(c->link.id) != 0) {
			st = wf_fail_errno(WEFT_UNAVAILABLE, errno, "the connection manager");
		}
		if (st != WEFT_OK) {
			wf_verbs_connect_next(c, weft_last_error());
			return;
		}
	}
	established(c, &p);
}

/* The text of a rejection that does not come from this backend. */
static const char *
rejection(int status)
{
	switch (status) {
	case REJECTED_NOBODY:
	case -ECONNREFUSED:
		return "nobody listens there";
	case REJECTED_NO_QUEUE_PAIR:
	case REJECTED_NO_RESOURCES:
	case -ENOMEM:
		return "the host there has no room for another connection";
	case REJECTED_TIMEOUT:
	case -ETIMEDOUT:
		return "the host there waited in vain for an answer of its own";
	case REJECTED_STALE:
		return "the host there takes it for an older connection";
	case -ECONNRESET:
	case -EPIPE:
		return "the host there ended it";
	case REJECTED_BY_CONSUMER:
		return "turned away without a word, perhaps by another program";
	default:
		return "turned away without a word";
	}
}

static void
on_rejected(struct wf_verbs_conn *c, const struct cm_event *event)
{
	struct wf_verbs_private p = {0};
	char text[WF_WHY_BYTES];
	bool ours = wf_verbs_private_decode(event->data, event->data_bytes, &p) == WEFT_OK;
	if (ours && p.type == WF_VERBS_REFUSE) {
		memcpy(c->blob, p.blob, p.blob_bytes);
		wf_life_decide(&c->life, c->blob, p.blob_bytes, true);
		wf_life_down(&c->life, WEFT_REFUSED, "refused by the peer");
	} else if (ours && p.type == WF_VERBS_DENY) {
		wf_peer_text(p.blob, p.blob_bytes, text);
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "the peer says: %s", text);
	} else if (event->status != REJECTED_STALE ||
		   !wf_verbs_connect_repeat(c, rejection(event->status))) {
		snprintf(text, sizeof(text), "%s (status %d)", rejection(event->status),
			 event->status);
		wf_verbs_connect_next(c, text);
	}
}

static void
on_failure(struct wf_verbs_conn *c, const struct cm_event *event)
{
	char text[WF_WHY_BYTES];
	if (c->life.incoming) {
		wf_verbs_conn_end(c, WEFT_LOST, "the peer gave up (%s)",
				  c->t->lib->event_str(event->type));
		return;
	}
	if (c->life.state >= WF_LIFE_SHAKING) {
		wf_verbs_conn_gone(c);
		return;
	}
	if (event->type == RDMA_CM_EVENT_REJECTED) {
		on_rejected(c, event);
		return;
	}
	/* For a device that it cannot open rdma_cm reports that there is none, or "not permitted".
	 */
	if (event->type == RDMA_CM_EVENT_ADDR_ERROR &&
	    wf_verbs_rights(&c->t->settings) != WEFT_OK) {
		snprintf(text, sizeof(text), "%s", weft_last_error());
		wf_verbs_connect_next(c, text);
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", c->t->lib->event_str(event->type),
		 strerror(event->status < 0 ? -event->status : event->status));
	wf_verbs_connect_next(c, text);
}

/* ---- events ---- */

static void
on_removal(struct wf_verbs_conn *c)
{
	if (c->link.dev != NULL) {
		wf_verbs_device_lost(c->link.dev, "the device was removed");
	}
	wf_verbs_conn_end(c, WEFT_LOST, "the RDMA device was removed");
}

/* Handles a result for which an attempt waits. An attempt that is ending does not continue with it.
 */
static void
on_answer(struct wf_verbs_conn *c, const struct cm_event *event)
{
	enum rdma_cm_event_type type = event->type;
	enum wf_verbs_stage asked = type == RDMA_CM_EVENT_ADDR_RESOLVED    ? WF_VERBS_ADDRESSING
				    : type == RDMA_CM_EVENT_ROUTE_RESOLVED ? WF_VERBS_ROUTING
									   : WF_VERBS_REQUESTING;
	if (c->life.incoming || !wf_verbs_conn_is_at(c, asked)) {
		return;
	}
	if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
		wf_verbs_connect_address(c);
	} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		wf_verbs_connect_route(c);
	} else {
		on_reply(c, event);
	}
}

static void
on_conn_event(struct wf_verbs_conn *c, const struct cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_answer(c, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		wf_verbs_link_connected(c);
		on_answer(c, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		on_failure(c, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		wf_verbs_conn_gone(c);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		on_removal(c);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	}
}

/* A listener's only event is the end of its device. */
static void
on_listener_event(struct wf_verbs *t, const struct cm_event *event)
{
	if (event->type != RDMA_CM_EVENT_DEVICE_REMOVAL) {
		return;
	}
	for (unsigned i = 0; i < t->listener_count; i++) {
		if (t->listener[i].id == event->id) {
			wf_log(t->medium.transport.env, WF_LOG_WARN,
			       "verbs: the device behind %s was removed: nobody can connect there",
			       t->listener[i].at);
			(void)t->lib->destroy_id(event->id);
			t->listener[i].id = NULL;
			wf_verbs_devices_forget(t);
		}
	}
}

static void
dispatch(struct wf_verbs *t, const struct cm_event *event)
{
	struct wf_verbs_conn *c = event->id->context;
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		wf_verbs_request(t, event->id, event->data, event->data_bytes);
	} else if (c == NULL) {
		on_listener_event(t, event);
	} else if (c->life.state < WF_LIFE_DYING && c->link.id == event->id) {
		on_conn_event(c, event);
	}
}

void
wf_verbs_cm_read(struct wf_verbs *t)
{
	struct rdma_cm_event *raw = NULL;
	unsigned count = 0;
	while (count < EVENTS_PER_LOOK && t->lib->get_cm_event(t->cm, &raw) == 0) {
		struct cm_event event = {.type = raw->event, .status = raw->status, .id = raw->id};
		if (raw->param.conn.private_data != NULL) {
			event.data_bytes = raw->param.conn.private_data_len;
			memcpy(event.data, raw->param.conn.private_data, event.data_bytes);
		}
		(void)t->lib->ack_cm_event(raw);
		dispatch(t, &event);
		count++;
	}
	t->medium.loop.left |= count == EVENTS_PER_LOOK;
}
