/* SPDX-License-Identifier: Apache-2.0 */
/* view: see view.h. This file fills the records; what is particular to a service it asks the
 * service for. Thread: of the functions that write, the lane's. */
#include "pserver/view.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/seqlock.h"
#include "pserver/dense.h"
#include "pserver/straggle.h"

#define WAIT_SHOWN_NS (WF_NS_PER_S / 2) /* shorter waits are every step's */

struct slot {
	struct wf_seqlock lock;
	_Atomic uint64_t word[WF_WATCH_RECORD_WORDS];
};

/* Allocated when somebody watches for the first time. */
struct details {
	struct slot member[WF_VIEW_MEMBERS_MAX];
	struct slot table[WF_VIEW_TABLES_MAX];
	struct slot news[WF_VIEW_NEWS_MAX];
};

/* As a trainer was shown last. */
struct shown {
	enum wf_watch_state state;
	uint32_t path;
};

struct wf_view {
	struct slot lane;
	/* The lane: store release, once; readers: load acquire; V1. */
	struct details *_Atomic details;
	/* The lane's own. */
	uint64_t next_ns;
	uint64_t news_count;
	enum wf_watch_job job;
	bool has_failed; /* to allocate */
	bool has_looked; /* what is found at the first look is no news: nobody knows since when */
	struct shown shown[WF_VIEW_MEMBERS_MAX];
	struct wf_watch_record record; /* scratch */
	struct wf_hist_view times;     /* scratch */
};

struct wf_views {
	struct wf_env *env;
	uint32_t lane_count;
	struct wf_view *view; /* [lane_count] */
	struct wf_watch_record pserver;
	/* Any: store relaxed; lanes: load relaxed; carries no data. */
	_Atomic uint64_t wanted_until_ns;
	/* Lane 0: store relaxed; readers: load relaxed; each is true by itself. */
	_Atomic uint64_t snapshot_count, snapshot_failed_count, snapshot_step, snapshot_at_ns;
	_Atomic uint64_t pserver_idx, pserver_count; /* in the last job; the same */
};

enum weft_status
wf_views_open(struct wf_env *env, uint32_t lane_count, struct wf_views **out)
{
	struct wf_views *views = wf_zalloc(env, sizeof(*views));
	if (views != NULL) {
		views->env = env;
		views->lane_count = lane_count;
		views->view = wf_zalloc_array(env, lane_count, sizeof(*views->view));
	}
	if (views == NULL || views->view == NULL) {
		wf_views_close(views);
		return wf_fail(WEFT_NOMEM, "pserver: no memory for the views of %u lanes",
			       lane_count);
	}
	*out = views;
	return WEFT_OK;
}

void
wf_views_close(struct wf_views *views)
{
	if (views == NULL) {
		return;
	}
	for (uint32_t i = 0; views->view != NULL && i < views->lane_count; i++) {
		struct details *details = atomic_load_explicit(&views->view[i].details,
							       memory_order_acquire); /* V1 */
		wf_free(views->env, details, sizeof(*details));
	}
	wf_free(views->env, views->view, views->lane_count * sizeof(*views->view));
	wf_free(views->env, views, sizeof(*views));
}

void
wf_views_describe(struct wf_views *views, const struct wf_watch_record *pserver)
{
	views->pserver = *pserver;
}

void
wf_views_want(struct wf_views *views, uint64_t until_ns)
{
	if (until_ns > atomic_load_explicit(&views->wanted_until_ns, memory_order_relaxed)) {
		atomic_store_explicit(&views->wanted_until_ns, until_ns, memory_order_relaxed);
	}
}

uint32_t
wf_views_lane_count(const struct wf_views *views)
{
	return views->lane_count;
}

void
wf_views_note_snapshot(struct wf_views *views, uint64_t step, uint64_t now_ns)
{
	_Atomic uint64_t *count = step > 0 ? &views->snapshot_count : &views->snapshot_failed_count;
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	if (step > 0) {
		atomic_store_explicit(&views->snapshot_step, step, memory_order_relaxed);
		atomic_store_explicit(&views->snapshot_at_ns, now_ns, memory_order_relaxed);
	}
}

