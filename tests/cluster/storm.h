/* SPDX-License-Identifier: Apache-2.0 */
/* storm: what happens to the processes of a crew, drawn from a seed: kills, partitions, pauses and
 * leaps of clocks; and the floors: how many of each class must have hit somebody. Thread: one. */
#pragma once

#include "base/rng.h"
#include "tests/support/crew.h"

enum storm_class {
	STORM_CRASH,
	STORM_ONE_WAY,
	STORM_TWO_WAY,
	STORM_PAUSE,
	STORM_LEAP,
	STORM_DISK,
	STORM_MEMORY,
	STORM_CLASSES,
};

/* What a job has to withstand. */
enum storm_force {
	STORM_NONE,
	STORM_SHORT, /* many, and shorter together than any limit: the job ends well */
	STORM_LONG,  /* one or two, shorter than the limits of a whole network: it ends well */
	STORM_HARSH, /* longer than all limits: it ends well, or with an error */
	STORM_CRASHES,
	STORM_HUNGER, /* some allocations of one process fail: it ends well, or with an error */
};

/* Draws what happens within `within_ns` of a job's beginning and gives it to the world. */
void storm_begin(struct wf_rng *rng, enum storm_force force, uint64_t within_ns,
		 const struct crew *crew, struct wf_world *world, struct wf_proc *const *proc);

/* Adds what has hit somebody. */
void storm_count(const struct wf_world_stats *stats, uint64_t sum[STORM_CLASSES]);
/* Prints a line for each class, and returns whether all are at their floors; 0: there is none. */
bool storm_floors(const char *mode, const uint64_t sum[STORM_CLASSES],
		  const uint64_t least[STORM_CLASSES]);
