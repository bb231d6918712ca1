/* SPDX-License-Identifier: Apache-2.0 */
/* messages_trace: TRACE and TRACED, by which a lane has a trainer record what it does. Layouts:
 * wire/protocol.md. Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define TRACE_BYTES 12
#define TRACED_FIXED_BYTES 20
#define EVENT_BYTES 32

enum trace_flag {
	TRACE_STOPS = 1 << 0, /* TRACE */
	TRACED_LAST = 1 << 0, /* TRACED */
};

static const struct wf_shape trace_shape = {
	.name = "TRACE",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_TRACE,
	.uses = WF_USE_REQUEST_ID,
	.body_min = TRACE_BYTES,
	.body_max = TRACE_BYTES,
};

static const struct wf_shape traced_shape = {
	.name = "TRACED",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_TRACED,
	.uses = WF_USE_REQUEST_ID,
	.body_min = TRACED_FIXED_BYTES,
	.body_max = TRACED_FIXED_BYTES + WF_TRACED_MAX * EVENT_BYTES,
};

void
wf_msg_trace_encode(const struct wf_msg_trace *in, struct wf_msg *out)
{
	WF_ASSERT(in->request_id != 0);
	struct wf_writer w = wf_shape_begin(&trace_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u64(&w, in->clock_ns);
	wf_put_u32(&w, in->stops ? TRACE_STOPS : 0);
	wf_shape_end(&trace_shape, &w, out);
}

enum weft_status
wf_msg_trace_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_trace *out)
{
	enum weft_status st = wf_shape_check(&trace_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint64_t clock_ns = wf_get_u64(&r);
	uint32_t flags = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	if (head->request_id == 0) {
		return wf_refuse("TRACE", "request_id", 0, "above 0");
	}
	if (flags > TRACE_STOPS) {
		return wf_refuse("TRACE", "flags", flags, "0 or 1 (stops)");
	}
	*out = (struct wf_msg_trace){
		.request_id = head->request_id, .clock_ns = clock_ns, .stops = flags != 0};
	return WEFT_OK;
}

static void
put_event(struct wf_writer *w, const struct wf_trace_event *event)
{
	wf_put_u64(w, event->at_ns);
	wf_put_u64(w, event->value);
	wf_put_u32(w, event->step);
	wf_put_u32(w, event->slice);
	wf_put_u32(w, event->peer);
	wf_put_u32(w, event->what);
}

void
wf_msg_traced_encode(const struct wf_msg_traced *in, struct wf_msg *out)
{
	WF_ASSERT(in->request_id != 0 && in->count <= WF_TRACED_MAX && in->count <= in->total);
	struct wf_writer w = wf_shape_begin(&traced_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u64(&w, in->dropped);
	wf_put_u32(&w, in->total);
	wf_put_u32(&w, in->count);
	wf_put_u32(&w, in->last ? TRACED_LAST : 0);
	for (uint32_t i = 0; i < in->count; i++) {
		put_event(&w, &in->event[i]);
	}
	wf_shape_end(&traced_shape, &w, out);
}

static enum weft_status
check_traced(const struct wf_msg_traced *msg, uint32_t flags, const struct wf_reader *r)
{
	if (msg->request_id == 0) {
		return wf_refuse("TRACED", "request_id", 0, "above 0");
	}
	if (flags > TRACED_LAST) {
		return wf_refuse("TRACED", "flags", flags, "0 or 1 (last)");
	}
	if (msg->total > WF_TRACE_EVENTS) {
		return wf_refuse("TRACED", "total", msg->total, "at most 32768");
	}
	if (msg->count > WF_TRACED_MAX || msg->count > msg->total) {
		return wf_refuse("TRACED", "count", msg->count, "at most 125, and the total");
	}
	return r->bytes - r->used == (size_t)msg->count * EVENT_BYTES
		       ? WEFT_OK
		       : wf_refuse("TRACED", "count", msg->count, "the events that follow");
}

enum weft_status
wf_msg_traced_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_traced *out)
{
	enum weft_status st = wf_shape_check(&traced_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	out->request_id = head->request_id;
	out->dropped = wf_get_u64(&r);
	out->total = wf_get_u32(&r);
	out->count = wf_get_u32(&r);
	uint32_t flags = wf_get_u32(&r);
	out->last = flags != 0;
	st = check_traced(out, flags, &r);
	for (uint32_t i = 0; st == WEFT_OK && i < out->count; i++) {
		struct wf_trace_event event = {.at_ns = wf_get_u64(&r)};
		event.value = wf_get_u64(&r);
		event.step = wf_get_u32(&r);
		event.slice = wf_get_u32(&r);
		event.peer = wf_get_u32(&r);
		uint32_t what = wf_get_u32(&r);
		if (what == WF_TRACE_NOTHING || what >= WF_TRACE_KINDS) {
			return wf_refuse("TRACED", "what", what, "the number of a kind of event");
		}
		event.what = (uint16_t)what;
		out->event[i] = event;
	}
	return st;
}