/* ---- readers ---- */

static const struct slot *
find_slot(const struct wf_view *view, enum wf_watch_kind kind, uint32_t idx)
{
	const struct details *details =
		atomic_load_explicit(&view->details, memory_order_acquire); /* V1: claim_details */
	if (kind == WF_WATCH_LANE) {
		return &view->lane;
	}
	if (details == NULL) {
		return NULL;
	}
	switch (kind) {
	case WF_WATCH_MEMBER:
		return idx < WF_VIEW_MEMBERS_MAX ? &details->member[idx] : NULL;
	case WF_WATCH_TABLE:
		return idx < WF_VIEW_TABLES_MAX ? &details->table[idx] : NULL;
	case WF_WATCH_NEWS:
		return idx > 0 ? &details->news[idx % WF_VIEW_NEWS_MAX] : NULL;
	case WF_WATCH_LANE:
	case WF_WATCH_PSERVER:
	case WF_WATCH_TRACED:
		break;
	}
	return NULL;
}

bool
wf_views_read(const struct wf_views *views, enum wf_watch_kind kind, uint32_t lane, uint32_t idx,
	      struct wf_watch_record *out)
{
	WF_ASSERT(lane < views->lane_count);
	const struct slot *slot = find_slot(&views->view[lane], kind, idx);
	uint64_t word[WF_WATCH_RECORD_WORDS];
	if (slot == NULL ||
	    !wf_seqlock_read(&slot->lock, slot->word, word, WF_WATCH_RECORD_WORDS)) {
		return false;
	}
	memcpy(out, word, sizeof(*out));
	return kind != WF_WATCH_NEWS || out->value[WF_NEWS_NUMBER] == idx;
}

void
wf_views_read_pserver(const struct wf_views *views, uint64_t now_ns, struct wf_watch_record *out)
{
	*out = views->pserver;
	out->kind = WF_WATCH_PSERVER;
	out->value[WF_PSERVER_AT_NS] = now_ns;
	out->value[WF_PSERVER_IDX] =
		atomic_load_explicit(&views->pserver_idx, memory_order_relaxed);
	out->value[WF_PSERVER_COUNT] =
		atomic_load_explicit(&views->pserver_count, memory_order_relaxed);
	out->value[WF_PSERVER_SNAPSHOT_COUNT] =
		atomic_load_explicit(&views->snapshot_count, memory_order_relaxed);
	out->value[WF_PSERVER_SNAPSHOT_FAILED_COUNT] =
		atomic_load_explicit(&views->snapshot_failed_count, memory_order_relaxed);
	out->value[WF_PSERVER_SNAPSHOT_STEP] =
		atomic_load_explicit(&views->snapshot_step, memory_order_relaxed);
	out->value[WF_PSERVER_SNAPSHOT_AT_NS] =
		atomic_load_explicit(&views->snapshot_at_ns, memory_order_relaxed);
}

/* The kinds of a lane's records, in their order; 0: the next lane. */
static enum wf_watch_kind
kind_after(enum wf_watch_kind kind)
{
	return kind < WF_WATCH_NEWS ? kind + 1 : 0;
}

static void
begin_kind(struct wf_view_cursor *cursor, enum wf_watch_kind kind)
{
	uint64_t kept = cursor->news < WF_VIEW_NEWS_MAX ? cursor->news : WF_VIEW_NEWS_MAX;
	cursor->kind = kind;
	cursor->idx = kind == WF_WATCH_NEWS ? (uint32_t)(cursor->news - kept + 1) : 0;
	if (kind == 0) {
		cursor->kind = WF_WATCH_LANE;
		cursor->lane++;
	}
}

