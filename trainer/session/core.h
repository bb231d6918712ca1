/* SPDX-License-Identifier: Apache-2.0 */
/* core: the state machine of a session: its links to all lanes, and what is under way on them.
 *
 * core.c  events, deadlines; failure.c  the first failure; link.c  connecting, resuming; flow.c
 * pushes, pulls, answers; report.c  counters, and the lines about them.
 * Thread: whoever drives progress: the progress thread, or the caller. The fields marked "shared"
 * are also read by the session's owner. */
#pragma once

#include <stdatomic.h>

#include "base/assert.h"
#include "base/beats.h"
#include "base/env.h"
#include "base/stats.h"
#include "base/spin.h"
#include "base/trace.h"
#include "base/waits.h"
#include "base/settings.h"
#include "exchange/link.h"
#include "exchange/report.h"
#include "exchange/turn.h"
#include "kernels/kernels.h"
#include "kernels/optimizer.h"
#include "trainer/session/failure.h"
#include "trainer/session/memory.h"
#include "trainer/session/pace.h"
#include "transport/transport.h"
#include "weft/weft.h"
#include "wire/job.h"
#include "wire/messages.h"
#include "wire/placement.h"
#include "wire/priority.h"

#define WF_CORE_OPS 16

struct wf_link_codec;
struct wf_core;
struct wf_dense_link;  /* trainer/session/dense.h */
struct wf_service_ops; /* likewise */

struct wf_core_tensor {
	struct wf_wait wait;   /* first; while some of it is pending */
	uint32_t pending;      /* slices that are unanswered or in flight */
	_Atomic uint32_t busy; /* shared. owner: 1 before the command; core: 0 when nothing is
				* pending (release); owner: load acquire */
	uint64_t pushed_step;  /* the last one it was pushed in */
	bool lags;             /* a push of it is applied when it comes */
};

/* link.c is the only writer. */
struct wf_session_links {
	struct wf_link **all; /* [count] the payloads' */
	uint32_t count;
	struct wf_dense_link *dense; /* [dense_count] the first of them */
	uint32_t dense_count;
};

/* Exchanges of tensors under way. flow.c is the only writer, except for busy. */
struct wf_session_flow {
	struct wf_core_tensor *tensor; /* [tensor_count] */
	uint32_t busy_slices;          /* slices pending over all tensors */
	uint32_t undone_slices;        /* of them, those that are answered and not DONE */
};

/* Counters, all lanes together; their meaning: struct weft_session_stats. */
/* These follow the counters of every end (enum wf_end_counter). */
enum wf_core_counter {
	WF_CORE_FAST_SENT_BYTES = WF_END_COUNTER_COUNT, /* these three when they are gathered */
	WF_CORE_FAST_RECEIVED_BYTES,
	WF_CORE_PATH_BROKEN_COUNT,
	WF_CORE_STEP_BEGUN_COUNT,
	WF_CORE_SLICE_PUSHED_COUNT,
	WF_CORE_SLICE_ANSWERED_COUNT,
	WF_CORE_SLICE_DISCARDED_COUNT,
	WF_CORE_SLICE_PULLED_COUNT,
	WF_CORE_GRADIENT_OVERFLOWED_COUNT,
	WF_CORE_LANE_RECONNECTED_COUNT,
	WF_CORE_WAIT_SLOT_COUNT,
	WF_CORE_AWAY_TIME_NS,
	WF_CORE_COUNTER_COUNT,
};

/* What a session may wait for, several at a time. */
enum wf_core_wait {
	WF_CORE_WAIT_START, /* lanes and initial values, until they are here */
	WF_CORE_WAIT_TENSORS,
	WF_CORE_WAIT_SERVICE,
	WF_CORE_WAIT_REDUCE,
	WF_CORE_WAIT_OTHERS,
	WF_CORE_WAIT_END, /* for the other trainers to end the job, too */
};
#define WF_CORE_WAIT_COUNT (WF_CORE_WAIT_END + 1u)

/* Since when there are waits, and when the next line about each kind is due. */
struct wf_session_waits {
	struct wf_wait_list tensors;
	struct wf_wait_gate gate[WF_CORE_WAIT_COUNT];
	uint64_t back_ns;        /* of the last turn after a second or more without any */
	uint64_t absent_told_ns; /* the last line about a trainer that is not connected */
};

/* The session's description of its job. greeting.c is the only writer. */
struct wf_session_greeting {
	uint8_t *job; /* [job_bytes] encoded, for the lane that has not got it */
	uint64_t job_bytes;
};

