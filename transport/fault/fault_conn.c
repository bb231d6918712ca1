/* SPDX-License-Identifier: Apache-2.0 */
/* fault_conn: one end: its beginning, its events and its end.
 *
 * The inner connection has this one as its user. The inner connection ends with its DOWN, which may
 * be held back here: from then on this end exists alone. Thread: the transport's owner. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "transport/fault/fault_internal.h"

#define INJECTED "injected by transport fault"

static struct wf_fault_conn *
conn_create(struct wf_fault *f)
{
	struct wf_fault_conn *c = wf_zalloc(f->base.env, sizeof(*c));
	if (c == NULL || !wf_places_claim(&f->places, &c->place)) {
		wf_free(f->base.env, c, sizeof(*c));
		return NULL;
	}
	wf_conn_init(&c->base, &f->base);
	c->fault = f;
	c->next = f->conns;
	c->prev_next = &f->conns;
	if (f->conns != NULL) {
		f->conns->prev_next = &c->next;
	}
	f->conns = c;
	return c;
}

void
wf_fault_conn_destroy(struct wf_fault_conn *c)
{
	struct wf_fault *f = c->fault;
	*c->prev_next = c->next;
	if (c->next != NULL) {
		c->next->prev_next = c->prev_next;
	}
	wf_places_leave(&f->places, &c->place);
	wf_free(f->base.env, c, sizeof(*c));
}

void
wf_fault_conn_cut(struct wf_fault_conn *c)
{
	if (c->inner == NULL || c->cut || c->closing) {
		return;
	}
	c->cut = true;
	wf_fault_count(c->fault, WF_FAULT_CUT);
	wf_transport_disconnect(c->inner, WF_DISCONNECT_NOW);
}

/* --- beginning --- */

/* Refuses a connect: it never reaches the peer, and its DOWN is its only event. */
static void
refuse_own(struct wf_fault_conn *c, const struct wf_host *to)
{
	struct wf_fault *f = c->fault;
	char peer[WF_HOST_BYTES + 8];
	wf_host_format(to, peer, sizeof(peer));
	(void)snprintf(c->end.why, sizeof(c->end.why), "%.180s: refused, " INJECTED, peer);
	c->end.status = WEFT_UNAVAILABLE;
	f->conns_refused++;
	wf_fault_count(f, WF_FAULT_REFUSE);
	const struct wf_event down = {.kind = WF_EVENT_DOWN, .conn = &c->base};
	wf_fault_see(f, WF_FAULT_AT_DOWN);
	wf_fault_hold_add(c, &down, f->now_ns + wf_fault_draw_delay(f, WF_FAULT_AT_DOWN));
}

enum weft_status
wf_fault_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
		 size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_fault *f = wf_fault_of(transport);
	struct wf_fault_conn *c = conn_create(f);
	if (c == NULL) {
		return wf_fail(WEFT_NOMEM,
			       "connect to %.200s:%u: conn_max %u reached, or no memory", to->name,
			       to->port, f->opts.conn_max);
	}
	f->now_ns = wf_now_ns(f->base.env);
	c->base.user = user;
	c->connecting = true;
	wf_fault_see(f, WF_FAULT_AT_CONNECT);
	if (wf_fault_strikes(f, WF_FAULT_REFUSE, WF_FAULT_AT_CONNECT)) {
		refuse_own(c, to);
	} else {
		enum weft_status st =
			wf_transport_connect(f->inner, to, hello, hello_bytes, c, &c->inner);
		if (st != WEFT_OK) {
			wf_fault_conn_destroy(c);
			return st;
		}
	}
	*out = &c->base;
	return WEFT_OK;
}

/* Wraps an incoming connection. NULL: it is not shown to the user, and its further events are
 * dropped. */
