/* SPDX-License-Identifier: Apache-2.0 */
/* faults: partitions, pauses and leaps of a clock, each at the time that the test gave it.
 *
 * A partition does not lose bytes: TCP and reliable RDMA connections send again what was not
 * acknowledged, so a frame arrives some time after the partition has ended, unless its connection
 * has gone down by then. In a one-way partition, what the other direction carries arrives, but
 * neither end's host hears that the other is there: the acknowledgements of one and the bytes of
 * the other go the way that is blocked. Thread: the world's. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/double/sim/sim.h"

struct wf_sim_partition {
	struct wf_due due; /* looks for ends that have heard nothing for too long */
	struct wf_sim_partition *next;
	struct wf_world *world;
	struct wf_world_partition opts;
	bool hit;
};

struct wf_sim_pause {
	struct wf_sim_pause *next;
	const struct wf_proc *proc;
	uint64_t begin_ns, end_ns;
	bool hit;
};

struct wf_sim_leap {
	struct wf_due due;
	struct wf_sim_leap *next;
	struct wf_proc *proc;
	uint64_t by_ns;
};

/* A time in which there is little memory. */
struct wf_sim_hunger {
	struct wf_sim_hunger *next;
	const struct wf_proc *proc;
	uint32_t per_mille;
	uint64_t begin_ns, end_ns;
};

/* ---- partitions ---- */

static bool
leads(const struct wf_sim_partition *p, const char *from, const char *to)
{
	return (strcmp(from, p->opts.from) == 0 && strcmp(to, p->opts.to) == 0) ||
	       (p->opts.both && strcmp(from, p->opts.to) == 0 && strcmp(to, p->opts.from) == 0);
}

/* Whether it blocks one direction of the link, or the other. */
static bool
blocks(const struct wf_sim_partition *p, const struct wf_sim_link *link, unsigned to)
{
	const char *host[] = {link->caller, link->target.name};
	return leads(p, host[!to], host[to]);
}

static void
note_partition(struct wf_sim_partition *p)
{
	struct wf_world_stats *stats = &p->world->stats;
	if (!p->hit) {
		stats->one_way_partitions += p->opts.both ? 0 : 1;
		stats->two_way_partitions += p->opts.both ? 1 : 0;
	}
	p->hit = true;
}

uint64_t
wf_sim_clear_ns(struct wf_sim_link *link, unsigned to, uint64_t at_ns)
{
	struct wf_world *world = link->world;
	struct wf_sim_partition *p = world->partitions;
	while (p != NULL) {
		if (at_ns < p->opts.begin_ns || at_ns >= p->opts.end_ns || !blocks(p, link, to)) {
			p = p->next;
			continue;
		}
		note_partition(p);
		at_ns = p->opts.end_ns +
			wf_sim_draw(world, world->opts.delay_min_ns, world->opts.delay_max_ns);
		p = world->partitions; /* another may have begun */
	}
	return at_ns;
}

/* Ends whose time is up go down. Returns when the next one's is, or the end of the partition. */
static uint64_t
silence_link(const struct wf_sim_partition *p, struct wf_sim_link *link, uint64_t next_ns)
{
	struct wf_world *world = p->world;
	for (unsigned side = 0; side < 2; side++) {
		struct wf_sim_conn *conn = link->end[side];
		if (conn == NULL || conn->state == WF_SIM_DOWN ||
		    conn->state == WF_SIM_CONNECTING) { /* the attempt has a limit of its own */
			continue;
		}
		uint64_t at_ns = p->opts.begin_ns + conn->transport->opts.peer_timeout_ns;
		if (at_ns > world->now_ns) {
			next_ns = at_ns < next_ns ? at_ns : next_ns;
			continue;
		}
		world->stats.silences++;
		link->dir[side].cutoff_ns = world->now_ns;
		wf_sim_conn_down_at(conn, world->now_ns, WEFT_LOST, "the host is silent");
	}
	return next_ns;
}

static void
partition_fires(struct wf_due *due)
{
	struct wf_sim_partition *p = WF_SIM_OUTER(struct wf_sim_partition, due, due);
	struct wf_world *world = p->world;
	uint64_t next_ns = p->opts.end_ns;
	struct wf_sim_link *next = NULL;
	for (struct wf_sim_link *link = world->links; link != NULL; link = next) {
		next = link->next; /* no link ends before its DOWN is polled */
		if (blocks(p, link, 0) || blocks(p, link, 1)) {
			next_ns = silence_link(p, link, next_ns);
		}
	}
	if (next_ns < p->opts.end_ns) {
		wf_due_add(&world->heap, &p->due, next_ns);
	}
}

