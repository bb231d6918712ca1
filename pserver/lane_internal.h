/* SPDX-License-Identifier: Apache-2.0 */
/* lane_internal: the structs of a lane, shared by the files of this folder only.
 *
 * lane.c    the turn: events, deadlines, the end of a job
 * admit.c   who may come in, the job description, coming back
 * round.c   steps, gradients, the apply
 * answer.c  everything a lane sends
 * reduce.c  the N-way reduce and the barrier (lane 0 of pserver 0)
 * report.c  counters that are gathered, and the lines about them
 *
 * Steps are kept as "next": the step something waits for. Initial values are waited for as steps
 * 0 - (sections - 1) .. 0, modulo 2^64: wf_is_initial. */
#pragma once

#include "base/assert.h"
#include "base/turn.h"
#include "pserver/lane.h"
#include "pserver/store.h"
#include "transport/transport.h"
#include "wire/messages.h"

#define WF_BUFFER_FREE UINT32_MAX
#define WF_PULLS_MAX 16 /* ranges one trainer may have asked for and not got */
#define WF_HELD_MAX 256 /* hellos that wait for the job's description */
#define WF_EVENTS_PER_POLL 64
#define WF_OPS_PER_POST 16

enum wf_peer_state {
	WF_PEER_ABSENT, /* never seen */
	WF_PEER_UP,
	WF_PEER_LOST, /* has until lost_deadline_ns to come back */
	WF_PEER_GONE, /* said GOODBYE */
};

/* A range of slices that a trainer asked for. */
struct wf_pull_range {
	uint64_t request_id;
	uint64_t step;
	uint32_t next, end; /* ordinals not answered yet */
	bool state;         /* section */
	uint8_t state_idx;
};

/* One trainer as one lane sees it. */
struct wf_peer {
	struct wf_lane *lane;
	bool listed; /* in lane->due */
	struct wf_peer *due_next;
	uint32_t trainer; /* id */
	enum wf_peer_state state;
	struct wf_hello hello;     /* of the newest connection */
	struct wf_conn *conn;      /* UP or going DOWN; NULL: none */
	struct wf_conn *successor; /* a newer connection, held until conn is DOWN; NULL: none */
	struct wf_hello successor_hello;
	bool closing; /* conn was told to disconnect */
	uint64_t lost_deadline_ns;
	uint64_t loading_deadline_ns; /* loading: the job has to be here by then */
	bool offended;                /* it broke the protocol: it does not come in again */
	char lost_why[WF_WHY_BYTES];

	/* Steps. */
	uint64_t step_next; /* STEP message waited for, from 1 */
	uint32_t pushed;    /* slices, for step step_next - 1 */
	bool out;           /* of data in out_pass */
	uint32_t out_pass;

	/* Path: forgotten at DOWN. */
	bool loading;         /* sends the job */
	uint32_t resume_next; /* ordinal of the next RESUME; UINT32_MAX: all sent, or not due */
	uint32_t had;         /* slices that HAVE told of: only these are answered unasked */
	bool slots_granted;
	struct wf_grant_key slots_key;
	bool slots_due;
	bool have_values, have_state[WF_STATE_MAX];
	struct wf_grant_key values_key, state_key[WF_STATE_MAX];
	bool goodbye_due, abort_due, reduced_due;
	bool init_due;      /* to be told where the job begins, once all initial values are here */
	bool left_in_order; /* GONE, and has heard that we know: it will not come back */
	uint32_t credit_count;
	uint16_t *credit; /* [slot_count] buffers to give back */
	struct wf_pull_range pull[WF_PULLS_MAX];
	uint32_t pull_count;
	bool nack_due;
	struct wf_msg_nack nack;

	/* Answers to pushes: ring of ordinals, at most one entry per slice. */
	uint32_t *answer; /* [stored_count] */
	uint32_t answer_first, answer_count;

	/* Window. */
	uint32_t *buffer; /* [slot_count] ordinal whose gradient is in it, or WF_BUFFER_FREE */
	uint32_t held;    /* buffers that are not free */

	/* Reduce. */
	uint64_t reduce_id; /* last request received */
	uint64_t reduce_step;
	double reduce_value[WF_REDUCE_MAX];
};

/* What trainer t has pushed of slice s: push[s * trainer_count + t]. */
struct wf_push {
	uint64_t next;     /* step waited for */
	bool mine;         /* the step before `next` was pushed, so its answer is owed */
	const float *data; /* gradient not consumed yet; NULL: none */
	uint32_t buffer;   /* of the window; WF_BUFFER_FREE: parked */
	uint32_t chunk;    /* of the park, if parked */
	bool answer_due;   /* is in the trainer's ring of answers */
};

