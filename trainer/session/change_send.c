/* SPDX-License-Identifier: Apache-2.0 */
/* change_send: what the owner has changed of optimizers, to each lane, before the STEP of the step
 * from which it is in force. Thread: the core's. */
#include <string.h>

#include "trainer/session/dense.h"

bool
wf_change_flush(struct wf_dense_link *dense)
{
	struct wf_core *core = wf_core_of(&dense->link);
	const struct wf_session_changes *changes = &core->changes;
	if (dense->changes_step != changes->step) {
		dense->changes_step = changes->step;
		dense->changes_sent = 0;
	}
	while (dense->changes_sent < changes->count) {
		struct wf_msg_changes msg = {.step = changes->step};
		uint32_t left = changes->count - dense->changes_sent;
		msg.count = left < WF_CHANGES_PER_MSG ? left : WF_CHANGES_PER_MSG;
		memcpy(msg.change, &changes->change[dense->changes_sent],
		       msg.count * sizeof(*msg.change));
		wf_msg_change_encode(&msg, &core->end.msg);
		if (!wf_link_send(&dense->link, &core->end.msg)) {
			return false;
		}
		dense->changes_sent += msg.count;
	}
	return true;
}
