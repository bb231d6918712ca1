/* SPDX-License-Identifier: Apache-2.0 */
/* report: the counters of a lane that are gathered from its transport and peers, and the lines
 * that say what it did: one per period while a job runs, one about the whole job at its end.
 * Thread: the lane's. */
#include "pserver/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define PATHS_BYTES 256 /* of a line, which has 1,023 */
#define WORDS_BYTES 192 /* likewise */

static const char *const counter_name[WF_LANE_COUNTER_COUNT] = {
	[WF_LANE_TRANSPORT_RECEIVED_BYTES] = "transport_received_bytes",
	[WF_LANE_TRANSPORT_SENT_BYTES] = "transport_sent_bytes",
	[WF_LANE_MESSAGE_RECEIVED_COUNT] = "message_received_count",
	[WF_LANE_MESSAGE_SENT_COUNT] = "message_sent_count",
	[WF_LANE_PUT_RECEIVED_COUNT] = "put_received_count",
	[WF_LANE_PUT_SENT_COUNT] = "put_sent_count",
	[WF_LANE_SLOT_USED_COUNT] = "slot_used_count",
	[WF_LANE_SLOT_GRANTED_COUNT] = "slot_granted_count",
	[WF_LANE_SLOT_ALLOCATED_BYTES] = "slot_allocated_bytes",
	[WF_LANE_SHARD_ALLOCATED_BYTES] = "shard_allocated_bytes",
	[WF_LANE_SLICE_PARKED_COUNT] = "slice_parked_count",
	[WF_LANE_SLICE_PARKED_BYTES] = "slice_parked_bytes",
	[WF_LANE_PARK_USED_BYTES] = "park_used_bytes",
	[WF_LANE_PARK_PEAK_BYTES] = "park_peak_bytes",
	[WF_LANE_STEP_APPLIED_COUNT] = "step_applied_count",
	[WF_LANE_SLICE_APPLIED_COUNT] = "slice_applied_count",
	[WF_LANE_SLICE_DISCARDED_COUNT] = "slice_discarded_count",
	[WF_LANE_GRADIENT_SKIPPED_COUNT] = "gradient_skipped_count",
	[WF_LANE_PEER_RECONNECTED_COUNT] = "peer_reconnected_count",
	[WF_LANE_HELLO_REFUSED_COUNT] = "hello_refused_count",
	[WF_LANE_STRANGER_CLOSED_COUNT] = "stranger_closed_count",
	[WF_LANE_WAIT_TRAINER_COUNT] = "wait_trainer_count",
	[WF_LANE_WAIT_LENT_COUNT] = "wait_lent_count",
	[WF_LANE_WAIT_POST_COUNT] = "wait_post_count",
	[WF_LANE_SLICE_ANNOUNCED_COUNT] = "slice_announced_count",
	[WF_LANE_SLICE_HELD_COUNT] = "slice_held_count",
	[WF_LANE_WAIT_ANNOUNCE_COUNT] = "wait_announce_count",
	[WF_LANE_WAIT_INBOX_COUNT] = "wait_inbox_count",
	[WF_LANE_POLL_TIME_NS] = "poll_time_ns",
	[WF_LANE_APPLY_TIME_NS] = "apply_time_ns",
	[WF_LANE_PARK_TIME_NS] = "park_time_ns",
	[WF_LANE_IDLE_TIME_NS] = "idle_time_ns",
	[WF_LANE_STRAGGLER_TIME_NS] = "straggler_time_ns",
	[WF_LANE_KEY_PULLED_COUNT] = "key_pulled_count",
	[WF_LANE_KEY_PUSHED_COUNT] = "key_pushed_count",
	[WF_LANE_KEY_RECEIVED_BYTES] = "key_received_bytes",
	[WF_LANE_ROW_UPDATED_COUNT] = "row_updated_count",
	[WF_LANE_PULL_HELD_COUNT] = "pull_held_count",
	[WF_LANE_PUSH_DISCARDED_COUNT] = "push_discarded_count",
	[WF_LANE_PULL_REFUSED_COUNT] = "pull_refused_count",
	[WF_LANE_GATHER_TIME_NS] = "gather_time_ns",
};
WF_STATIC_ASSERT(WF_LANE_COUNTER_COUNT <= WF_STATS_MAX, "the table holds them");

