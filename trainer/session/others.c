/* SPDX-License-Identifier: Apache-2.0 */
/* others: the lanes' statistics of each trainer of the job: which one is waited for, and whose
 * pushes come late; and of the job: how far it is. Every lane that is pushed to is asked about
 * one of these at a time, and the sums are added. Thread: the core's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/dense.h"

/* Of one lane. */
struct question {
	bool is_open; /* its answer has not come, on any path */
	bool is_due;  /* to be sent on this link */
};

static enum weft_status
open_question(struct wf_dense_link *dense)
{
	void *question = wf_zalloc(dense->link.end->env, sizeof(struct question));
	dense->feature[WF_FEATURE_OTHERS] = question;
	return question != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "session: no memory for what a lane is asked");
}

static void
close_question(struct wf_dense_link *dense)
{
	wf_free(dense->link.end->env, dense->feature[WF_FEATURE_OTHERS], sizeof(struct question));
	dense->feature[WF_FEATURE_OTHERS] = NULL;
}

bool
wf_others_asks(const struct wf_dense_link *dense)
{
	const struct question *question = dense->feature[WF_FEATURE_OTHERS];
	return question->is_open;
}

static void
ask(struct wf_dense_link *dense)
{
	struct question *question = dense->feature[WF_FEATURE_OTHERS];
	if (question->is_open) {
		question->is_due = true;
		wf_link_feature_due(dense, WF_FEATURE_OTHERS);
	}
}

void
wf_others_ask(struct wf_core *core, uint32_t trainer)
{
	struct wf_session_others *others = &core->others;
	others->sum = (struct wf_msg_report){.request_id = others->sum.request_id + 1,
					     .trainer = trainer};
	others->since_ns = wf_now_ns(core->end.env);
	others->missing = 0;
	for (uint32_t i = 0; i < core->links.dense_count; i++) {
		struct wf_dense_link *dense = &core->links.dense[i];
		struct question *question = dense->feature[WF_FEATURE_OTHERS];
		question->is_open = dense->pushable_count > 0;
		others->missing += question->is_open ? 1 : 0;
		if (dense->link.state == WF_LINK_READY) {
			ask(dense);
		}
	}
	others->asked = others->missing;
	if (others->missing == 0) {
		others->since_ns = 0;
		atomic_store_explicit(&others->busy, 0, memory_order_release); /* B1 */
	}
}

static bool
flush(struct wf_dense_link *dense)
{
	struct question *question = dense->feature[WF_FEATURE_OTHERS];
	struct wf_core *core = wf_core_of(&dense->link);
	wf_msg_report_encode(&core->others.sum, &core->end.msg);
	question->is_due = !wf_link_send(&dense->link, &core->end.msg);
	return !question->is_due;
}

static void
path_begins(struct wf_dense_link *dense)
{
	if (!wf_core_of(&dense->link)->end.leaving) {
		ask(dense);
	}
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

static enum weft_status
recv_reported(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_session_others *others = &wf_core_of(&dense->link)->others;
	struct question *question = dense->feature[WF_FEATURE_OTHERS];
	struct wf_msg_report msg;
	enum weft_status st = wf_msg_reported_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (!question->is_open || question->is_due || dense->link.state != WF_LINK_READY ||
	    msg.request_id != others->sum.request_id || msg.trainer != others->sum.trainer) {
		return wf_fail(WEFT_PROTOCOL,
			       "REPORTED %" PRIu64 " of trainer %u was not asked for",
			       msg.request_id, msg.trainer);
	}
	question->is_open = false;
	add(&others->sum, &msg);
	WF_ASSERT(others->missing > 0);
	if (--others->missing == 0) {
		others->since_ns = 0;
		atomic_store_explicit(&others->busy, 0, memory_order_release); /* B1 */
	}
	return WEFT_OK;
}

const struct wf_link_hooks wf_link_others_hooks = {
	.message = WF_MSG_REPORTED,
	.open = open_question,
	.close = close_question,
	.recv = recv_reported,
	.flush = flush,
	.path_begins = path_begins,
};
