/* SPDX-License-Identifier: Apache-2.0 */
/* round: steps, gradients, the apply. A slice is done when the pushes of all trainers that take
 * part in the step are here; they are summed in trainer order whatever their order of arrival.
 * Thread: the lane's. */
#include "pserver/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/apply.h"
#include "pserver/codec.h"

uint64_t
wf_round_park(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	const struct wf_stored *stored = &dense->store.stored[ordinal];
	struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
	WF_ASSERT(push->data != NULL && push->slot != WF_SLOT_NONE && push->chunk == WF_PARK_NONE);
	uint64_t bytes = wf_slice_is_piece(dense, ordinal)
				 ? wf_pieces_push_bytes(dense, ordinal)
				 : wf_store_on_wire(&dense->store, stored->count * sizeof(float));
	push->chunk = wf_store_park(&dense->store, push->data, bytes);
	push->data = wf_store_parked(&dense->store, push->chunk);
	push->slot = WF_SLOT_NONE;
	if (wf_dense_has_hook(dense, WF_AT_MARK)) {
		wf_features_mark(lane, peer, WF_TRACE_PARKED, ordinal);
	}
	wf_stats_raise(&lane->stats, WF_LANE_PARK_PEAK_BYTES, wf_store_parked_bytes(&dense->store));
	return bytes;
}

/* The gradients of `apply`, summed. Of a tensor that is only reduced the result replaces the last
 * one, whatever it is. Returns how many sums were not finite, and may not be. */
static size_t
apply_sum(struct wf_lane *lane, uint32_t ordinal, const struct wf_apply *apply)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	if (store->stored[ordinal].tensor->is_reduced) {
		store->kernels->mean(apply->param, apply->grad, apply->grad_count, apply->divisor,
				     apply->count);
		return 0;
	}
	float *assigned =
		wf_apply_assigned(store, &store->stored[ordinal], dense->round[ordinal].next);
	if (assigned != NULL) {
		memcpy(assigned, apply->grad[0], apply->count * sizeof(float));
		return 0;
	}
	return wf_codec_apply(lane, ordinal, apply, dense->round[ordinal].next);
}

void
wf_round_step_ends(struct wf_lane *lane, uint64_t applied_ns)
{
	struct wf_dense *dense = lane->own;
	dense->applied = 0;
	lane->turn.awaits_done = dense->async.count > 0; /* of copies */
	if (wf_dense_has_hook(dense, WF_AT_STEP_DONE)) {
		wf_features_step_done(lane, applied_ns);
	}
	wf_step_is_done(lane, applied_ns);
}

/* All pushes of the slice are here and nothing reads the store's copy: sum, update, answer. */
static void
apply_round(struct wf_lane *lane, uint32_t ordinal, double divisor)
{
	struct wf_dense *dense = lane->own;
	struct wf_round *round = &dense->round[ordinal];
	WF_ASSERT(round->next == lane->order.sum.step && round->lent == 0);
	struct wf_apply apply;
	const struct wf_step_sum *sum = &lane->order.sum;
	wf_apply_fill(lane, ordinal,
		      &(struct wf_apply_scale){.samples_before = sum->samples_before,
					       .samples = sum->samples + sum->gone_samples,
					       .pass = sum->pass,
					       .updates = sum->step,
					       .divisor = divisor},
		      &apply);
	struct wf_push *pushes = wf_push_of(lane, ordinal, 0);
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_push *push = &pushes[t];
		if (push->data != NULL) {
			dense->gradient[apply.grad_count++] = push->data;
		}
	}
	WF_ASSERT(apply.grad_count == round->arrived);
	uint64_t entered = wf_turn_enter(&lane->turn);
	size_t bad = apply_sum(lane, ordinal, &apply);
	if (wf_dense_has_hook(dense, WF_AT_APPLIED)) {
		wf_features_after_apply(lane, ordinal);
	}
	uint64_t applied_ns = wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	if (bad > 0) {
		wf_apply_report_nonfinite(lane, ordinal, round->next, bad);
	}
	round->next++;
	round->arrived = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		struct wf_push *push = &pushes[t];
		if (push->data != NULL) {
			wf_push_consume(lane, &lane->peers.all[t], push);
			wf_answer_to(&lane->peers.all[t], ordinal, push);
		}
	}
	wf_stats_add(&lane->stats, WF_LANE_SLICE_APPLIED_COUNT, 1);
	if (++dense->applied == lane->order.summed_count) {
		wf_round_step_ends(lane, applied_ns);
	}
}