static uint64_t
end_of_kind(const struct wf_view_cursor *cursor)
{
	switch (cursor->kind) {
	case WF_WATCH_MEMBER:
		return cursor->members;
	case WF_WATCH_TABLE:
		return cursor->tables;
	case WF_WATCH_NEWS:
		return cursor->news + 1;
	case WF_WATCH_LANE:
	case WF_WATCH_PSERVER:
	case WF_WATCH_TRACED:
		break;
	}
	return 1;
}

/* The record at the cursor, which advances; false: it cannot be had. */
static bool
read_at(const struct wf_views *views, struct wf_view_cursor *cursor, struct wf_watch_record *out)
{
	bool is_lane = cursor->kind == WF_WATCH_LANE;
	bool is_here = wf_views_read(views, cursor->kind, cursor->lane, cursor->idx, out);
	if (is_lane) {
		cursor->members = is_here ? out->value[WF_WLANE_MEMBERS] : 0;
		cursor->tables = is_here ? out->value[WF_WLANE_TABLES] : 0;
		cursor->news = is_here ? out->value[WF_WLANE_NEWS] : 0;
	}
	cursor->idx++;
	return is_here;
}

bool
wf_views_next(const struct wf_views *views, uint64_t now_ns, struct wf_view_cursor *cursor,
	      struct wf_watch_record *out)
{
	if (cursor->kind == 0) {
		cursor->kind = WF_WATCH_LANE;
		wf_views_read_pserver(views, now_ns, out);
		return true;
	}
	while (cursor->lane < views->lane_count) {
		if (cursor->idx >= end_of_kind(cursor)) {
			begin_kind(cursor, kind_after(cursor->kind));
		} else if (read_at(views, cursor, out)) {
			return true;
		}
	}
	return false;
}

/* ---- the lane ---- */

static void
write_slot(struct slot *slot, const struct wf_watch_record *record)
{
	uint64_t word[WF_WATCH_RECORD_WORDS];
	memcpy(word, record, sizeof(word));
	wf_seqlock_write(&slot->lock, slot->word, word, WF_WATCH_RECORD_WORDS);
}

/* The scratch record, empty. */
static struct wf_watch_record *
begin_record(const struct wf_lane *lane, struct wf_view *view, enum wf_watch_kind kind,
	     uint32_t idx)
{
	view->record = (struct wf_watch_record){.kind = kind, .lane = lane->opts.idx, .idx = idx};
	return &view->record;
}

static enum wf_watch_job
job_of(const struct wf_lane *lane)
{
	switch (lane->state) {
	case WF_LANE_IDLE:
		break;
	case WF_LANE_RUNNING:
		return WF_WATCH_JOB_RUNNING;
	case WF_LANE_FINISHED:
		return WF_WATCH_JOB_FINISHED;
	case WF_LANE_FAILED:
		return WF_WATCH_JOB_FAILED;
	}
	return WF_WATCH_JOB_NONE;
}

static enum wf_watch_state
state_of(const struct wf_peer *peer)
{
	switch (peer->state) {
	case WF_PEER_ABSENT:
		break;
	case WF_PEER_UP:
		return WF_WATCH_UP;
	case WF_PEER_LOST:
		return WF_WATCH_LOST;
	case WF_PEER_GONE:
		return WF_WATCH_GONE;
	}
	return WF_WATCH_ABSENT;
}

static uint32_t
member_count(const struct wf_lane *lane)
{
	uint32_t count = lane->peers.count;
	return count < WF_VIEW_MEMBERS_MAX ? count : WF_VIEW_MEMBERS_MAX;
}

static uint64_t
waited_ns(const struct wf_lane *lane, enum wf_lane_awaits kind, uint64_t now)
{
	uint64_t since = lane->state == WF_LANE_RUNNING ? wf_waits_reported_since(lane, kind) : 0;
	return since != 0 && since < now ? now - since : 0;
}