/* What the session carries beside tensors, which the payload sets (weft_table_add). */
struct wf_session_service {
	const struct wf_service_ops *ops; /* NULL: nothing */
	void *state;
	uint32_t lane_count; /* of each pserver */
	uint32_t undone;     /* pulls and pushes that lack nothing but DONEs, and calls */
};

/* Sums over all trainers. shared: the owner writes value and count while busy is 0, and reads value
 * and step when it is again; the core has them while it is 1. */
struct wf_session_reduce {
	_Atomic uint32_t busy; /* as tensor.busy */
	uint64_t id;
	uint32_t count;
	double value[WF_REDUCE_MAX];
	uint64_t step;            /* out: highest step begun by any trainer */
	uint64_t since_ns;        /* time of the request; 0: there is none */
	struct wf_msg_reduce msg; /* scratch */
};

/* How far the start has come. */
struct wf_session_start {
	_Atomic uint32_t busy; /* as tensor.busy: until all links were ready once */
	bool all_were_up;
	bool asked;       /* for the initial values, or gave them: lanes may be up before that */
	bool initialised; /* every lane was up, and the initial values are here */
	bool restored;    /* trainer 0: weft_session_restore has set `init` */
	bool is_loaded;   /* lanes begin with a state that they had; known before all are ready */
	/* A next life (rejoin.c): the arrays do not have the initial values any more. */
	bool is_rejoin;
	bool lacks_values; /* trainer 0: and they are needed, because there is no snapshot */
	uint64_t connect_timeout_ns; /* of this life; 0: as the options say */
	/* The step at which the job begins. Trainer 0: set before start, or received if lanes begin
	 * with a state that they had; others: received from the lanes before the initial values are
	 * complete. */
	struct wf_msg_init init;
};

/* The step that this trainer is in. step.c is the only writer, but
 * for the first pass. */
struct wf_session_step {
	uint64_t number; /* last one begun by this trainer */
	uint64_t samples;
	double cost;
	uint32_t pass;    /* from 1 */
	bool out;         /* of data in this pass */
	uint64_t updated; /* last step that anybody has begun, as far as known */
};

/* What the lanes know of one trainer, or of the job. shared, as the reduce. others.c is the only
 * writer, but for busy. */
struct wf_session_others {
	_Atomic uint32_t busy;    /* as tensor.busy */
	struct wf_msg_report sum; /* so far */
	uint32_t asked;           /* lanes */
	uint32_t missing;         /* those that have not answered */
	uint64_t since_ns;        /* 0: no request */
};

/* What the owner has changed of optimizers: from step `step` on. The owner writes while no step is
 * under way; the core reads while it is in that step. */
struct wf_session_changes {
	uint64_t step; /* 0: the next one that begins */
	uint32_t count, capacity;
	struct wf_change *change; /* [capacity] in order (wf_change_is_before); NULL: never any */
};

/* How far this trainer's data has come. */
struct wf_session_position {
	/* After its share of step own.step, 0: none. The owner writes it while no step is under
	 * way; the core reads while it is in that step. */
	struct wf_msg_position own;
	/* In the state with which the lanes begin; step 0: none. The core writes it before all
	 * lanes are ready. */
	struct wf_msg_position begins;
};

/* With a wire of 16 bits: what leaves and what comes, in the layout of the session's memory with
 * offsets by half. halves.c is the only writer. */
struct wf_session_halves {
	const struct wf_link_codec *codec; /* NULL: f32, and there are no slabs */
	enum weft_value_format format;
	unsigned shift; /* bits by which it is less than f32: 0 or 1 */
	const struct wf_kernels *kernels;
	struct wf_slab rounded, answers;
	uint32_t rounded_region, answers_region;
};

/* The counters, and their lines. Every file adds to stats; report.c is the only writer of the rest,
 * except for busy. */
struct wf_session_report {
	_Atomic uint32_t busy; /* as tensor.busy */
	/* shared: the owner reads them when it has set busy and the core has cleared it. */
	struct wf_stats stats;
	uint64_t p50_ns, p99_ns; /* of pace.exchange_time; shared, as the counters */
	struct wf_report lines;
};

/* What the owner of a session that ends waits for. shared: core: store release; owner: load
 * acquire. */
struct wf_farewell {
	_Atomic uint32_t left;  /* all messages are sent (L1) */
	_Atomic uint32_t quiet; /* failed, and no connection is left */
};

