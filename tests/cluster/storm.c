/* SPDX-License-Identifier: Apache-2.0 */
/* storm: see storm.h. The limits are the defaults of a session: a lost connection comes back within
 * 3 s, a silent host is lost after 10 s. Thread: one. */
#include "tests/cluster/storm.h"

#include <inttypes.h>
#include <stdio.h>

#define SHORT_NS (150 * WF_NS_PER_MS)

struct storm {
	struct wf_rng *rng;
	uint64_t within_ns;
	const struct crew *crew;
	struct wf_world *world;
	struct wf_proc *const *proc;
};

static uint64_t
draw_begin(const struct storm *s)
{
	return 1 + wf_rng_below(s->rng, s->within_ns);
}

static uint32_t
count_procs(const struct storm *s)
{
	return s->crew->pservers + s->crew->trainers;
}

static struct wf_proc *
draw_proc(const struct storm *s)
{
	return s->proc[wf_rng_below(s->rng, count_procs(s))];
}

/* A pserver and a trainer, or sometimes two pservers; in any order. */
static void
partition(const struct storm *s, bool both, uint64_t ns)
{
	static const char *const pserver[] = {"ps0", "ps1", "ps2"};
	static const char *const trainer[] = {"tr0", "tr1", "tr2", "tr3"};
	const uint32_t first = (uint32_t)wf_rng_below(s->rng, s->crew->pservers);
	const char *one = pserver[first];
	const char *other = trainer[wf_rng_below(s->rng, s->crew->trainers)];
	if (s->crew->pservers > 1 && wf_rng_below(s->rng, 4) == 0) {
		other = pserver[(first + 1) % s->crew->pservers];
	}
	const bool back = wf_rng_below(s->rng, 2) == 0;
	const uint64_t begin_ns = draw_begin(s);
	const struct wf_world_partition opts = {
		.from = back ? other : one,
		.to = back ? one : other,
		.both = both,
		.begin_ns = begin_ns,
		.end_ns = begin_ns + ns,
	};
	wf_world_partition(s->world, &opts);
}

static void
pause_one(const struct storm *s, uint64_t ns)
{
	const uint64_t begin_ns = draw_begin(s);
	wf_world_pause(s->world, draw_proc(s), begin_ns, begin_ns + ns);
}

static void
leap(const struct storm *s, uint64_t ns)
{
	const uint64_t when_ns = draw_begin(s);
	wf_world_leap(s->world, draw_proc(s), when_ns, ns);
}

static void
begin_short(const struct storm *s)
{
	for (uint32_t i = 0; i < 3; i++) {
		partition(s, false, 1 + wf_rng_below(s->rng, SHORT_NS));
		partition(s, true, 1 + wf_rng_below(s->rng, SHORT_NS));
		pause_one(s, 1 + wf_rng_below(s->rng, SHORT_NS));
		leap(s, 1 + wf_rng_below(s->rng, SHORT_NS));
	}
}

/* Up to some `most` seconds. */
static uint64_t
draw_ns(const struct storm *s, uint64_t most)
{
	return 1 + wf_rng_below(s->rng, most * WF_NS_PER_S);
}

static void
begin_long(const struct storm *s)
{
	partition(s, false, draw_ns(s, 2));
	partition(s, false, draw_ns(s, 2));
	partition(s, true, draw_ns(s, 2));
	partition(s, true, draw_ns(s, 2));
	pause_one(s, draw_ns(s, 60));
	leap(s, draw_ns(s, 2));
}

static void
begin_harsh(const struct storm *s)
{
	partition(s, false, draw_ns(s, 40));
	partition(s, false, draw_ns(s, 40));
	partition(s, true, draw_ns(s, 40));
	pause_one(s, draw_ns(s, 200));
	leap(s, draw_ns(s, 5000));
}

/* One process, some of them at different times, or all at the same. */
static void
begin_crashes(const struct storm *s)
{
	const uint64_t kind = wf_rng_below(s->rng, 3);
	const uint64_t when_ns = draw_begin(s);
	const uint32_t procs = count_procs(s);
	if (kind == 0) {
		wf_world_kill_at(s->world, draw_proc(s), when_ns);
	}
	for (uint32_t i = 0; i < procs && kind != 0; i++) {
		if (kind == 1 || wf_rng_below(s->rng, 2) == 0) {
			wf_world_kill_at(s->world, s->proc[i], kind == 1 ? when_ns : draw_begin(s));
		}
	}
}

/* From the beginning on, where most memory is allocated, or later. */
static void
begin_hunger(const struct storm *s)
{
	static const uint32_t rates[] = {10, 30, 100, 1000};
	const uint64_t begin_ns = wf_rng_below(s->rng, 2) == 0 ? 0 : draw_begin(s);
	wf_world_starve(s->world, draw_proc(s), rates[wf_rng_below(s->rng, 4)], begin_ns,
			begin_ns + draw_begin(s));
}

void
storm_begin(struct wf_rng *rng, enum storm_force force, uint64_t within_ns, const struct crew *crew,
	    struct wf_world *world, struct wf_proc *const *proc)
{
	const struct storm storm = {rng, within_ns, crew, world, proc};
	switch (force) {
	case STORM_SHORT:
		begin_short(&storm);
		break;
	case STORM_LONG:
		begin_long(&storm);
		break;
	case STORM_HARSH:
		begin_harsh(&storm);
		break;
	case STORM_CRASHES:
		begin_crashes(&storm);
		break;
	case STORM_HUNGER:
		begin_hunger(&storm);
		break;
	case STORM_NONE:
	default:
		break;
	}
}

void
storm_count(const struct wf_world_stats *stats, uint64_t sum[STORM_CLASSES])
{
	sum[STORM_CRASH] += stats->kills;
	sum[STORM_ONE_WAY] += stats->one_way_partitions;
	sum[STORM_TWO_WAY] += stats->two_way_partitions;
	sum[STORM_PAUSE] += stats->pauses;
	sum[STORM_LEAP] += stats->leaps;
	sum[STORM_MEMORY] += stats->starved > 0 ? 1 : 0;
}

bool
storm_floors(const char *mode, const uint64_t sum[STORM_CLASSES],
	     const uint64_t least[STORM_CLASSES])
{
	static const char *const name[STORM_CLASSES] = {
		"crashes",     "one-way partitions", "two-way partitions",  "pauses",
		"clock leaps", "disk faults",        "jobs short of memory"};
	bool enough = true;
	for (uint32_t i = 0; i < STORM_CLASSES; i++) {
		if (least[i] > 0) {
			(void)printf("%s: %s: %" PRIu64 ", the floor is %" PRIu64 "%s\n", mode,
				     name[i], sum[i], least[i],
				     sum[i] < least[i] ? ": TOO FEW" : "");
			enough = enough && sum[i] >= least[i];
		}
	}
	return enough;
}
