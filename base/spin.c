/* SPDX-License-Identifier: Apache-2.0 */
/* spin: see spin.h. Thread: the polling one. */
#include "base/spin.h"

#include <unistd.h>

#include "base/pin.h"

/* The margin of a limit above the usual wait, for the variation of short waits. */
#define MARGIN_NS (5 * WF_NS_PER_US)
/* One long wait among short ones counts as no more than this. */
#define COUNTED_MAX_NS (4 * WF_SPIN_MAX_NS)
#define WEIGHT 4 /* a new wait counts for 1 / WEIGHT of the average */
#define MISSES_MAX 2u

void
wf_spin_init(struct wf_spin *spin, uint64_t spin_ns)
{
	*spin = (struct wf_spin){
		.is_automatic = spin_ns == WEFT_SPIN_AUTO,
		.limit_ns = spin_ns == WEFT_SPIN_AUTO ? 0 : spin_ns,
		.usual_ns = COUNTED_MAX_NS,
		.rest = 1,
	};
}

uint64_t
wf_spin_setting(uint64_t spin_ns, unsigned pollers)
{
	if (spin_ns != WEFT_SPIN_AUTO) {
		return spin_ns;
	}
	bool have_cores = pollers <= wf_pin_cpu_count() && sysconf(_SC_NPROCESSORS_ONLN) > 1;
	return have_cores ? WEFT_SPIN_AUTO : 0;
}

static uint64_t
limit_of(const struct wf_spin *spin)
{
	if (spin->left > 0 || spin->usual_ns > WF_SPIN_MAX_NS) {
		return 0;
	}
	uint64_t limit_ns = 2 * spin->usual_ns + MARGIN_NS;
	return limit_ns < WF_SPIN_MAX_NS ? limit_ns : WF_SPIN_MAX_NS;
}

/* Records whether polling succeeded. */
static void
judge(struct wf_spin *spin)
{
	if (spin->left > 0) {
		spin->left--; /* it was not tried */
		return;
	}
	if (spin->limit_ns == 0) {
		return;
	}
	if (!spin->missed) {
		spin->misses = 0;
		spin->rest = 1;
		return;
	}
	if (++spin->misses >= MISSES_MAX) {
		spin->left = spin->rest;
		spin->rest = spin->rest < WF_SPIN_REST_MAX / 2 ? spin->rest * 2 : WF_SPIN_REST_MAX;
	}
}

void
wf_spin_end(struct wf_spin *spin, uint64_t waited_ns)
{
	if (!spin->is_automatic) {
		return;
	}
	uint64_t counted_ns = waited_ns < COUNTED_MAX_NS ? waited_ns : COUNTED_MAX_NS;
	spin->usual_ns += counted_ns / WEIGHT;
	spin->usual_ns -= spin->usual_ns / WEIGHT;
	judge(spin);
	spin->missed = false;
	spin->limit_ns = limit_of(spin);
}