void
wf_report_init(struct wf_lane *lane)
{
	wf_stats_init(&lane->stats, counter_name, WF_LANE_COUNTER_COUNT);
	lane->report.next_ns = WF_NEVER;
	lane->turn.poll = WF_LANE_POLL_TIME_NS;
	lane->turn.idle = WF_LANE_IDLE_TIME_NS;
	lane->turn.away = WF_LANE_IDLE_TIME_NS; /* a lane's thread does nothing else */
	if (lane->opts.stats_period_ns > 0) {
		wf_turn_start(&lane->turn, &lane->stats);
	}
}

void
wf_report_gather(struct wf_lane *lane, struct wf_transport_info *info)
{
	struct wf_stats *stats = &lane->stats;
	wf_transport_query(lane->turn.transport, info);
	wf_stats_set(stats, WF_LANE_TRANSPORT_RECEIVED_BYTES, info->bytes_received);
	wf_stats_set(stats, WF_LANE_TRANSPORT_SENT_BYTES, info->bytes_sent);
	wf_stats_set(stats, WF_LANE_MESSAGE_RECEIVED_COUNT, info->msgs_received);
	wf_stats_set(stats, WF_LANE_MESSAGE_SENT_COUNT, info->msgs_sent);
	wf_stats_set(stats, WF_LANE_PUT_RECEIVED_COUNT, info->puts_received);
	wf_stats_set(stats, WF_LANE_PUT_SENT_COUNT, info->puts_sent);
	wf_stats_set(stats, WF_LANE_WAIT_POST_COUNT, info->posts_again);
	wf_stats_set(stats, WF_LANE_STRANGER_CLOSED_COUNT, info->strangers_refused);
	wf_window_gather(lane);
	lane->service->gather(lane);
}

void
wf_report_job_begins(struct wf_lane *lane)
{
	struct wf_report *report = &lane->report;
	wf_stats_set(&lane->stats, WF_LANE_PARK_PEAK_BYTES, 0);
	wf_report_gather(lane, &report->now_info);
	memcpy(report->job_path, report->now_info.path, sizeof(report->job_path));
	memcpy(report->period_path, report->now_info.path, sizeof(report->period_path));
	report->job_ns = lane->start_ns;
	report->period_ns = lane->start_ns;
	report->job_said = false;
	wf_stats_snapshot(&lane->stats, report->job);
	if (lane->opts.stats_period_ns > 0) {
		report->next_ns = lane->start_ns + lane->opts.stats_period_ns;
		wf_stats_snapshot(&lane->stats, report->period);
		wf_hist_snapshot(&lane->step_time, &report->job_steps);
		report->period_steps = report->job_steps;
	}
}