static void
fill_waits(struct wf_lane *lane, struct wf_watch_record *record, uint64_t now)
{
	WF_STATIC_ASSERT(WF_WLANE_WAIT_REDUCE_NS - WF_WLANE_WAIT_START_NS == WF_LANE_AWAITS_REDUCE,
			 "the same order");
	wf_waits_look(lane);
	for (enum wf_lane_awaits kind = 0; kind < WF_LANE_AWAITS_COUNT; kind++) {
		uint64_t ns = waited_ns(lane, kind, now);
		record->value[WF_WLANE_WAIT_START_NS + kind] = ns;
		if (ns >= WAIT_SHOWN_NS && record->text[WF_WLANE_WAIT][0] == '\0') {
			char who[2 * WF_REASON_BYTES];
			wf_waits_describe(lane, kind, who, sizeof(who));
			(void)snprintf(record->text[WF_WLANE_WAIT], WF_REASON_BYTES, "%.*s",
				       (int)WF_REASON_BYTES - 1, who);
		}
	}
}

/* The times of steps: quantiles, and sums by bucket. */
static void
fill_times(const struct wf_lane *lane, struct wf_hist_view *times, struct wf_watch_record *record)
{
	uint64_t *value = record->value;
	wf_hist_snapshot(&lane->report.step_time, times);
	value[WF_WLANE_STEP_P50_NS] = wf_hist_quantile(times, 0.5);
	value[WF_WLANE_STEP_P99_NS] = wf_hist_quantile(times, 0.99);
	unsigned to = 0;
	uint64_t count = 0;
	for (unsigned i = 0; i < WF_HIST_BUCKETS; i++) {
		if (times->bucket[i] == 0) {
			continue;
		}
		uint64_t first = wf_hist_bucket_first(i);
		uint64_t middle = first + (wf_hist_bucket_last(i) - first) / 2;
		for (; wf_watch_bucket_ns(to) < middle; to++) {
			value[WF_WLANE_BUCKET + to] = count;
		}
		count += times->bucket[i];
		value[WF_WLANE_STEP_SUM_NS] += times->bucket[i] * middle;
	}
	for (; to < WF_WATCH_BUCKETS; to++) {
		value[WF_WLANE_BUCKET + to] = count;
	}
}

