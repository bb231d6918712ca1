/* SPDX-License-Identifier: Apache-2.0 */
/* restart: see restart.h. */
#include "tools/launch/restart.h"

#include "base/assert.h"

void
wf_restart_init(struct wf_restart *restart, uint64_t now_ns)
{
	*restart = (struct wf_restart){.begun_ns = now_ns, .due_ns = WF_NEVER};
}

void
wf_restart_plan(struct wf_restart *restart, uint64_t now_ns)
{
	WF_ASSERT(now_ns >= restart->begun_ns);
	const bool is_short = now_ns - restart->begun_ns < WF_RESTART_LIFE_NS;
	uint64_t delay_ns = is_short ? 2 * restart->delay_ns : 0;
	delay_ns = delay_ns > WF_RESTART_FIRST_NS ? delay_ns : WF_RESTART_FIRST_NS;
	restart->delay_ns = delay_ns < WF_RESTART_LONGEST_NS ? delay_ns : WF_RESTART_LONGEST_NS;
	restart->due_ns = now_ns + restart->delay_ns;
}

void
wf_restart_begin(struct wf_restart *restart, uint64_t now_ns)
{
	restart->begun_ns = now_ns;
	restart->due_ns = WF_NEVER;
}

void
wf_restart_cancel(struct wf_restart *restart)
{
	restart->due_ns = WF_NEVER;
}

bool
wf_restart_is_planned(const struct wf_restart *restart)
{
	return restart->due_ns != WF_NEVER;
}
