/* SPDX-License-Identifier: Apache-2.0 */
/* announce: with a lane whose inbox does not hold a step, a push is announced first, and PUT when
 * the lane allows it. Initial values are not, nor is what a lane applies when it comes, nor are
 * pieces of weft_all_reduce. An announcement is forgotten with its path. Thread: the core's. */
#include "trainer/session/announce.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/dense.h"

/* It is not known yet whether the lane will request it. */
static enum weft_status
open_announced(struct wf_dense_link *dense)
{
	(void)dense;
	return WEFT_OK;
}

static void
close_announced(struct wf_dense_link *dense)
{
	struct wf_env *env = dense->link.end->env;
	struct wf_announced *announced = dense->feature[WF_FEATURE_ANNOUNCE];
	if (announced != NULL) {
		wf_free(env, announced->waits, dense->slice_count * sizeof(*announced->waits));
		wf_free(env, announced->say, dense->slice_count * sizeof(*announced->say));
		wf_free(env, announced, sizeof(*announced));
	}
	dense->feature[WF_FEATURE_ANNOUNCE] = NULL;
}

enum weft_status
wf_announce_grant(struct wf_dense_link *dense)
{
	struct wf_env *env = dense->link.end->env;
	struct wf_announced *announced = dense->feature[WF_FEATURE_ANNOUNCE];
	if (announced != NULL) {
		return WEFT_OK; /* on an earlier path */
	}
	announced = wf_zalloc(env, sizeof(*announced));
	dense->feature[WF_FEATURE_ANNOUNCE] = announced;
	if (announced != NULL) {
		announced->waits =
			wf_zalloc_array(env, dense->slice_count, sizeof(*announced->waits));
		announced->say = wf_zalloc_array(env, dense->slice_count, sizeof(*announced->say));
	}
	if (announced == NULL || announced->waits == NULL || announced->say == NULL) {
		close_announced(dense);
		return wf_fail(WEFT_NOMEM, "session: no memory to announce %u slices",
			       dense->slice_count);
	}
	return WEFT_OK;
}

void
wf_announce_push(struct wf_dense_link *dense, uint32_t ordinal)
{
	struct wf_announced *announced = dense->feature[WF_FEATURE_ANNOUNCE];
	const struct wf_dense_slice *slice = &dense->slice[ordinal];
	const struct wf_job *job = &wf_core_of(&dense->link)->job;
	const struct wf_job_terms terms = wf_job_terms_of(job, &job->tensor[slice->tensor]);
	if (wf_is_initial_push(slice->step) || wf_job_terms_lag(&terms) ||
	    job->tensor[slice->tensor].is_piece) {
		wf_ordinal_ring_push(&dense->queue, ordinal);
		return;
	}
	uint32_t at = announced->say_first + announced->say_count;
	WF_ASSERT(at < dense->slice_count);
	announced->say[at] = ordinal;
	announced->say_count++;
	wf_link_feature_due(dense, WF_FEATURE_ANNOUNCE);
}

static bool
flush(struct wf_dense_link *dense)
{
	struct wf_announced *announced = dense->feature[WF_FEATURE_ANNOUNCE];
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_msg_runs msg;
	while (announced->say_count > 0) {
		uint32_t said = 0;
		msg.step = core->step.number;
		msg.count = 0;
		while (said < announced->say_count &&
		       wf_runs_add(&msg, announced->say[announced->say_first + said])) {
			said++;
		}
		wf_msg_announce_encode(&msg, &core->end.msg);
		if (!wf_link_send(&dense->link, &core->end.msg)) {
			return false;
		}
		for (; said > 0; said--) {
			announced->waits[announced->say[announced->say_first++]] = true;
			announced->say_count--;
		}
	}
	announced->say_first = 0;
	return true;
}

/* The lane has room for these slices of all trainers. */
static enum weft_status
recv_allow(struct wf_dense_link *dense, const struct wf_event *event)
{
	const struct wf_announced *announced = dense->feature[WF_FEATURE_ANNOUNCE];
	struct wf_msg_runs msg;
	enum weft_status st = wf_msg_allow_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < msg.count; i++) {
		const struct wf_run *run = &msg.run[i];
		for (uint32_t s = run->first; s < run->first + run->count; s++) {
			if (announced == NULL || s >= dense->slice_count || !announced->waits[s] ||
			    dense->slice[s].step != msg.step) {
				return wf_fail(WEFT_PROTOCOL,
					       "ALLOW: slice %u of %u in step %" PRIu64
					       " was not announced",
					       s, dense->slice_count, msg.step);
			}
			announced->waits[s] = false;
			wf_ordinal_ring_push(&dense->queue, s);
		}
	}
	return WEFT_OK;
}

static void
path_ends(struct wf_dense_link *dense)
{
	struct wf_announced *announced = dense->feature[WF_FEATURE_ANNOUNCE];
	if (announced != NULL) {
		memset(announced->waits, 0, dense->slice_count * sizeof(*announced->waits));
		announced->say_first = 0;
		announced->say_count = 0;
	}
}

const struct wf_link_hooks wf_link_announce_hooks = {
	.message = WF_MSG_ALLOW,
	.open = open_announced,
	.close = close_announced,
	.recv = recv_allow,
	.flush = flush,
	.path_ends = path_ends,
};