static void
fill_counters(const struct wf_lane *lane, uint64_t value[WF_WATCH_VALUES_MAX])
{
	static const struct {
		uint8_t to, from;
	} pair[] = {
		{WF_WLANE_STEPS, WF_LANE_STEP_APPLIED_COUNT},
		{WF_WLANE_SLICES_APPLIED, WF_LANE_SLICE_APPLIED_COUNT},
		{WF_WLANE_SLICES_DISCARDED, WF_LANE_SLICE_DISCARDED_COUNT},
		{WF_WLANE_NONFINITE, WF_LANE_GRADIENT_SKIPPED_COUNT},
		{WF_WLANE_RECEIVED_BYTES, WF_END_TRANSPORT_RECEIVED_BYTES},
		{WF_WLANE_SENT_BYTES, WF_END_TRANSPORT_SENT_BYTES},
		{WF_WLANE_MESSAGES_RECEIVED, WF_END_MESSAGE_RECEIVED_COUNT},
		{WF_WLANE_MESSAGES_SENT, WF_END_MESSAGE_SENT_COUNT},
		{WF_WLANE_PUTS_RECEIVED, WF_END_PUT_RECEIVED_COUNT},
		{WF_WLANE_PUTS_SENT, WF_END_PUT_SENT_COUNT},
		{WF_WLANE_SLOTS_USED, WF_LANE_SLOT_USED_COUNT},
		{WF_WLANE_SLOTS_GRANTED, WF_LANE_SLOT_GRANTED_COUNT},
		{WF_WLANE_SLOT_BYTES, WF_LANE_SLOT_ALLOCATED_BYTES},
		{WF_WLANE_SHARD_BYTES, WF_LANE_SHARD_ALLOCATED_BYTES},
		{WF_WLANE_PARK_BYTES, WF_LANE_PARK_USED_BYTES},
		{WF_WLANE_PARK_PEAK_BYTES, WF_LANE_PARK_PEAK_BYTES},
		{WF_WLANE_SLICES_PARKED, WF_LANE_SLICE_PARKED_COUNT},
		{WF_WLANE_PARKED_BYTES, WF_LANE_SLICE_PARKED_BYTES},
		{WF_WLANE_WAITS_TRAINER, WF_LANE_WAIT_TRAINER_COUNT},
		{WF_WLANE_WAITS_LENT, WF_LANE_WAIT_LENT_COUNT},
		{WF_WLANE_WAITS_POST, WF_END_WAIT_POST_COUNT},
		{WF_WLANE_WAITS_ANNOUNCE, WF_LANE_WAIT_ANNOUNCE_COUNT},
		{WF_WLANE_WAITS_INBOX, WF_LANE_WAIT_INBOX_COUNT},
		{WF_WLANE_WAITS_SNAPSHOT, WF_LANE_WAIT_SNAPSHOT_COUNT},
		{WF_WLANE_RECONNECTS, WF_LANE_PEER_RECONNECTED_COUNT},
		{WF_WLANE_REFUSED, WF_LANE_HELLO_REFUSED_COUNT},
		{WF_WLANE_STRANGERS, WF_LANE_STRANGER_CLOSED_COUNT},
		{WF_WLANE_POLL_NS, WF_END_POLL_TIME_NS},
		{WF_WLANE_IDLE_NS, WF_END_IDLE_TIME_NS},
		{WF_WLANE_APPLY_NS, WF_LANE_APPLY_TIME_NS},
		{WF_WLANE_PARK_NS, WF_LANE_PARK_TIME_NS},
		{WF_WLANE_STRAGGLER_NS, WF_LANE_STRAGGLER_TIME_NS},
		{WF_WLANE_GATHER_NS, WF_LANE_GATHER_TIME_NS},
		{WF_WLANE_KEYS_PULLED, WF_LANE_KEY_PULLED_COUNT},
		{WF_WLANE_KEYS_PUSHED, WF_LANE_KEY_PUSHED_COUNT},
		{WF_WLANE_ROWS_UPDATED, WF_LANE_ROW_UPDATED_COUNT},
		{WF_WLANE_PULLS_HELD, WF_LANE_PULL_HELD_COUNT},
		{WF_WLANE_PUSHES_DISCARDED, WF_LANE_PUSH_DISCARDED_COUNT},
		{WF_WLANE_PULLS_REFUSED, WF_LANE_PULL_REFUSED_COUNT},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(pair); i++) {
		value[pair[i].to] = wf_stats_get(&lane->stats, pair[i].from);
	}
}

static void
count_trainers(const struct wf_lane *lane, uint64_t value[WF_WATCH_VALUES_MAX])
{
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		enum wf_watch_state state = state_of(&lane->peers.all[i]);
		value[WF_WLANE_TRAINERS_UP] += state == WF_WATCH_UP ? 1 : 0;
		value[WF_WLANE_TRAINERS_LOST] += state == WF_WATCH_LOST ? 1 : 0;
		value[WF_WLANE_TRAINERS_GONE] += state == WF_WATCH_GONE ? 1 : 0;
	}
}

static const struct wf_straggle_state *
split_of(const struct wf_lane *lane)
{
	if (lane->service != &wf_dense_service || !lane->job.is_here) {
		return NULL;
	}
	const struct wf_feature *feature = wf_feature_find(lane, &wf_straggle_hooks);
	return feature != NULL ? feature->state : NULL;
}

