/* SPDX-License-Identifier: Apache-2.0 */
/* admit: which keys may have a row. Thread: the lane's.
 *
 * By count: a sketch of counters for each partition (Cormode and Muthukrishnan, "An improved data
 * stream summary: the count-min sketch and its applications", 2005), so that keys disturb only keys
 * of their own partition, and the lanes do not matter. A key is never counted too low; it may be
 * admitted too early because others share its counters. All pushes of a step are counted before
 * any is judged, so that their order does not matter. By probability: one draw of Philox from
 * (seed, table, key, step). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "sparse/table/budget.h"
#include "sparse/table/table.h"

#define WF_ADMIT_SLOTS_DEFAULT 4096u

struct wf_admit {
	struct wf_budget *budget;
	uint32_t least; /* occurrences that a key needs; 0 and 1: every key has a row */
	double probability;
	uint64_t seed;
	uint32_t table;
	uint32_t partition_first;
	uint32_t partition_count;
	uint32_t slot_count; /* of a partition; 0: nothing is counted */
	uint16_t *slot;      /* [partition_count * slot_count] */
};

/* The counters of a partition; 0: nothing is counted. */
static inline uint32_t
wf_admit_slots(const struct wf_admit_opts *opts)
{
	const uint32_t slots = opts->slot_count == 0 ? WF_ADMIT_SLOTS_DEFAULT : opts->slot_count;
	return opts->count <= 1 ? 0 : slots;
}

/* false: no memory. `opts` is checked. */
bool wf_admit_init(struct wf_admit *admit, struct wf_budget *budget,
		   const struct wf_table_opts *opts);
void wf_admit_fini(struct wf_admit *admit); /* accepts a zeroed struct */

static inline bool
wf_admit_is_open(const struct wf_admit *admit)
{
	return admit->slot_count == 0 && admit->probability >= 1.0;
}

/* The counters of a partition of this lane, [slot_count]; there are some. */
uint16_t *wf_admit_counters(const struct wf_admit *admit, uint32_t partition);
/* Counts an occurrence of a key without a row. `mixed` is wf_key_mix of it. */
void wf_admit_note(struct wf_admit *admit, uint64_t mixed);
/* Whether it may have a row from `step` on. */
bool wf_admit_allows(const struct wf_admit *admit, uint64_t mixed, uint32_t step);
