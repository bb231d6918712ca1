/* SPDX-License-Identifier: Apache-2.0 */
/* position: how far each trainer has come in its data: its pass, and what its program gave. It
 * comes before the STEP of the step after which it holds, on the same connection, so that it is
 * here when the step is applied. Of each trainer the positions of two steps are kept, because it
 * may send that of the next step before the state after this one is kept. A job that began with a
 * state that the lane had gives each trainer its own back, until the trainer has made a step.
 *
 * Lane 0 of pserver 0 alone keeps them. The memory is allocated when the first one comes, which
 * most jobs never see. Thread: the lane's. */
#include "pserver/position.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/dense.h"

#define KEPT 2u

struct position {
	uint64_t step; /* 0: none */
	uint64_t made; /* steps of the trainer up to it */
	uint32_t count;
	uint8_t bytes[WF_POSITION_BYTES_MAX];
};

/* Of one trainer. */
struct kept {
	struct position position[KEPT];
	unsigned newest; /* of these */
};

struct positions {
	struct kept *kept; /* [peers.count]; NULL: none has come */
};

static uint64_t
positions_bytes(const struct wf_lane *lane)
{
	bool first = lane->opts.service_idx == 0 && lane->admission.first.pserver_idx == 0;
	return first ? sizeof(struct positions) + lane->peers.count * sizeof(struct kept) : 0;
}

static enum weft_status
open_positions(struct wf_feature *self, struct wf_lane *lane)
{
	self->state = wf_zalloc(lane->env, sizeof(struct positions));
	return self->state != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "lane %u: no memory for positions", lane->opts.idx);
}

static void
close_positions(struct wf_feature *self, struct wf_lane *lane)
{
	struct positions *positions = self->state;
	if (positions != NULL) {
		wf_free(lane->env, positions->kept, lane->peers.count * sizeof(*positions->kept));
		wf_free(lane->env, positions, sizeof(*positions));
	}
}

static enum weft_status
alloc_kept(struct positions *positions, const struct wf_lane *lane)
{
	if (positions->kept == NULL) {
		positions->kept =
			wf_zalloc_array(lane->env, lane->peers.count, sizeof(*positions->kept));
	}
	return positions->kept != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "lane %u: no memory for positions of %u trainers",
				 lane->opts.idx, lane->peers.count);
}

/* It becomes the newest. One of the same step is replaced, otherwise the older one is. */
static void
keep(struct kept *kept, const struct wf_msg_position *msg, uint64_t made)
{
	if (kept->position[kept->newest].step != msg->step) {
		kept->newest = (kept->newest + 1) % KEPT;
	}
	struct position *to = &kept->position[kept->newest];
	to->step = msg->step;
	to->made = made;
	to->count = msg->count;
	memcpy(to->bytes, msg->bytes, msg->count);
}

/* Is it of a step that the trainer may begin now? */
static bool
is_due(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t step)
{
	const struct wf_order *order = &lane->order;
	uint64_t last = order->own_steps ? order->highest + 1 : order->sum.step;
	return step >= peer->member.step_next && step <= last;
}

static enum weft_status
recv_position(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	      const struct wf_head *head, const uint8_t *body)
{
	const struct wf_dense *dense = lane->own;
	struct positions *positions = self->state;
	struct wf_msg_position msg;
	enum weft_status st = wf_msg_position_decode(head, body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (msg.count == 0 || dense->uninitialised > 0 || dense->store.pushable_count == 0 ||
	    !is_due(lane, peer, msg.step)) {
		return wf_fail(WEFT_PROTOCOL,
			       "POSITION: of step %" PRIu64 ", the lane is in step %" PRIu64
			       " and waits for step %" PRIu64 " of this trainer",
			       msg.step, lane->order.sum.step, peer->member.step_next);
	}
	st = alloc_kept(positions, lane);
	if (st != WEFT_OK) {
		wf_lane_fail(lane, st, lane->order.sum.step, "%.200s", weft_last_error());
		return WEFT_OK; /* the job has ended */
	}
	keep(&positions->kept[peer->trainer], &msg, peer->member.made + 1);
	return WEFT_OK;
}

static const struct position *
find(const struct positions *positions, uint32_t trainer, uint64_t step)
{
	const struct kept *kept = positions->kept == NULL ? NULL : &positions->kept[trainer];
	for (unsigned i = 0; i < KEPT && kept != NULL; i++) {
		const struct position *position = &kept->position[(kept->newest + KEPT - i) % KEPT];
		if (position->step != 0 && position->step <= step) {
			return position;
		}
	}
	return NULL;
}

/* Trainers end passes together, so one whose position is of an earlier pass has no data in this
 * one: all begin in the highest. 0: there is no position. */
static uint32_t
find_pass(const struct positions *positions, const struct wf_lane *lane)
{
	uint32_t most = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct position *position = find(positions, t, UINT64_MAX);
		uint32_t pass = position != NULL ? wf_load_u32(position->bytes) : 0;
		most = pass > most ? pass : most;
	}
	return most;
}