/* Applies the slice if all its pushes are here and its last answers are out. Inline, as part of the
 * cost of a small step. */
__attribute__((always_inline)) static inline void
try_apply(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	const struct wf_round *round = &dense->round[ordinal];
	uint32_t members = wf_order_taking_part(&lane->order);
	if (lane->state != WF_LANE_RUNNING || round->next != lane->order.sum.step ||
	    round->arrived != members || members == 0) {
		return;
	}
	double divisor = wf_apply_divisor(dense, lane->order.sum.samples);
	if (wf_dense_has_hook(dense, WF_AT_APPLY) &&
	    !wf_features_may_apply(lane, ordinal, &divisor)) {
		return;
	}
	if (round->lent == 0) {
		apply_round(lane, ordinal, divisor);
	} else {
		lane->turn.awaits_done = true; /* until the step is done */
	}
}

void
wf_round_done(struct wf_lane *lane, uint64_t cookie)
{
	const struct wf_dense *dense = lane->own;
	if ((cookie & WF_COPY_COOKIE) != 0) {
		wf_async_done(lane, cookie);
		return;
	}
	uint32_t ordinal = (uint32_t)(cookie - 1);
	WF_ASSERT(ordinal < dense->store.stored_count && dense->round[ordinal].lent > 0);
	dense->round[ordinal].lent--;
	if (wf_slice_is_piece(dense, ordinal)) {
		wf_pieces_done(lane, ordinal);
	} else if (lane->order.sum.heard > 0) {
		try_apply(lane, ordinal);
	}
}

/* Others may have made steps since its last one, but nothing of it is missing. */
static void
come_back(struct wf_lane *lane, struct wf_peer *peer, uint64_t step)
{
	const struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		if (!dense->store.stored[i].tensor->is_static) {
			struct wf_push *push = wf_push_of(lane, i, peer->trainer);
			push->next = step;
			push->mine = false;
		}
	}
}

void
wf_round_try_all(struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	uint64_t step = lane->order.sum.step;
	for (uint32_t i = 0; i < dense->store.stored_count && lane->order.sum.step == step; i++) {
		if (dense->round[i].arrived > 0) {
			try_apply(lane, i);
		}
	}
}

/* Features see each announcement that is new. */
static inline void
note_said(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_step *msg)
{
	if (wf_dense_has_hook((const struct wf_dense *)lane->own, WF_AT_STEP_SAID)) {
		wf_features_step_said(lane, peer, msg);
	}
}

/* The same of a step that a PUT has announced, for which there is no message. */
__attribute__((cold, noinline)) static void
note_implied(struct wf_lane *lane, struct wf_peer *peer)
{
	wf_features_step_said(lane, peer,
			      &(struct wf_msg_step){.step = peer->member.step_next - 1,
						    .samples = peer->member.samples,
						    .pass = peer->member.pass});
}

/* The trainer has begun a step. */
static inline void
step_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	if (lane->turn.times.on && lane->order.own_steps) {
		((struct wf_dense_peer *)peer->own)->since_ns = wf_now_ns(lane->env);
	}
}