struct wf_round {
	uint64_t next;    /* step waited for; 0: initial values */
	uint32_t arrived; /* trainers whose push of `next` is here */
	uint32_t lent;    /* PUTs out of the store that are not DONE */
};

/* The step that the lane's slices wait for. A trainer begins step k + 1 only when all its answers
 * of step k are there, so one at a time is enough. */
struct wf_step_sum {
	uint64_t step;           /* from 1 */
	uint64_t samples;        /* of the STEP messages heard */
	uint64_t samples_before; /* applied in earlier steps */
	uint32_t heard;          /* trainers that sent STEP */
	uint32_t out;     /* trainers out of data in `pass`; counted from the first heard on */
	uint32_t applied; /* slices */
	uint32_t pass;
	uint64_t since_ns; /* first heard */
};

struct wf_reduction {
	uint64_t id; /* completed */
	uint64_t step;
	uint32_t count;
	double value[WF_REDUCE_MAX];
	uint32_t pending_count; /* values of the one under way */
	uint32_t heard;         /* trainers that asked for it */
	uint64_t since_ns;      /* its first request; 0: none is under way */
};

/* A connection whose hello is good, but whose job is still arriving from another trainer. */
struct wf_held {
	struct wf_conn *conn;
	struct wf_hello hello;
};

/* What the stats lines compare with. */
struct wf_report {
	uint64_t next_ns;                    /* of the next line; WF_NEVER: none is due */
	uint64_t job_ns;                     /* when the job began */
	uint64_t period_ns;                  /* when the last line was written, or the job began */
	bool job_said;                       /* the line about the whole job */
	uint64_t job[WF_LANE_COUNTER_COUNT]; /* as they were then */
	uint64_t period[WF_LANE_COUNTER_COUNT];
	uint64_t now[WF_LANE_COUNTER_COUNT]; /* scratch */
	struct wf_path_counts job_path[WF_PATHS_MAX], period_path[WF_PATHS_MAX];
	struct wf_transport_info now_info;
	struct wf_hist_view job_steps, period_steps, now_steps;
};

struct wf_lane {
	struct wf_owner owner; /* who polls */
	struct wf_env *env;
	struct wf_lane_opts opts;
	struct wf_transport *transport;
	uint16_t port;

	enum wf_lane_job state; /* FINISHED and FAILED begin the end; `ended` completes it */
	bool ended;             /* no connection is left */
	struct wf_lane_cause cause;
	uint64_t end_deadline_ns;   /* connections that are left by then are cut */
	uint64_t start_ns;          /* when the first trainer came */
	uint64_t start_deadline_ns; /* all trainers there by then */
	/* Next look at deadlines, the end and reports. 0: in this turn, for a connection or the
	 * job has changed. */
	uint64_t tick_ns;
	uint64_t now_ns;   /* of the last turn */
	uint64_t event_ns; /* of the last turn with events */
	bool looked;       /* in the last turn */

	/* Job. */
	bool have_first;
	struct wf_hello first; /* of the first trainer admitted */
	uint8_t *job_bytes;    /* encoded, while it arrives */
	uint64_t job_received;
	bool ready; /* job, placement and store are there */
	struct wf_job job;
	struct wf_placement placement;
	struct wf_store store;
	bool store_added, inbox_added; /* regions of the transport */
	uint32_t store_region;
	struct wf_slab inbox; /* [trainer_count][slot_count] slots */
	uint32_t inbox_region;
	uint64_t slot_bytes;

	struct wf_peer *peer;    /* [peer_count] */
	uint32_t peer_count;     /* trainers of the job; 0: no job */
	uint32_t gone_count;     /* of them, who said GOODBYE */
	struct wf_peer *due;     /* list of those to whom something is to be sent: wf_peer_due */
	struct wf_push *push;    /* [stored_count * peer_count] */
	struct wf_round *round;  /* [stored_count] */
	struct wf_msg_init init; /* where the job begins */
	uint32_t uninitialised;  /* slices without initial values */
	struct wf_step_sum sum;
	const float **gradient; /* [peer_count] scratch of the apply */
	struct wf_reduction reduction;

	struct wf_held held[WF_HELD_MAX]; /* incoming, not answered until the job is known */
	uint32_t held_count;

