/* SPDX-License-Identifier: Apache-2.0 */
/* trace: what the lanes and the trainers of a job do, recorded for whoever asks: `weft trace` and
 * `weft why`. One recording is made at a time. Lane 0 begins it, ends it after a number of steps,
 * collects the rings of the trainers, and gives everything out as records.
 *
 * A lane has a ring of its own, which is allocated when it first records; lane 0 reads it when the
 * lane has stopped. Orders. T1: what lane 0 has set of a recording is seen by a lane that loads its
 * number with acquire. T2: a lane that stores 0 with release as the number that it records has
 * written its ring to the end; lane 0 loads it with acquire. Thread: stated at each function. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"
#include "base/trace.h"
#include "wire/messages.h"
#include "wire/watch_messages.h"

#define WF_TRACE_STEPS_MAX 1000u

struct wf_lane;
struct wf_traces; /* of a pserver */

/* WEFT_NOMEM. The thread that makes the lanes. */
enum weft_status wf_traces_open(struct wf_env *env, uint32_t lane_count,
				struct wf_traces **out) WEFT_MUST_CHECK;
void wf_traces_close(struct wf_traces *traces); /* accepts NULL */

/* ---- lane 0's thread ---- */

/* The question WF_WATCH_TRACE: begins a recording, or asks how far that one is. *is_ready: it can
 * be read with wf_traces_next. WEFT_INVALID: its arguments; WEFT_UNAVAILABLE: there is no job, or
 * another recording is under way. */
enum weft_status wf_traces_ask(struct wf_lane *lane, const uint64_t argument[2],
			       bool *is_ready) WEFT_MUST_CHECK;

/* Where a reader is. Zero: at the beginning. */
struct wf_trace_cursor {
	uint64_t id;   /* of the recording; 0: none yet */
	uint32_t part; /* lanes, then trainers */
	uint32_t event;
};
/* The next record of a recording that is ready; false: there are no more. */
bool wf_traces_next(const struct wf_traces *traces, struct wf_trace_cursor *cursor,
		    struct wf_watch_record *out);

/* What the trainers shall do (trace_dense.c): 0: nothing. */
uint64_t wf_traces_recording(const struct wf_traces *traces, bool *stops);
/* A part of a trainer's ring. */
enum weft_status wf_traces_recv(struct wf_traces *traces, uint32_t trainer, const char *host,
				const struct wf_msg_traced *msg) WEFT_MUST_CHECK;

/* ---- any lane's ---- */

/* The clock was read: begins or ends what the lane has to record. */
void wf_trace_look(struct wf_lane *lane, uint64_t now_ns);
