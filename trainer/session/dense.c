/* SPDX-License-Identifier: Apache-2.0 */
/* dense: tensors on the link to one lane: its slices, the window that they need, the job's
 * description, and which message goes where. Thread: the core's. */
#include "trainer/session/dense.h"

#include <inttypes.h>

#include "base/assert.h"

static enum weft_status
alloc_priorities(struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	if (dense->slice_count == 0 || !wf_job_has_priorities(&core->job)) {
		return WEFT_OK;
	}
	dense->priority =
		wf_zalloc_array(core->end.env, dense->slice_count, sizeof(*dense->priority));
	if (dense->priority == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for %u priorities",
			       dense->slice_count);
	}
	for (uint32_t i = 0; i < dense->slice_count; i++) {
		dense->priority[i] = core->job.tensor[dense->slice[i].tensor].priority;
	}
	dense->queue.priority = dense->priority;
	return WEFT_OK;
}

/* The slices of a dense lane. */
static enum weft_status
open_slices(struct wf_link *link, uint32_t lane)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	struct wf_core *core = wf_core_of(&dense->link);
	const struct wf_placement *placement = &core->placement;
	dense->slice_count = placement->lane_first[lane + 1] - placement->lane_first[lane];
	dense->slice =
		wf_zalloc_array(core->end.env, dense->slice_count + 1u, sizeof(*dense->slice));
	dense->queue = (struct wf_ordinal_ring){
		.ordinal =
			wf_zalloc_array(core->end.env, dense->slice_count + 1u, sizeof(uint32_t)),
		.capacity = dense->slice_count,
	};
	dense->first_of =
		wf_zalloc_array(core->end.env, core->job.tensor_count + 1u, sizeof(uint32_t));
	if (dense->slice == NULL || dense->queue.ordinal == NULL || dense->first_of == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for %u slices", dense->slice_count);
	}
	const uint32_t *mine = &placement->lane_slice[placement->lane_first[lane]];
	for (uint32_t i = 0; i < dense->slice_count; i++) {
		const struct wf_slice *slice = &placement->slice[mine[i]];
		bool piece = core->job.tensor[slice->tensor].is_piece; /* without initial values */
		dense->slice[i] = (struct wf_dense_slice){
			.tensor = slice->tensor,
			.slot = WF_SLOT_NONE,
			.is_in_place = core->job.tensor[slice->tensor].is_in_place,
			.answered = piece ? 1 : 0 - (uint64_t)(core->start.init.sections - 1),
			.offset = core->memory.offset[slice->tensor] + slice->first * sizeof(float),
			.bytes = slice->count * sizeof(float),
		};
		if (dense->slice[i].bytes > dense->longest_bytes) {
			dense->longest_bytes = dense->slice[i].bytes;
		}
		dense->pushable_count += core->job.tensor[slice->tensor].is_static ? 0 : 1;
		dense->first_of[slice->tensor + 1]++; /* slices, for now */
	}
	for (uint32_t t = 0; t < core->job.tensor_count; t++) {
		dense->first_of[t + 1] += dense->first_of[t];
	}
	dense->link.content.unit_count = dense->slice_count;
	dense->link.content.takes_steps = dense->pushable_count > 0;
	dense->link.content.place = core->memory.place;
	dense->link.content.place_count = core->memory.place_count;
	enum weft_status st = alloc_priorities(dense);
	return st == WEFT_OK ? wf_link_features_open(dense) : st;
}

static void
close_slices(struct wf_link *link)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	struct wf_env *env = link->end->env;
	if (dense->slice != NULL) {
		wf_free(env, dense->slice, (dense->slice_count + 1u) * sizeof(*dense->slice));
	}
	if (dense->queue.ordinal != NULL) {
		wf_free(env, dense->queue.ordinal, (dense->slice_count + 1u) * sizeof(uint32_t));
	}
	wf_free(env, dense->first_of, (wf_core_of(link)->job.tensor_count + 1u) * sizeof(uint32_t));
	wf_link_features_close(dense);
	wf_free(env, dense->priority, dense->slice_count * sizeof(*dense->priority));
}

