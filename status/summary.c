/* SPDX-License-Identifier: Apache-2.0 */
/* summary: see summary.h. */
#include "status/summary.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

#define UNKNOWN __builtin_nan("")

const char *
wf_summary_job_name(enum wf_watch_job job)
{
	static const char *const name[] = {
		[WF_WATCH_JOB_NONE] = "none",
		[WF_WATCH_JOB_RUNNING] = "running",
		[WF_WATCH_JOB_FINISHED] = "finished",
		[WF_WATCH_JOB_FAILED] = "failed",
	};
	return (size_t)job < WF_ARRAY_COUNT(name) ? name[job] : "unknown";
}

const char *
wf_summary_state_name(uint64_t state)
{
	static const char *const name[] = {
		[WF_WATCH_ABSENT] = "absent",
		[WF_WATCH_UP] = "up",
		[WF_WATCH_LOST] = "lost",
		[WF_WATCH_GONE] = "left",
	};
	return state < WF_ARRAY_COUNT(name) ? name[state] : "unknown";
}

const char *
wf_summary_news_name(uint64_t what)
{
	static const char *const name[WF_NEWS_COUNT] = {
		[WF_NEWS_JOB_BEGAN] = "job began",
		[WF_NEWS_JOB_ENDED] = "job ended",
		[WF_NEWS_JOB_FAILED] = "job failed",
		[WF_NEWS_JOINED] = "joined",
		[WF_NEWS_LOST] = "lost",
		[WF_NEWS_BACK] = "back",
		[WF_NEWS_LEFT] = "left",
	};
	return what < WF_ARRAY_COUNT(name) ? name[what] : "unknown";
}

const char *
wf_summary_wait_name(unsigned bit)
{
	static const char *const name[WF_SUMMARY_WAITS] = {"start", "answers", "step", "reduce"};
	WF_ASSERT(bit < WF_SUMMARY_WAITS);
	return name[bit];
}

/* What a counter has gained; 0 if another process has begun to count. */
static uint64_t
gain(const struct wf_watch_record *now, const struct wf_watch_record *before, unsigned idx)
{
	uint64_t then = before != NULL ? before->value[idx] : 0;
	return now->value[idx] >= then ? now->value[idx] - then : 0;
}

static double
share(const struct wf_watch_record *now, const struct wf_watch_record *before, unsigned idx,
      double seconds)
{
	bool known = now->value[WF_WLANE_IS_TIMED] != 0 && before != NULL && seconds > 0;
	return known ? (double)gain(now, before, idx) / 1e9 / seconds : UNKNOWN;
}

static void
add_lane(struct wf_summary *out, const struct wf_watch_record *now,
	 const struct wf_watch_record *before)
{
	if (out->lane_count == WF_SUMMARY_LANES_MAX) {
		return;
	}
	struct wf_summary_lane *lane = &out->lane[out->lane_count++];
	double s = before != NULL ? (double)gain(now, before, WF_WLANE_AT_NS) / 1e9 : 0;
	double per = s > 0 ? 1 / s : 0;
	*lane = (struct wf_summary_lane){
		.record = now,
		.steps_per_s = (double)gain(now, before, WF_WLANE_STEPS) * per,
		.received_per_s = (double)gain(now, before, WF_WLANE_RECEIVED_BYTES) * per,
		.sent_per_s = (double)gain(now, before, WF_WLANE_SENT_BYTES) * per,
		.pulled_per_s = (double)gain(now, before, WF_WLANE_KEYS_PULLED) * per,
		.pushed_per_s = (double)gain(now, before, WF_WLANE_KEYS_PUSHED) * per,
		.updated_per_s = (double)gain(now, before, WF_WLANE_ROWS_UPDATED) * per,
		.poll = share(now, before, WF_WLANE_POLL_NS, s),
		.apply = share(now, before, WF_WLANE_APPLY_NS, s),
		.park = share(now, before, WF_WLANE_PARK_NS, s),
		.idle = share(now, before, WF_WLANE_IDLE_NS, s),
	};
	out->over_s = s > out->over_s ? s : out->over_s;
}

