/* SPDX-License-Identifier: Apache-2.0 */
/* norm: clipping by the norm of the whole gradient, which takes one more round. When all pushes of
 * a step are here the lane sends the sum of their squares to the trainers, and applies the step
 * when one of them sends it the sum over all lanes. The sum is exact, so the placement of slices on
 * lanes changes no bit. What replaces an array (change.c) is no part of it. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/apply.h"
#include "pserver/codec.h"
#include "pserver/dense.h"

WF_STATIC_ASSERT(WF_NORM_WIRE_WORDS == WF_NORM_WORDS, "one number");

/* State of a lane. A step's sum is that of the slices measured until the sum over all lanes
 * replaces it. */
struct norm {
	struct wf_norm sum;
	uint64_t step;     /* that is measured */
	uint32_t measured; /* slices, in this step */
	uint64_t known;    /* last step whose sum over all lanes has come */
	uint64_t *slice;   /* [stored_count] step in which it was measured last */
};

static uint64_t
norm_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct norm *norm = NULL;
	return wf_optimizer_clips_norm(&dense->store.optimizer.set)
		       ? sizeof(*norm) + dense->store.stored_count * sizeof(*norm->slice)
		       : 0;
}

static enum weft_status
open_norm(struct wf_feature *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const uint32_t stored = dense->store.stored_count;
	struct norm *norm = wf_zalloc(lane->env, sizeof(*norm));
	self->state = norm;
	if (norm != NULL) {
		norm->slice = wf_zalloc_array(lane->env, stored + 1u, sizeof(*norm->slice));
	}
	if (norm == NULL || norm->slice == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for the norm of %u slices",
			       lane->opts.idx, stored);
	}
	return WEFT_OK;
}

static void
close_norm(struct wf_feature *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	struct norm *norm = self->state;
	if (norm != NULL) {
		wf_free(lane->env, norm->slice,
			(dense->store.stored_count + 1u) * sizeof(*norm->slice));
		wf_free(lane->env, norm, sizeof(*norm));
	}
}

static bool
takes_part(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return !peer->member.out && peer->member.step_next == lane->order.sum.step + 1;
}

/* All of this lane's share is measured, and the sum is not here. */
static bool
waits(const struct norm *norm, const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const uint64_t step = lane->order.sum.step;
	return norm->step == step && norm->known != step &&
	       norm->measured == dense->store.pushable_count;
}

static void
measure(struct norm *norm, struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	unsigned count = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_push *push = wf_push_of(lane, ordinal, t);
		if (push->data != NULL) {
			dense->gradient[count++] = push->data;
		}
	}
	if (norm->step != lane->order.sum.step) {
		norm->step = lane->order.sum.step;
		norm->sum = (struct wf_norm){0};
		norm->measured = 0;
	}
	if (wf_apply_assigned(&dense->store, &dense->store.stored[ordinal], norm->step) == NULL) {
		uint64_t entered = wf_turn_enter(&lane->turn);
		wf_norm_add(&norm->sum, wf_codec_squares(dense, count, ordinal));
		(void)wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	}
	norm->slice[ordinal] = norm->step;
	norm->measured++;
}

static bool
may_apply(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal, double *divisor)
{
	const struct wf_dense *dense = lane->own;
	struct norm *norm = self->state;
	if (norm->known == lane->order.sum.step) {
		*divisor = wf_norm_divisor(&norm->sum, *divisor,
					   wf_optimizer_norm_max(&dense->store.optimizer.set));
		return true;
	}
	if (norm->slice[ordinal] == lane->order.sum.step) {
		return false;
	}
	measure(norm, lane, ordinal);
	for (uint32_t t = 0; t < lane->peers.count && waits(norm, lane); t++) {
		struct wf_peer *peer = &lane->peers.all[t];
		if (takes_part(lane, peer) && peer->conn != NULL) {
			wf_feature_due(self, peer);
		}
	}
	return false;
}

/* Sends this lane's share to the peer. */
static bool
flush(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	const struct norm *norm = self->state;
	if (!waits(norm, lane) || !takes_part(lane, peer)) {
		return true;
	}
	struct wf_msg_norm msg = {.step = lane->order.sum.step};
	memcpy(msg.word, norm->sum.word, sizeof(msg.word));
	wf_msg_norm_encode(&msg, &lane->msg);
	return wf_control_send(peer, &lane->msg);
}

static enum weft_status
recv_norm(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	  const struct wf_head *head, const uint8_t *body)
{
	struct norm *norm = self->state;
	const uint64_t step = lane->order.sum.step;
	struct wf_msg_norm msg;
	enum weft_status st = wf_msg_norm_decode(head, body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (msg.step > step) {
		return wf_fail(WEFT_PROTOCOL,
			       "NORM: of step %" PRIu64 ", the lane is in step %" PRIu64
			       " and was not waiting for it",
			       msg.step, step);
	}
	if (msg.step < step) {
		return WEFT_OK; /* another trainer was faster */
	}
	bool known = norm->known == step;
	bool same = memcmp(msg.word, norm->sum.word, sizeof(msg.word)) == 0;
	if (!takes_part(lane, peer) || (known ? !same : !waits(norm, lane))) {
		return wf_fail(WEFT_PROTOCOL, "NORM: of step %" PRIu64 ": %s", step,
			       known ? "another sum than the one sent before"
				     : "before this lane has sent its share of it");
	}
	if (known) {
		return WEFT_OK;
	}
	memcpy(norm->sum.word, msg.word, sizeof(msg.word));
	norm->known = step;
	wf_round_try_all(lane);
	return WEFT_OK;
}

const struct wf_feature_hooks wf_norm_hooks = {
	.name = "clipping by the norm",
	.message = WF_MSG_NORM,
	.needs_step = "clip_norm",
	.bytes = norm_bytes,
	.open = open_norm,
	.close = close_norm,
	.recv = recv_norm,
	.flush = flush,
	.may_apply = may_apply,
};
