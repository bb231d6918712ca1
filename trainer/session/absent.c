/* SPDX-License-Identifier: Apache-2.0 */
/* absent: the lanes' reports of trainers that the job waits for. Each lane reports for itself, on a
 * path: its last report holds until the next one, or until the path is gone. Thread: the core's. */
#include "trainer/session/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool
is_known(const struct wf_core *core, const struct wf_msg_absent *msg)
{
	for (uint32_t i = 0; i < core->links.count; i++) {
		const struct wf_msg_absent *known = &core->links.all[i]->absent.msg;
		if (known->trainer == msg->trainer && strcmp(known->reason, msg->reason) == 0) {
			return true;
		}
	}
	return false;
}

/* Each lane sends the same report, so at most one line a second is logged. Other reports are part
 * of the next line about a wait; that a trainer takes no turns is reported only there, because it
 * may pass. */
enum weft_status
wf_link_absent_recv(struct wf_link *link, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(link);
	struct wf_msg_absent msg;
	enum weft_status st = wf_msg_absent_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (msg.trainer >= core->job.set.num_gradient_servers) {
		return wf_fail(WEFT_PROTOCOL, "ABSENT: trainer %" PRIu32 ", the job has %" PRIu32,
			       msg.trainer, core->job.set.num_gradient_servers);
	}
	uint64_t now = wf_now_ns(core->end.env);
	bool news = msg.reason[0] != '\0' && msg.silent_ns == 0 && !is_known(core, &msg);
	link->absent = (struct wf_link_absent){.msg = msg, .since_ns = now};
	if (news &&
	    (core->waits.absent_told_ns == 0 || now - core->waits.absent_told_ns >= WF_NS_PER_S)) {
		core->waits.absent_told_ns = now;
		wf_core_log(core, WEFT_LOG_WARN, "trainer %u: the job waits for trainer %u, %s",
			    core->opts.trainer_id, msg.trainer, msg.reason);
	}
	return WEFT_OK;
}

/* Some of the tensor has not been answered by the lane. */
static bool
owes_tensor(const struct wf_link *link, uint32_t tensor)
{
	const struct wf_placement *placement = &wf_core_of(link)->placement;
	for (uint32_t i = placement->tensor_first[tensor]; i < placement->tensor_first[tensor + 1];
	     i++) {
		const struct wf_slice *slice = &placement->slice[i];
		if (slice->lane == link->idx &&
		    ((const struct wf_dense_link *)link)->slice[slice->on_lane].state !=
			    WF_SLICE_REST) {
			return true;
		}
	}
	return false;
}

/* The longest wait of this kind is for the lane. */
static bool
is_waited_for(const struct wf_link *link, enum wf_core_wait kind)
{
	const struct wf_core *core = wf_core_of(link);
	bool dense = link->ops == &wf_dense_link_ops;
	switch (kind) {
	case WF_CORE_WAIT_START:
		return true;
	case WF_CORE_WAIT_TENSORS:
		return dense && core->waits.tensors.oldest != NULL &&
		       owes_tensor(link, wf_core_oldest_tensor(core));
	case WF_CORE_WAIT_SERVICE:
		return !dense;
	case WF_CORE_WAIT_REDUCE:
	case WF_CORE_WAIT_END:
		return link->idx == 0;
	case WF_CORE_WAIT_OTHERS:
		return dense && wf_others_asks((const struct wf_dense_link *)link);
	}
	return false;
}

static void
describe(const struct wf_link *link, char *out, size_t bytes)
{
	const struct wf_msg_absent *absent = &link->absent.msg;
	if (absent->silent_ns == 0) {
		(void)snprintf(out, bytes, "; trainer %" PRIu32 " is not in, %s", absent->trainer,
			       absent->reason);
		return;
	}
	uint64_t since_ns = wf_now_ns(link->end->env) - link->absent.since_ns;
	(void)snprintf(out, bytes, "; trainer %" PRIu32 " %s for %" PRIu64 " s", absent->trainer,
		       absent->reason, (uint64_t)((absent->silent_ns + since_ns) / WF_NS_PER_S));
}

/* A trainer that one lane refuses may not have reached the others. A lane that takes no turns
 * itself could not withdraw its report. */
void
wf_core_absent_describe(const struct wf_core *core, enum wf_core_wait kind, char *out, size_t bytes)
{
	const struct wf_link *knows = NULL;
	bool waits = false;
	out[0] = '\0';
	for (uint32_t i = 0; i < core->links.count && !waits; i++) {
		const struct wf_link *link = core->links.all[i];
		if (link->absent.msg.reason[0] == '\0' ||
		    wf_beat_is_silent(&link->beat, &core->end.beats)) {
			continue;
		}
		waits = is_waited_for(link, kind);
		knows = waits || knows == NULL ? link : knows;
	}
	if (knows != NULL) {
		describe(knows, out, bytes);
	}
}
