/* SPDX-License-Identifier: Apache-2.0 */
/* fault_hold: events that are held back, copied with what they point to, in one list ordered by due
 * time. All memory is allocated at open, except for each DOWN, which has its place in its
 * connection. Thread: the transport's owner. */
#include <string.h>

#include "base/assert.h"
#include "transport/fault/fault_internal.h"

enum weft_status
wf_fault_hold_init(struct wf_fault *f)
{
	struct wf_fault_hold *h = &f->hold;
	h->held = wf_zalloc_array(f->base.env, WF_FAULT_HELD_MAX, sizeof(*h->held));
	h->body = wf_zalloc_array(f->base.env, WF_FAULT_BODIES_MAX, sizeof(*h->body));
	if (h->held == NULL || h->body == NULL) {
		return wf_fail(WEFT_NOMEM, "transport fault: %zu bytes for events",
			       WF_FAULT_HELD_MAX * sizeof(*h->held) +
				       WF_FAULT_BODIES_MAX * sizeof(*h->body));
	}
	for (unsigned i = 0; i < WF_FAULT_HELD_MAX; i++) {
		h->held[i].next = h->free;
		h->free = &h->held[i];
	}
	for (unsigned i = 0; i < WF_FAULT_BODIES_MAX; i++) {
		h->body[i].next = h->free_bodies;
		h->free_bodies = &h->body[i];
	}
	h->free_count = WF_FAULT_HELD_MAX;
	h->free_body_count = WF_FAULT_BODIES_MAX;
	return WEFT_OK;
}

void
wf_fault_hold_fini(struct wf_fault *f)
{
	struct wf_fault_hold *h = &f->hold;
	wf_free(f->base.env, h->held, WF_FAULT_HELD_MAX * sizeof(*h->held));
	wf_free(f->base.env, h->body, WF_FAULT_BODIES_MAX * sizeof(*h->body));
	*h = (struct wf_fault_hold){0};
}

unsigned
wf_fault_hold_room(const struct wf_fault *f)
{
	const struct wf_fault_hold *h = &f->hold;
	return h->free_count < h->free_body_count ? h->free_count : h->free_body_count;
}

static bool
is_ordered(const struct wf_fault_held *held)
{
	return held->event.kind != WF_EVENT_DONE;
}

static void
link_by_time(struct wf_fault_hold *h, struct wf_fault_held *held)
{
	struct wf_fault_held *before = h->last;
	while (before != NULL && before->due_ns > held->due_ns) {
		before = before->prev;
	}
	held->prev = before;
	held->next = before == NULL ? h->first : before->next;
	*(held->prev == NULL ? &h->first : &held->prev->next) = held;
	*(held->next == NULL ? &h->last : &held->next->prev) = held;
	held->conn->kept.count++;
	held->conn->kept.ordered_count += is_ordered(held) ? 1 : 0;
}

static void
unlink_held(struct wf_fault_hold *h, struct wf_fault_held *held)
{
	*(held->prev == NULL ? &h->first : &held->prev->next) = held->next;
	*(held->next == NULL ? &h->last : &held->next->prev) = held->prev;
	held->conn->kept.count--;
	held->conn->kept.ordered_count -= is_ordered(held) ? 1 : 0;
}

/* Copies what the event points to, which is valid until the next inner poll. */
static void
copy_pointed(struct wf_fault_hold *h, struct wf_fault_held *held)
{
	struct wf_event *event = &held->event;
	struct wf_fault_conn *c = held->conn;
	if (event->kind == WF_EVENT_MSG) {
		struct wf_fault_body *body = h->free_bodies;
		WF_ASSERT(body != NULL && event->msg.head->body_bytes <= WF_MSG_BODY_MAX);
		h->free_bodies = body->next;
		h->free_body_count--;
		body->head = *event->msg.head;
		if (body->head.body_bytes > 0) {
			memcpy(body->bytes, event->msg.body, body->head.body_bytes);
		}
		held->body = body;
		event->msg.head = &body->head;
		event->msg.body = body->bytes;
	} else if (event->kind == WF_EVENT_UP) {
		WF_ASSERT(event->up.blob_bytes <= sizeof(c->kept.up_blob));
		if (event->up.blob_bytes > 0) {
			memcpy(c->kept.up_blob, event->up.blob, event->up.blob_bytes);
		}
		event->up.blob = c->kept.up_blob;
	}
}

