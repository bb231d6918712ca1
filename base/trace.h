/* SPDX-License-Identifier: Apache-2.0 */
/* trace: what one thread has done lately, as events in a ring of fixed size: what `weft trace` and
 * `weft why` show. Whoever records holds a pointer to a ring, which is NULL as long as nobody asks,
 * so that an event costs one test of a pointer then.
 *
 * Thread: one writes. Another one may read when the writer has stopped, and has said so by a
 * release of its own (pserver/trace.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"

/* Events of a ring; the newest are kept. A power of two. */
#define WF_TRACE_EVENTS 32768u

enum wf_trace_what {
	WF_TRACE_NOTHING,
	/* Of a trainer. peer: wf_trace_lane; slice: the ordinal on that lane. The push of a step
	 * to a sparse lane is recorded as that of one slice, with number 0. */
	WF_TRACE_STEP_BEGUN,  /* weft_step was called; value: samples */
	WF_TRACE_QUEUED,      /* a push of a slice was asked for */
	WF_TRACE_STEP_POSTED, /* STEP was given to the transport */
	WF_TRACE_POSTED,      /* the push was; value: bytes */
	WF_TRACE_SENT,        /* the transport has returned the gradient */
	WF_TRACE_ANSWERED,    /* the fresh values have arrived */
	WF_TRACE_MARKED,      /* TRACE has arrived; value: the lane's clock when it was sent */
	/* Of a lane. peer: the trainer. */
	WF_TRACE_STEP_ARRIVED,  /* STEP has arrived */
	WF_TRACE_ARRIVED,       /* a push has arrived */
	WF_TRACE_PARKED,        /* and was copied aside, because its slot is needed */
	WF_TRACE_APPLIED,       /* the slice was updated; peer: WF_TRACE_ALL, or the push's own */
	WF_TRACE_ANSWER_POSTED, /* the answer was given to the transport */
	WF_TRACE_STEP_DONE,     /* all slices of the step were applied */
	/* Of both: what the process (trainer) or the thread (lane) has used since it began. */
	WF_TRACE_CPU_NS,
	WF_TRACE_RUN_QUEUE_NS, /* it could have run, and had no CPU */
	WF_TRACE_MAJOR_FAULTS, /* pages that were read from a disk */
	/* Of a trainer, about a sparse lane: a request for rows as they are after `step`. slice:
	 * the number of the request; value: rows. */
	WF_TRACE_ROWS_ASKED,
	WF_TRACE_ROWS_ANSWERED, /* the last of them has arrived */
	/* Of a sparse lane. */
	WF_TRACE_ROWS_PULLED, /* all keys of such a request are here; value: rows */
	WF_TRACE_HOT_KEY, /* at the end. value: a key; peer: its table; slice: its part of the keys
			   * that the table was asked for since the job began, in thousandths */
	/* Of a lane, at the end. value: enum wf_service. */
	WF_TRACE_SERVICE,
	/* Of a trainer, as its use of a CPU. value: files of accelerators that it has open. */
	WF_TRACE_DEVICES,
	WF_TRACE_KINDS,
};

#define WF_TRACE_ALL UINT32_MAX

struct wf_trace_event {
	uint64_t at_ns; /* of the member's clock */
	uint64_t value;
	uint32_t step; /* its low 32 bits */
	uint32_t slice;
	uint32_t peer;
	uint16_t what; /* enum wf_trace_what */
	uint16_t unused;
};

struct wf_trace {
	struct wf_env *env;
	uint64_t count; /* recorded; the last WF_TRACE_EVENTS of them are in the ring */
	struct wf_trace_event event[WF_TRACE_EVENTS];
};

/* A lane of a job, as a trainer's events name it. */
static inline uint32_t
wf_trace_lane(uint32_t pserver_idx, uint32_t lane_idx)
{
	return pserver_idx << 16 | (lane_idx & 0xffff);
}

/* Records an event of now. */
static inline void
wf_trace_note(struct wf_trace *trace, enum wf_trace_what what, uint32_t peer, uint32_t slice,
	      uint64_t step, uint64_t value)
{
	trace->event[trace->count++ % WF_TRACE_EVENTS] = (struct wf_trace_event){
		.at_ns = wf_now_ns(trace->env),
		.value = value,
		.step = (uint32_t)step,
		.slice = slice,
		.peer = peer,
		.what = (uint16_t)what,
	};
}

/* Events in the ring, and those that were overwritten. */
static inline uint32_t
wf_trace_kept(const struct wf_trace *trace)
{
	return trace->count < WF_TRACE_EVENTS ? (uint32_t)trace->count : WF_TRACE_EVENTS;
}

static inline uint64_t
wf_trace_dropped(const struct wf_trace *trace)
{
	return trace->count - wf_trace_kept(trace);
}

/* Event `i` of those kept, the oldest first. */
static inline const struct wf_trace_event *
wf_trace_at(const struct wf_trace *trace, uint32_t i)
{
	return &trace->event[(wf_trace_dropped(trace) + i) % WF_TRACE_EVENTS];
}

/* Records what the calling thread, or the process, has used: at the beginning of a trace and at its
 * end. It reads files of /proc; what the system does not tell is left out. */
void wf_trace_note_usage(struct wf_trace *trace, uint64_t step, bool of_process);
