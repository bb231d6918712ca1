/* SPDX-License-Identifier: Apache-2.0 */
/* stats: a fixed table of named counters: one thread writes, any thread reads.
 *
 * A counter is an index into the owner's enum; its name is `<noun>_<what>_<unit>`. Counters only
 * grow, except gauges (set) and peaks, which are declared as such. Each value that a reader gets
 * was true at some time, but not all at the same time: a snapshot may have read one counter before
 * an event and another one after it. Thread: only the one writer may add, set and raise; any thread
 * may get and snapshot. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/assert.h"

#define WF_STATS_MAX 48u

struct wf_stats {
	const char *const *name; /* [count], lent for ever */
	unsigned count;
	/* S1. writer: store relaxed, after its own load relaxed; readers: load relaxed. Relaxed,
	 * for no other memory is published by a counter. */
	_Atomic uint64_t value[WF_STATS_MAX];
};

/* Sets all counters to 0. `name` is a constant table. */
void wf_stats_init(struct wf_stats *stats, const char *const *name, unsigned count);
/* Copies all counters to out[count]. */
void wf_stats_snapshot(const struct wf_stats *stats, uint64_t *out);
const char *wf_stats_name(const struct wf_stats *stats, unsigned idx);

/* Slow assertions, because indices are constants of the owner's enum and every event comes here. */
static inline uint64_t
wf_stats_get(const struct wf_stats *stats, unsigned idx)
{
	WF_SLOW_ASSERT(idx < stats->count);
	return atomic_load_explicit(&stats->value[idx], memory_order_relaxed); /* S1 */
}

static inline void
wf_stats_set(struct wf_stats *stats, unsigned idx, uint64_t value)
{
	WF_SLOW_ASSERT(idx < stats->count);
	atomic_store_explicit(&stats->value[idx], value, memory_order_relaxed); /* S1 */
}

/* Not atomic_fetch_add: there is one writer, so a plain addition suffices, without a bus lock. */
static inline void
wf_stats_add(struct wf_stats *stats, unsigned idx, uint64_t amount)
{
	wf_stats_set(stats, idx, wf_stats_get(stats, idx) + amount);
}

/* Raises a peak to `value` if that is higher. */
static inline void
wf_stats_raise(struct wf_stats *stats, unsigned idx, uint64_t value)
{
	if (value > wf_stats_get(stats, idx)) {
		wf_stats_set(stats, idx, value);
	}
}