enum weft_status
wf_round_step(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_step *msg)
{
	const struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	const struct wf_step_said said = {
		.message = "STEP",
		.step = msg->step,
		.epoch = msg->epoch,
		.samples = msg->samples,
		.pass = msg->pass,
		.out = (msg->flags & WF_STEP_OUT_OF_DATA) != 0,
	};
	if (!lane->job.is_ready || dense->uninitialised > 0 || dense->store.pushable_count == 0) {
		return wf_fail(WEFT_PROTOCOL, "STEP %" PRIu64 ": this lane waits for no step",
			       msg->step);
	}
	enum wf_step_news news;
	enum weft_status st = wf_step_record(lane, peer, &said, &news);
	own->implies_steps = st == WEFT_OK && !said.out;
	if (st != WEFT_OK || news == WF_STEP_AGAIN) {
		return st;
	}
	if (said.out) {
		note_said(lane, peer, msg);
		if (lane->order.sum.heard > 0) {
			wf_round_try_all(lane);
		}
		return WEFT_OK;
	}
	note_said(lane, peer, msg);
	step_begins(lane, peer);
	if (news == WF_STEP_BACK) {
		come_back(lane, peer, msg->step);
	}
	return WEFT_OK;
}

static bool
is_fresh(const struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		if (dense->round[i].next != 0 && !wf_slice_is_piece(dense, i)) {
			return false;
		}
	}
	return true;
}

/* Trainer 0 sends the step at which the job begins; nothing may have been sent before. It is
 * repeated on a new path. */
enum weft_status
wf_round_init(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_init *msg)
{
	struct wf_dense *dense = lane->own;
	struct wf_msg_init *init = &dense->init;
	bool again = msg->step == init->step && msg->samples == init->samples &&
		     msg->sections == init->sections;
	if (peer->trainer != 0 || !lane->job.is_ready || (!again && !is_fresh(lane))) {
		return wf_fail(WEFT_PROTOCOL, "INIT: from trainer %u, after %u of %u slices",
			       peer->trainer, dense->store.stored_count - dense->uninitialised,
			       dense->store.stored_count);
	}
	if (msg->sections != 1 && msg->sections != 1 + dense->store.state_count) {
		return wf_fail(WEFT_PROTOCOL,
			       "INIT: %u sections, the optimizer has %u state arrays",
			       msg->sections, dense->store.state_count);
	}
	if (again) {
		return WEFT_OK;
	}
	*init = *msg;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		if (!wf_slice_is_piece(dense, i)) {
			dense->round[i].next = 0 - (uint64_t)(msg->sections - 1);
			wf_push_of(lane, i, 0)->next = dense->round[i].next;
		}
	}
	wf_order_begin(&lane->order, msg->step, msg->samples);
	if (dense->async.count > 0) {
		wf_async_init(lane, msg);
	}
	return WEFT_OK;
}

/* The slice has all that it begins with: every trainer pushes the step after that. */
static void
begin_slice(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	struct wf_round *round = &dense->round[ordinal];
	round->next = dense->init.step + 1;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		wf_push_of(lane, ordinal, t)->next = round->next;
	}
	WF_ASSERT(dense->uninitialised > 0);
	if (--dense->uninitialised == 0) {
		lane->job.owed = NULL;
	}
}

enum weft_status
wf_round_begin_loaded(struct wf_lane *lane, const struct wf_msg_init *init)
{
	struct wf_dense *dense = lane->own;
	if (init->step == 0 || init->step > WF_INIT_STEP_MAX || init->samples > INT64_MAX) {
		return wf_fail(WEFT_DATA,
			       "lane %u: a state after step %" PRIu64 " over %" PRIu64
			       " samples, with which no job can begin",
			       lane->opts.idx, init->step, init->samples);
	}
	dense->init =
		(struct wf_msg_init){.step = init->step, .samples = init->samples, .sections = 1};
	dense->is_loaded = true;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		if (!wf_slice_is_piece(dense, i)) {
			wf_codec_begin(lane, i);
			begin_slice(lane, i);
		}
	}
	WF_ASSERT(dense->uninitialised == 0);
	wf_order_begin(&lane->order, init->step, init->samples);
	if (dense->async.count > 0) {
		wf_async_init(lane, &dense->init);
	}
	wf_async_go_on(lane);
	return WEFT_OK;
}

