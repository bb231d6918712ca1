/* SPDX-License-Identifier: Apache-2.0 */
/* norm: of a job that clips by the norm of the whole gradient. Each lane tells what its slices come
 * to, and hears from each trainer what all lanes come to together. Thread: the core's. */
#include <inttypes.h>
#include <string.h>

#include "trainer/dense.h"

WF_STATIC_ASSERT(WF_NORM_WIRE_WORDS == WF_NORM_WORDS, "one number");

/* Every lane with something to push has told. */
static bool
is_complete(const struct wf_core *core)
{
	for (uint32_t i = 0; i < core->dense_count; i++) {
		const struct wf_dense_link *dense = &core->dense[i];
		if (dense->pushable_count > 0 && dense->norm_step != core->step) {
			return false;
		}
	}
	return true;
}

static void
add_up(struct wf_core *core)
{
	core->norm = (struct wf_norm){0};
	core->norm_step = core->step;
	for (uint32_t i = 0; i < core->dense_count; i++) {
		struct wf_dense_link *dense = &core->dense[i];
		if (dense->pushable_count > 0) {
			wf_norm_merge(&core->norm, &dense->norm);
			dense->norm_due = dense->link.state == WF_LINK_READY;
			wf_link_due(&dense->link);
		}
	}
}

enum weft_status
wf_norm_hear(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_msg_norm msg;
	enum weft_status st = wf_msg_norm_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_optimizer_clips_norm(&core->job.set.optimizer) ||
	    dense->link.state != WF_LINK_READY || dense->pushable_count == 0 ||
	    msg.step > core->step) {
		return wf_fail(WEFT_PROTOCOL,
			       "NORM: of step %" PRIu64 ", step %" PRIu64
			       " is under way here, and it was not waited for",
			       msg.step, core->step);
	}
	if (msg.step < core->step) {
		return WEFT_OK; /* another trainer told the lane, and that is over */
	}
	if (core->norm_step == core->step) { /* on a new path: it has not heard */
		dense->norm_due = true;
		wf_link_due(&dense->link);
		return WEFT_OK;
	}
	memcpy(dense->norm.word, msg.word, sizeof(msg.word));
	dense->norm_step = core->step;
	if (is_complete(core)) {
		add_up(core);
	}
	return WEFT_OK;
}

bool
wf_norm_say(struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	struct wf_msg_norm msg = {.step = core->norm_step};
	memcpy(msg.word, core->norm.word, sizeof(msg.word));
	wf_msg_norm_encode(&msg, &wf_core_of(&dense->link)->end.msg);
	dense->norm_due = !wf_link_send(&dense->link, &wf_core_of(&dense->link)->end.msg);
	return !dense->norm_due;
}
