/* SPDX-License-Identifier: Apache-2.0 */
/* trace: what this trainer does, recorded when lane 0 of a pserver asks for it (TRACE), and sent
 * when it asks to stop (TRACED). One recording is made at a time; a newer one replaces it. Thread:
 * the core's. */
#include "base/trace.h"

#include "base/assert.h"
#include "trainer/session/dense.h"

/* Of the link whose lane has asked; the ring is the core's. */
struct traced {
	uint64_t id;              /* of the recording; 0: none */
	bool sends;               /* the ring */
	bool begins;              /* it has to be said that this trainer records */
	uint32_t sent;            /* events */
	struct wf_msg_traced msg; /* scratch */
};

static enum weft_status
open_traced(struct wf_dense_link *dense)
{
	bool is_first = dense->link.lane_idx == 0; /* no other lane asks */
	struct traced *traced = NULL;
	if (is_first) {
		traced = wf_zalloc(dense->link.end->env, sizeof(*traced));
	}
	dense->feature[WF_FEATURE_TRACE] = traced;
	return traced != NULL || !is_first ? WEFT_OK
					   : wf_fail(WEFT_NOMEM, "session: no memory for a trace");
}

static void
stop(struct wf_core *core)
{
	wf_free(core->end.env, core->trace.ring, sizeof(*core->trace.ring));
	core->trace = (struct wf_session_trace){0};
}

/* The link of the recording is gone, or another one begins. */
static void
forget(struct wf_dense_link *dense)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct traced *traced = dense->feature[WF_FEATURE_TRACE];
	if (traced != NULL && traced->id != 0 && traced->id == core->trace.id) {
		stop(core);
	}
	if (traced != NULL) {
		traced->id = 0;
		traced->sends = false;
		traced->begins = false;
	}
}

static void
close_traced(struct wf_dense_link *dense)
{
	forget(dense);
	wf_free(dense->link.end->env, dense->feature[WF_FEATURE_TRACE], sizeof(struct traced));
	dense->feature[WF_FEATURE_TRACE] = NULL;
}

/* Without memory for a ring an empty one is sent: the job goes on. */
static void
begin(struct wf_dense_link *dense, struct traced *traced, uint64_t id)
{
	struct wf_core *core = wf_core_of(&dense->link);
	if (core->trace.id != 0) {
		stop(core);
	}
	struct wf_trace *ring = wf_zalloc(core->end.env, sizeof(*ring));
	core->trace = (struct wf_session_trace){.ring = ring, .on = ring, .id = id};
	traced->id = id;
	traced->sends = false;
	traced->begins = true;
	traced->sent = 0;
	if (ring != NULL) {
		ring->env = core->end.env;
		wf_trace_note_usage(ring, core->step.number, true);
	}
	wf_link_feature_due(dense, WF_FEATURE_TRACE);
}

static void
end(struct wf_dense_link *dense, struct traced *traced)
{
	struct wf_core *core = wf_core_of(&dense->link);
	if (core->trace.on != NULL) {
		wf_trace_note_usage(core->trace.on, core->step.number, true);
	}
	core->trace.on = NULL;
	traced->sends = true;
	wf_link_feature_due(dense, WF_FEATURE_TRACE);
}

static enum weft_status
recv_trace(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct traced *traced = dense->feature[WF_FEATURE_TRACE];
	struct wf_msg_trace msg;
	enum weft_status st = wf_msg_trace_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (traced == NULL) {
		return wf_fail(WEFT_PROTOCOL, "TRACE: lane %u is not the first one of its pserver",
			       dense->link.lane_idx);
	}
	bool is_under_way = traced->id == msg.request_id && core->trace.id == msg.request_id;
	if (!is_under_way && !msg.stops) {
		begin(dense, traced, msg.request_id);
	}
	if (core->trace.on != NULL && core->trace.id == msg.request_id) {
		uint32_t lane = wf_trace_lane(dense->link.pserver_idx, dense->link.lane_idx);
		wf_trace_note(core->trace.on, WF_TRACE_MARKED, lane, 0, core->step.number,
			      msg.clock_ns);
	}
	if (is_under_way && msg.stops && !traced->sends) {
		end(dense, traced);
	}
	return WEFT_OK;
}

/* One message; false: the transport accepts no more. */
static bool
send_part(struct wf_dense_link *dense, struct traced *traced)
{
	struct wf_core *core = wf_core_of(&dense->link);
	const struct wf_trace *ring = core->trace.ring;
	struct wf_msg_traced *msg = &traced->msg;
	uint32_t total = ring != NULL && traced->sends ? wf_trace_kept(ring) : 0;
	uint32_t left = total - traced->sent;
	msg->request_id = traced->id;
	msg->dropped = ring != NULL ? wf_trace_dropped(ring) : 0;
	msg->total = total;
	msg->count = left < WF_TRACED_MAX ? left : WF_TRACED_MAX;
	msg->last = traced->sends && msg->count == left;
	for (uint32_t i = 0; i < msg->count; i++) {
		msg->event[i] = *wf_trace_at(ring, traced->sent + i);
	}
	wf_msg_traced_encode(msg, &core->end.msg);
	if (!wf_link_send(&dense->link, &core->end.msg)) {
		return false;
	}
	traced->begins = false;
	traced->sent += msg->count;
	if (msg->last) {
		forget(dense);
	}
	return true;
}

static bool
flush(struct wf_dense_link *dense)
{
	struct traced *traced = dense->feature[WF_FEATURE_TRACE];
	while (traced != NULL && traced->id != 0 && (traced->begins || traced->sends)) {
		if (wf_core_of(&dense->link)->trace.id != traced->id) {
			forget(dense); /* replaced by another pserver's */
		} else if (!send_part(dense, traced)) {
			return false;
		}
	}
	return true;
}

/* ---- what is recorded ---- */

static uint32_t
place_of(const struct wf_dense_link *dense)
{
	return wf_trace_lane(dense->link.pserver_idx, dense->link.lane_idx);
}

void
wf_core_note(const struct wf_dense_link *dense, enum wf_trace_what what, uint32_t ordinal)
{
	const struct wf_dense_slice *slice = &dense->slice[ordinal];
	wf_trace_note(wf_core_of(&dense->link)->trace.on, what, place_of(dense), ordinal,
		      slice->step, slice->bytes);
}

void
wf_core_note_step(const struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	wf_trace_note(core->trace.on, WF_TRACE_STEP_POSTED, place_of(dense), 0, core->step.number,
		      0);
}

void
wf_core_note_begun(const struct wf_core *core)
{
	wf_trace_note(core->trace.on, WF_TRACE_STEP_BEGUN, 0, 0, core->step.number,
		      core->step.samples);
}

const struct wf_link_hooks wf_link_trace_hooks = {
	.message = WF_MSG_TRACE,
	.open = open_traced,
	.close = close_traced,
	.recv = recv_trace,
	.flush = flush,
	.path_ends = forget,
};
