/* SPDX-License-Identifier: Apache-2.0 */
/* summary: what the records of a pserver say together, and what has happened between two moments:
 * rates, and where the time of a step went. Everything that is shown to people is made from it.
 * Thread: the owner's. */
#pragma once

#include "status/picture.h"

#define WF_SUMMARY_MEMBERS_MAX 1024u
#define WF_SUMMARY_LANES_MAX 512u

/* Where the time of a mean step went, in ms, for one trainer or for the mean of them. A step is the
 * trainer's own part (compute, then network), what it waits for slower trainers (ahead), and the
 * apply. Each is NAN if it is not known. */
struct wf_split {
	double own_ms; /* compute and network; known also where these two are not told apart */
	double compute_ms, network_ms;
	double ahead_ms;
	double apply_ms;
};

/* Sums over lanes, of which differences are made. */
struct wf_split_sums {
	uint64_t arrived, arrive_ns, ahead_ns;
	uint64_t split, compute_ns, network_ns;
	uint64_t last, next_ns;
};

struct wf_summary_member {
	uint32_t trainer;
	const struct wf_watch_record *record; /* of the lane on which it stands worst */
	uint64_t step, lag; /* the least of its lanes; steps behind the foremost trainer */
	uint64_t waits;     /* enum wf_watch_wait, of all lanes */
	uint64_t silent_ns; /* longest of its lanes */
	uint64_t reconnects;
	uint64_t slots; /* of all lanes */
	struct wf_split_sums sums;
	double last_share; /* of the timed steps, those in which it was last */
	double behind_ms;  /* in these, after the one before it */
	struct wf_split split;
};

struct wf_summary_lane {
	const struct wf_watch_record *record;
	double steps_per_s, received_per_s, sent_per_s;
	double pulled_per_s, pushed_per_s, updated_per_s;
	double poll, apply, park, idle; /* shares of the thread's time; NAN: not measured */
};

struct wf_summary {
	const struct wf_watch_record *pserver; /* NULL: none has come */
	enum wf_watch_job job;                 /* the worst of all lanes */
	const struct wf_watch_record *first;   /* lane 0; NULL: it has shown nothing yet */
	const char *wait, *cause;              /* the first that any lane has; "": none */
	uint64_t wait_ns;
	uint64_t steps_timed;
	double over_s; /* rates are of so many seconds; 0: there is nothing to compare with */
	double steps_per_s, received_per_s, sent_per_s; /* dense */
	double pulled_per_s, pushed_per_s, updated_per_s;
	double sparse_received_per_s, sparse_sent_per_s;
	double p50_ms, p99_ms; /* of a step, of the slowest dense lane, since the start */
	struct wf_split split; /* mean over the trainers */
	uint64_t shard_bytes, slot_bytes, park_bytes, table_bytes;
	uint32_t lane_count, member_count;
	struct wf_summary_lane lane[WF_SUMMARY_LANES_MAX];
	struct wf_summary_member member[WF_SUMMARY_MEMBERS_MAX];
};

/* `before`: an earlier picture of the same process, or NULL. The pictures are lent as long as `out`
 * is used. */
void wf_summary_make(const struct wf_picture *now, const struct wf_picture *before,
		     struct wf_summary *out);
/* Words for states: "running", "up", "lost", ... */
const char *wf_summary_job_name(enum wf_watch_job job);
const char *wf_summary_state_name(uint64_t state);
const char *wf_summary_news_name(uint64_t what);
/* "step", "start" ...: the name of bit `bit` of enum wf_watch_wait. */
#define WF_SUMMARY_WAITS 4u
const char *wf_summary_wait_name(unsigned bit);
