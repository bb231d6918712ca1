/* SPDX-License-Identifier: Apache-2.0 */
/* trace: see trace.h: the recording as a whole, and each lane's ring. What is recorded of dense
 * lanes, and messages to trainers: trace_dense.c. Thread: stated at each part. */
#include "pserver/trace.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/service.h"

#define BEGIN_NS (2 * WF_NS_PER_S)    /* for all members to begin */
#define RECORD_NS (30 * WF_NS_PER_S)  /* for the steps, which may be fewer then */
#define COLLECT_NS (10 * WF_NS_PER_S) /* for the trainers to send what they have */
#define KEEP_NS (60 * WF_NS_PER_S)    /* for whoever asked to fetch it */
#define TRAINERS_MAX 1024u            /* whose rings are collected */
#define COLLECTED_BYTES_MAX (256ull << 20)
#define RECORD_EVENTS WF_WATCH_TRACE_EVENTS

/* What a lane shares with lane 0. */
struct lane_part {
	struct wf_trace *ring;      /* the lane sets it before it first records */
	_Atomic uint64_t recording; /* the lane: store release; lane 0: load acquire; T2 */
	_Atomic uint64_t step;      /* the lane: store relaxed; lane 0: load relaxed: no data */
	/* Lane 0's own: it has seen that the lane records what is wanted. Only then it reads the
	 * ring: a lane that had no CPU may begin when all others have ended. */
	bool has_begun;
};

/* A trainer's ring, as far as it has come. */
struct trainer_part {
	struct wf_trace_event *event; /* [total] */
	uint32_t total, count;
	uint64_t dropped;
	bool has_begun, is_whole;
	char host[WF_REASON_BYTES];
};

enum phase {
	IDLE,
	BEGINNING, /* not all members record yet */
	RECORDING,
	COLLECTING, /* what has been recorded */
	READY,
};

struct wf_traces {
	struct wf_env *env;
	uint32_t lane_count;
	struct lane_part *lane; /* [lane_count] */
	/* What all lanes record; 0: nothing. Lane 0: store release; lanes: load acquire; T1. */
	_Atomic uint64_t wanted;

	/* Lane 0's own. */
	enum phase phase;
	uint64_t id;
	uint32_t steps;
	uint32_t pserver_idx;
	bool has_trainers;    /* their rings belong to the recording */
	uint64_t deadline_ns; /* of the phase */
	uint64_t first_step;  /* when all recorded */
	uint64_t collected_bytes;
	uint32_t trainer_count;
	struct trainer_part trainer[TRAINERS_MAX];
};

enum weft_status
wf_traces_open(struct wf_env *env, uint32_t lane_count, struct wf_traces **out)
{
	struct wf_traces *traces = wf_zalloc(env, sizeof(*traces));
	if (traces != NULL) {
		traces->env = env;
		traces->lane_count = lane_count;
		traces->lane = wf_zalloc_array(env, lane_count, sizeof(*traces->lane));
	}
	if (traces == NULL || traces->lane == NULL) {
		wf_traces_close(traces);
		return wf_fail(WEFT_NOMEM, "pserver: no memory for the traces of %u lanes",
			       lane_count);
	}
	*out = traces;
	return WEFT_OK;
}

static void
forget_part(struct wf_traces *traces, struct trainer_part *part)
{
	uint64_t bytes = part->total * sizeof(*part->event);
	wf_free(traces->env, part->event, bytes);
	traces->collected_bytes -= part->event != NULL ? bytes : 0;
	*part = (struct trainer_part){0};
}

static void
forget_trainers(struct wf_traces *traces)
{
	for (uint32_t i = 0; i < TRAINERS_MAX; i++) {
		forget_part(traces, &traces->trainer[i]);
	}
	WF_ASSERT(traces->collected_bytes == 0);
}

void
wf_traces_close(struct wf_traces *traces)
{
	if (traces == NULL) {
		return;
	}
	forget_trainers(traces);
	for (uint32_t i = 0; traces->lane != NULL && i < traces->lane_count; i++) {
		wf_free(traces->env, traces->lane[i].ring, sizeof(struct wf_trace));
	}
	wf_free(traces->env, traces->lane, traces->lane_count * sizeof(*traces->lane));
	wf_free(traces->env, traces, sizeof(*traces));
}

/* ---- a lane's own ---- */

static uint64_t
step_of(const struct wf_lane *lane)
{
	return lane->order.own_steps ? lane->order.highest : lane->order.sum.step;
}