static double
longer_ms(double ms, uint64_t ns)
{
	return (double)ns / 1e6 > ms ? (double)ns / 1e6 : ms;
}

/* Steps are those of the dense lane that has made most: all lanes make the same ones. */
static void
add_up_lanes(struct wf_summary *out)
{
	for (uint32_t i = 0; i < out->lane_count; i++) {
		const struct wf_summary_lane *lane = &out->lane[i];
		const uint64_t *value = lane->record->value;
		bool is_sparse = value[WF_WLANE_IS_SPARSE] != 0;
		out->job = value[WF_WLANE_JOB] > out->job ? (enum wf_watch_job)value[WF_WLANE_JOB]
							  : out->job;
		out->slot_bytes += value[WF_WLANE_SLOT_BYTES];
		out->park_bytes += value[WF_WLANE_PARK_BYTES];
		if (out->cause[0] == '\0') {
			out->cause = lane->record->text[WF_WLANE_CAUSE];
		}
		if (out->wait[0] == '\0' && lane->record->text[WF_WLANE_WAIT][0] != '\0') {
			out->wait = lane->record->text[WF_WLANE_WAIT];
			for (unsigned kind = 0; kind < WF_SUMMARY_WAITS && out->wait_ns == 0;
			     kind++) {
				uint64_t ns = value[WF_WLANE_WAIT_START_NS + kind];
				out->wait_ns = ns >= WF_NS_PER_S / 2 ? ns : 0;
			}
		}
		if (is_sparse) {
			out->table_bytes += value[WF_WLANE_SHARD_BYTES];
			out->sparse_received_per_s += lane->received_per_s;
			out->sparse_sent_per_s += lane->sent_per_s;
			out->pulled_per_s += lane->pulled_per_s;
			out->pushed_per_s += lane->pushed_per_s;
			out->updated_per_s += lane->updated_per_s;
			continue;
		}
		out->shard_bytes += value[WF_WLANE_SHARD_BYTES];
		out->received_per_s += lane->received_per_s;
		out->sent_per_s += lane->sent_per_s;
		out->steps_per_s =
			lane->steps_per_s > out->steps_per_s ? lane->steps_per_s : out->steps_per_s;
		out->p50_ms = longer_ms(out->p50_ms, value[WF_WLANE_STEP_P50_NS]);
		out->p99_ms = longer_ms(out->p99_ms, value[WF_WLANE_STEP_P99_NS]);
		out->steps_timed = value[WF_WLANE_BUCKET_LAST] > out->steps_timed
					   ? value[WF_WLANE_BUCKET_LAST]
					   : out->steps_timed;
	}
}

static void
add_sums(struct wf_split_sums *to, const struct wf_watch_record *from)
{
	const uint64_t *value = from->value;
	to->arrived += value[WF_MEMBER_ARRIVED];
	to->arrive_ns += value[WF_MEMBER_ARRIVE_NS];
	to->ahead_ns += value[WF_MEMBER_AHEAD_NS];
	to->split += value[WF_MEMBER_SPLIT];
	to->compute_ns += value[WF_MEMBER_COMPUTE_NS];
	to->network_ns += value[WF_MEMBER_NETWORK_NS];
	to->last += value[WF_MEMBER_LAST];
	to->next_ns += value[WF_MEMBER_NEXT_NS];
}

/* Lost is worse than absent, that than up, and having left is best. */
static unsigned
badness(uint64_t state)
{
	return state == WF_WATCH_LOST ? 3 : state == WF_WATCH_ABSENT ? 2 : state == WF_WATCH_UP;
}

static struct wf_summary_member *
member_of(struct wf_summary *out, uint64_t trainer)
{
	if (trainer >= WF_SUMMARY_MEMBERS_MAX) {
		return NULL;
	}
	for (; out->member_count <= trainer; out->member_count++) {
		out->member[out->member_count] = (struct wf_summary_member){
			.trainer = out->member_count, .step = UINT64_MAX};
	}
	return &out->member[trainer];
}

