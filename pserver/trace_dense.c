/* SPDX-License-Identifier: Apache-2.0 */
/* trace_dense: what is recorded of a dense lane, as a feature that sleeps until somebody asks; and,
 * on lane 0, what is said to the trainers about it: TRACE and TRACED. Thread: the lane's. */
#include "base/assert.h"
#include "pserver/dense.h"
#include "pserver/trace.h"

/* Lane 0's, of a trainer: what it was told last. */
struct told {
	uint64_t id;
	bool stops;
};

struct state {
	struct told *told;        /* [peers.count] */
	struct wf_msg_traced msg; /* scratch */
};

static uint64_t
trace_bytes(const struct wf_lane *lane)
{
	return lane->opts.traces != NULL
		       ? sizeof(struct state) + lane->peers.count * sizeof(struct told)
		       : 0;
}

static enum weft_status
open_trace(struct wf_feature *self, struct wf_lane *lane)
{
	struct state *state = wf_zalloc(lane->env, sizeof(*state));
	self->state = state;
	self->sleeps = lane->trace.ring == NULL; /* a recording may have begun before the job */
	if (state != NULL) {
		state->told = wf_zalloc_array(lane->env, lane->peers.count, sizeof(*state->told));
	}
	return state != NULL && state->told != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "lane %u: no memory for traces of %u trainers",
				 lane->opts.idx, lane->peers.count);
}

static void
close_trace(struct wf_feature *self, struct wf_lane *lane)
{
	struct state *state = self->state;
	if (state != NULL) {
		wf_free(lane->env, state->told, lane->peers.count * sizeof(*state->told));
		wf_free(lane->env, state, sizeof(*state));
	}
}

/* ---- what is recorded ---- */

static void
note(const struct wf_lane *lane, enum wf_trace_what what, uint32_t peer, uint32_t ordinal,
     uint64_t step)
{
	if (lane->trace.ring != NULL) {
		wf_trace_note(lane->trace.ring, what, peer, ordinal, step, 0);
	}
}

static void
step_said(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	  const struct wf_msg_step *msg)
{
	(void)self;
	if ((msg->flags & WF_STEP_OUT_OF_DATA) == 0) { /* else it comes before that step begins */
		note(lane, WF_TRACE_STEP_ARRIVED, peer->trainer, 0, msg->step);
	}
}

static bool
note_push(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	  uint32_t ordinal)
{
	(void)self;
	note(lane, WF_TRACE_ARRIVED, peer->trainer, ordinal,
	     wf_push_of(lane, ordinal, peer->trainer)->next);
	return true;
}

static void
note_applied(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	(void)self;
	note(lane, WF_TRACE_APPLIED, WF_TRACE_ALL, ordinal, dense->round[ordinal].next);
}

static void
note_mark(const struct wf_feature *self, struct wf_lane *lane, const struct wf_peer *peer,
	  enum wf_trace_what what, uint32_t ordinal)
{
	(void)self;
	note(lane, what, peer->trainer, ordinal,
	     wf_push_of(lane, ordinal, peer->trainer)->next - 1);
}

static void
step_done(const struct wf_feature *self, struct wf_lane *lane, uint64_t applied_ns)
{
	(void)self;
	(void)applied_ns;
	note(lane, WF_TRACE_STEP_DONE, WF_TRACE_ALL, 0, lane->order.sum.step);
}

/* ---- what is said to trainers ---- */

static enum weft_status
recv_traced(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	    const struct wf_head *head, const uint8_t *body)
{
	struct state *state = self->state;
	if (lane->opts.idx != 0) {
		return wf_fail(WEFT_PROTOCOL, "TRACED: lane %u has not asked for it",
			       lane->opts.idx);
	}
	enum weft_status st = wf_msg_traced_decode(head, body, &state->msg);
	return st == WEFT_OK ? wf_traces_recv(lane->opts.traces, peer->trainer, peer->hello.host,
					      &state->msg)
			     : st;
}

static bool
flush(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	struct state *state = self->state;
	struct told *told = &state->told[peer->trainer];
	bool stops;
	if (lane->opts.idx != 0) {
		return true; /* lane 0 alone knows, and says, what is recorded */
	}
	uint64_t id = wf_traces_recording(lane->opts.traces, &stops);
	if (id == 0 || (told->id == id && told->stops)) {
		return true;
	}
	const struct wf_msg_trace msg = {
		.request_id = id, .clock_ns = wf_now_ns(lane->env), .stops = stops};
	wf_msg_trace_encode(&msg, &lane->msg);
	if (!wf_control_send(peer, &lane->msg)) {
		return false;
	}
	*told = (struct told){.id = id, .stops = stops};
	return true;
}

/* Each look says once more what the clock shows, until the end was said. */
static void
tick(const struct wf_feature *self, struct wf_lane *lane, uint64_t now_ns)
{
	const struct state *state = self->state;
	bool stops;
	(void)now_ns;
	if (self->sleeps && lane->trace.ring != NULL) {
		wf_feature_wake(self, lane);
	} else if (!self->sleeps && lane->trace.ring == NULL) {
		wf_feature_sleep(self, lane);
	}
	uint64_t id = lane->opts.idx == 0 ? wf_traces_recording(lane->opts.traces, &stops) : 0;
	for (uint32_t i = 0; id != 0 && i < lane->peers.count; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		bool is_told = state->told[i].id == id && state->told[i].stops;
		if (peer->state == WF_PEER_UP && peer->conn != NULL && !peer->closing && !is_told) {
			wf_feature_due(self, peer);
		}
	}
}

/* On the next path it is told again. */
static void
path_ends(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	const struct state *state = self->state;
	(void)lane;
	state->told[peer->trainer] = (struct told){0};
}

const struct wf_feature_hooks wf_trace_hooks = {
	.name = "trace",
	.message = WF_MSG_TRACED,
	.sleeps = true, /* until somebody asks */
	.bytes = trace_bytes,
	.open = open_trace,
	.close = close_trace,
	.recv = recv_traced,
	.flush = flush,
	.path_ends = path_ends,
	.step_said = step_said,
	.may_put = note_push,
	.after_apply = note_applied,
	.mark = note_mark,
	.step_done = step_done,
	.tick = tick,
};
