/* SPDX-License-Identifier: Apache-2.0 */
/* norm: for a job that clips by the norm of the whole gradient. Each lane reports the norm of its
 * slices, and receives from each trainer the norm over all lanes. Thread: the core's. */
#include <inttypes.h>
#include <string.h>

#include "kernels/norm.h"
#include "trainer/session/dense.h"

WF_STATIC_ASSERT(WF_NORM_WIRE_WORDS == WF_NORM_WORDS, "one number");

/* The report of one lane, and the answer to it. */
struct told {
	struct wf_norm norm; /* of its slices, */
	uint64_t step;       /* in this step */
	struct wf_norm sum;  /* of the slices of all lanes, */
	uint64_t sum_step;   /* in this step */
};

static enum weft_status
open_told(struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	if (!wf_optimizer_clips_norm(&core->job.set.optimizer)) {
		return WEFT_OK;
	}
	dense->feature[WF_FEATURE_NORM] = wf_zalloc(core->end.env, sizeof(struct told));
	return dense->feature[WF_FEATURE_NORM] != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "session: no memory for the norm of a lane");
}

static void
close_told(struct wf_dense_link *dense)
{
	wf_free(dense->link.end->env, dense->feature[WF_FEATURE_NORM], sizeof(struct told));
	dense->feature[WF_FEATURE_NORM] = NULL;
}

/* Every lane with something to push has reported. */
static bool
is_complete(const struct wf_core *core)
{
	for (uint32_t i = 0; i < core->links.dense_count; i++) {
		const struct wf_dense_link *dense = &core->links.dense[i];
		const struct told *told = dense->feature[WF_FEATURE_NORM];
		if (dense->pushable_count > 0 && told->step != core->step.number) {
			return false;
		}
	}
	return true;
}

static void
add_up(struct wf_core *core)
{
	struct wf_norm sum = {0};
	for (uint32_t i = 0; i < core->links.dense_count; i++) {
		const struct wf_dense_link *dense = &core->links.dense[i];
		const struct told *told = dense->feature[WF_FEATURE_NORM];
		if (dense->pushable_count > 0) {
			wf_norm_merge(&sum, &told->norm);
		}
	}
	for (uint32_t i = 0; i < core->links.dense_count; i++) {
		struct wf_dense_link *dense = &core->links.dense[i];
		struct told *told = dense->feature[WF_FEATURE_NORM];
		told->sum = sum;
		told->sum_step = core->step.number;
		if (dense->pushable_count > 0 && dense->link.state == WF_LINK_READY) {
			wf_link_feature_due(dense, WF_FEATURE_NORM);
		}
	}
}

static enum weft_status
recv_norm(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct told *told = dense->feature[WF_FEATURE_NORM];
	struct wf_msg_norm msg;
	enum weft_status st = wf_msg_norm_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (told == NULL || dense->link.state != WF_LINK_READY || dense->pushable_count == 0 ||
	    msg.step > core->step.number) {
		return wf_fail(WEFT_PROTOCOL,
			       "NORM: of step %" PRIu64 ", step %" PRIu64
			       " is under way here, and it was not waited for",
			       msg.step, core->step.number);
	}
	if (msg.step < core->step.number) {
		return WEFT_OK; /* another trainer sent it to the lane, and that step is over */
	}
	if (told->sum_step == core->step.number) { /* new path: the lane has not received it */
		wf_link_feature_due(dense, WF_FEATURE_NORM);
		return WEFT_OK;
	}
	memcpy(told->norm.word, msg.word, sizeof(msg.word));
	told->step = core->step.number;
	if (is_complete(core)) {
		add_up(core);
	}
	return WEFT_OK;
}

/* Sends the sum over all lanes. */
static bool
flush(struct wf_dense_link *dense)
{
	const struct told *told = dense->feature[WF_FEATURE_NORM];
	struct wf_msg *out = &dense->link.end->msg;
	struct wf_msg_norm msg = {.step = told->sum_step};
	memcpy(msg.word, told->sum.word, sizeof(msg.word));
	wf_msg_norm_encode(&msg, out);
	return wf_link_send(&dense->link, out);
}

const struct wf_link_hooks wf_link_norm_hooks = {
	.message = WF_MSG_NORM,
	.open = open_told,
	.close = close_told,
	.recv = recv_norm,
	.flush = flush,
};
