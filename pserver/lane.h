/* SPDX-License-Identifier: Apache-2.0 */
/* lane: one thread, one core, one port: a transport, the peers on it, and their slices.
 *
 * A lane is a state machine: wf_lane_poll moves it, and wf_lane_arm returns until when it may
 * sleep. Thread: the one that polls it first; others may create it, and destroy it afterwards. */
#pragma once

#include "base/env.h"
#include "base/hist.h"
#include "base/stats.h"
#include "base/url.h"
#include "exchange/report.h"
#include "exchange/turn.h"
#include "wire/hello.h"

struct wf_lane;
struct wf_lane_service;   /* service.h */
struct wf_session_values; /* base/settings.h */
struct wf_msg_init;       /* wire/messages.h */

/* A state that lanes may have before a job comes. Embedded in what the loader needs. */
struct wf_lane_source {
	/* Called for each job, when its description was accepted and all of its memory is
	 * allocated. Fills what wf_store_param and wf_store_state give for every slice of the lane
	 * that is not a piece ([count] elements; what lies between slices stays 0), puts back what
	 * trainers had changed (wf_change_load) and their positions (wf_position_set), and writes
	 * the step after which all of this holds, 1 or above, and the samples of the steps up to
	 * it. The lane then begins there: nobody sends initial values. WEFT_CLOSED: there is no
	 * state, nothing was written, and the job begins as any other. WEFT_AGAIN: it is not known
	 * yet whether there is one, nothing was written, and the lane asks again. Other failures
	 * end the job. */
	enum weft_status (*load)(const struct wf_lane_source *source, struct wf_lane *lane,
				 struct wf_msg_init *out);
	/* After WEFT_AGAIN: what is waited for, as "pserver 1 to come"; NULL: it cannot say. */
	void (*waits_for)(const struct wf_lane_source *source, const struct wf_lane *lane,
			  char *out, size_t bytes);
};
struct wf_snapshots; /* snapshots.h */
struct wf_traces;    /* trace.h */
struct wf_views;     /* view.h */
struct wf_members;   /* members.h */

struct wf_lane_opts {
	struct wf_env *env;
	const struct wf_lane_service *service;   /* NULL: dense */
	const struct wf_session_values *network; /* of its transport; lent for wf_lane_create */
	struct wf_host listen;
	uint32_t idx;                  /* within this pserver */
	uint32_t service_idx;          /* within this pserver, among the lanes of its service */
	uint32_t lane_count;           /* of its service, of this pserver */
	bool has_tables;               /* this pserver has sparse lanes, so a job may have tables */
	uint32_t num_gradient_servers; /* 0: as the first trainer sends, up to max_trainers */
	uint32_t max_trainers;
	uint32_t newcomer_max; /* of its transport; 0: the transport's default */
	int numa_node;
	uint64_t incarnation; /* of the pserver process */
	uint32_t slot_count;  /* of a trainer's window */
	/* dense: the most that it gets where pushes stay in the trainer's memory, as far as the job
	 * has slices; less than slot_count: no more than that. */
	uint32_t slot_count_max;
	uint64_t slot_bytes_max;
	uint64_t max_shard_bytes;
	uint64_t inbox_bytes; /* dense: of parked gradients; 0: a shard for each trainer */
	const struct wf_lane_source *source; /* lent until destroy; NULL: none */
	struct wf_snapshots *snapshots;      /* of the pserver; NULL: none are taken */
	struct wf_views *views;              /* of the pserver; NULL: it shows nothing */
	struct wf_members *members; /* of the pserver; NULL: a job that loses a trainer ends */
	const char *registrar;      /* lane 0 of pserver 0, "HOST:PORT"; "": it is this pserver's */
	struct wf_traces *traces;   /* of the pserver; NULL: it records nothing */
	uint64_t reconnect_timeout_ns;
	uint64_t
		stall_timeout_ns; /* limit of the wait for a trainer that takes no turns; 0: none */
	uint64_t connect_timeout_ns;
	/* Above 0: the loss of a member ends this life of the job, with WEFT_ROLLED_BACK, and its
	 * members have so long to begin the next one. */
	uint64_t rejoin_timeout_ns;
	uint64_t spin_ns;         /* as wf_spin_init has it */
	uint64_t stats_period_ns; /* of stats lines while a job runs; 0: none, and no times */
};

/* The state of the job on this lane. */
enum wf_lane_job {
	WF_LANE_IDLE, /* no trainer yet */
	WF_LANE_RUNNING,
	WF_LANE_FINISHED, /* all trainers sent GOODBYE; wf_lane_reset makes it idle */
	WF_LANE_FAILED, /* aborted, everybody who can be told has been; wf_lane_reset makes it idle
			 */
};

/* The first cause of a failed job. */
struct wf_lane_cause {
	enum weft_status status; /* OK: none */
	uint64_t step;
	char who[WF_MEMBER_NAME_BYTES];
	char reason[WF_REASON_BYTES];
};

/* Counters of a lane, since it was made: a job does not reset them. Transport, peers and slots are
 * brought up to date once a second, with each stats line and at the end of a job; the others as
 * things happen. Times are measured with `stats_period_ns` above 0, and from when
 * somebody watches (view.h). */
