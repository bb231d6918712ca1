/* SPDX-License-Identifier: Apache-2.0 */
/* fleet: see fleet.h. Thread: one. */
#include "tests/support/fleet.h"

#include <stdio.h>

#include "base/assert.h"

void
fleet_note(struct fleet_seat *seat, struct wf_env *env, enum weft_status status)
{
	struct fleet_end *end = seat->end;
	end->returned = true;
	end->status = status;
	end->when_ns = wf_now_ns(env);
	(void)snprintf(end->text, sizeof(end->text), "%s",
		       status == WEFT_OK ? "" : weft_last_error());
}

/* A process that had ended before it could be killed is not started again. */
static int
run_again(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	struct fleet *fleet = seat->fleet;
	bool trains = seat->end >= fleet->trainer && seat->end < fleet->trainer + fleet->trainers;
	if (seat->end->returned) {
		return 0;
	}
	return trains ? fleet->run_trainer(env, seat) : fleet->run_pserver(env, seat);
}

/* Process i: pservers, then trainers. */
static enum weft_status
spawn(struct fleet *fleet, struct wf_world *world, uint32_t i, uint64_t start_ns,
      struct fleet_seat *seat)
{
	bool trains = i >= fleet->pservers;
	uint32_t idx = trains ? i - fleet->pservers : i;
	char host[16];
	(void)snprintf(host, sizeof(host), "%s%u", trains ? "tr" : "ps", idx);
	*seat = (struct fleet_seat){
		.fleet = fleet,
		.idx = idx,
		.end = trains ? &fleet->trainer[idx] : &fleet->pserver[idx],
	};
	enum weft_status st = wf_world_spawn(world, host, start_ns, run_again, seat, &seat->proc);
	uint32_t killed = trains ? fleet->kill_trainer : fleet->kill_pserver;
	if (st == WEFT_OK && fleet->kill_ns > 0 && (idx == killed || killed == FLEET_ALL)) {
		wf_world_kill_at(world, seat->proc, fleet->kill_ns);
	}
	return st;
}

static void
disturb(struct fleet *fleet, struct wf_world *world, const struct fleet_seat *seat)
{
	struct wf_proc *proc[FLEET_PSERVERS_MAX + FLEET_TRAINERS_MAX];
	for (uint32_t i = 0; i < fleet->pservers + fleet->trainers; i++) {
		proc[i] = seat[i].proc;
	}
	fleet->disturb(fleet, world, proc);
}

enum weft_status
fleet_run(struct fleet *fleet)
{
	struct fleet_seat seat[FLEET_PSERVERS_MAX + FLEET_TRAINERS_MAX];
	struct fleet_seat later[FLEET_LIVES_MAX];
	struct wf_world *world = NULL;
	WF_ASSERT(fleet->pservers >= 1 && fleet->pservers <= FLEET_PSERVERS_MAX);
	WF_ASSERT(fleet->trainers >= 1 && fleet->trainers <= FLEET_TRAINERS_MAX);
	enum weft_status st = wf_world_create(&fleet->world, &world);
	if (st == WEFT_OK && fleet->enter != NULL) {
		fleet->enter(world);
	}
	for (uint32_t i = 0; i < fleet->pservers + fleet->trainers && st == WEFT_OK; i++) {
		uint64_t start_ns =
			fleet->start_ns != NULL ? fleet->start_ns(fleet, i) : i * WF_NS_PER_MS;
		st = spawn(fleet, world, i, start_ns, &seat[i]);
	}
	for (uint32_t i = 0; i < fleet->lives && st == WEFT_OK; i++) {
		const struct fleet_life *life = &fleet->life[i];
		wf_world_kill_at(world, seat[life->process].proc, life->kill_ns);
		st = spawn(fleet, world, life->process, life->again_ns, &later[i]);
		seat[life->process].proc = later[i].proc;
	}
	if (st == WEFT_OK && fleet->disturb != NULL) {
		disturb(fleet, world, seat);
	}
	if (st == WEFT_OK) {
		st = wf_world_run(world, fleet->until_ns);
		fleet->end_ns = wf_world_now_ns(world);
		fleet->timed_out = st == WEFT_TIMEOUT;
		(void)snprintf(fleet->stuck, sizeof(fleet->stuck), "%s",
			       fleet->timed_out ? weft_last_error() : "");
		wf_world_stats(world, &fleet->stats);
	}
	wf_world_destroy(world);
	return st;
}