static void
begin_ring(struct wf_lane *lane, struct lane_part *part, uint64_t id)
{
	if (part->ring == NULL) {
		part->ring = wf_zalloc(lane->env, sizeof(*part->ring));
	}
	lane->trace.recording = id;
	if (part->ring == NULL) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: no memory to record what it does: %zu bytes", lane->opts.idx,
		       sizeof(*part->ring));
		return; /* the other members are recorded */
	}
	part->ring->env = lane->env;
	part->ring->count = 0;
	lane->trace.ring = part->ring;
	wf_trace_note_usage(lane->trace.ring, step_of(lane), false);
	atomic_store_explicit(&part->recording, id, memory_order_release); /* T2 */
}

static void
end_ring(struct wf_lane *lane, struct lane_part *part)
{
	if (lane->trace.ring != NULL) {
		wf_trace_note_usage(lane->trace.ring, step_of(lane), false);
		wf_trace_note(lane->trace.ring, WF_TRACE_SERVICE, WF_TRACE_ALL, 0, step_of(lane),
			      lane->service->number);
		if (lane->service->trace != NULL && lane->job.is_ready) {
			lane->service->trace(lane, lane->trace.ring);
		}
	}
	lane->trace.ring = NULL;
	lane->trace.recording = 0;
	atomic_store_explicit(&part->recording, 0, memory_order_release); /* T2 */
}

/* ---- lane 0's: how far the recording is ---- */

static void
enter(struct wf_traces *traces, enum phase phase, uint64_t deadline_ns)
{
	traces->phase = phase;
	traces->deadline_ns = deadline_ns;
	if (phase == COLLECTING || phase == IDLE) {
		atomic_store_explicit(&traces->wanted, 0, memory_order_release); /* T1 */
	}
}

/* Which lanes have begun. */
static void
note_begun(struct wf_traces *traces)
{
	for (uint32_t i = 0; i < traces->lane_count; i++) {
		struct lane_part *part = &traces->lane[i];
		uint64_t id = atomic_load_explicit(&part->recording, memory_order_acquire); /* T2 */
		part->has_begun = part->has_begun || id == traces->id;
	}
}

/* Whether all lanes record, or those that did have ended. */
static bool
all_lanes(const struct wf_traces *traces, bool ended)
{
	bool all = true;
	for (uint32_t i = 0; i < traces->lane_count; i++) {
		const struct lane_part *part = &traces->lane[i];
		uint64_t id = atomic_load_explicit(&part->recording, memory_order_acquire); /* T2 */
		all = all && (ended ? !part->has_begun || id == 0 : part->has_begun);
	}
	return all;
}

static bool
is_up(const struct wf_lane *lane, uint32_t trainer)
{
	const struct wf_peer *peer = &lane->peers.all[trainer];
	return peer->state == WF_PEER_UP && peer->conn != NULL && !peer->closing;
}

/* Whether all trainers that are here have begun, or have sent everything. */
static bool
all_trainers(const struct wf_traces *traces, const struct wf_lane *lane, bool whole)
{
	bool all = true;
	for (uint32_t i = 0; traces->has_trainers && i < traces->trainer_count; i++) {
		const struct trainer_part *part = &traces->trainer[i];
		bool awaited =
			i < lane->peers.count && is_up(lane, i) && (!whole || part->has_begun);
		all = all && (!awaited || (whole ? part->is_whole : part->has_begun));
	}
	return all;
}

static uint64_t
highest_step(const struct wf_traces *traces)
{
	uint64_t step = 0;
	for (uint32_t i = 0; i < traces->lane_count; i++) {
		uint64_t of = atomic_load_explicit(&traces->lane[i].step, memory_order_relaxed);
		step = of > step ? of : step;
	}
	return step;
}

/* Lane 0 has looked at the clock. */
static void
advance(struct wf_traces *traces, const struct wf_lane *lane, uint64_t now_ns)
{
	bool is_late = now_ns >= traces->deadline_ns;
	bool has_job = lane->state == WF_LANE_RUNNING && lane->job.is_ready;
	if (traces->phase == BEGINNING || traces->phase == RECORDING) {
		note_begun(traces);
	}
	switch (traces->phase) {
	case IDLE:
		return;
	case BEGINNING:
		if (is_late || (all_lanes(traces, false) && all_trainers(traces, lane, false))) {
			traces->first_step = highest_step(traces);
			enter(traces, RECORDING, now_ns + RECORD_NS);
		}
		return;
	case RECORDING:
		/* One step more, because the one under way is not whole. */
		if (is_late || !has_job ||
		    highest_step(traces) > traces->first_step + traces->steps) {
			enter(traces, COLLECTING, now_ns + COLLECT_NS);
		}
		return;
	case COLLECTING:
		if (all_lanes(traces, true) && (is_late || all_trainers(traces, lane, true))) {
			enter(traces, READY, now_ns + KEEP_NS);
		}
		return;
	case READY:
		if (is_late) {
			forget_trainers(traces);
			enter(traces, IDLE, WF_NEVER);
		}
		return;
	}
}