static void
write_lane(struct wf_lane *lane, struct wf_view *view, uint64_t now, uint32_t table_count)
{
	struct wf_watch_record *record = begin_record(lane, view, WF_WATCH_LANE, 0);
	uint64_t *value = record->value;
	const struct wf_order *order = &lane->order;
	const struct wf_straggle_state *split = split_of(lane);
	bool has_job = lane->state != WF_LANE_IDLE;
	struct wf_views *views = lane->opts.views;
	if (lane->opts.idx == 0 && has_job) {
		const struct wf_hello *first = &lane->admission.first;
		atomic_store_explicit(&views->pserver_idx, first->pserver_idx,
				      memory_order_relaxed);
		atomic_store_explicit(&views->pserver_count, first->pserver_count,
				      memory_order_relaxed);
	}
	value[WF_WLANE_AT_NS] = now;
	value[WF_WLANE_JOB] = job_of(lane);
	value[WF_WLANE_IS_SPARSE] = lane->service != &wf_dense_service;
	value[WF_WLANE_PORT] = lane->port;
	value[WF_WLANE_JOB_NS] = has_job ? now - lane->admission.start_ns : 0;
	value[WF_WLANE_TRAINERS] = lane->peers.count;
	value[WF_WLANE_MEMBERS] = member_count(lane);
	value[WF_WLANE_TABLES] = table_count;
	value[WF_WLANE_NEWS] = view->news_count;
	value[WF_WLANE_STEP] = order->own_steps      ? order->highest
			       : order->sum.step > 0 ? order->sum.step - 1
						     : 0;
	value[WF_WLANE_PASS] = order->sum.pass;
	value[WF_WLANE_SAMPLES] = order->sum.samples_before;
	value[WF_WLANE_IS_TIMED] = lane->turn.times.on;
	value[WF_WLANE_SPLIT_STEPS] = split != NULL ? split->sum.steps : 0;
	value[WF_WLANE_SPLIT_APPLY_NS] = split != NULL ? split->sum.apply_ns : 0;
	count_trainers(lane, value);
	fill_waits(lane, record, now);
	fill_times(lane, &view->times, record);
	fill_counters(lane, value);
	(void)snprintf(record->text[WF_WLANE_CAUSE], WF_REASON_BYTES, "%s",
		       lane->end.cause.status != WEFT_OK ? lane->end.cause.reason : "");
	(void)snprintf(record->text[WF_WLANE_STRANGER], WF_REASON_BYTES, "%s",
		       lane->report.lines.info.last_stranger);
	write_slot(&view->lane, record);
}

/* Why it is not here, or what it lacks. */
static void
describe_state(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t trainer, char *out)
{
	const char *why = "";
	if (peer->state == WF_PEER_LOST) {
		why = peer->lost.why;
	} else if (peer->state == WF_PEER_ABSENT) {
		why = wf_absent_why(lane, trainer);
	} else if (peer->state == WF_PEER_UP &&
		   wf_beat_is_silent(&peer->beat, &lane->waits.beats)) {
		why = wf_beat_lacks(&peer->beat);
	}
	(void)snprintf(out, WF_REASON_BYTES, "%.*s", (int)WF_REASON_BYTES - 1, why);
}

static uint64_t
waits_for(const struct wf_lane *lane, const struct wf_peer *peer)
{
	WF_STATIC_ASSERT(WF_WATCH_WAIT_REDUCE == 1 << WF_LANE_AWAITS_REDUCE, "a bit for each");
	uint64_t bits = 0;
	for (enum wf_lane_awaits kind = 0; kind < WF_LANE_AWAITS_COUNT; kind++) {
		bool waits = lane->state == WF_LANE_RUNNING &&
			     wf_waits_reported_since(lane, kind) != 0 &&
			     wf_waits_on(lane, kind, peer);
		bits |= waits ? 1ull << kind : 0;
	}
	return bits;
}