	uint64_t waiting_log_ns; /* next "waits for" line */
	uint64_t waiting_log_period_ns;
	bool numerics_said;
	struct wf_log_limit nonfinite_log;
	uint64_t strangers_look_ns; /* next look at the transport's counters */
	uint64_t strangers_said;
	struct wf_stats stats;
	struct wf_turn turn;
	struct wf_hist step_time;
	struct wf_report report;
	struct wf_event event[WF_EVENTS_PER_POLL];
	struct wf_msg msg; /* scratch of one encode, like the rest */
	struct wf_msg_steps steps;
	struct wf_msg_credit credit;
	struct wf_msg_reduce reduced;
};

/* lane.c */
/* Take one connection down for what it sent; the recorded failure says why. */
void wf_lane_offence(struct wf_lane *lane, struct wf_peer *peer);
void wf_lane_fail(struct wf_lane *lane, enum weft_status status, uint64_t step, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* "trainer 1 (host nodea, pid 12)" */
void wf_peer_describe(const struct wf_peer *peer, char *out, size_t bytes);

/* admit.c */
void wf_admit_up(struct wf_lane *lane, const struct wf_event *event);
void wf_admit_down(struct wf_lane *lane, const struct wf_event *event);
enum weft_status wf_admit_job(struct wf_lane *lane, struct wf_peer *peer,
			      const struct wf_msg_job *msg) WEFT_MUST_CHECK;
void wf_admit_release_job(struct wf_lane *lane);
struct wf_peer *wf_admit_peer_of(struct wf_lane *lane, const struct wf_conn *conn);

/* Is a section of the initial values waited for, rather than a step? */
static inline bool
wf_is_initial(uint64_t next)
{
	return next == 0 || next > INT64_MAX;
}

/* round.c */
enum weft_status wf_round_init(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_init *msg) WEFT_MUST_CHECK;
static inline struct wf_push *
wf_push_of(const struct wf_lane *lane, uint32_t ordinal, uint32_t trainer)
{
	return &lane->push[(uint64_t)ordinal * lane->peer_count + trainer];
}
enum weft_status wf_round_step(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_step *msg) WEFT_MUST_CHECK;
enum weft_status wf_round_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t tag,
			      const void *data) WEFT_MUST_CHECK;
enum weft_status wf_round_have(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_steps *msg) WEFT_MUST_CHECK;
/* A PUT out of the store is DONE. */
void wf_round_done(struct wf_lane *lane, uint32_t ordinal);
/* The peer's path is gone: copy what is in its window aside, so that all of it can be granted
 * again. */
void wf_round_park_window(struct wf_lane *lane, struct wf_peer *peer);
/* Somebody else has begun the step, which cannot end without what `peer` has not pushed. */
bool wf_round_others_need(const struct wf_lane *lane, const struct wf_peer *peer);
/* Since when the lane has waited for trainers; 0: it waits for nobody. */
uint64_t wf_round_waits_since(const struct wf_lane *lane);
/* For whom, e.g. "step 7 waits for trainer 1, 3". */
void wf_round_waits_for(const struct wf_lane *lane, char *out, size_t bytes);

/* answer.c */
/* Something is to be sent: the next turn does. */
static inline void
wf_peer_due(struct wf_peer *peer)
{
	if (!peer->listed) {
		peer->listed = true;
		peer->due_next = peer->lane->due;
		peer->lane->due = peer;
	}
}
/* Send whatever is due. Returns whether something is left. */
bool wf_answer_flush(struct wf_lane *lane, struct wf_peer *peer);
void wf_answer_path_begins(struct wf_lane *lane, struct wf_peer *peer);
void wf_answer_push(struct wf_peer *peer, uint32_t ordinal);
void wf_answer_forget(struct wf_peer *peer);
enum weft_status wf_answer_pull(struct wf_lane *lane, struct wf_peer *peer,
				const struct wf_msg_pull *msg) WEFT_MUST_CHECK;

/* report.c */
void wf_report_init(struct wf_lane *lane);
/* Bring the counters up to date that the transport and the peers keep; `info`: what it said. */
void wf_report_gather(struct wf_lane *lane, struct wf_transport_info *info);
/* From here on counts what the lines about the job say. */
void wf_report_job_begins(struct wf_lane *lane);
void wf_report_job_ends(struct wf_lane *lane);
/* The line that is due at report.next_ns. */
void wf_report_period(struct wf_lane *lane, uint64_t now);

/* reduce.c */
enum weft_status wf_reduce_take(struct wf_lane *lane, struct wf_peer *peer,
				const struct wf_msg_reduce *msg) WEFT_MUST_CHECK;
void wf_reduce_encode(struct wf_lane *lane, struct wf_msg *out);