void
wf_trace_look(struct wf_lane *lane, uint64_t now_ns)
{
	struct wf_traces *traces = lane->opts.traces;
	if (traces == NULL) {
		return;
	}
	uint64_t wanted = atomic_load_explicit(&traces->wanted, memory_order_acquire); /* T1 */
	struct lane_part *part = &traces->lane[lane->opts.idx];
	if (lane->trace.recording != wanted) {
		if (lane->trace.recording != 0) {
			end_ring(lane, part);
		}
		if (wanted != 0) {
			begin_ring(lane, part, wanted);
		}
	}
	if (wanted != 0) {
		atomic_store_explicit(&part->step, step_of(lane), memory_order_relaxed);
	}
	if (lane->opts.idx == 0) {
		advance(traces, lane, now_ns);
	}
}

/* ---- lane 0's: for whoever asks ---- */

static void
begin(struct wf_traces *traces, const struct wf_lane *lane, uint64_t id, uint32_t steps,
      bool has_trainers)
{
	forget_trainers(traces);
	for (uint32_t i = 0; i < traces->lane_count; i++) {
		traces->lane[i].has_begun = false;
	}
	traces->id = id;
	traces->pserver_idx = lane->admission.first.pserver_idx;
	traces->steps = steps;
	traces->has_trainers = has_trainers;
	traces->trainer_count = lane->peers.count < TRAINERS_MAX ? lane->peers.count : TRAINERS_MAX;
	enter(traces, BEGINNING, wf_now_ns(traces->env) + BEGIN_NS);
	atomic_store_explicit(&traces->wanted, id, memory_order_release); /* T1 */
}

enum weft_status
wf_traces_ask(struct wf_lane *lane, const uint64_t argument[2], bool *is_ready)
{
	struct wf_traces *traces = lane->opts.traces;
	uint64_t steps = argument[0] & WF_WATCH_TRACE_STEPS;
	uint64_t id = argument[1];
	*is_ready = false;
	if (steps == 0 || steps > WF_TRACE_STEPS_MAX || id == 0 ||
	    (argument[0] & ~(WF_WATCH_TRACE_STEPS | WF_WATCH_TRACE_TRAINERS)) != 0) {
		return wf_fail(WEFT_INVALID,
			       "a trace of %" PRIu64
			       " steps: takes 1 to %u, and a number of its own",
			       steps, WF_TRACE_STEPS_MAX);
	}
	if (traces == NULL || lane->state != WF_LANE_RUNNING || !lane->job.is_ready) {
		bool was_its = traces != NULL && traces->phase == READY && traces->id == id;
		*is_ready = was_its;
		return was_its ? WEFT_OK
			       : wf_fail(WEFT_UNAVAILABLE,
					 "no job is running here, so there is nothing to record");
	}
	if (traces->id == id && traces->phase != IDLE) {
		*is_ready = traces->phase == READY;
		return WEFT_OK;
	}
	if (traces->phase != IDLE && traces->phase != READY) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "somebody else is recording this job: try again in some seconds");
	}
	begin(traces, lane, id, (uint32_t)steps, (argument[0] & WF_WATCH_TRACE_TRAINERS) != 0);
	return WEFT_OK;
}

static void
copy_event(const struct wf_trace_event *event, uint64_t value[WF_WATCH_TRACE_WORDS])
{
	value[0] = event->at_ns;
	value[1] = event->value;
	value[2] = event->step | (uint64_t)event->slice << 32;
	value[3] = event->peer | (uint64_t)event->what << 32;
}

/* The lane's part, and then the next one. */
static void
fill_record(const struct wf_trace_event *(*at)(const void *of, uint32_t i), const void *of,
	    uint32_t total, uint64_t dropped, struct wf_trace_cursor *cursor,
	    struct wf_watch_record *out)
{
	uint32_t left = total - cursor->event;
	uint32_t count = left < RECORD_EVENTS ? left : RECORD_EVENTS;
	out->value[WF_WTRACE_TOTAL] = total;
	out->value[WF_WTRACE_DROPPED] = dropped;
	out->value[WF_WTRACE_COUNT] = count;
	for (uint32_t i = 0; i < count; i++) {
		copy_event(at(of, cursor->event + i),
			   &out->value[WF_WTRACE_EVENT + (size_t)i * WF_WATCH_TRACE_WORDS]);
	}
	cursor->event += count;
	if (cursor->event == total) {
		cursor->part++;
		cursor->event = 0;
	}
}

