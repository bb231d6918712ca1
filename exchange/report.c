/* SPDX-License-Identifier: Apache-2.0 */
/* report: see report.h. Thread: the end's. */
#include "exchange/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"

void
wf_report_init(struct wf_report *report, struct wf_stats *stats, const struct wf_hist *times,
	       const char *whole_name, unsigned step)
{
	WF_ASSERT(stats->count >= WF_END_COUNTER_COUNT && step < stats->count);
	report->stats = stats;
	report->times = times;
	report->whole_name = whole_name;
	report->step = step;
	report->next_ns = WF_NEVER;
}

void
wf_report_gather(struct wf_report *report, struct wf_transport *transport,
		 const struct wf_report_ops *ops, void *end)
{
	struct wf_stats *stats = report->stats;
	struct wf_transport_info *info = &report->info;
	wf_transport_query(transport, info);
	wf_stats_set(stats, WF_END_TRANSPORT_RECEIVED_BYTES, info->bytes_received);
	wf_stats_set(stats, WF_END_TRANSPORT_SENT_BYTES, info->bytes_sent);
	wf_stats_set(stats, WF_END_MESSAGE_RECEIVED_COUNT, info->msgs_received);
	wf_stats_set(stats, WF_END_MESSAGE_SENT_COUNT, info->msgs_sent);
	wf_stats_set(stats, WF_END_PUT_RECEIVED_COUNT, info->puts_received);
	wf_stats_set(stats, WF_END_PUT_SENT_COUNT, info->puts_sent);
	wf_stats_set(stats, WF_END_WAIT_POST_COUNT, info->posts_again);
	ops->gather(end, info);
}

static void
mark(const struct wf_report *report, uint64_t now_ns, struct wf_report_mark *out)
{
	out->ns = now_ns;
	wf_stats_snapshot(report->stats, out->counter);
	memcpy(out->path, report->info.path, sizeof(out->path));
	if (report->every_ns > 0) {
		wf_hist_snapshot(report->times, &out->times);
	}
}

void
wf_report_begin(struct wf_report *report, bool anew, uint64_t now_ns, uint64_t every_ns)
{
	report->every_ns = every_ns;
	report->whole_said = false;
	report->whole = (struct wf_report_mark){.ns = now_ns};
	if (anew) {
		mark(report, now_ns, &report->whole);
	}
	if (report->every_ns > 0) {
		report->period = report->whole;
		report->next_ns = now_ns + report->every_ns;
	}
}

/* "stats of the job, 2.0 s: steps 3 ..." */
static void
write_head(const struct wf_report *report, struct wf_report_line *line)
{
	const uint64_t *d = line->since;
	(void)snprintf(line->head, sizeof(line->head),
		       "stats of %s%s%.1f s: steps %" PRIu64 " steps_per_s %.1f "
		       "received_mb_per_s %.3f sent_mb_per_s %.3f messages_received %" PRIu64
		       " messages_sent %" PRIu64 " puts_received %" PRIu64 " puts_sent %" PRIu64,
		       line->whole ? report->whole_name : "", line->whole ? ", " : "", line->s,
		       d[report->step], (double)d[report->step] / line->s,
		       (double)d[WF_END_TRANSPORT_RECEIVED_BYTES] / 1e6 / line->s,
		       (double)d[WF_END_TRANSPORT_SENT_BYTES] / 1e6 / line->s,
		       d[WF_END_MESSAGE_RECEIVED_COUNT], d[WF_END_MESSAGE_SENT_COUNT],
		       d[WF_END_PUT_RECEIVED_COUNT], d[WF_END_PUT_SENT_COUNT]);
}

/* Makes the line about what was counted between `then` and `report->now`; the times of `now` cover
 * the same span. */
static void
write_line(struct wf_report *report, const struct wf_report_mark *then,
	   const struct wf_report_ops *ops, void *end)
{
	struct wf_report_line *line = &report->line;
	const struct wf_report_mark *now = &report->now;
	line->whole = then == &report->whole;
	line->s = now->ns > then->ns ? (double)(now->ns - then->ns) / 1e9 : 1e-9;
	line->at = now->counter;
	for (unsigned i = 0; i < report->stats->count; i++) {
		line->since[i] = now->counter[i] - then->counter[i]; /* meaningless for a gauge */
	}
	write_head(report, line);
	wf_transport_paths_format(&report->info, then->path, line->paths, sizeof(line->paths));
	wf_hist_since(&report->now.times, &then->times);
	line->p50_us = (double)wf_hist_quantile(&now->times, 0.5) / 1e3;
	line->p99_us = (double)wf_hist_quantile(&now->times, 0.99) / 1e3;
	ops->write(end, line);
}

void
wf_report_period(struct wf_report *report, struct wf_transport *transport,
		 const struct wf_report_ops *ops, void *end, uint64_t now_ns)
{
	struct wf_report_mark *now = &report->now;
	struct wf_hist_view *times = &report->period.times;
	wf_report_gather(report, transport, ops, end);
	mark(report, now_ns, now);
	write_line(report, &report->period, ops, end);
	wf_hist_merge(times, &now->times); /* the earlier times and the new ones */
	memcpy(report->period.counter, now->counter, sizeof(now->counter));
	memcpy(report->period.path, now->path, sizeof(now->path));
	report->period.ns = now_ns;
	report->next_ns += report->every_ns;
	/* Late by more than a period: the missed periods are skipped. */
	if (report->next_ns <= now_ns) {
		report->next_ns = now_ns + report->every_ns;
	}
}

void
wf_report_end(struct wf_report *report, struct wf_transport *transport,
	      const struct wf_report_ops *ops, void *end, uint64_t now_ns)
{
	report->next_ns = WF_NEVER;
	if (report->whole_said) {
		return;
	}
	report->whole_said = true;
	/* Also if no line is written: the counters are exact then. */
	wf_report_gather(report, transport, ops, end);
	if (report->every_ns > 0) {
		mark(report, now_ns, &report->now);
		write_line(report, &report->whole, ops, end);
	}
}
