/* SPDX-License-Identifier: Apache-2.0 */
/* report: the counters of a session: gathered, and the lines about them: one per period and one at
 * the end. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/core.h"
#include "trainer/service.h"

#define PATHS_BYTES 256 /* of a line, which has 1,023 */
#define SERVICE_BYTES 400

static const char *const counter_name[WF_CORE_COUNTER_COUNT] = {
	[WF_CORE_TRANSPORT_SENT_BYTES] = "transport_sent_bytes",
	[WF_CORE_TRANSPORT_RECEIVED_BYTES] = "transport_received_bytes",
	[WF_CORE_MESSAGE_SENT_COUNT] = "message_sent_count",
	[WF_CORE_MESSAGE_RECEIVED_COUNT] = "message_received_count",
	[WF_CORE_PUT_SENT_COUNT] = "put_sent_count",
	[WF_CORE_PUT_RECEIVED_COUNT] = "put_received_count",
	[WF_CORE_WAIT_POST_COUNT] = "wait_post_count",
	[WF_CORE_FAST_SENT_BYTES] = "fast_sent_bytes",
	[WF_CORE_FAST_RECEIVED_BYTES] = "fast_received_bytes",
	[WF_CORE_PATH_BROKEN_COUNT] = "path_broken_count",
	[WF_CORE_STEP_BEGUN_COUNT] = "step_begun_count",
	[WF_CORE_SLICE_PUSHED_COUNT] = "slice_pushed_count",
	[WF_CORE_SLICE_ANSWERED_COUNT] = "slice_answered_count",
	[WF_CORE_SLICE_DISCARDED_COUNT] = "slice_discarded_count",
	[WF_CORE_SLICE_PULLED_COUNT] = "slice_pulled_count",
	[WF_CORE_GRADIENT_OVERFLOWED_COUNT] = "gradient_overflowed_count",
	[WF_CORE_LANE_RECONNECTED_COUNT] = "lane_reconnected_count",
	[WF_CORE_WAIT_SLOT_COUNT] = "wait_slot_count",
	[WF_CORE_POLL_TIME_NS] = "poll_time_ns",
	[WF_CORE_IDLE_TIME_NS] = "idle_time_ns",
	[WF_CORE_AWAY_TIME_NS] = "away_time_ns",
};
WF_STATIC_ASSERT(WF_CORE_COUNTER_COUNT <= WF_STATS_MAX, "the table holds them");

void
wf_core_report_init(struct wf_core *core)
{
	wf_stats_init(&core->stats, counter_name, WF_CORE_COUNTER_COUNT);
	core->report.next_ns = WF_NEVER;
	core->turn.poll = WF_CORE_POLL_TIME_NS;
	core->turn.idle = WF_CORE_IDLE_TIME_NS;
	core->turn.away = WF_CORE_AWAY_TIME_NS;
}

void
wf_core_report_start(struct wf_core *core)
{
	if (core->opts.stats_period_ns > 0) {
		wf_turn_start(&core->turn, &core->stats);
		core->report.period_ns = core->started_ns;
		core->report.next_ns = core->started_ns + core->opts.stats_period_ns;
	}
}

void
wf_core_report_gather(struct wf_core *core)
{
	struct wf_stats *stats = &core->stats;
	struct wf_transport_info *info = &core->report.now_info;
	uint64_t fast_sent = 0;
	uint64_t fast_received = 0;
	uint64_t broken = 0;
	wf_transport_query(core->turn.transport, info);
	for (unsigned i = 1; i < info->path_count; i++) { /* 0: the bootstrap */
		fast_sent += info->path[i].bytes_sent;
		fast_received += info->path[i].bytes_received;
		broken += info->path[i].conns_broken;
	}
	wf_stats_set(stats, WF_CORE_TRANSPORT_SENT_BYTES, info->bytes_sent);
	wf_stats_set(stats, WF_CORE_TRANSPORT_RECEIVED_BYTES, info->bytes_received);
	wf_stats_set(stats, WF_CORE_MESSAGE_SENT_COUNT, info->msgs_sent);
	wf_stats_set(stats, WF_CORE_MESSAGE_RECEIVED_COUNT, info->msgs_received);
	wf_stats_set(stats, WF_CORE_PUT_SENT_COUNT, info->puts_sent);
	wf_stats_set(stats, WF_CORE_PUT_RECEIVED_COUNT, info->puts_received);
	wf_stats_set(stats, WF_CORE_WAIT_POST_COUNT, info->posts_again);
	wf_stats_set(stats, WF_CORE_FAST_SENT_BYTES, fast_sent);
	wf_stats_set(stats, WF_CORE_FAST_RECEIVED_BYTES, fast_received);
	wf_stats_set(stats, WF_CORE_PATH_BROKEN_COUNT, broken);
}

void
wf_core_report_stats(struct wf_core *core)
{
	struct wf_hist_view *view = &core->report.now_exchanges;
	wf_core_report_gather(core);
	wf_hist_snapshot(&core->exchange_time, view);
	core->exchange_p50_ns = wf_hist_quantile(view, 0.5);
	core->exchange_p99_ns = wf_hist_quantile(view, 0.99);
	atomic_store_explicit(&core->stats_busy, 0, memory_order_release); /* B1 */
}

