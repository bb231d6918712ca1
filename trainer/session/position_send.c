/* SPDX-License-Identifier: Apache-2.0 */
/* position_send: how far this trainer's data has come: sent to lane 0 of pserver 0 before the STEP
 * of the step after which it holds, and received from there by a trainer that begins in the middle
 * of a job. Thread: the core's. */
#include <inttypes.h>

#include "trainer/session/dense.h"

bool
wf_position_flush(struct wf_dense_link *dense)
{
	struct wf_core *core = wf_core_of(&dense->link);
	wf_msg_position_encode(&core->position.own, &core->end.msg);
	if (!wf_link_send(&dense->link, &core->end.msg)) {
		return false;
	}
	dense->position_step = core->position.own.step;
	return true;
}

static enum weft_status
recv_position(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_msg_position msg;
	enum weft_status st = wf_msg_position_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (dense->link.idx != 0 || dense->link.state != WF_LINK_GREETING) {
		return wf_fail(WEFT_PROTOCOL, "POSITION: of step %" PRIu64 " was not expected",
			       msg.step);
	}
	if (!dense->link.was_ready) { /* later the owner reads it */
		core->position.begins = msg;
		core->step.pass = msg.count > 0 ? wf_position_pass(&msg) : core->step.pass;
	}
	return WEFT_OK;
}

const struct wf_link_hooks wf_link_position_hooks = {
	.message = WF_MSG_POSITION,
	.recv = recv_position,
};
