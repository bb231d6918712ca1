/* SPDX-License-Identifier: Apache-2.0 */
/* service_trace: what a sparse lane adds to its recording (pserver/trace.h) when that ends: the
 * keys that its tables are asked for most. What it records while it works: wf_sparse_note. Thread:
 * the lane's. */
#include "sparse/server/service_internal.h"

#define HOT_KEYS 4u /* of each table that are recorded */
#define TABLES_MAX 64u

static void
note_hot(const struct wf_lane *lane, struct wf_trace *ring, uint32_t idx, const struct wf_hot *hot)
{
	struct wf_hot_key top[HOT_KEYS];
	size_t count = wf_hot_top(hot, top, HOT_KEYS);
	for (size_t i = 0; i < count && hot->sample_count > 0; i++) {
		uint64_t surely = top[i].count - top[i].over;
		wf_trace_note(ring, WF_TRACE_HOT_KEY, idx,
			      (uint32_t)(surely * 1000 / hot->sample_count), lane->order.sum.step,
			      top[i].key);
	}
}

void
wf_sparse_trace(const struct wf_lane *lane, struct wf_trace *ring)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t i = 0; i < sparse->desc_count && i < TABLES_MAX; i++) {
		const struct wf_table *table = sparse->served[i].table;
		if (table != NULL) {
			note_hot(lane, ring, i, wf_table_hot(table));
		}
	}
}