/* What the service has to say, in a line of its own: the other one is long enough. */
static void
write_service_line(struct wf_core *core, const char *of, bool whole, uint64_t ns)
{
	char words[SERVICE_BYTES] = "";
	if (core->service == NULL) {
		return;
	}
	core->service->report(core, whole, words, sizeof(words));
	wf_core_log(core, WEFT_LOG_INFO, "trainer %u: %s stats of %s%.1f s:%s",
		    core->opts.trainer_id, core->service->name, of, (double)ns / 1e9, words);
}

/* One line about what came since the counters were `then`, `ns` ago. */
static void
write_line(struct wf_core *core, const char *of, const uint64_t *then,
	   const struct wf_path_counts *then_path, uint64_t ns)
{
	char paths[PATHS_BYTES];
	wf_transport_paths_format(&core->report.now_info, then_path, paths, sizeof(paths));
	const struct wf_hist_view *exchanges = &core->report.now_exchanges;
	uint64_t d[WF_CORE_COUNTER_COUNT];
	wf_stats_snapshot(&core->stats, d);
	for (unsigned i = 0; i < WF_CORE_COUNTER_COUNT; i++) {
		d[i] -= then[i];
	}
	double s = ns > 0 ? (double)ns / 1e9 : 1e-9;
	double percent = 100 / (s * 1e9);
	wf_core_log(core, WEFT_LOG_INFO,
		    "trainer %u: stats of %s%.1f s: steps %" PRIu64 " steps_per_s %.1f "
		    "received_mb_per_s %.3f sent_mb_per_s %.3f messages_received %" PRIu64
		    " messages_sent %" PRIu64 " puts_received %" PRIu64 " puts_sent %" PRIu64
		    " slices_answered %" PRIu64 " slices_discarded %" PRIu64
		    " slices_pulled %" PRIu64 " waits_slot %" PRIu64 " waits_post %" PRIu64
		    " poll_percent %.1f idle_percent %.1f away_percent %.1f "
		    "exchange_p50_us %.1f exchange_p99_us %.1f reconnects %" PRIu64 "%s",
		    core->opts.trainer_id, of, s, d[WF_CORE_STEP_BEGUN_COUNT],
		    (double)d[WF_CORE_STEP_BEGUN_COUNT] / s,
		    (double)d[WF_CORE_TRANSPORT_RECEIVED_BYTES] / 1e6 / s,
		    (double)d[WF_CORE_TRANSPORT_SENT_BYTES] / 1e6 / s,
		    d[WF_CORE_MESSAGE_RECEIVED_COUNT], d[WF_CORE_MESSAGE_SENT_COUNT],
		    d[WF_CORE_PUT_RECEIVED_COUNT], d[WF_CORE_PUT_SENT_COUNT],
		    d[WF_CORE_SLICE_ANSWERED_COUNT], d[WF_CORE_SLICE_DISCARDED_COUNT],
		    d[WF_CORE_SLICE_PULLED_COUNT], d[WF_CORE_WAIT_SLOT_COUNT],
		    d[WF_CORE_WAIT_POST_COUNT], (double)d[WF_CORE_POLL_TIME_NS] * percent,
		    (double)d[WF_CORE_IDLE_TIME_NS] * percent,
		    (double)d[WF_CORE_AWAY_TIME_NS] * percent,
		    (double)wf_hist_quantile(exchanges, 0.5) / 1e3,
		    (double)wf_hist_quantile(exchanges, 0.99) / 1e3,
		    d[WF_CORE_LANE_RECONNECTED_COUNT], paths);
}

void
wf_core_report_period(struct wf_core *core, uint64_t now)
{
	struct wf_core_report *report = &core->report;
	wf_core_report_gather(core);
	wf_hist_snapshot(&core->exchange_time, &report->now_exchanges);
	wf_hist_since(&report->now_exchanges, &report->period_exchanges);
	write_line(core, "", report->period, report->period_path, now - report->period_ns);
	write_service_line(core, "", false, now - report->period_ns);
	memcpy(report->period_path, report->now_info.path, sizeof(report->period_path));
	wf_hist_merge(&report->period_exchanges, &report->now_exchanges);
	wf_stats_snapshot(&core->stats, report->period);
	report->period_ns = now;
	report->next_ns += core->opts.stats_period_ns;
	if (report->next_ns <= now) { /* late by more than a period: those are left out */
		report->next_ns = now + core->opts.stats_period_ns;
	}
}

void
wf_core_report_end(struct wf_core *core)
{
	static const uint64_t nothing[WF_CORE_COUNTER_COUNT];
	static const struct wf_path_counts no_path[WF_PATHS_MAX];
	struct wf_core_report *report = &core->report;
	report->next_ns = WF_NEVER;
	if (core->opts.stats_period_ns == 0 || report->end_said) {
		return;
	}
	report->end_said = true;
	wf_core_report_gather(core);
	wf_hist_snapshot(&core->exchange_time, &report->now_exchanges);
	uint64_t ns = wf_now_ns(core->env) - core->started_ns;
	write_line(core, "the session, ", nothing, no_path, ns);
	write_service_line(core, "the session, ", true, ns);
}