/* One line about what came since `then`, `ns` ago; the steps since then are in now_steps. */
static void
write_line(struct wf_lane *lane, const char *of, const uint64_t *then,
	   const struct wf_path_counts *then_path, uint64_t ns)
{
	char paths[PATHS_BYTES];
	wf_transport_paths_format(&lane->report.now_info, then_path, paths, sizeof(paths));
	char words[WORDS_BYTES];
	lane->service->words(lane, then, words, sizeof(words));
	const uint64_t *now = lane->report.now;
	const struct wf_hist_view *steps = &lane->report.now_steps;
	uint64_t d[WF_LANE_COUNTER_COUNT];
	for (unsigned i = 0; i < WF_LANE_COUNTER_COUNT; i++) {
		d[i] = now[i] - then[i]; /* of no use for a gauge */
	}
	double s = ns > 0 ? (double)ns / 1e9 : 1e-9;
	double percent = 100 / (s * 1e9);
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: stats of %s%.1f s: steps %" PRIu64 " steps_per_s %.1f "
	       "received_mb_per_s %.3f sent_mb_per_s %.3f messages_received %" PRIu64
	       " messages_sent %" PRIu64 " puts_received %" PRIu64 " puts_sent %" PRIu64
	       "%s slots_used %" PRIu64 " of %" PRIu64 " slices_parked %" PRIu64
	       " parked_bytes %" PRIu64 " waits_trainer %" PRIu64 " waits_lent %" PRIu64
	       " waits_post %" PRIu64
	       " poll_percent %.1f apply_percent %.1f park_percent %.1f idle_percent %.1f "
	       "step_p50_us %.1f step_p99_us %.1f reconnects %" PRIu64 " refused %" PRIu64
	       " strangers %" PRIu64 "%s",
	       lane->opts.idx, of, s, d[WF_LANE_STEP_APPLIED_COUNT],
	       (double)d[WF_LANE_STEP_APPLIED_COUNT] / s,
	       (double)d[WF_LANE_TRANSPORT_RECEIVED_BYTES] / 1e6 / s,
	       (double)d[WF_LANE_TRANSPORT_SENT_BYTES] / 1e6 / s, d[WF_LANE_MESSAGE_RECEIVED_COUNT],
	       d[WF_LANE_MESSAGE_SENT_COUNT], d[WF_LANE_PUT_RECEIVED_COUNT],
	       d[WF_LANE_PUT_SENT_COUNT], words, now[WF_LANE_SLOT_USED_COUNT],
	       now[WF_LANE_SLOT_GRANTED_COUNT], d[WF_LANE_SLICE_PARKED_COUNT],
	       d[WF_LANE_SLICE_PARKED_BYTES], d[WF_LANE_WAIT_TRAINER_COUNT],
	       d[WF_LANE_WAIT_LENT_COUNT], d[WF_LANE_WAIT_POST_COUNT],
	       (double)d[WF_LANE_POLL_TIME_NS] * percent,
	       (double)d[WF_LANE_APPLY_TIME_NS] * percent,
	       (double)d[WF_LANE_PARK_TIME_NS] * percent, (double)d[WF_LANE_IDLE_TIME_NS] * percent,
	       (double)wf_hist_quantile(steps, 0.5) / 1e3,
	       (double)wf_hist_quantile(steps, 0.99) / 1e3, d[WF_LANE_PEER_RECONNECTED_COUNT],
	       d[WF_LANE_HELLO_REFUSED_COUNT], d[WF_LANE_STRANGER_CLOSED_COUNT], paths);
}

static void
gather_now(struct wf_lane *lane)
{
	wf_report_gather(lane, &lane->report.now_info);
	wf_stats_snapshot(&lane->stats, lane->report.now);
	wf_hist_snapshot(&lane->step_time, &lane->report.now_steps);
}

void
wf_report_job_ends(struct wf_lane *lane)
{
	struct wf_report *report = &lane->report;
	report->next_ns = WF_NEVER;
	gather_now(lane); /* also without lines: the counters of a job that is over are exact */
	if (lane->opts.stats_period_ns == 0 || report->job_said) {
		return;
	}
	report->job_said = true;
	wf_hist_since(&report->now_steps, &report->job_steps);
	write_line(lane, "the job, ", report->job, report->job_path,
		   wf_now_ns(lane->env) - report->job_ns);
	lane->service->lines(lane, true);
}

void
wf_report_period(struct wf_lane *lane, uint64_t now)
{
	struct wf_report *report = &lane->report;
	gather_now(lane);
	struct wf_hist_view *steps = &report->now_steps;
	wf_hist_since(steps, &report->period_steps);
	write_line(lane, "", report->period, report->period_path, now - report->period_ns);
	lane->service->lines(lane, false);
	memcpy(report->period_path, report->now_info.path, sizeof(report->period_path));
	wf_hist_merge(&report->period_steps, steps); /* what they were, and what came */
	wf_stats_snapshot(&lane->stats, report->period);
	report->period_ns = now;
	report->next_ns += lane->opts.stats_period_ns;
	if (report->next_ns <= now) { /* late by more than a period: those are left out */
		report->next_ns = now + lane->opts.stats_period_ns;
	}
}