void
wf_world_partition(struct wf_world *world, const struct wf_world_partition *partition)
{
	WF_ASSERT(partition->begin_ns < partition->end_ns);
	struct wf_sim_partition *p = wf_sim_zalloc(sizeof(*p));
	*p = (struct wf_sim_partition){
		.due.fire = partition_fires,
		.next = world->partitions,
		.world = world,
		.opts = *partition,
	};
	world->partitions = p;
	wf_due_add(&world->heap, &p->due, partition->begin_ns);
}

/* ---- pauses ---- */

void
wf_world_pause(struct wf_world *world, struct wf_proc *proc, uint64_t begin_ns, uint64_t end_ns)
{
	WF_ASSERT(proc->world == world && begin_ns < end_ns);
	struct wf_sim_pause *pause = wf_sim_zalloc(sizeof(*pause));
	*pause = (struct wf_sim_pause){
		.next = world->pauses, .proc = proc, .begin_ns = begin_ns, .end_ns = end_ns};
	world->pauses = pause;
}

uint64_t
wf_sim_paused_until(struct wf_proc *proc)
{
	struct wf_world *world = proc->world;
	uint64_t until_ns = 0;
	for (struct wf_sim_pause *pause = world->pauses; pause != NULL; pause = pause->next) {
		if (pause->proc == proc && pause->begin_ns <= world->now_ns &&
		    world->now_ns < pause->end_ns) {
			world->stats.pauses += pause->hit ? 0 : 1;
			pause->hit = true;
			until_ns = pause->end_ns > until_ns ? pause->end_ns : until_ns;
		}
	}
	return until_ns;
}

/* ---- leaps ---- */

static void
leap_fires(struct wf_due *due)
{
	struct wf_sim_leap *leap = WF_SIM_OUTER(struct wf_sim_leap, due, due);
	struct wf_proc *proc = leap->proc;
	bool runs = proc->state == WF_PROC_WAITING && proc->begun;
	proc->world->stats.leaps += runs ? 1 : 0;
	proc->ahead_ns += leap->by_ns;
	wf_sim_hasten(proc, leap->by_ns);
}

void
wf_world_leap(struct wf_world *world, struct wf_proc *proc, uint64_t when_ns, uint64_t by_ns)
{
	WF_ASSERT(proc->world == world);
	struct wf_sim_leap *leap = wf_sim_zalloc(sizeof(*leap));
	*leap = (struct wf_sim_leap){
		.due.fire = leap_fires, .next = world->leaps, .proc = proc, .by_ns = by_ns};
	world->leaps = leap;
	wf_due_add(&world->heap, &leap->due, when_ns);
}

/* ---- memory ---- */

void
wf_world_starve(struct wf_world *world, struct wf_proc *proc, uint32_t per_mille, uint64_t begin_ns,
		uint64_t end_ns)
{
	WF_ASSERT(proc->world == world && begin_ns < end_ns && per_mille <= 1000);
	struct wf_sim_hunger *hunger = wf_sim_zalloc(sizeof(*hunger));
	*hunger = (struct wf_sim_hunger){.next = world->hungers,
					 .proc = proc,
					 .per_mille = per_mille,
					 .begin_ns = begin_ns,
					 .end_ns = end_ns};
	world->hungers = hunger;
}

bool
wf_sim_is_starved(struct wf_proc *proc)
{
	struct wf_world *world = proc->world;
	for (const struct wf_sim_hunger *h = world->hungers; h != NULL; h = h->next) {
		if (h->proc == proc && h->begin_ns <= world->now_ns && world->now_ns < h->end_ns &&
		    wf_sim_chance(world, h->per_mille, 1000)) {
			world->stats.starved++;
			return true;
		}
	}
	return false;
}

void
wf_sim_faults_free(struct wf_world *world)
{
	while (world->hungers != NULL) {
		struct wf_sim_hunger *hunger = world->hungers;
		world->hungers = hunger->next;
		free(hunger);
	}
	while (world->partitions != NULL) {
		struct wf_sim_partition *p = world->partitions;
		world->partitions = p->next;
		wf_due_cancel(&world->heap, &p->due);
		free(p);
	}
	while (world->pauses != NULL) {
		struct wf_sim_pause *pause = world->pauses;
		world->pauses = pause->next;
		free(pause);
	}
	while (world->leaps != NULL) {
		struct wf_sim_leap *leap = world->leaps;
		world->leaps = leap->next;
		wf_due_cancel(&world->heap, &leap->due);
		free(leap);
	}
}