static enum weft_status
check_window(struct wf_link *link, const struct wf_msg_grant *msg)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	if (msg->held_bytes > 0) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: a lane of tensors holds %" PRIu64 " bytes",
			       msg->held_bytes);
	}
	if ((uint64_t)msg->slot_count * dense->slice_count > WF_SLOT_MAX) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: %u slots", msg->slot_count);
	}
	if (msg->bytes < dense->longest_bytes) {
		return wf_fail(WEFT_PROTOCOL,
			       "GRANT: slots of %" PRIu64 " bytes, slices have up to %" PRIu64,
			       msg->bytes, dense->longest_bytes);
	}
	return msg->announced ? wf_announce_grant(dense) : WEFT_OK;
}

/* The job continues from a step that trainer 0 gave, or that the lanes have. */
static enum weft_status
recv_init(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_msg_init msg;
	enum weft_status st = wf_msg_init_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (dense->link.state == WF_LINK_GREETING) {
		return wf_loaded_recv_init(dense, &msg);
	}
	if (core->start.init.step > 0 && msg.step != core->start.init.step) {
		return wf_fail(WEFT_PROTOCOL, "INIT: step %" PRIu64 ", others say %" PRIu64,
			       msg.step, core->start.init.step);
	}
	if (core->start.init.step > 0 || core->start.initialised) {
		return WEFT_OK; /* known: each lane sends it, and again on a new path */
	}
	core->start.init.step = msg.step;
	core->start.init.samples = msg.samples;
	wf_core_go_on_after(core, msg.step);
	return WEFT_OK;
}

static enum weft_status
recv_nack(struct wf_dense_link *dense, const struct wf_event *event)
{
	struct wf_msg_nack msg;
	enum weft_status st = wf_msg_nack_decode(event->msg.head, event->msg.body, &msg);
	if (st == WEFT_OK) {
		wf_core_fail(wf_core_of(&dense->link), (enum weft_status)msg.status,
			     "pserver %u lane %u: %s", dense->link.pserver_idx,
			     dense->link.lane_idx, msg.reason);
	}
	return st;
}

static enum weft_status
recv_message(struct wf_link *link, const struct wf_event *event)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	switch (event->msg.head->type) {
	case WF_MSG_INIT:
		return recv_init(dense, event);
	case WF_MSG_NACK:
		return recv_nack(dense, event);
	default:
		return wf_link_features_recv(dense, event);
	}
}

static bool
flush_job(struct wf_link *link)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	struct wf_core *core = wf_core_of(&dense->link);
	while (dense->job_sent < core->greeting.job_bytes) {
		uint64_t left = core->greeting.job_bytes - dense->job_sent;
		const struct wf_msg_job msg = {
			.offset = dense->job_sent,
			.total_bytes = core->greeting.job_bytes,
			.bytes = core->greeting.job + dense->job_sent,
			.byte_count = left < WF_JOB_PART_MAX ? (size_t)left : WF_JOB_PART_MAX,
		};
		wf_msg_job_encode(&msg, &core->end.msg);
		if (!wf_link_send(&dense->link, &core->end.msg)) {
			return false;
		}
		dense->job_sent += msg.byte_count;
	}
	dense->link.to_send.job = false;
	return true;
}

const struct wf_link_ops wf_dense_link_ops = {
	.service = WF_SERVICE_DENSE,
	.lane_name = "lane",
	.says_steps = true,
	.open = open_slices,
	.close = close_slices,
	.flush_job = flush_job,
	.flush = wf_flow_flush,
	.flush_owed = wf_flow_flush_owed,
	.check_window = check_window,
	.resume = wf_flow_resume,
	.answered = wf_flow_answered,
	.msg = recv_message,
	.put = wf_flow_answer,
	.done = wf_flow_done,
	.forget_path = wf_flow_forget_path,
};