/* These follow the counters of every end (enum wf_end_counter). */
enum wf_lane_counter {
	WF_LANE_SLOT_USED_COUNT = WF_END_COUNTER_COUNT, /* gauge: of all trainers' windows */
	WF_LANE_SLOT_GRANTED_COUNT,                     /* gauge: the windows */
	WF_LANE_SLOT_ALLOCATED_BYTES,                   /* gauge */
	WF_LANE_SHARD_ALLOCATED_BYTES,                  /* gauge: parameters and state */
	WF_LANE_SLICE_PARKED_COUNT,
	WF_LANE_SLICE_PARKED_BYTES, /* copied aside */
	WF_LANE_PARK_USED_BYTES,    /* gauge */
	WF_LANE_PARK_PEAK_BYTES,    /* peak of the job */
	WF_LANE_STEP_APPLIED_COUNT, /* steps that are done: every slice was applied */
	WF_LANE_SLICE_APPLIED_COUNT,
	WF_LANE_SLICE_DISCARDED_COUNT,  /* asynchronous: came too late */
	WF_LANE_GRADIENT_SKIPPED_COUNT, /* elements that were not finite */
	WF_LANE_PEER_RECONNECTED_COUNT,
	WF_LANE_HELLO_REFUSED_COUNT,
	WF_LANE_STRANGER_CLOSED_COUNT, /* connections closed before a valid hello */
	/* Waits by reason: a gradient that arrived and could not be applied at once. */
	WF_LANE_WAIT_TRAINER_COUNT, /* another trainer has not pushed the slice, or rows */
	WF_LANE_WAIT_LENT_COUNT,    /* all have, an answer still reads the slice */
	/* With a small inbox: slices of trainers that were announced; slices that room was kept
	 * for; announcements that waited for another trainer's, or for room. */
	WF_LANE_SLICE_ANNOUNCED_COUNT,
	WF_LANE_SLICE_HELD_COUNT,
	WF_LANE_WAIT_ANNOUNCE_COUNT,
	WF_LANE_WAIT_INBOX_COUNT,
	WF_LANE_WAIT_SNAPSHOT_COUNT, /* an apply had no room for the copy of what it changes */
	/* Where the thread's time went; together, with those of every end, all of it. */
	WF_LANE_APPLY_TIME_NS, /* sums and the optimizer */
	WF_LANE_PARK_TIME_NS,  /* copying aside */
	/* Part of none of these: from the last but one trainer's last gradient of a step to the
	 * last one's. */
	WF_LANE_STRAGGLER_TIME_NS,
	/* Of sparse lanes. */
	WF_LANE_KEY_PULLED_COUNT,
	WF_LANE_KEY_PUSHED_COUNT,
	WF_LANE_KEY_RECEIVED_BYTES, /* as coded */
	WF_LANE_ROW_UPDATED_COUNT,
	WF_LANE_PULL_HELD_COUNT,      /* that waited for their step */
	WF_LANE_PUSH_DISCARDED_COUNT, /* asynchronous: came too late */
	WF_LANE_PULL_REFUSED_COUNT,   /* pulls and pushes that got NACK */
	WF_LANE_GATHER_TIME_NS,       /* looking rows up for answers; part of none of the above */
	WF_LANE_COUNTER_COUNT,
};

enum weft_status wf_lane_create(const struct wf_lane_opts *opts,
				struct wf_lane **out) WEFT_MUST_CHECK;
void wf_lane_destroy(struct wf_lane *lane); /* accepts NULL */
uint16_t wf_lane_port(const struct wf_lane *lane);

/* One turn: sends what is due, handles the events that have arrived, checks the deadlines. Returns
 * whether anything happened: if not, what is due waits for an event. */
bool wf_lane_poll(struct wf_lane *lane);
/* Whether the last turn checked deadlines and ends. Only such a turn changes the results of the
 * next two functions; there are at least ten a second, if wf_lane_arm is respected. */
bool wf_lane_looked(const struct wf_lane *lane);
enum wf_lane_job wf_lane_job_state(const struct wf_lane *lane);
const struct wf_lane_cause *wf_lane_cause(const struct wf_lane *lane);
/* Before a sleep with wf_lane_wait until `*deadline_ns`. */
enum wf_rest wf_lane_arm(struct wf_lane *lane, uint64_t *deadline_ns);
/* As wf_turn_round. True: the caller sleeps with wf_lane_wait until `*deadline_ns`. */
bool wf_lane_advance(struct wf_lane *lane, uint64_t *deadline_ns);
void wf_lane_wait(struct wf_lane *lane, uint64_t deadline_ns);

/* May be read by any thread as long as the lane exists. */
const struct wf_stats *wf_lane_stats(const struct wf_lane *lane);
/* From a step's first STEP to the apply of its last slice, ns; as wf_lane_stats. Empty unless
 * `stats_period_ns` is above 0. */
const struct wf_hist *wf_lane_step_times(const struct wf_lane *lane);
/* Ends the job on this lane for all members with this cause. A no-op if it has ended already. */
void wf_lane_abort(struct wf_lane *lane, const struct wf_lane_cause *cause);
/* The same because this pserver stops: "pserver 1 (WHERE) HOW". False: there was no job. */
bool wf_lane_stop(struct wf_lane *lane, const char *where, const char *how);
/* What the lane has of its job ends no step without every trainer. */
bool wf_lane_needs_all(const struct wf_lane *lane);
/* Another lane of the pserver reports this of the job that it has. */
void wf_lane_on_needs_all(struct wf_lane *lane);
/* Forget a finished or failed job and wait for the next. */
void wf_lane_reset(struct wf_lane *lane);