/* One section of trainer 0's initial values, with which all trainers start. */
static void
initialise(struct wf_lane *lane, uint32_t ordinal, const void *data)
{
	struct wf_dense *dense = lane->own;
	const struct wf_stored *stored = &dense->store.stored[ordinal];
	struct wf_round *round = &dense->round[ordinal];
	uint64_t section = round->next + dense->init.sections - 1;
	if (section == 0) {
		memcpy(wf_store_param(&dense->store, stored), data, stored->count * sizeof(float));
	} else if (stored->has_state) {
		memcpy(wf_store_state(&dense->store, stored, (unsigned)section - 1), data,
		       stored->count * sizeof(float));
	}
	if (section == 0) {
		wf_codec_begin(lane, ordinal);
	}
	if (round->next++ != 0) {
		return; /* more sections follow */
	}
	begin_slice(lane, ordinal);
	for (uint32_t t = 0; t < lane->peers.count && dense->uninitialised == 0; t++) {
		wf_peer_due(&lane->peers.all[t]); /* its INIT */
	}
}

/* A tag's slot is ordinal * slots of the window + slot, and their number a power of two. */
static inline uint32_t
tag_ordinal(const struct wf_peer *peer, uint32_t tag)
{
	return wf_tag_slot(tag) >> __builtin_ctz(peer->slots.count);
}

/* Checks that it is the whole slice and nothing else: what is read from here on has the length of
 * the slice. */
static enum weft_status
check_bytes(const struct wf_dense *dense, const struct wf_stored *stored, bool initial,
	    const struct wf_put *put)
{
	uint64_t due = stored->count * sizeof(float);
	due = initial ? due : wf_store_on_wire(&dense->store, due);
	if (!wf_put_is(put, due)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: %" PRIu64 " bytes of slice %u of %s, which has %" PRIu64,
			       put->bytes, stored->slice, stored->tensor->name, due);
	}
	if ((uintptr_t)put->data % sizeof(float) != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: slice %u of %s does not begin at a multiple of 4 bytes",
			       stored->slice, stored->tensor->name);
	}
	return WEFT_OK;
}

static inline enum weft_status
check_ordinal(const struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	return lane->job.is_ready && ordinal < dense->store.stored_count
		       ? WEFT_OK
		       : wf_fail(WEFT_PROTOCOL, "PUT: slice %u of %u", ordinal,
				 dense->store.stored_count);
}

/* Whether a PUT for the step announces it: the trainer has announced the one before on this path,
 * and nothing since. */
static inline bool
implies_step(const struct wf_peer *peer, uint64_t step)
{
	const struct wf_dense_peer *own = peer->own;
	return step == peer->member.step_next && own->implies_steps;
}

/* Counts a step that a PUT has announced, with the samples and in the pass of the one before, with
 * which the lane has checked everything else. */
static inline enum weft_status
begin_implied_step(struct wf_lane *lane, struct wf_peer *peer)
{
	enum weft_status st = wf_order_on_next(&lane->order, &peer->member);
	if (st != WEFT_OK) {
		return st;
	}
	wf_step_begins(lane, peer->member.step_next - 1);
	if (wf_dense_has_hook((const struct wf_dense *)lane->own, WF_AT_STEP_SAID)) {
		note_implied(lane, peer);
	}
	step_begins(lane, peer);
	return WEFT_OK;
}

/* Is this the push that the slice waits for from this trainer? */
static enum weft_status
check_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, const struct wf_put *put)
{
	uint32_t tag = put->tag;
	struct wf_dense *dense = lane->own;
	const struct wf_stored *stored = &dense->store.stored[ordinal];
	uint64_t step = wf_push_of(lane, ordinal, peer->trainer)->next;
	bool initial = wf_is_initial(step);
	bool begun = initial || (!peer->member.out && step + 1 == peer->member.step_next) ||
		     implies_step(peer, step);
	uint64_t next = dense->round[ordinal].next;
	bool own_step = wf_slice_is_async(dense, ordinal) && step != next && !wf_is_initial(next) &&
			!initial;
	bool due = (step == next || own_step) && wf_tag_step(tag) == (uint8_t)step;
	bool allowed = initial ? peer->trainer == 0 : !stored->tensor->is_static;
	if (!begun || !due || !allowed) {
		return wf_fail(
			WEFT_PROTOCOL,
			"PUT: slice %u of %s for step %u (modulo 256), waited for is step %" PRIu64,
			stored->slice, stored->tensor->name, wf_tag_step(tag), step);
	}
	enum weft_status st = wf_slots_check(&peer->slots, wf_slots_of_tag(&peer->slots, tag));
	st = st != WEFT_OK ? st : check_bytes(dense, stored, initial, put);
	if (st == WEFT_OK && !initial && wf_dense_has_hook(dense, WF_AT_PUT) &&
	    !wf_features_may_put(lane, peer, ordinal)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: slice %u of %s in step %" PRIu64 ", which was not allowed",
			       stored->slice, stored->tensor->name, step);
	}
	return st;
}