static void
add_member(struct wf_summary *out, const struct wf_watch_record *record, bool is_sparse)
{
	struct wf_summary_member *member = member_of(out, record->idx);
	const uint64_t *value = record->value;
	if (member == NULL) {
		return;
	}
	if (member->record == NULL ||
	    badness(value[WF_MEMBER_STATE]) > badness(member->record->value[WF_MEMBER_STATE])) {
		member->record = record;
	}
	if (!is_sparse && value[WF_MEMBER_STEP] < member->step) {
		member->step = value[WF_MEMBER_STEP];
	}
	member->waits |= value[WF_MEMBER_WAITS];
	member->silent_ns = value[WF_MEMBER_SILENT_NS] > member->silent_ns
				    ? value[WF_MEMBER_SILENT_NS]
				    : member->silent_ns;
	member->reconnects += value[WF_MEMBER_PATH] > 1 ? value[WF_MEMBER_PATH] - 1 : 0;
	member->slots += value[WF_MEMBER_SLOTS];
	add_sums(&member->sums, record);
}

/* Of all lanes, at an earlier moment. */
static struct wf_split_sums
sums_of(const struct wf_picture *picture, uint32_t trainer)
{
	struct wf_split_sums sums = {0};
	for (uint32_t i = 0; picture != NULL && i < picture->count; i++) {
		const struct wf_watch_record *record = &picture->record[i];
		if (record->kind == WF_WATCH_MEMBER && record->idx == trainer) {
			add_sums(&sums, record);
		}
	}
	return sums;
}

/* What was counted since `before`; everything, if that is nothing, or of another job. */
static struct wf_split_sums
since(const struct wf_split_sums *now, const struct wf_split_sums *before)
{
	if (now->arrived <= before->arrived || now->split < before->split ||
	    now->last < before->last || now->arrive_ns < before->arrive_ns ||
	    now->ahead_ns < before->ahead_ns) {
		return *now;
	}
	return (struct wf_split_sums){
		.arrived = now->arrived - before->arrived,
		.arrive_ns = now->arrive_ns - before->arrive_ns,
		.ahead_ns = now->ahead_ns - before->ahead_ns,
		.split = now->split - before->split,
		.compute_ns = now->compute_ns - before->compute_ns,
		.network_ns = now->network_ns - before->network_ns,
		.last = now->last - before->last,
		.next_ns = now->next_ns - before->next_ns,
	};
}

static double
mean_ms(uint64_t sum_ns, uint64_t count)
{
	return count > 0 ? (double)sum_ns / (double)count / 1e6 : UNKNOWN;
}

/* Of the lanes together: from the last gradient to the end of the step. */
static double
apply_ms(const struct wf_summary *out, const struct wf_picture *before)
{
	uint64_t steps = 0;
	uint64_t ns = 0;
	for (uint32_t i = 0; i < out->lane_count; i++) {
		const struct wf_watch_record *now = out->lane[i].record;
		const struct wf_watch_record *then =
			before != NULL ? wf_picture_find(before, WF_WATCH_LANE, now->lane, 0)
				       : NULL;
		bool goes_on = then != NULL &&
			       now->value[WF_WLANE_SPLIT_STEPS] > then->value[WF_WLANE_SPLIT_STEPS];
		steps += gain(now, goes_on ? then : NULL, WF_WLANE_SPLIT_STEPS);
		ns += gain(now, goes_on ? then : NULL, WF_WLANE_SPLIT_APPLY_NS);
	}
	return mean_ms(ns, steps);
}

static void
split_member(struct wf_summary_member *member, const struct wf_split_sums *before, double apply)
{
	struct wf_split_sums sums = since(&member->sums, before);
	member->split = (struct wf_split){
		.own_ms = mean_ms(sums.arrive_ns, sums.arrived),
		.compute_ms = mean_ms(sums.compute_ns, sums.split),
		.network_ms = mean_ms(sums.network_ns, sums.split),
		.ahead_ms = mean_ms(sums.ahead_ns, sums.arrived),
		.apply_ms = sums.arrived > 0 ? apply : UNKNOWN,
	};
	member->last_share = sums.arrived > 0 ? (double)sums.last / (double)sums.arrived : UNKNOWN;
	member->behind_ms = sums.last > 0 ? mean_ms(sums.next_ns, sums.last) : 0;
}