/* What the trainer does, while a pserver has it recorded. trace.c is the only writer. */
struct wf_session_trace {
	struct wf_trace *on;   /* where events go; NULL: it is not recorded */
	struct wf_trace *ring; /* the same until it was sent */
	uint64_t id;           /* of the recording; 0: none */
};

struct wf_core {
	struct wf_link_end end; /* first: functions of links cast back; with the environment */
	struct wf_owner owner;  /* the driver */
	struct wf_turn turn;
	union { /* the same, with what has no field in the public struct */
		struct weft_session_opts opts;
		struct wf_session_values values;
	};
	struct wf_job job;
	struct wf_placement placement;
	struct wf_session_greeting greeting;
	struct wf_memory memory;
	struct wf_session_halves halves;
	struct wf_session_links links;
	struct wf_session_service service;
	struct wf_session_flow flow;
	struct wf_session_waits waits;

	struct wf_session_start start;
	struct wf_session_step step;
	struct wf_pace pace;
	struct wf_session_reduce reduce;

	struct wf_session_others others;
	/* The newest step that has changes or a position, sent before its STEP; 0: none. */
	uint64_t preceded_step;
	struct wf_session_changes changes;
	struct wf_session_position position;

	struct wf_failure failure;
	struct wf_farewell farewell;

	struct wf_session_report report;
	struct wf_session_trace trace;
};

/* core.c. Of a core that is zero but for its environment, or whose life is over. */
void wf_core_init(struct wf_core *core);
/* The core's job, placement, slabs and options are set by the session before. `verbs`:
 * settings of RDMA devices, for this trainer. */
enum weft_status wf_core_open(struct wf_core *core, const char *verbs) WEFT_MUST_CHECK;
void wf_core_close(struct wf_core *core); /* accepts a half-open one */
/* One turn: sends what is due, handles the events that have arrived, checks the deadlines. Returns
 * whether anything happened: if not, what is due waits for an event. */
bool wf_core_poll(struct wf_core *core);
/* Called before a sleep until `*deadline_ns`: sends what is due. */
enum wf_rest wf_core_arm(struct wf_core *core, uint64_t *deadline_ns);
/* As wf_turn_round: true: the driver may sleep on the transport until `*deadline_ns`. */
bool wf_core_advance(struct wf_core *core, uint64_t *deadline_ns);
static inline bool
wf_core_failed(const struct wf_core *core)
{
	const _Atomic uint32_t *status = &core->failure.status;
	return atomic_load_explicit(status, memory_order_acquire) != WEFT_OK; /* F1 */
}

/* The longest PUT that a lane may make: slices, and rows of a part. */
static inline uint64_t
wf_core_put_bytes_max(const struct wf_core *core)
{
	return core->service.ops != NULL ? WF_SLICE_BYTES_MAX : core->job.set.slice_bytes;
}

/* The tensor that has waited longest; there is one. */
static inline uint32_t
wf_core_oldest_tensor(const struct wf_core *core)
{
	WF_ASSERT(core->waits.tensors.oldest != NULL);
	return (uint32_t)((const struct wf_core_tensor *)core->waits.tensors.oldest -
			  core->flow.tensor);
}

/* Commands. */
void wf_core_start(struct wf_core *core);
void wf_core_push(struct wf_core *core, uint32_t tensor, uint64_t step);
/* A piece of weft_all_reduce, of which `bytes` are sent; `step` is its own. */
void wf_core_push_piece(struct wf_core *core, uint32_t tensor, uint64_t step, uint64_t bytes);
void wf_core_pull(struct wf_core *core, uint32_t tensor, uint64_t step, unsigned section);
/* `goes_on`: the job does, without this trainer. */
void wf_core_leave(struct wf_core *core, bool goes_on);

/* step.c. Commands. */
void wf_core_step(struct wf_core *core, uint64_t samples, double cost);
void wf_core_out(struct wf_core *core);
/* The next pass begins after step `step`. */
void wf_core_next_pass(struct wf_core *core, uint64_t step);
/* The job continues after `step`, which was made before this session began. */
void wf_core_go_on_after(struct wf_core *core, uint64_t step);

/* report.c */
void wf_core_report_init(struct wf_core *core);
void wf_core_report_start(struct wf_core *core);
/* Measures times from here on, if a lane wants to know them. */
void wf_core_report_measure(struct wf_core *core);
/* Command: brings the counters that the transport keeps up to date, and notifies the owner. */
void wf_core_report_stats(struct wf_core *core);
/* The line that is due at report.next_ns. */
void wf_core_report_period(struct wf_core *core, uint64_t now);
/* The line about the whole session, once. */
void wf_core_report_end(struct wf_core *core);

