/* SPDX-License-Identifier: Apache-2.0 */
/* waits: see waits.h. Thread: the owner's. */
#include "base/waits.h"

#include "base/env.h"

#define FIRST_NS (2 * WF_NS_PER_S)
#define PERIOD_MAX_NS (60 * WF_NS_PER_S)

bool
wf_wait_is_due(struct wf_wait_gate *gate, uint64_t since_ns, uint64_t now_ns)
{
	if (since_ns == 0) {
		return false;
	}
	bool another = since_ns >= gate->told_ns;
	uint64_t period_ns = another ? FIRST_NS : gate->period_ns;
	if (now_ns < (another ? since_ns : gate->told_ns) + period_ns) {
		return false;
	}
	gate->told_ns = now_ns;
	gate->period_ns = period_ns * 2 < PERIOD_MAX_NS ? period_ns * 2 : PERIOD_MAX_NS;
	return true;
}