/* Before RESUME of each path: what the trainer begins with. */
static bool
flush(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_async_start *start = &dense->peer[peer->trainer].start;
	if ((!dense->is_loaded && !start->joins) || peer->member.begun) {
		return true;
	}
	struct wf_msg_position msg = {0};
	const uint64_t last = start->joins ? start->left : UINT64_MAX;
	const struct position *position = find(self->state, peer->trainer, last);
	uint32_t pass = find_pass(self->state, lane);
	pass = start->joins && start->pass > pass ? start->pass : pass;
	if (pass > 0) {
		const uint64_t step = start->joins ? start->step : dense->init.step;
		msg.step = position != NULL ? position->step : step;
		msg.count = position != NULL ? position->count : WF_POSITION_PASS_BYTES;
		memcpy(msg.bytes, position != NULL ? position->bytes : msg.bytes, msg.count);
		wf_store_u32(msg.bytes, pass);
	}
	wf_msg_position_encode(&msg, &lane->msg);
	return wf_control_send(peer, &lane->msg);
}

bool
wf_position_at(const struct wf_lane *lane, uint32_t trainer, uint64_t step, const uint8_t **bytes,
	       uint32_t *count)
{
	const struct wf_feature *self = wf_feature_find(lane, &wf_position_hooks);
	const struct position *position = self == NULL || trainer >= lane->peers.count
						  ? NULL
						  : find(self->state, trainer, step);
	if (position == NULL) {
		return false;
	}
	*bytes = position->bytes;
	*count = position->count;
	return true;
}

uint64_t
wf_position_sure(const struct wf_lane *lane, uint32_t trainer)
{
	const struct wf_feature *self = wf_feature_find(lane, &wf_position_hooks);
	const struct wf_member *member = &lane->peers.all[trainer].member;
	const struct position *newest =
		self == NULL ? NULL : find(self->state, trainer, UINT64_MAX);
	/* A position comes before the STEP of its step. */
	bool begins = newest != NULL && newest->step >= member->step_next;
	return member->step_next - (begins || member->out || !member->begun ? 1 : 2);
}

void
wf_position_now(const struct wf_lane *lane, uint32_t trainer, struct wf_position_now *out)
{
	const struct wf_feature *self = wf_feature_find(lane, &wf_position_hooks);
	const struct wf_member *member = &lane->peers.all[trainer].member;
	const uint64_t sure = wf_position_sure(lane, trainer);
	const struct position *position = self == NULL ? NULL : find(self->state, trainer, sure);
	*out = (struct wf_position_now){.step = sure,
					.made = member->made - (member->step_next - 1 - sure)};
	if (position != NULL) {
		*out = (struct wf_position_now){.step = position->step,
						.made = position->made,
						.bytes = position->bytes,
						.count = position->count};
	}
}

enum weft_status
wf_position_set(struct wf_lane *lane, uint32_t trainer, uint64_t step, const uint8_t *bytes,
		uint32_t count)
{
	const struct wf_feature *self = wf_feature_find(lane, &wf_position_hooks);
	struct wf_msg_position msg = {.step = step, .count = count};
	if (self == NULL || trainer >= lane->peers.count) {
		return wf_fail(WEFT_INVALID,
			       "position of trainer %u: lane %u has those of %u trainers", trainer,
			       lane->opts.idx, self == NULL ? 0 : lane->peers.count);
	}
	bool fits = step > 0 && step <= WF_INIT_STEP_MAX && count <= WF_POSITION_BYTES_MAX;
	memcpy(msg.bytes, bytes, fits ? count : 0);
	if (!fits || wf_position_pass(&msg) == 0) {
		return wf_fail(WEFT_DATA,
			       "position of trainer %u: %u bytes after step %" PRIu64
			       ", which no trainer sends",
			       trainer, count, step);
	}
	struct positions *positions = self->state;
	enum weft_status st = alloc_kept(positions, lane);
	if (st == WEFT_OK) {
		const struct wf_dense *dense = lane->own;
		keep(&positions->kept[trainer], &msg, dense->peer[trainer].start.made);
	}
	return st;
}

const struct wf_feature_hooks wf_position_hooks = {
	.name = "positions of trainers, which lane 0 of pserver 0 has",
	.message = WF_MSG_POSITION,
	.precedes_resume = true,
	.bytes = positions_bytes,
	.open = open_positions,
	.close = close_positions,
	.recv = recv_position,
	.flush = flush,
};
