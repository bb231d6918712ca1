/* SPDX-License-Identifier: Apache-2.0 */
/* service_report: the log lines of a sparse lane. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>

#include "sparse/server/service_internal.h"

#define HOT_LINE_KEYS 3u

void
wf_sparse_gather(struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_stats *stats = &lane->stats;
	uint64_t kept = 0;
	for (uint32_t i = 0; lane->job.is_ready && i < lane->peers.count; i++) {
		kept += sparse->peer[i].push.keep_used;
	}
	wf_stats_set(stats, WF_LANE_PARK_USED_BYTES, kept);
	wf_stats_set(stats, WF_LANE_SHARD_ALLOCATED_BYTES, sparse->ceiling.used_bytes);
}

void
wf_sparse_words(const struct wf_lane *lane, const struct wf_report_line *line, char *out,
		size_t bytes)
{
	const uint64_t *d = line->since;
	(void)lane;
	(void)snprintf(out, bytes,
		       " keys_pulled %" PRIu64 " keys_pushed %" PRIu64 " rows_updated %" PRIu64
		       " pulls_held %" PRIu64 " refusals %" PRIu64 " gather_ms %.1f",
		       d[WF_LANE_KEY_PULLED_COUNT], d[WF_LANE_KEY_PUSHED_COUNT],
		       d[WF_LANE_ROW_UPDATED_COUNT], d[WF_LANE_PULL_HELD_COUNT],
		       d[WF_LANE_PULL_REFUSED_COUNT], (double)d[WF_LANE_GATHER_TIME_NS] / 1e6);
}

/* " hottest 5:12800 7:6400": keys, and about how many times each was requested. */
static void
list_hottest(const struct wf_table *table, char *out, size_t bytes)
{
	struct wf_hot_key top[HOT_LINE_KEYS];
	size_t count = wf_hot_top(wf_table_hot(table), top, HOT_LINE_KEYS);
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < count && used < bytes; i++) {
		int wrote = snprintf(out + used, bytes - used, "%s%" PRIu64 ":%" PRIu64,
				     i == 0 ? " hottest " : " ", top[i].key,
				     top[i].count * WF_HOT_SAMPLE);
		used += wrote > 0 ? (size_t)wrote : 0;
	}
}

/* Logs a table's counters since the job began, as long as the table exists. */
static void
describe_table(const struct wf_lane *lane, uint32_t idx)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_table *table = sparse->served[idx].table;
	const struct wf_stats *stats = wf_table_stats(table);
	uint64_t evicted = wf_stats_get(stats, WF_TABLE_EVICTED_BY_AGE) +
			   wf_stats_get(stats, WF_TABLE_EVICTED_BY_SCORE) +
			   wf_stats_get(stats, WF_TABLE_EVICTED_AT_CAP);
	char hottest[128];
	list_hottest(table, hottest, sizeof(hottest));
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: table %s: rows %" PRIu64 " born %" PRIu64 " refused %" PRIu64
	       " evicted %" PRIu64 " (age %" PRIu64 " score %" PRIu64 " cap %" PRIu64
	       ") bytes %" PRIu64 " row_bytes %" PRIu64 " readied_bytes %" PRIu64
	       " cleared_bytes %" PRIu64 " keys_looked_up %" PRIu64 " keys_missed %" PRIu64
	       " keys_pushed %" PRIu64 " rows_updated %" PRIu64 " pushes_unadmitted %" PRIu64
	       " pushes_lost %" PRIu64 " nonfinite %" PRIu64 " zipf %.2f%s",
	       lane->opts.idx, sparse->desc[idx].name, wf_stats_get(stats, WF_TABLE_ROWS_LIVE),
	       wf_stats_get(stats, WF_TABLE_ROWS_BORN), wf_stats_get(stats, WF_TABLE_ROWS_REFUSED),
	       evicted, wf_stats_get(stats, WF_TABLE_EVICTED_BY_AGE),
	       wf_stats_get(stats, WF_TABLE_EVICTED_BY_SCORE),
	       wf_stats_get(stats, WF_TABLE_EVICTED_AT_CAP),
	       wf_stats_get(stats, WF_TABLE_MEMORY_BYTES), wf_stats_get(stats, WF_TABLE_ROW_BYTES),
	       wf_stats_get(stats, WF_TABLE_READIED_BYTES),
	       wf_stats_get(stats, WF_TABLE_CLEARED_BYTES),
	       wf_stats_get(stats, WF_TABLE_KEYS_LOOKED_UP),
	       wf_stats_get(stats, WF_TABLE_KEYS_MISSED), wf_stats_get(stats, WF_TABLE_KEYS_PUSHED),
	       wf_stats_get(stats, WF_TABLE_ROWS_UPDATED),
	       wf_stats_get(stats, WF_TABLE_PUSHES_UNADMITTED),
	       wf_stats_get(stats, WF_TABLE_PUSHES_LOST),
	       wf_stats_get(stats, WF_TABLE_GRADS_NONFINITE), wf_hot_zipf(wf_table_hot(table)),
	       hottest);
}

void
wf_sparse_lines(struct wf_lane *lane, bool job_ends)
{
	const struct wf_sparse *sparse = lane->own;
	(void)job_ends;
	for (uint32_t i = 0; lane->job.is_ready && i < sparse->desc_count; i++) {
		if (sparse->served[i].table != NULL) {
			describe_table(lane, i);
		}
	}
}

static void
log_table(const struct wf_lane *lane, uint32_t idx)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_stats *stats = wf_table_stats(sparse->served[idx].table);
	uint64_t age = wf_stats_get(stats, WF_TABLE_EVICTED_BY_AGE);
	uint64_t score = wf_stats_get(stats, WF_TABLE_EVICTED_BY_SCORE);
	uint64_t cap = wf_stats_get(stats, WF_TABLE_EVICTED_AT_CAP);
	uint64_t refused = wf_stats_get(stats, WF_TABLE_ROWS_REFUSED);
	if (age + score + cap + refused == 0) {
		return;
	}
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: table %s: rows %" PRIu64 " bytes %" PRIu64 " born %" PRIu64
	       " evicted %" PRIu64 " (age %" PRIu64 " score %" PRIu64 " cap %" PRIu64
	       ") refused %" PRIu64 " pushes_lost %" PRIu64,
	       lane->opts.idx, sparse->desc[idx].name, wf_stats_get(stats, WF_TABLE_ROWS_LIVE),
	       wf_stats_get(stats, WF_TABLE_MEMORY_BYTES), wf_stats_get(stats, WF_TABLE_ROWS_BORN),
	       age + score + cap, age, score, cap, refused,
	       wf_stats_get(stats, WF_TABLE_PUSHES_LOST));
}

void
wf_sparse_log_gone(const struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t i = 0; sparse->served != NULL && i < sparse->desc_count; i++) {
		if (sparse->served[i].table != NULL) {
			log_table(lane, i);
		}
	}
}
