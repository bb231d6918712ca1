/* SPDX-License-Identifier: Apache-2.0 */
/* stats: see stats.h. Thread: as each function's header says. */
#include "base/stats.h"

#include <stddef.h>

void
wf_stats_init(struct wf_stats *stats, const char *const *name, unsigned count)
{
	WF_ASSERT(count > 0 && count <= WF_STATS_MAX);
	stats->name = name;
	stats->count = count;
	for (unsigned i = 0; i < count; i++) {
		WF_ASSERT(name[i] != NULL); /* there is a name for each value of the enum */
		wf_stats_set(stats, i, 0);
	}
}

void
wf_stats_snapshot(const struct wf_stats *stats, uint64_t *out)
{
	for (unsigned i = 0; i < stats->count; i++) {
		out[i] = wf_stats_get(stats, i);
	}
}

const char *
wf_stats_name(const struct wf_stats *stats, unsigned idx)
{
	WF_ASSERT(idx < stats->count);
	return stats->name[idx];
}
