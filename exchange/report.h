/* SPDX-License-Identifier: Apache-2.0 */
/* report: what an end counts, and the log lines about it: one per period while it works, and one
 * about the whole, which is a job of a lane or a session of a trainer. A line reports the
 * increments since its period, or the whole, began. The transport's counters are gathered when a
 * line is due, and on request.
 *
 * An end's counters are a table of base/stats.h that begins with enum wf_end_counter; the durations
 * of its steps are a histogram. Further counters, and what its lines contain, are up to the end.
 *
 * Thread: the end's. */
#pragma once

#include "base/hist.h"
#include "base/stats.h"
#include "transport/transport.h"

/* What every end counts. Its own counters follow. */
enum wf_end_counter {
	/* All bytes that its connections received, heads included. */
	WF_END_TRANSPORT_RECEIVED_BYTES,
	WF_END_TRANSPORT_SENT_BYTES,
	WF_END_MESSAGE_RECEIVED_COUNT,
	WF_END_MESSAGE_SENT_COUNT,
	WF_END_PUT_RECEIVED_COUNT,
	WF_END_PUT_SENT_COUNT,
	WF_END_WAIT_POST_COUNT, /* posts for which the transport returned WEFT_AGAIN */
	/* The first and the last of the counters among which the thread's time is divided. */
	WF_END_POLL_TIME_NS, /* transferring data and bookkeeping */
	WF_END_IDLE_TIME_NS, /* asleep, or polling without events */
	WF_END_COUNTER_COUNT,
};

/* Their names, for the table of an end. */
/* clang-format off */
#define WF_END_COUNTER_NAMES \
	[WF_END_TRANSPORT_RECEIVED_BYTES] = "transport_received_bytes", \
	[WF_END_TRANSPORT_SENT_BYTES] = "transport_sent_bytes", \
	[WF_END_MESSAGE_RECEIVED_COUNT] = "message_received_count", \
	[WF_END_MESSAGE_SENT_COUNT] = "message_sent_count", \
	[WF_END_PUT_RECEIVED_COUNT] = "put_received_count", \
	[WF_END_PUT_SENT_COUNT] = "put_sent_count", \
	[WF_END_WAIT_POST_COUNT] = "wait_post_count", \
	[WF_END_POLL_TIME_NS] = "poll_time_ns", \
	[WF_END_IDLE_TIME_NS] = "idle_time_ns"
/* clang-format on */

/* All counters at one moment. */
struct wf_report_mark {
	uint64_t ns;
	uint64_t counter[WF_STATS_MAX];
	struct wf_path_counts path[WF_PATHS_MAX];
	struct wf_hist_view times;
};

/* The contents of a line. */
struct wf_report_line {
	bool whole;                   /* it is about the whole, not about a period */
	double s;                     /* the seconds that it covers */
	const uint64_t *at;           /* [count] current values of the counters: for gauges, */
	uint64_t since[WF_STATS_MAX]; /* and their increments in that time */
	/* "stats of the job, 1.0 s: steps 3 ... puts_sent 6" */
	char head[320];
	/* " tcp_sent_bytes 1 ... paths_broken 0" */
	char paths[256];
	double p50_us, p99_us; /* percentiles of the times */
};

struct wf_report {
	struct wf_stats *stats;
	const struct wf_hist *times;
	const char *whole_name;              /* "the job" */
	unsigned step;                       /* index of the counter of steps */
	uint64_t every_ns;                   /* length of a period; 0: no lines */
	uint64_t next_ns;                    /* when the next line is due; WF_NEVER: none is */
	bool whole_said;                     /* the whole is over; its line was written */
	struct wf_report_mark whole, period; /* as they began */
	/* The newest mark; times: those since the mark with which it was compared. */
	struct wf_report_mark now;
	struct wf_transport_info info; /* as last gathered */
	struct wf_report_line line;    /* the newest line */
};

/* What an end adds. */
struct wf_report_ops {
	/* Brings its own counters up to date; report->info is current. */
	void (*gather)(void *end, const struct wf_transport_info *info);
	/* Writes the lines. */
	void (*write)(void *end, const struct wf_report_line *line);
};

/* Everything except `stats` and `times`, which belong to the end, is zeroed. */
void wf_report_init(struct wf_report *report, struct wf_stats *stats, const struct wf_hist *times,
		    const char *whole_name, unsigned step);
/* Brings all counters up to date. */
void wf_report_gather(struct wf_report *report, struct wf_transport *transport,
		      const struct wf_report_ops *ops, void *end);
/* The whole begins at `now_ns`, and with it a period of `every_ns`; with 0 no lines are written.
 * `anew`: the whole covers what is counted from now on; otherwise everything that was ever counted.
 */
void wf_report_begin(struct wf_report *report, bool anew, uint64_t now_ns, uint64_t every_ns);
/* Gathers the counters, and writes the line that is due at next_ns. */
void wf_report_period(struct wf_report *report, struct wf_transport *transport,
		      const struct wf_report_ops *ops, void *end, uint64_t now_ns);
/* The whole is over: gathers the counters, and writes its line, once. */
void wf_report_end(struct wf_report *report, struct wf_transport *transport,
		   const struct wf_report_ops *ops, void *end, uint64_t now_ns);