static struct wf_fault_conn *
adopt(struct wf_fault *f, struct wf_conn *inner)
{
	wf_fault_see(f, WF_FAULT_AT_ACCEPT);
	bool refused = wf_fault_strikes(f, WF_FAULT_REFUSE, WF_FAULT_AT_ACCEPT);
	struct wf_fault_conn *c = refused ? NULL : conn_create(f);
	if (refused) {
		wf_fault_count(f, WF_FAULT_REFUSE);
	}
	if (c == NULL) {
		wf_transport_disconnect(inner, WF_DISCONNECT_NOW);
		return NULL;
	}
	c->inner = inner;
	inner->user = c;
	return c;
}

enum weft_status
wf_fault_answer(struct wf_conn *base, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_fault_conn *c = wf_fault_conn_of(base);
	if (c->inner == NULL || c->closing || c->cut) {
		return wf_fail(WEFT_CLOSED, "answer: the connection is going down");
	}
	enum weft_status st = wf_transport_answer(c->inner, accept, verdict, verdict_bytes);
	if (st == WEFT_OK) {
		c->up = accept;
		c->closing = !accept;
	}
	if (st == WEFT_OK && !accept) {
		wf_places_refuse(&c->fault->places, &c->place);
		wf_places_end(&c->fault->places, &c->place);
	}
	return st;
}

/* --- events --- */

static enum wf_fault_point
point_of(enum wf_event_kind kind)
{
	switch (kind) {
	case WF_EVENT_UP:
		return WF_FAULT_AT_UP;
	case WF_EVENT_DOWN:
		return WF_FAULT_AT_DOWN;
	case WF_EVENT_MSG:
		return WF_FAULT_AT_MSG;
	case WF_EVENT_PUT:
		return WF_FAULT_AT_PUT;
	case WF_EVENT_DONE:
		break;
	}
	return WF_FAULT_AT_DONE;
}

/* Records the status of DOWN; that of an attempt that did not come UP differs. */
static void
note_down(struct wf_fault_conn *c, const struct wf_event *event)
{
	c->inner = NULL;
	c->end.status = event->down.status;
	WF_ASSERT(event->down.blob_bytes <= sizeof(c->end.blob));
	c->end.blob_bytes = event->down.blob_bytes;
	if (c->end.blob_bytes > 0) {
		memcpy(c->end.blob, event->down.blob, c->end.blob_bytes);
	}
	(void)snprintf(c->end.why, sizeof(c->end.why), "%s", event->down.why);
	if (c->cut) {
		const char *colon = strstr(event->down.why, ": ");
		int peer = colon == NULL ? (int)strlen(event->down.why)
					 : (int)(colon - event->down.why);
		(void)snprintf(c->end.why, sizeof(c->end.why), "%.*s: cut, " INJECTED,
			       peer < 180 ? peer : 180, event->down.why);
		c->end.status = c->connecting && !c->came_up ? WEFT_UNAVAILABLE : WEFT_LOST;
		c->end.blob_bytes = 0;
	}
}

/* When the event may be delivered. */
static uint64_t
draw_due(struct wf_fault_conn *c, const struct wf_event *event, enum wf_fault_point point)
{
	struct wf_fault *f = c->fault;
	uint64_t delay_ns = wf_fault_draw_delay(f, point);
	/* The bytes of a slot may become invalid with the next inner poll: this DOWN cannot wait.
	 */
	bool waits = event->kind != WF_EVENT_DOWN || c->slots_out == 0;
	if (delay_ns > 0 && waits) {
		wf_fault_count(f, WF_FAULT_DELAY);
	}
	if (!waits) {
		wf_fault_hold_hurry(c);
		delay_ns = 0;
	}
	return wf_fault_hold_order(c, event->kind, f->now_ns + delay_ns);
}

static struct wf_fault_conn *
conn_of_event(struct wf_fault *f, const struct wf_event *event)
{
	if (event->kind == WF_EVENT_UP && event->up.incoming) {
		return adopt(f, event->conn);
	}
	return event->conn->user;
}

