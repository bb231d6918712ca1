/* SPDX-License-Identifier: Apache-2.0 */
/* others: what the lanes know of each trainer of the job: who is waited for, and whose pushes come
 * late. Every lane that is pushed to is asked for one trainer at a time, and their sums are added
 * up. Thread: the core's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/dense.h"

void
wf_others_ask(struct wf_core *core, uint32_t trainer)
{
	core->others = (struct wf_msg_report){.request_id = core->others.request_id + 1,
					      .trainer = trainer};
	core->others_since_ns = wf_now_ns(core->env);
	core->others_missing = 0;
	for (uint32_t i = 0; i < core->dense_count; i++) {
		struct wf_dense_link *dense = &core->dense[i];
		dense->report_wanted = dense->pushable_count > 0;
		dense->report_due = dense->report_wanted && dense->link.state == WF_LINK_READY;
		core->others_missing += dense->report_wanted ? 1 : 0;
		wf_link_due(&dense->link);
	}
	if (core->others_missing == 0) {
		core->others_since_ns = 0;
		atomic_store_explicit(&core->others_busy, 0, memory_order_release); /* B1 */
	}
}

bool
wf_others_say(struct wf_dense_link *dense)
{
	struct wf_core *core = wf_core_of(&dense->link);
	wf_msg_report_encode(&core->others, &core->end.msg);
	dense->report_due = !wf_link_send(&dense->link, &core->end.msg);
	return !dense->report_due;
}

static void
add(struct wf_msg_report *sum, const struct wf_msg_report *part)
{
	uint64_t most = sum->value[WF_REPORT_LAG_MAX];
	for (unsigned i = 0; i < WF_REPORT_VALUES; i++) {
		sum->value[i] += part->value[i];
	}
	most = part->value[WF_REPORT_LAG_MAX] > most ? part->value[WF_REPORT_LAG_MAX] : most;
	sum->value[WF_REPORT_LAG_MAX] = most;
}

enum weft_status
wf_others_hear(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_msg_report msg;
	enum weft_status st = wf_msg_reported_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (!dense->report_wanted || dense->report_due || dense->link.state != WF_LINK_READY ||
	    msg.request_id != core->others.request_id || msg.trainer != core->others.trainer) {
		return wf_fail(WEFT_PROTOCOL,
			       "REPORTED %" PRIu64 " of trainer %u was not asked for",
			       msg.request_id, msg.trainer);
	}
	dense->report_wanted = false;
	add(&core->others, &msg);
	WF_ASSERT(core->others_missing > 0);
	if (--core->others_missing == 0) {
		core->others_since_ns = 0;
		atomic_store_explicit(&core->others_busy, 0, memory_order_release); /* B1 */
	}
	return WEFT_OK;
}
