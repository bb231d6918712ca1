/* SPDX-License-Identifier: Apache-2.0 */
/* step: steps as the lane counts and measures them (exchange/order.h has their order). Thread: the
 * lane's. */
#include "pserver/service.h"

#include <inttypes.h>

void
wf_step_is_done(struct wf_lane *lane, uint64_t applied_ns)
{
	wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	if (lane->turn.times.on && lane->order.sum.since_ns != 0) { /* 0: it began before */
		wf_hist_record(&lane->report.step_time, applied_ns - lane->order.sum.since_ns);
	}
	wf_order_step_is_applied(&lane->order);
}

void
wf_step_fail_if_left(struct wf_lane *lane, uint64_t step)
{
	uint32_t left = wf_order_find_left(&lane->order);
	if (left < lane->peers.count) {
		wf_lane_fail(lane, WEFT_LOST, step,
			     "trainer %u left in good order, and step %" PRIu64
			     " waits for it: all trainers make the same number of passes",
			     left, step);
	}
}
