/* SPDX-License-Identifier: Apache-2.0 */
/* step: the steps and passes of a trainer, as they are sent to the lanes. Thread: the core's. */
#include "base/assert.h"
#include "trainer/session/core.h"

void
wf_core_step(struct wf_core *core, uint64_t samples, double cost)
{
	WF_ASSERT(core->flow.busy_slices == 0 && !core->step.out);
	core->step.number = core->step.updated + 1;
	core->step.updated = core->step.number;
	core->step.samples = samples;
	core->step.cost = cost;
	wf_pace_on_step(&core->pace);
	if (__builtin_expect(core->trace.on != NULL, 0)) {
		wf_core_note_begun(core);
	}
	wf_stats_add(&core->report.stats, WF_CORE_STEP_BEGUN_COUNT, 1);
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		if (link->state == WF_LINK_READY && link->content.takes_steps &&
		    link->ops->says_steps) {
			link->to_send.step = true;
			wf_link_owes(link);
		}
	}
}

void
wf_core_out(struct wf_core *core)
{
	core->step.out = true;
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		link->to_send.out = link->state == WF_LINK_READY && link->content.takes_steps;
		wf_link_due(link);
	}
}

void
wf_core_next_pass(struct wf_core *core, uint64_t step)
{
	WF_ASSERT(core->step.out && step >= core->step.updated);
	core->step.out = false;
	core->step.pass++;
	core->step.updated = step;
	wf_pace_on_pass(&core->pace);
	for (uint32_t i = 0; i < core->links.count; i++) {
		core->links.all[i]->to_send.out = false;
	}
}

void
wf_core_go_on_after(struct wf_core *core, uint64_t step)
{
	core->step.number = step;
	core->step.updated = step;
}
