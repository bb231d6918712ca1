/* SPDX-License-Identifier: Apache-2.0 */
/* norm: clipping by the norm of the whole gradient, which takes one round more: when all pushes of
 * a step are here the lane tells the trainers the sum of their squares, and applies the step when
 * one of them tells it the sum over all lanes. The sum is exact, so how slices are spread over
 * lanes changes no bit. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/dense.h"

WF_STATIC_ASSERT(WF_NORM_WIRE_WORDS == WF_NORM_WORDS, "one number");

static bool
takes_part(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return !peer->member.out && peer->member.step_next == lane->order.sum.step + 1;
}

/* All of this lane's share is measured, and the sum is not here. */
static bool
waits(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	return wf_clips_norm(dense) && dense->measured == dense->store.pushable_count &&
	       dense->norm_step != lane->order.sum.step;
}

bool
wf_norm_is_due(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return waits(lane) && takes_part(lane, peer);
}

static void
measure(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	unsigned count = 0;
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		const struct wf_push *push = wf_push_of(lane, ordinal, t);
		if (push->data != NULL) {
			dense->gradient[count++] = push->data;
		}
	}
	uint64_t entered = wf_turn_enter(&lane->turn);
	wf_norm_add(&dense->norm, wf_dense_squares(dense, count, ordinal));
	(void)wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	dense->round[ordinal].measured = lane->order.sum.step;
	dense->measured++;
	for (uint32_t t = 0; t < lane->peer_count && waits(lane); t++) {
		struct wf_dense_peer *own = lane->peer[t].own;
		own->norm_due = takes_part(lane, &lane->peer[t]) && lane->peer[t].conn != NULL;
		wf_peer_due(&lane->peer[t]);
	}
}

bool
wf_norm_allows(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	if (!wf_clips_norm(dense) || dense->norm_step == lane->order.sum.step) {
		return true;
	}
	if (dense->round[ordinal].measured != lane->order.sum.step) {
		measure(lane, ordinal);
	}
	return false;
}

void
wf_norm_encode(const struct wf_lane *lane, struct wf_msg *out)
{
	const struct wf_dense *dense = lane->own;
	struct wf_msg_norm msg = {.step = lane->order.sum.step};
	memcpy(msg.word, dense->norm.word, sizeof(msg.word));
	wf_msg_norm_encode(&msg, out);
}

enum weft_status
wf_norm_take(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_norm *msg)
{
	struct wf_dense *dense = lane->own;
	const uint64_t step = lane->order.sum.step;
	if (!lane->ready || !wf_clips_norm(dense) || msg->step > step) {
		return wf_fail(WEFT_PROTOCOL,
			       "NORM: of step %" PRIu64 ", the lane is in step %" PRIu64
			       " and was not waiting for it",
			       msg->step, step);
	}
	if (msg->step < step) {
		return WEFT_OK; /* another trainer was faster */
	}
	bool known = dense->norm_step == step;
	bool same = memcmp(msg->word, dense->norm.word, sizeof(msg->word)) == 0;
	if (!takes_part(lane, peer) || (known ? !same : !waits(lane))) {
		return wf_fail(WEFT_PROTOCOL, "NORM: of step %" PRIu64 ": %s", step,
			       known ? "another sum than the one told before"
				     : "before this lane's share of it was told");
	}
	if (known) {
		return WEFT_OK;
	}
	memcpy(dense->norm.word, msg->word, sizeof(msg->word));
	dense->norm_step = step;
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		((struct wf_dense_peer *)lane->peer[t].own)->norm_due = false;
	}
	wf_round_try_all(lane);
	return WEFT_OK;
}

float
wf_norm_divisor_of(const struct wf_dense *dense, float divisor)
{
	return wf_clips_norm(dense) ? wf_norm_divisor(&dense->norm, divisor,
						      dense->store.optimizer.set.clip_norm)
				    : divisor;
}

void
wf_norm_step_done(struct wf_dense *dense)
{
	dense->norm = (struct wf_norm){0};
	dense->measured = 0;
}