void
wf_fault_hold_add(struct wf_fault_conn *c, const struct wf_event *event, uint64_t due_ns)
{
	struct wf_fault_hold *h = &c->fault->hold;
	struct wf_fault_held *held = &c->kept.down;
	if (event->kind != WF_EVENT_DOWN) {
		held = h->free;
		WF_ASSERT(held != NULL);
		h->free = held->next;
		h->free_count--;
	}
	*held = (struct wf_fault_held){.conn = c, .due_ns = due_ns, .event = *event};
	copy_pointed(h, held);
	link_by_time(h, held);
}

static void
give_back(struct wf_fault_hold *h, struct wf_fault_held *held)
{
	if (held->body != NULL) {
		held->body->next = h->free_bodies;
		h->free_bodies = held->body;
		h->free_body_count++;
	}
	held->next = h->free;
	h->free = held;
	h->free_count++;
}

bool
wf_fault_hold_pop(struct wf_fault *f, struct wf_event *out)
{
	struct wf_fault_hold *h = &f->hold;
	struct wf_fault_held *held = h->first;
	if (held == NULL || (held->due_ns > f->now_ns && wf_fault_hold_room(f) > 0)) {
		return false;
	}
	unlink_held(h, held);
	*out = held->event;
	if (held->event.kind != WF_EVENT_DOWN) {
		held->next = h->spent;
		h->spent = held;
	}
	return true;
}

void
wf_fault_hold_recycle(struct wf_fault *f)
{
	struct wf_fault_hold *h = &f->hold;
	while (h->spent != NULL) {
		struct wf_fault_held *held = h->spent;
		h->spent = held->next;
		give_back(h, held);
	}
}

uint64_t
wf_fault_hold_order(struct wf_fault_conn *c, enum wf_event_kind kind, uint64_t due_ns)
{
	struct wf_fault_kept *kept = &c->kept;
	if (kind == WF_EVENT_DOWN && due_ns < kept->last_ns) {
		due_ns = kept->last_ns;
	}
	if (kind != WF_EVENT_DONE) {
		due_ns = due_ns < kept->ordered_ns ? kept->ordered_ns : due_ns;
		kept->ordered_ns = due_ns;
	}
	kept->last_ns = due_ns > kept->last_ns ? due_ns : kept->last_ns;
	return due_ns;
}

bool
wf_fault_hold_has_before(const struct wf_fault_conn *c, enum wf_event_kind kind)
{
	return kind == WF_EVENT_DOWN ? c->kept.count > 0
				     : kind != WF_EVENT_DONE && c->kept.ordered_count > 0;
}

void
wf_fault_hold_hurry(struct wf_fault_conn *c)
{
	struct wf_fault *f = c->fault;
	struct wf_fault_held *next = NULL;
	for (struct wf_fault_held *held = f->hold.first; held != NULL; held = next) {
		next = held->next;
		if (held->conn == c && held->due_ns > f->now_ns) {
			unlink_held(&f->hold, held);
			held->due_ns = f->now_ns;
			link_by_time(&f->hold, held);
		}
	}
	c->kept.ordered_ns = f->now_ns;
	c->kept.last_ns = f->now_ns;
}

void
wf_fault_hold_drop(struct wf_fault_conn *c)
{
	struct wf_fault_hold *h = &c->fault->hold;
	struct wf_fault_held *next = NULL;
	c->kept.ordered_ns = 0;
	c->kept.last_ns = 0;
	for (struct wf_fault_held *held = h->first; held != NULL; held = next) {
		next = held->next;
		if (held->conn != c) {
			continue;
		}
		if (is_ordered(held) && held->event.kind != WF_EVENT_DOWN) {
			unlink_held(h, held);
			give_back(h, held);
		} else {
			c->kept.last_ns = held->due_ns;
		}
	}
}