static const struct wf_trace_event *
at_lane(const void *of, uint32_t i)
{
	return wf_trace_at(of, i);
}

static const struct wf_trace_event *
at_trainer(const void *of, uint32_t i)
{
	return &((const struct trainer_part *)of)->event[i];
}

bool
wf_traces_next(const struct wf_traces *traces, struct wf_trace_cursor *cursor,
	       struct wf_watch_record *out)
{
	memset(out, 0, sizeof(*out));
	cursor->id = cursor->id == 0 ? traces->id : cursor->id;
	if (traces->phase != READY || cursor->id != traces->id) {
		return false; /* another one has begun, and rings are being written */
	}
	out->kind = WF_WATCH_TRACED;
	out->value[WF_WTRACE_PSERVER] = traces->pserver_idx;
	while (cursor->part < traces->lane_count) {
		const struct lane_part *part = &traces->lane[cursor->part];
		const struct wf_trace *ring = part->has_begun ? part->ring : NULL;
		out->lane = cursor->part;
		out->value[WF_WTRACE_IS_TRAINER] = 0;
		if (ring != NULL && ring->count > 0) {
			fill_record(at_lane, ring, wf_trace_kept(ring), wf_trace_dropped(ring),
				    cursor, out);
			return true;
		}
		cursor->part++;
	}
	while (cursor->part - traces->lane_count < traces->trainer_count) {
		uint32_t trainer = cursor->part - traces->lane_count;
		const struct trainer_part *part = &traces->trainer[trainer];
		if (part->count > 0) {
			out->lane = 0;
			out->idx = trainer;
			out->value[WF_WTRACE_IS_TRAINER] = 1;
			(void)snprintf(out->text[WF_WTRACE_HOST], WF_REASON_BYTES, "%s",
				       part->host);
			fill_record(at_trainer, part, part->count,
				    part->dropped + part->total - part->count, cursor, out);
			return true;
		}
		cursor->part++;
	}
	return false;
}

/* ---- lane 0's: trainers ---- */

uint64_t
wf_traces_recording(const struct wf_traces *traces, bool *stops)
{
	bool is_open = traces->phase >= BEGINNING && traces->phase <= COLLECTING;
	*stops = traces->phase == COLLECTING;
	return is_open && traces->has_trainers ? traces->id : 0;
}

/* Room for what it announces; without it everything counts as dropped. */
static enum weft_status
begin_part(struct wf_traces *traces, struct trainer_part *part, const struct wf_msg_traced *msg)
{
	uint64_t bytes = msg->total * sizeof(*part->event);
	if (traces->collected_bytes + bytes > COLLECTED_BYTES_MAX) {
		return WEFT_OK;
	}
	part->event = wf_zalloc_array(traces->env, msg->total, sizeof(*part->event));
	if (part->event == NULL) {
		return WEFT_OK;
	}
	traces->collected_bytes += bytes;
	part->total = msg->total;
	return WEFT_OK;
}

enum weft_status
wf_traces_recv(struct wf_traces *traces, uint32_t trainer, const char *host,
	       const struct wf_msg_traced *msg)
{
	if (msg->request_id != traces->id || trainer >= traces->trainer_count ||
	    !traces->has_trainers || traces->phase == IDLE || traces->phase == READY) {
		return WEFT_OK; /* of a recording that is over */
	}
	struct trainer_part *part = &traces->trainer[trainer];
	if (msg->count == 0 && !msg->last) { /* it begins, or begins again on a new path */
		forget_part(traces, part);
	}
	part->has_begun = true;
	(void)snprintf(part->host, sizeof(part->host), "%s", host);
	if (msg->count > 0 && part->event == NULL && part->count == 0) {
		enum weft_status st = begin_part(traces, part, msg);
		part->dropped = msg->dropped;
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (part->event != NULL && (part->is_whole || msg->count > part->total - part->count)) {
		return wf_fail(WEFT_PROTOCOL, "TRACED: %u events beyond the %u that were announced",
			       msg->count, part->total);
	}
	if (part->event != NULL) {
		memcpy(&part->event[part->count], msg->event, msg->count * sizeof(*msg->event));
		part->count += msg->count;
	}
	part->is_whole = part->is_whole || msg->last;
	return WEFT_OK;
}