static void
fill_member(const struct wf_lane *lane, uint32_t trainer, uint64_t now,
	    struct wf_watch_record *record)
{
	const struct wf_peer *peer = &lane->peers.all[trainer];
	const struct wf_straggle_state *split = split_of(lane);
	uint64_t *value = record->value;
	value[WF_MEMBER_STATE] = state_of(peer);
	value[WF_MEMBER_WAITS] = waits_for(lane, peer);
	if (peer->state == WF_PEER_ABSENT && peer->hello.path == 0) {
		describe_state(lane, peer, trainer, record->text[WF_MEMBER_NOTE]);
		return; /* nothing else of it is known */
	}
	value[WF_MEMBER_PID] = peer->hello.pid;
	value[WF_MEMBER_STEP] = peer->member.step_next > 0 ? peer->member.step_next - 1 : 0;
	value[WF_MEMBER_PASS] = peer->member.pass;
	value[WF_MEMBER_SAMPLES] = peer->member.samples;
	value[WF_MEMBER_IS_OUT] = wf_order_is_out(&lane->order, &peer->member);
	value[WF_MEMBER_SILENT_NS] =
		peer->conn != NULL ? wf_beat_silent_ns(&peer->beat, &lane->waits.beats) : 0;
	value[WF_MEMBER_PATH] = peer->hello.path;
	value[WF_MEMBER_SLOTS] = peer->slots.held;
	bool is_lost = peer->state == WF_PEER_LOST && peer->lost.deadline_ns > now;
	value[WF_MEMBER_LEFT_NS] = is_lost ? peer->lost.deadline_ns - now : 0;
	if (split != NULL) {
		wf_straggle_watch(split, trainer, value);
	}
	(void)snprintf(record->text[WF_MEMBER_HOST], WF_REASON_BYTES, "%s", peer->hello.host);
	if (peer->conn != NULL && !peer->closing) {
		struct wf_path_info path;
		wf_transport_path(peer->conn, &path);
		(void)snprintf(record->text[WF_MEMBER_PATH_NAME], WF_REASON_BYTES, "%s", path.name);
		(void)snprintf(record->text[WF_MEMBER_PATH_WHY], WF_REASON_BYTES, "%.*s",
			       (int)WF_REASON_BYTES - 1, path.why);
	}
	describe_state(lane, peer, trainer, record->text[WF_MEMBER_NOTE]);
}

static void
write_news(const struct wf_lane *lane, struct wf_view *view, struct details *details, uint64_t now,
	   const struct wf_watch_record *about)
{
	if (!view->has_looked) {
		return;
	}
	struct wf_watch_record *record = begin_record(lane, view, WF_WATCH_NEWS, 0);
	uint64_t number = ++view->news_count;
	memcpy(record->value, about->value, sizeof(record->value));
	memcpy(record->text, about->text, sizeof(record->text));
	record->idx = number & UINT32_MAX;
	record->value[WF_NEWS_NUMBER] = number;
	record->value[WF_NEWS_AT_NS] = now;
	write_slot(&details->news[number % WF_VIEW_NEWS_MAX], record);
}

/* What has become of a trainer since it was shown last; false: nothing. */
static bool
has_changed(const struct shown *before, enum wf_watch_state state, uint32_t path,
	    enum wf_watch_what *what)
{
	if (state == before->state && (state != WF_WATCH_UP || path == before->path)) {
		return false;
	}
	switch (state) {
	case WF_WATCH_UP:
		*what = before->path == 0 ? WF_NEWS_JOINED : WF_NEWS_BACK;
		return true;
	case WF_WATCH_LOST:
		*what = WF_NEWS_LOST;
		return true;
	case WF_WATCH_GONE:
		*what = WF_NEWS_LEFT;
		return true;
	case WF_WATCH_ABSENT:
		break;
	}
	return false;
}

static void
note_member(const struct wf_lane *lane, struct wf_view *view, struct details *details, uint64_t now,
	    uint32_t trainer)
{
	const struct wf_peer *peer = &lane->peers.all[trainer];
	struct shown *shown = &view->shown[trainer];
	const struct shown is = {.state = state_of(peer), .path = peer->hello.path};
	enum wf_watch_what what;
	if (has_changed(shown, is.state, is.path, &what)) {
		struct wf_watch_record about = {
			.value = {[WF_NEWS_WHAT] = what, [WF_NEWS_TRAINER] = trainer}};
		(void)snprintf(about.text[WF_NEWS_HOST], WF_REASON_BYTES, "%s", peer->hello.host);
		describe_state(lane, peer, trainer, about.text[WF_NEWS_WHY]);
		write_news(lane, view, details, now, &about);
	}
	*shown = is;
}