bool
wf_fault_conn_event(struct wf_fault *f, struct wf_event *event)
{
	struct wf_fault_conn *c = conn_of_event(f, event);
	if (c == NULL) {
		return false;
	}
	enum wf_fault_point point = point_of(event->kind);
	wf_fault_see(f, point);
	event->conn = &c->base;
	if (event->kind == WF_EVENT_UP) {
		c->came_up = true;
	} else if (event->kind == WF_EVENT_PUT && event->put.data != NULL) {
		c->slots_out++;
	} else if (event->kind == WF_EVENT_DOWN) {
		note_down(c, event);
	}
	if (event->kind != WF_EVENT_DOWN && wf_fault_strikes(f, WF_FAULT_CUT, point)) {
		wf_fault_conn_cut(c);
	}
	uint64_t due_ns = draw_due(c, event, point);
	if (due_ns > f->now_ns || wf_fault_hold_has_before(c, event->kind)) {
		wf_fault_hold_add(c, event, due_ns);
		return false;
	}
	return true;
}

static void
fill_down(struct wf_fault_conn *c, struct wf_event *event)
{
	event->down.status = c->end.status;
	event->down.why = c->end.why;
	event->down.blob = c->end.blob;
	event->down.blob_bytes = c->end.blob_bytes;
	if (c->closing) {
		event->down.status = WEFT_CLOSED;
		event->down.blob_bytes = 0;
	}
}

void
wf_fault_conn_handed(struct wf_fault_conn *c, struct wf_event *event)
{
	switch (event->kind) {
	case WF_EVENT_UP:
		c->up = !event->up.incoming;
		break;
	case WF_EVENT_DONE:
		WF_ASSERT(c->op_count > 0);
		c->op_count--;
		break;
	case WF_EVENT_DOWN:
		WF_ASSERT(c->kept.count == 0 && c->op_count == 0);
		fill_down(c, event);
		c->gone = true;
		c->fault->gone_waiting = true;
		break;
	case WF_EVENT_MSG:
	case WF_EVENT_PUT:
		break;
	}
	wf_event_set_conn(event, &c->base);
}

/* --- calls --- */

enum weft_status
wf_fault_check_up(const struct wf_fault_conn *c, const char *what)
{
	if (c->inner == NULL || c->closing || c->cut) {
		return wf_fail(WEFT_CLOSED, "%s: the connection is going down", what);
	}
	if (!c->up) {
		return wf_fail(WEFT_INVALID, "%s: the connection is not up", what);
	}
	return WEFT_OK;
}

void
wf_fault_disconnect(struct wf_conn *base, enum wf_disconnect how)
{
	struct wf_fault_conn *c = wf_fault_conn_of(base);
	if (c->gone) {
		return;
	}
	if (!c->closing) {
		c->closing = true;
		wf_fault_hold_drop(c);
	}
	if (c->inner != NULL) {
		wf_transport_disconnect(c->inner, how);
	}
}

void
wf_fault_path(struct wf_conn *base, struct wf_path_info *out)
{
	struct wf_fault_conn *c = wf_fault_conn_of(base);
	*out = (struct wf_path_info){.name = c->fault->inner->ops->name, .why = ""};
	if (c->inner != NULL) {
		wf_transport_path(c->inner, out);
		/* The inner connection may be freed before this one. */
		(void)snprintf(c->path_why, sizeof(c->path_why), "%s", out->why);
		out->why = c->path_why;
	}
}

enum weft_status
wf_fault_grant(struct wf_conn *base, const struct wf_grant *grant, struct wf_grant_key *out)
{
	struct wf_fault_conn *c = wf_fault_conn_of(base);
	enum weft_status st = wf_fault_check_up(c, "grant");
	return st == WEFT_OK ? wf_transport_grant(c->inner, grant, out) : st;
}

void
wf_fault_release(struct wf_conn *base, uint32_t slot)
{
	struct wf_fault_conn *c = wf_fault_conn_of(base);
	c->slots_out -= c->slots_out > 0 ? 1 : 0;
	if (c->inner != NULL) {
		wf_transport_release(c->inner, slot);
	}
}