/* Adds a value that is known to a mean. */
static void
add_mean(double *sum, unsigned *count, double value)
{
	if (!isnan(value)) {
		*sum += value;
		++*count;
	}
}

static double
mean_of(const struct wf_summary *out, size_t field)
{
	double sum = 0;
	unsigned count = 0;
	for (uint32_t i = 0; i < out->member_count; i++) {
		double value;
		memcpy(&value, (const char *)&out->member[i].split + field, sizeof(value));
		add_mean(&sum, &count, value);
	}
	return count > 0 ? sum / count : UNKNOWN;
}

static void
split_all(struct wf_summary *out, const struct wf_picture *before)
{
	double apply = apply_ms(out, before);
	uint64_t foremost = 0;
	for (uint32_t i = 0; i < out->member_count; i++) {
		struct wf_summary_member *member = &out->member[i];
		struct wf_split_sums then = sums_of(before, i);
		split_member(member, &then, apply);
		member->step = member->step == UINT64_MAX ? 0 : member->step;
		foremost = member->step > foremost ? member->step : foremost;
	}
	for (uint32_t i = 0; i < out->member_count; i++) {
		struct wf_summary_member *member = &out->member[i];
		bool takes_part = member->record != NULL &&
				  member->record->value[WF_MEMBER_STATE] != WF_WATCH_GONE &&
				  member->record->value[WF_MEMBER_IS_OUT] == 0;
		member->lag = takes_part ? foremost - member->step : 0;
	}
	out->split = (struct wf_split){
		.own_ms = mean_of(out, offsetof(struct wf_split, own_ms)),
		.compute_ms = mean_of(out, offsetof(struct wf_split, compute_ms)),
		.network_ms = mean_of(out, offsetof(struct wf_split, network_ms)),
		.ahead_ms = mean_of(out, offsetof(struct wf_split, ahead_ms)),
		.apply_ms = apply,
	};
}

/* Earlier pictures are of the same process, or count for nothing. */
static bool
is_same(const struct wf_picture *now, const struct wf_picture *before)
{
	if (before == NULL) {
		return false;
	}
	const struct wf_watch_record *a = wf_picture_find(now, WF_WATCH_PSERVER, 0, 0);
	const struct wf_watch_record *b = wf_picture_find(before, WF_WATCH_PSERVER, 0, 0);
	return a != NULL && b != NULL &&
	       a->value[WF_PSERVER_START_AT_NS] == b->value[WF_PSERVER_START_AT_NS] &&
	       a->value[WF_PSERVER_PID] == b->value[WF_PSERVER_PID];
}

void
wf_summary_make(const struct wf_picture *now, const struct wf_picture *before,
		struct wf_summary *out)
{
	bool is_sparse = false;
	memset(out, 0, offsetof(struct wf_summary, lane));
	out->wait = out->cause = "";
	before = is_same(now, before) ? before : NULL;
	for (uint32_t i = 0; i < now->count; i++) {
		const struct wf_watch_record *record = &now->record[i];
		if (record->kind == WF_WATCH_PSERVER) {
			out->pserver = record;
		} else if (record->kind == WF_WATCH_LANE) {
			is_sparse = record->value[WF_WLANE_IS_SPARSE] != 0;
			out->first = record->lane == 0 ? record : out->first;
			add_lane(out, record,
				 before != NULL
					 ? wf_picture_find(before, WF_WATCH_LANE, record->lane, 0)
					 : NULL);
		} else if (record->kind == WF_WATCH_MEMBER) {
			add_member(out, record, is_sparse);
		}
	}
	add_up_lanes(out);
	split_all(out, before);
}