static void
note_job(const struct wf_lane *lane, struct wf_view *view, struct details *details, uint64_t now)
{
	static const enum wf_watch_what what[] = {
		[WF_WATCH_JOB_RUNNING] = WF_NEWS_JOB_BEGAN,
		[WF_WATCH_JOB_FINISHED] = WF_NEWS_JOB_ENDED,
		[WF_WATCH_JOB_FAILED] = WF_NEWS_JOB_FAILED,
	};
	enum wf_watch_job job = job_of(lane);
	if (job == view->job) {
		return;
	}
	if (job == WF_WATCH_JOB_NONE || view->job == WF_WATCH_JOB_NONE) {
		memset(view->shown, 0, sizeof(view->shown));
	}
	view->job = job;
	if (job != WF_WATCH_JOB_NONE) {
		struct wf_watch_record about = {.value = {[WF_NEWS_WHAT] = what[job]}};
		(void)snprintf(about.text[WF_NEWS_WHY], WF_REASON_BYTES, "%s",
			       job == WF_WATCH_JOB_FAILED ? lane->end.cause.reason : "");
		write_news(lane, view, details, now, &about);
	}
}

static uint32_t
write_tables(const struct wf_lane *lane, struct wf_view *view, struct details *details)
{
	uint32_t count = 0;
	while (lane->service->watch != NULL && lane->job.is_ready && count < WF_VIEW_TABLES_MAX) {
		struct wf_watch_record *record = begin_record(lane, view, WF_WATCH_TABLE, count);
		if (!lane->service->watch(lane, count, record)) {
			break;
		}
		write_slot(&details->table[count], record);
		count++;
	}
	return count;
}

static void
write_all(struct wf_lane *lane, struct wf_view *view, struct details *details, uint64_t now)
{
	wf_lane_report_gather(lane);
	note_job(lane, view, details, now);
	for (uint32_t i = 0; i < member_count(lane); i++) {
		note_member(lane, view, details, now, i);
		struct wf_watch_record *record = begin_record(lane, view, WF_WATCH_MEMBER, i);
		fill_member(lane, i, now, record);
		write_slot(&details->member[i], record);
	}
	view->has_looked = true;
	write_lane(lane, view, now, write_tables(lane, view, details));
}

/* NULL: there is no memory, which is logged once. */
static struct details *
claim_details(struct wf_lane *lane, struct wf_view *view)
{
	struct details *details =
		atomic_load_explicit(&view->details, memory_order_relaxed); /* its own store */
	if (details != NULL || view->has_failed) {
		return details;
	}
	details = wf_zalloc(lane->env, sizeof(*details));
	view->has_failed = details == NULL;
	if (details == NULL) {
		wf_log(lane->env, WF_LOG_WARN, "lane %u: no memory to show what it does: %zu bytes",
		       lane->opts.idx, sizeof(*details));
	}
	atomic_store_explicit(&view->details, details, memory_order_release); /* V1: find_slot */
	return details;
}

static bool
is_wanted(const struct wf_views *views, uint64_t now_ns)
{
	return views != NULL &&
	       now_ns < atomic_load_explicit(&views->wanted_until_ns, memory_order_relaxed);
}

bool
wf_view_is_watched(const struct wf_lane *lane)
{
	return is_wanted(lane->opts.views, lane->turn.now_ns);
}

void
wf_view_look(struct wf_lane *lane, uint64_t now_ns)
{
	struct wf_views *views = lane->opts.views;
	if (!is_wanted(views, now_ns)) {
		return;
	}
	struct wf_view *view = &views->view[lane->opts.idx];
	if (now_ns < view->next_ns) {
		return;
	}
	view->next_ns = now_ns + WF_VIEW_PERIOD_NS;
	wf_lane_report_measure(lane);
	struct details *details = claim_details(lane, view);
	if (details != NULL) {
		write_all(lane, view, details, now_ns);
	}
}