/* greeting.c */
/* The job's encoding, and the HELLO, in which the session has put its incarnation and its
 * numerics. A failure leaves what close gives back. */
enum weft_status wf_greeting_open(struct wf_core *core) WEFT_MUST_CHECK;
void wf_greeting_close(struct wf_core *core);
/* `compared` of the options travels as text. WEFT_INVALID: it is too long, or no words. */
enum weft_status wf_greeting_check(const struct weft_session_opts *opts) WEFT_MUST_CHECK;

/* Of a link of a session. */
static inline struct wf_core *
wf_core_of(const struct wf_link *link)
{
	return (struct wf_core *)link->end;
}

/* link.c */
extern const struct wf_link_end_ops wf_core_end_ops;
/* Links to all lanes, of the service too. A failure leaves what close gives back. */
enum weft_status wf_links_open(struct wf_core *core) WEFT_MUST_CHECK;
void wf_links_close(struct wf_core *core);
/* Send whatever is due. Returns whether something is left. */
bool wf_link_flush(struct wf_link *link);

/* Initial values are pushed as steps 0 - (sections - 1) .. 0, modulo 2^64 (wire/messages.h). */
static inline bool
wf_is_initial_push(uint64_t step)
{
	return step == 0 || step > INT64_MAX;
}

/* Pushes of some tensors are applied when they come. */
static inline bool
wf_core_lags(const struct wf_core *core)
{
	return wf_job_first_lagging(&core->job) != NULL;
}

/* halves.c */
/* The slabs that it needs beside those of `bytes` each. */
enum weft_status wf_core_halves_open(struct wf_core *core, uint64_t bytes,
				     int numa_node) WEFT_MUST_CHECK;
enum weft_status wf_core_halves_add(struct wf_core *core) WEFT_MUST_CHECK; /* to the transport */
void wf_core_halves_close(struct wf_core *core); /* accepts one that was never opened */
/* reduce.c */
/* Command: requests the reduction of reduce.value and reduce.count. */
void wf_core_reduce(struct wf_core *core);
enum weft_status wf_core_reduce_recv(struct wf_link *link,
				     const struct wf_event *event) WEFT_MUST_CHECK;
/* False: the transport accepts no more. */
bool wf_core_reduce_flush(struct wf_link *link);

/* others.c */
/* Command: sends the request to all lanes. */
void wf_others_ask(struct wf_core *core, uint32_t trainer);
/* beats.c */
/* Called when the clock was read: sends BEAT to the lanes if the session waits. A lane that is
 * silent for too long is a failure. */
void wf_core_beats_look(struct wf_core *core, uint64_t now_ns, bool waits);
enum weft_status wf_link_beat_recv(struct wf_link *link,
				   const struct wf_event *event) WEFT_MUST_CHECK;
bool wf_link_beat_flush(struct wf_link *link); /* false: the transport accepts no more */
/* "pserver 1 lane 0 (10.0.0.2:7164, pid 12) has not taken a turn for 4 s"; false: it has. */
bool wf_link_beat_describe(const struct wf_link *link, char *out, size_t bytes);
/* The same of the lane that has been silent longest. */
bool wf_core_beats_describe(const struct wf_core *core, char *out, size_t bytes);

/* absent.c */
enum weft_status wf_link_absent_recv(struct wf_link *link,
				     const struct wf_event *event) WEFT_MUST_CHECK;
/* "; trainer 1 is not in, refused: ...", or "; trainer 1 (host nodea, pid 12) has not taken a turn
 * for 4 s": the trainer for which the lane of the wait is waiting, otherwise that of any other
 * lane; "": no lane reports one. */
void wf_core_absent_describe(const struct wf_core *core, enum wf_core_wait kind, char *out,
			     size_t bytes);

/* trace.c: called while the trainer is recorded; out of the path of those that are not. */
void wf_core_note(const struct wf_dense_link *dense, enum wf_trace_what what, uint32_t ordinal)
	__attribute__((cold));
void wf_core_note_step(const struct wf_dense_link *dense) __attribute__((cold));
void wf_core_note_begun(const struct wf_core *core) __attribute__((cold));

/* waits.c */
/* The session waits for something. */
bool wf_core_waits(const struct wf_core *core);
/* Logs what has been waited for long; a wait beyond its limit is a failure. */
void wf_core_check_waits(struct wf_core *core, uint64_t now);
