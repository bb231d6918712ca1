/* SPDX-License-Identifier: Apache-2.0 */
/* reduce: sums over all trainers, and barriers. The request goes to lane 0 of pserver 0, one at a
 * time, and again on every new path until it is answered. Thread: the core's. */
#include <inttypes.h>

#include "trainer/session/core.h"

void
wf_core_reduce(struct wf_core *core)
{
	core->reduce.id++;
	core->reduce.since_ns = wf_now_ns(core->end.env);
	core->links.all[0]->to_send.reduce = core->links.all[0]->state == WF_LINK_READY;
	wf_link_due(core->links.all[0]);
}

enum weft_status
wf_core_reduce_recv(struct wf_link *link, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(link);
	struct wf_msg_reduce *msg = &core->reduce.msg;
	enum weft_status st = wf_msg_reduced_decode(event->msg.head, event->msg.body, msg);
	if (st != WEFT_OK) {
		return st;
	}
	bool waits = core->reduce.since_ns != 0;
	if (link->idx == 0 && msg->request_id < core->reduce.id + (waits ? 0 : 1)) {
		return WEFT_OK; /* said again, after a reconnect; the next may be under way by now
				 */
	}
	if (!waits || link->idx != 0 || msg->request_id != core->reduce.id ||
	    msg->count != core->reduce.count) {
		return wf_fail(WEFT_PROTOCOL,
			       "REDUCED %" PRIu64 " with %u values was not asked for",
			       msg->request_id, msg->count);
	}
	if (msg->step >= INT64_MAX) {
		return wf_fail(WEFT_PROTOCOL, "REDUCED %" PRIu64 ": step %" PRIu64, msg->request_id,
			       msg->step);
	}
	for (uint32_t i = 0; i < msg->count; i++) {
		core->reduce.value[i] = msg->value[i];
	}
	core->reduce.step = msg->step;
	core->reduce.since_ns = 0;
	link->to_send.reduce = false;
	atomic_store_explicit(&core->reduce.busy, 0, memory_order_release); /* B1 */
	return WEFT_OK;
}

bool
wf_core_reduce_flush(struct wf_link *link)
{
	struct wf_core *core = wf_core_of(link);
	struct wf_msg_reduce *msg = &core->reduce.msg;
	msg->request_id = core->reduce.id;
	msg->step = core->step.number;
	msg->count = core->reduce.count;
	for (uint32_t i = 0; i < msg->count; i++) {
		msg->value[i] = core->reduce.value[i];
	}
	wf_msg_reduce_encode(msg, &core->end.msg);
	link->to_send.reduce = !wf_link_send(link, &core->end.msg);
	return !link->to_send.reduce;
}
