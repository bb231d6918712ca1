/* SPDX-License-Identifier: Apache-2.0 */
/* fake_world: see the header. Thread: the world's. */
#include "fake_world.h"

#include "fake.h"
#include "tests/double/sim/sim.h"

static struct wf_world *world;
static struct wf_due alarm_due;

static uint64_t
now_ns(void)
{
	return world->now_ns;
}

static void *
self(void)
{
	return world->running;
}

static void
wake(void *proc)
{
	wf_sim_wake(proc);
}

static void
task_takes(uint64_t ns)
{
	world->running->task_ns += ns;
}

static void
ring(struct wf_due *due)
{
	fake_turn();
}

static void
alarm_at(uint64_t at_ns)
{
	wf_due_add(&world->heap, &alarm_due, at_ns > world->now_ns ? at_ns : world->now_ns);
}

void
fake_world_enter(struct wf_world *in)
{
	static const struct fake_host host = {.now_ns = now_ns,
					      .self = self,
					      .wake = wake,
					      .alarm = alarm_at,
					      .task_takes = task_takes};
	world = in;
	alarm_due = (struct wf_due){.fire = ring};
	fake_live_in(&host);
}
