/* SPDX-License-Identifier: Apache-2.0 */
/* report: what an end counts, and the lines about it: one per period while it works, and one about
 * the whole, which is a job of a lane or a session of a trainer. A line says what came since the
 * beginning of what it is about. The transport's counters are gathered when a line is due, and when
 * somebody asks.
 *
 * An end's counters are a table of base/stats.h that begins with enum wf_end_counter, and the
 * times of its steps a histogram. What else it counts, and says in its lines, is its own.
 *
 * Thread: the end's. */
#pragma once

#include "base/hist.h"
#include "base/stats.h"
#include "transport/transport.h"

/* What every end counts. Its own counters follow. */
enum wf_end_counter {
	WF_END_TRANSPORT_RECEIVED_BYTES, /* all that its connections took, heads included */
	WF_END_TRANSPORT_SENT_BYTES,
	WF_END_MESSAGE_RECEIVED_COUNT,
	WF_END_MESSAGE_SENT_COUNT,
	WF_END_PUT_RECEIVED_COUNT,
	WF_END_PUT_SENT_COUNT,
	WF_END_WAIT_POST_COUNT, /* the transport said AGAIN */
	/* The first and the last of those among which the time of the thread is dealt. */
	WF_END_POLL_TIME_NS, /* moving bytes and book-keeping */
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

/* How everything stood at one moment. */
struct wf_report_mark {
	uint64_t ns;
	uint64_t counter[WF_STATS_MAX];
	struct wf_path_counts path[WF_PATHS_MAX];
	struct wf_hist_view times;
};

/* What a line says. */
struct wf_report_line {
	bool whole;                   /* about the whole, not about a period */
	double s;                     /* seconds that it is about */
	const uint64_t *at;           /* [count] counters as they are: for gauges, */
	uint64_t since[WF_STATS_MAX]; /* and what came to them in that time */
	/* "stats of the job, 1.0 s: steps 3 ... puts_sent 6" */
	char head[320];
	/* " tcp_sent_bytes 1 ... paths_broken 0" */
	char paths[256];
	double p50_us, p99_us; /* of the times */
};

struct wf_report {
	struct wf_stats *stats;
	const struct wf_hist *times;
	const char *whole_name;              /* "the job" */
	unsigned step;                       /* the counter of steps */
	uint64_t every_ns;                   /* a period; 0: no lines */
	uint64_t next_ns;                    /* of the next line; WF_NEVER: none is due */
	bool whole_said;                     /* it is over */
	struct wf_report_mark whole, period; /* their beginnings */
	struct wf_report_mark now;           /* the last one made; times: what came since then */
	struct wf_transport_info info;       /* the last one gathered */
	struct wf_report_line line;          /* the last one */
};

/* What an end adds. */
struct wf_report_ops {
	/* Bring its own counters up to date; report->info has just been asked for. */
	void (*gather)(void *end, const struct wf_transport_info *info);
	/* Write the lines. */
	void (*write)(void *end, const struct wf_report_line *line);
};

/* All but `stats` and `times`, which are the end's, is zeroed. */
void wf_report_init(struct wf_report *report, struct wf_stats *stats, const struct wf_hist *times,
		    const char *whole_name, unsigned step);
/* Bring all counters up to date. */
void wf_report_gather(struct wf_report *report, struct wf_transport *transport,
		      const struct wf_report_ops *ops, void *end);
/* The whole begins at `now_ns`, and with it a period of `every_ns`; 0: no lines are written. `anew`:
 * the whole is what comes from here on; else all that was ever counted. */
void wf_report_begin(struct wf_report *report, bool anew, uint64_t now_ns, uint64_t every_ns);
/* Gather, and write the line that is due at next_ns. */
void wf_report_period(struct wf_report *report, struct wf_transport *transport,
		      const struct wf_report_ops *ops, void *end, uint64_t now_ns);
/* The whole is over: gather, and write its line, once. */
void wf_report_end(struct wf_report *report, struct wf_transport *transport,
		   const struct wf_report_ops *ops, void *end, uint64_t now_ns);