/* A gradient has arrived and stays: counts what it waits for. */
static void
count_wait(struct wf_lane *lane, const struct wf_round *round)
{
	bool complete = round->arrived == wf_order_taking_part(&lane->order);
	wf_stats_add(&lane->stats,
		     complete && round->lent > 0 ? WF_LANE_WAIT_LENT_COUNT
						 : WF_LANE_WAIT_TRAINER_COUNT,
		     1);
}

enum weft_status
wf_round_put(struct wf_lane *lane, struct wf_peer *peer, const struct wf_put *put)
{
	struct wf_dense *dense = lane->own;
	uint32_t ordinal = tag_ordinal(peer, put->tag);
	enum weft_status st = check_ordinal(lane, ordinal);
	if (st == WEFT_OK && wf_slice_is_piece(dense, ordinal)) {
		return wf_pieces_put(lane, peer, ordinal, put);
	}
	st = st == WEFT_OK ? check_put(lane, peer, ordinal, put) : st;
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
	if (implies_step(peer, push->next)) {
		st = begin_implied_step(lane, peer);
		if (st != WEFT_OK || lane->state != WF_LANE_RUNNING) {
			return st;
		}
	}
	uint32_t slot = wf_slots_of_tag(&peer->slots, put->tag);
	push->mine = true;
	if (wf_is_initial(push->next++)) {
		initialise(lane, ordinal, put->data);
		wf_transport_release(peer->conn, slot);
		wf_answer_push(peer, ordinal);
		return WEFT_OK;
	}
	if (wf_slice_is_async(dense, ordinal)) {
		wf_async_push(lane, peer, ordinal, put->data);
		wf_transport_release(peer->conn, slot);
		return WEFT_OK;
	}
	push->data = put->data;
	push->slot = slot;
	wf_slots_hold(&peer->slots, slot, ordinal);
	peer->member.summed++;
	if (wf_dense_has_hook(dense, WF_AT_STEP_HERE) &&
	    peer->member.summed == lane->order.summed_count) {
		wf_features_step_is_here(lane, peer);
	}
	dense->round[ordinal].arrived++;
	try_apply(lane, ordinal);
	if (push->data != NULL) {
		count_wait(lane, &dense->round[ordinal]);
	}
	if (wf_slots_are_full(&peer->slots)) {
		wf_path_park(lane, peer);
	}
	return WEFT_OK;
}

uint64_t
wf_round_next(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal)
{
	return wf_push_of(lane, ordinal, peer->trainer)->next;
}

enum weft_status
wf_round_has(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, uint64_t next,
	     uint64_t begun)
{
	struct wf_dense *dense = lane->own;
	const struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
	bool started = !wf_is_initial(dense->round[ordinal].next);
	uint64_t applied = started && wf_slice_is_async(dense, ordinal)
				   ? push->next
				   : dense->round[ordinal].next;
	(void)begun; /* trainers but the first are answered before they know where the job begins */
	if (!wf_is_initial(next) && (!started || next > applied)) {
		return wf_fail(WEFT_PROTOCOL,
			       "HAVE: slice %u answered in step %" PRIu64 ", applied are %" PRIu64,
			       ordinal, next - 1, applied);
	}
	bool pushed = push->mine && push->next == applied;
	if (pushed && next != applied) {
		wf_answer_push(peer, ordinal);
	}
	return WEFT_OK;
}
