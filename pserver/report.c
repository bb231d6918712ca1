/* SPDX-License-Identifier: Apache-2.0 */
/* report: a lane's counters, and its words in the lines about them (exchange/report.h). Thread: the
 * lane's. */
#include "pserver/service.h"

#include <inttypes.h>

#include "base/assert.h"

#define WORDS_BYTES 192 /* of a line, which has 1,023 */

static const char *const counter_name[WF_LANE_COUNTER_COUNT] = {
	WF_END_COUNTER_NAMES,
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
	[WF_LANE_SLICE_ANNOUNCED_COUNT] = "slice_announced_count",
	[WF_LANE_SLICE_HELD_COUNT] = "slice_held_count",
	[WF_LANE_WAIT_ANNOUNCE_COUNT] = "wait_announce_count",
	[WF_LANE_WAIT_INBOX_COUNT] = "wait_inbox_count",
	[WF_LANE_WAIT_SNAPSHOT_COUNT] = "wait_snapshot_count",
	[WF_LANE_APPLY_TIME_NS] = "apply_time_ns",
	[WF_LANE_PARK_TIME_NS] = "park_time_ns",
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
wf_lane_report_init(struct wf_lane *lane)
{
	wf_stats_init(&lane->stats, counter_name, WF_LANE_COUNTER_COUNT);
	wf_report_init(&lane->report.lines, &lane->stats, &lane->report.step_time, "the job",
		       WF_LANE_STEP_APPLIED_COUNT);
	lane->turn.times.poll = WF_END_POLL_TIME_NS;
	lane->turn.times.idle = WF_END_IDLE_TIME_NS;
	lane->turn.times.away = WF_END_IDLE_TIME_NS; /* a lane's thread does nothing else */
	if (lane->opts.stats_period_ns > 0) {
		wf_turn_start(&lane->turn, &lane->stats);
	}
}

void
wf_lane_report_measure(struct wf_lane *lane)
{
	if (!lane->turn.times.on) {
		wf_turn_start(&lane->turn, &lane->stats);
	}
	if (lane->service->measure != NULL && lane->job.is_here) {
		lane->service->measure(lane);
	}
}

static void
gather(void *end, const struct wf_transport_info *info)
{
	struct wf_lane *lane = end;
	wf_stats_set(&lane->stats, WF_LANE_STRANGER_CLOSED_COUNT, info->strangers_refused);
	wf_path_gather(lane);
	lane->service->gather(lane);
}

static void
write(void *end, const struct wf_report_line *line)
{
	struct wf_lane *lane = end;
	char words[WORDS_BYTES];
	lane->service->words(lane, line, words, sizeof(words));
	const uint64_t *d = line->since;
	double percent = 100 / (line->s * 1e9);
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: %s%s slots_used %" PRIu64 " of %" PRIu64 " slices_parked %" PRIu64
	       " parked_bytes %" PRIu64 " waits_trainer %" PRIu64 " waits_lent %" PRIu64
	       " waits_post %" PRIu64
	       " poll_percent %.1f apply_percent %.1f park_percent %.1f idle_percent %.1f "
	       "step_p50_us %.1f step_p99_us %.1f reconnects %" PRIu64 " refused %" PRIu64
	       " strangers %" PRIu64 "%s",
	       lane->opts.idx, line->head, words, line->at[WF_LANE_SLOT_USED_COUNT],
	       line->at[WF_LANE_SLOT_GRANTED_COUNT], d[WF_LANE_SLICE_PARKED_COUNT],
	       d[WF_LANE_SLICE_PARKED_BYTES], d[WF_LANE_WAIT_TRAINER_COUNT],
	       d[WF_LANE_WAIT_LENT_COUNT], d[WF_END_WAIT_POST_COUNT],
	       (double)d[WF_END_POLL_TIME_NS] * percent, (double)d[WF_LANE_APPLY_TIME_NS] * percent,
	       (double)d[WF_LANE_PARK_TIME_NS] * percent, (double)d[WF_END_IDLE_TIME_NS] * percent,
	       line->p50_us, line->p99_us, d[WF_LANE_PEER_RECONNECTED_COUNT],
	       d[WF_LANE_HELLO_REFUSED_COUNT], d[WF_LANE_STRANGER_CLOSED_COUNT], line->paths);
	lane->service->lines(lane, line->whole);
}

static const struct wf_report_ops report_ops = {.gather = gather, .write = write};

void
wf_lane_report_gather(struct wf_lane *lane)
{
	wf_report_gather(&lane->report.lines, lane->turn.transport, &report_ops, lane);
}

void
wf_lane_report_job_begins(struct wf_lane *lane)
{
	wf_stats_set(&lane->stats, WF_LANE_PARK_PEAK_BYTES, 0);
	wf_lane_report_gather(lane);
	wf_report_begin(&lane->report.lines, true, lane->admission.start_ns,
			lane->opts.stats_period_ns);
}

void
wf_lane_report_period(struct wf_lane *lane, uint64_t now)
{
	wf_report_period(&lane->report.lines, lane->turn.transport, &report_ops, lane, now);
}

void
wf_lane_report_job_ends(struct wf_lane *lane)
{
	wf_report_end(&lane->report.lines, lane->turn.transport, &report_ops, lane,
		      wf_now_ns(lane->env));
}
