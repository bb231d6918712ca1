/* SPDX-License-Identifier: Apache-2.0 */
/* service_watch: a table as it is shown to whoever watches (pserver/view.h). Thread: the lane's. */
#include <stdio.h>

#include "sparse/server/service_internal.h"
#include "wire/watch_messages.h"

static void
fill_hot(const struct wf_hot *hot, uint64_t value[WF_WATCH_VALUES_MAX])
{
	struct wf_hot_key top[WF_WATCH_HOT_KEYS];
	size_t count = wf_hot_top(hot, top, WF_WATCH_HOT_KEYS);
	double zipf = wf_hot_zipf(hot);
	value[WF_TAB_ZIPF_MILLI] = zipf >= 0 ? (uint64_t)(zipf * 1000 + 0.5) : UINT64_MAX;
	value[WF_TAB_HOT_COUNT] = count;
	for (size_t i = 0; i < count; i++) {
		value[WF_TAB_HOT_KEY + i] = top[i].key;
		value[WF_TAB_HOT_TIMES + i] = top[i].count * WF_HOT_SAMPLE;
	}
}

bool
wf_sparse_watch(const struct wf_lane *lane, uint32_t idx, struct wf_watch_record *out)
{
	static const struct {
		uint8_t to, from;
	} pair[] = {
		{WF_TAB_ROWS, WF_TABLE_ROWS_LIVE},
		{WF_TAB_BYTES, WF_TABLE_MEMORY_BYTES},
		{WF_TAB_ROW_BYTES, WF_TABLE_ROW_BYTES},
		{WF_TAB_BORN, WF_TABLE_ROWS_BORN},
		{WF_TAB_REFUSED, WF_TABLE_ROWS_REFUSED},
		{WF_TAB_LOOKED_UP, WF_TABLE_KEYS_LOOKED_UP},
		{WF_TAB_MISSED, WF_TABLE_KEYS_MISSED},
		{WF_TAB_PUSHED, WF_TABLE_KEYS_PUSHED},
		{WF_TAB_UPDATED, WF_TABLE_ROWS_UPDATED},
		{WF_TAB_UNADMITTED, WF_TABLE_PUSHES_UNADMITTED},
		{WF_TAB_LOST, WF_TABLE_PUSHES_LOST},
	};
	const struct wf_sparse *sparse = lane->own;
	if (idx >= sparse->desc_count) {
		return false;
	}
	(void)snprintf(out->text[WF_TAB_NAME], sizeof(out->text[0]), "%s", sparse->desc[idx].name);
	const struct wf_table *table = sparse->served[idx].table;
	if (table == NULL) {
		return true; /* no partition falls to this lane */
	}
	const struct wf_stats *stats = wf_table_stats(table);
	for (size_t i = 0; i < WF_ARRAY_COUNT(pair); i++) {
		out->value[pair[i].to] = wf_stats_get(stats, pair[i].from);
	}
	out->value[WF_TAB_EVICTED] = wf_stats_get(stats, WF_TABLE_EVICTED_BY_AGE) +
				     wf_stats_get(stats, WF_TABLE_EVICTED_BY_SCORE) +
				     wf_stats_get(stats, WF_TABLE_EVICTED_AT_CAP);
	fill_hot(wf_table_hot(table), out->value);
	return true;
}
