/* SPDX-License-Identifier: Apache-2.0 */
/* report: a session's counters, and its words in the lines about them (exchange/report.h). Thread:
 * the core's. */
#include <inttypes.h>

#include "base/assert.h"
#include "trainer/session/core.h"
#include "trainer/session/service.h"

#define SERVICE_BYTES 400

static const char *const counter_name[WF_CORE_COUNTER_COUNT] = {
	WF_END_COUNTER_NAMES,
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
	[WF_CORE_AWAY_TIME_NS] = "away_time_ns",
};
WF_STATIC_ASSERT(WF_CORE_COUNTER_COUNT <= WF_STATS_MAX, "the table holds them");

void
wf_core_report_init(struct wf_core *core)
{
	wf_stats_init(&core->report.stats, counter_name, WF_CORE_COUNTER_COUNT);
	wf_report_init(&core->report.lines, &core->report.stats, &core->pace.exchange_time,
		       "the session", WF_CORE_STEP_BEGUN_COUNT);
	core->turn.times.poll = WF_END_POLL_TIME_NS;
	core->turn.times.idle = WF_END_IDLE_TIME_NS;
	core->turn.times.away = WF_CORE_AWAY_TIME_NS;
}

void
wf_core_report_start(struct wf_core *core)
{
	wf_report_begin(&core->report.lines, false, core->end.started_ns,
			core->opts.stats_period_ns);
	if (core->opts.stats_period_ns > 0) {
		wf_turn_start(&core->turn, &core->report.stats);
	}
}

void
wf_core_report_measure(struct wf_core *core)
{
	if (core->end.measures && !core->turn.times.on) {
		wf_turn_start(&core->turn, &core->report.stats);
	}
}

static void
gather(void *end, const struct wf_transport_info *info)
{
	struct wf_core *core = end;
	uint64_t fast_sent = 0;
	uint64_t fast_received = 0;
	uint64_t broken = 0;
	for (unsigned i = 1; i < info->path_count; i++) { /* 0: the bootstrap */
		fast_sent += info->path[i].bytes_sent;
		fast_received += info->path[i].bytes_received;
		broken += info->path[i].conns_broken;
	}
	wf_stats_set(&core->report.stats, WF_CORE_FAST_SENT_BYTES, fast_sent);
	wf_stats_set(&core->report.stats, WF_CORE_FAST_RECEIVED_BYTES, fast_received);
	wf_stats_set(&core->report.stats, WF_CORE_PATH_BROKEN_COUNT, broken);
}

/* The counters of the service have their own line, because the other one is long enough. */
static void
write_service_line(struct wf_core *core, const struct wf_report_line *line)
{
	char words[SERVICE_BYTES] = "";
	if (core->service.ops == NULL) {
		return;
	}
	core->service.ops->report(core, line->whole, words, sizeof(words));
	wf_core_log(core, WEFT_LOG_INFO, "trainer %u: %s stats of %s%.1f s:%s",
		    core->opts.trainer_id, core->service.ops->name,
		    line->whole ? "the session, " : "", line->s, words);
}

static void
write(void *end, const struct wf_report_line *line)
{
	struct wf_core *core = end;
	const uint64_t *d = line->since;
	double percent = 100 / (line->s * 1e9);
	wf_core_log(core, WEFT_LOG_INFO,
		    "trainer %u: %s slices_answered %" PRIu64 " slices_discarded %" PRIu64
		    " slices_pulled %" PRIu64 " waits_slot %" PRIu64 " waits_post %" PRIu64
		    " poll_percent %.1f idle_percent %.1f away_percent %.1f "
		    "exchange_p50_us %.1f exchange_p99_us %.1f reconnects %" PRIu64 "%s",
		    core->opts.trainer_id, line->head, d[WF_CORE_SLICE_ANSWERED_COUNT],
		    d[WF_CORE_SLICE_DISCARDED_COUNT], d[WF_CORE_SLICE_PULLED_COUNT],
		    d[WF_CORE_WAIT_SLOT_COUNT], d[WF_END_WAIT_POST_COUNT],
		    (double)d[WF_END_POLL_TIME_NS] * percent,
		    (double)d[WF_END_IDLE_TIME_NS] * percent,
		    (double)d[WF_CORE_AWAY_TIME_NS] * percent, line->p50_us, line->p99_us,
		    d[WF_CORE_LANE_RECONNECTED_COUNT], line->paths);
	write_service_line(core, line);
}

static const struct wf_report_ops report_ops = {.gather = gather, .write = write};

void
wf_core_report_stats(struct wf_core *core)
{
	struct wf_hist_view *view = &core->report.lines.now.times; /* scratch */
	wf_report_gather(&core->report.lines, core->turn.transport, &report_ops, core);
	wf_hist_snapshot(&core->pace.exchange_time, view);
	core->report.p50_ns = wf_hist_quantile(view, 0.5);
	core->report.p99_ns = wf_hist_quantile(view, 0.99);
	atomic_store_explicit(&core->report.busy, 0, memory_order_release); /* B1 */
}

void
wf_core_report_period(struct wf_core *core, uint64_t now)
{
	wf_report_period(&core->report.lines, core->turn.transport, &report_ops, core, now);
}

void
wf_core_report_end(struct wf_core *core)
{
	wf_report_end(&core->report.lines, core->turn.transport, &report_ops, core,
		      wf_now_ns(core->end.env));
}
