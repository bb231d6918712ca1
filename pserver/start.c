/* SPDX-License-Identifier: Apache-2.0 */
/* start: how a job begins on a lane that has its description: with a state that the pserver has,
 * or with the values that trainer 0 sends. It may take a while until that is known. Trainers are
 * connected meanwhile, and nothing is sent on their paths. Thread: the lane's. */
#include "pserver/members.h"
#include "pserver/service.h"

#define LOOK_NS (10 * WF_NS_PER_MS) /* between two looks for the state */

static void
begin_paths(struct wf_lane *lane)
{
	lane->job.is_ready = true;
	if (lane->order.sum.step == 0) { /* else the state is that of a later step */
		lane->order.sum.step = 1;
	}
	wf_members_job_begins(lane);
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		if (peer->state == WF_PEER_UP && !peer->closing) {
			wf_path_begins(lane, peer);
		}
	}
}

void
wf_start_look(struct wf_lane *lane)
{
	const struct wf_lane_source *source = lane->opts.source;
	struct wf_msg_init init = {0};
	if (!lane->job.is_here || lane->job.is_ready) {
		return;
	}
	enum weft_status st = source == NULL ? WEFT_CLOSED : source->load(source, lane, &init);
	if (st == WEFT_AGAIN) {
		wf_turn_tick_before(&lane->turn, wf_now_ns(lane->env) + LOOK_NS);
		return;
	}
	if (st == WEFT_OK || st == WEFT_CLOSED) {
		st = lane->service->begin(lane, st == WEFT_OK ? &init : NULL);
	}
	if (st != WEFT_OK) {
		wf_lane_fail(lane, st, 0, "%.200s", weft_last_error());
		return; /* by ABORT */
	}
	begin_paths(lane);
}
