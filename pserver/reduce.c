/* SPDX-License-Identifier: Apache-2.0 */
/* reduce: the N-way reduce of small vectors, and the barrier, which is a reduce of no values. Lane
 * 0 of pserver 0 does it. The last result is kept for trainers that lost the answer with their
 * path. Thread: the lane's. */
#include "pserver/service.h"

#include <inttypes.h>

#include "base/assert.h"
#include "pserver/members.h"

/* If it is the end of a pass: members report that they are out of data before they ask for that,
 * and for nothing else afterwards. */
static void
note_pass(struct wf_lane *lane)
{
	uint32_t pass = UINT32_MAX;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_peer *peer = &lane->peers.all[t];
		const uint32_t own = peer->member.out ? peer->member.out_pass : 0;
		pass = peer->leaving.is_dropped || own > pass ? pass : own;
	}
	if (pass != UINT32_MAX && pass > lane->members.pass_ended) {
		lane->members.pass_ended = pass;
	}
}

/* Sums what those have sent that have done their part, in their order. A trainer that was dropped
 * may have done it before. */
static void
complete(struct wf_lane *lane)
{
	struct wf_reduction *result = &lane->reduction;
	bool is_first = true;
	if (lane->opts.members != NULL) {
		note_pass(lane);
	}
	result->id++;
	result->count = result->pending_count;
	result->step = lane->members.applied;
	result->since_ns = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		struct wf_peer *peer = &lane->peers.all[t];
		if (peer->reduce.id != result->id) {
			continue; /* it was dropped */
		}
		for (uint32_t i = 0; i < result->count; i++) {
			result->value[i] = is_first ? peer->reduce.value[i]
						    : result->value[i] + peer->reduce.value[i];
		}
		is_first = false;
		result->step = peer->reduce.step > result->step ? peer->reduce.step : result->step;
		peer->reduce.answer_due = peer->conn != NULL;
		wf_peer_due(peer);
	}
}

/* Where trainers count their own steps one can have come to the end of its pass by the time that
 * the lane takes in who joins in a step of that pass, or even knows that step: the end waits for
 * both, and then for the joiner. It also waits until all lanes have taken out who is dropped:
 * trainers begin the next pass behind the border, and a lane may still be before it. */
void
wf_reduce_try_complete(struct wf_lane *lane)
{
	bool is_whole = lane->reduction.since_ns != 0 && !lane->members.holds &&
			!lane->members.is_unsettled && !wf_members_join_is_due(lane);
	for (uint32_t t = 0; t < lane->peers.count && is_whole; t++) {
		const struct wf_peer *peer = &lane->peers.all[t];
		is_whole = peer->reduce.id > lane->reduction.id || peer->leaving.is_dropped;
	}
	if (is_whole) {
		complete(lane);
	}
}

bool
wf_reduce_fail_if_left(struct wf_lane *lane)
{
	const bool waits = wf_reduce_since(lane) != 0 && lane->peers.gone_count > 0;
	for (uint32_t t = 0; waits && t < lane->peers.count; t++) {
		const struct wf_peer *other = &lane->peers.all[t];
		if (other->state == WF_PEER_GONE && wf_reduce_lacks(lane, other)) {
			wf_lane_fail(
				lane, WEFT_LOST, lane->order.sum.step,
				"trainer %u left in good order, and a barrier, reduce, all_reduce "
				"or pass end waits for it",
				t);
			return true;
		}
	}
	return false;
}

enum weft_status
wf_reduce_on_message(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_reduce *msg)
{
	struct wf_reduction *result = &lane->reduction;
	if (lane->opts.idx != 0 || lane->admission.first.pserver_idx != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "REDUCE: asked of pserver %u lane %u; lane 0 of pserver 0 does it",
			       lane->admission.first.pserver_idx, lane->opts.idx);
	}
	const uint64_t id = peer->reduce.before + msg->request_id;
	if (id == result->id && result->id > 0) {
		peer->reduce.answer_due = true; /* requested again, after a reconnect */
		wf_peer_due(peer);
		return WEFT_OK;
	}
	/* Without its own steps the lane knows only that there are not so many. */
	uint64_t next = lane->job.has_steps ? peer->member.step_next : INT64_MAX;
	if (msg->step >= next) {
		return wf_fail(WEFT_PROTOCOL,
			       "REDUCE %" PRIu64 ": of step %" PRIu64 ", begun are %" PRIu64,
			       msg->request_id, msg->step, next - 1);
	}
	if (id != result->id + 1) {
		return wf_fail(WEFT_PROTOCOL, "REDUCE %" PRIu64 ", the next is %" PRIu64,
			       msg->request_id, result->id + 1 - peer->reduce.before);
	}
	if (result->since_ns != 0 && msg->count != result->pending_count) {
		wf_lane_fail(lane, WEFT_MISMATCH, lane->order.sum.step,
			     "trainer %u reduces %u values where others reduce %u: all trainers "
			     "must make the "
			     "same calls in the same order",
			     peer->trainer, msg->count, result->pending_count);
		return WEFT_OK;
	}
	if (result->since_ns == 0) {
		/* The last result is still needed if a trainer has not requested the next one: its
		 * values are overwritten only at completion, when all have. */
		result->since_ns = wf_now_ns(lane->env);
		result->pending_count = msg->count;
	}
	peer->reduce.id = id;
	peer->reduce.step = msg->step;
	for (uint32_t i = 0; i < msg->count; i++) {
		peer->reduce.value[i] = msg->value[i];
	}
	wf_reduce_try_complete(lane);
	(void)wf_reduce_fail_if_left(lane);
	return WEFT_OK;
}

void
wf_reduce_enter(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_reduction *result = &lane->reduction;
	bool is_asked = false;
	peer->reduce = (struct wf_reduce_part){.before = result->id, .id = result->id};
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		is_asked = is_asked || lane->peers.all[t].reduce.id > result->id;
	}
	result->since_ns = is_asked ? result->since_ns : 0;
}

bool
wf_reduce_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_reduction *result = &lane->reduction;
	struct wf_msg_reduce *msg = &result->msg;
	msg->request_id = result->id - peer->reduce.before;
	msg->step = result->step;
	msg->count = result->count;
	for (uint32_t i = 0; i < result->count; i++) {
		msg->value[i] = result->value[i];
	}
	wf_msg_reduced_encode(msg, &lane->msg);
	peer->reduce.answer_due = !wf_control_send(peer, &lane->msg);
	return !peer->reduce.answer_due;
}

void
wf_reduce_path_ends(struct wf_peer *peer)
{
	peer->reduce.answer_due = false;
}
