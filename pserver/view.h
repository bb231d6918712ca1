/* SPDX-License-Identifier: Apache-2.0 */
/* view: what the lanes of a pserver show of themselves to whoever watches: records
 * (wire/watch_messages.h), each under a sequence lock, so that a reader never makes a lane wait.
 *
 * As long as somebody watches, each lane writes its records five times a second, and measures where
 * the time of its steps goes. Otherwise it looks at one word, ten times a second. Thread: stated at
 * each function. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"
#include "wire/watch_messages.h"

#define WF_VIEW_PERIOD_NS (WF_NS_PER_S / 5)
#define WF_VIEW_MEMBERS_MAX 1024u /* of a lane; what is beyond is counted, and not shown */
#define WF_VIEW_TABLES_MAX 32u
#define WF_VIEW_NEWS_MAX 32u /* the last ones are kept */

struct wf_lane;
struct wf_view;  /* one lane's */
struct wf_views; /* those of a pserver */

/* WEFT_NOMEM. The thread that makes the lanes. */
enum weft_status wf_views_open(struct wf_env *env, uint32_t lane_count,
			       struct wf_views **out) WEFT_MUST_CHECK;
void wf_views_close(struct wf_views *views); /* accepts NULL */
/* What is known about the pserver from its start on; before the lanes run. */
void wf_views_describe(struct wf_views *views, const struct wf_watch_record *pserver);

/* Somebody watches until then, or, with WF_NEVER, always. Any thread. */
void wf_views_want(struct wf_views *views, uint64_t until_ns);
uint32_t wf_views_lane_count(const struct wf_views *views);
/* Copies a record. WF_WATCH_LANE: idx is ignored; MEMBER and TABLE: idx is below what the lane's
 * record says; NEWS: idx is the number of the news, from 1, of which the last WF_VIEW_NEWS_MAX are
 * kept. False: there is none, or it is being written again and again. Any thread. */
bool wf_views_read(const struct wf_views *views, enum wf_watch_kind kind, uint32_t lane,
		   uint32_t idx, struct wf_watch_record *out);
/* The record of the pserver, as of now. Any thread. */
void wf_views_read_pserver(const struct wf_views *views, uint64_t now_ns,
			   struct wf_watch_record *out);

/* Where a reader is who copies all records: the pserver's, then, of each lane that has shown any,
 * its own, its trainers', its tables' and its news. Zero: at the beginning. */
struct wf_view_cursor {
	uint32_t lane;
	enum wf_watch_kind kind; /* 0: the pserver's is next */
	uint32_t idx;            /* next, of that kind */
	uint64_t members, tables, news;
};
/* The next record; false: there are no more. Any thread. */
bool wf_views_next(const struct wf_views *views, uint64_t now_ns, struct wf_view_cursor *cursor,
		   struct wf_watch_record *out);

/* What has become of a snapshot that this pserver knows of; `step` 0: it failed. Lane 0's thread.
 */
void wf_views_note_snapshot(struct wf_views *views, uint64_t step, uint64_t now_ns);

/* Whether somebody watches now. The lane's thread. */
bool wf_view_is_watched(const struct wf_lane *lane);
/* The clock was read: writes what is due, if somebody watches. The lane's thread. */
void wf_view_look(struct wf_lane *lane, uint64_t now_ns);
