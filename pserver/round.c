/* SPDX-License-Identifier: Apache-2.0 */
/* round: steps, gradients, the apply. A slice is done when the pushes of all trainers that take
 * part in the step are here; they are summed in trainer order whatever their order of arrival.
 * Thread: the lane's. */
#include "pserver/lane_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static bool
is_out(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return peer->out && peer->out_pass == lane->sum.pass;
}

/* The step cannot end without something that `peer` has not said or pushed. */
static bool
is_missing(const struct wf_lane *lane, const struct wf_peer *peer)
{
	const struct wf_step_sum *sum = &lane->sum;
	if (is_out(lane, peer)) {
		return false;
	}
	return peer->step_next <= sum->step || peer->pushed < lane->store.pushable_count;
}

/* Give the memory of a consumed push back: its slot to the transport, or its chunk to the park. */
static void
consume(struct wf_lane *lane, struct wf_peer *peer, struct wf_push *push)
{
	if (push->buffer != WF_BUFFER_FREE) {
		WF_ASSERT(peer->conn != NULL && peer->held > 0);
		wf_transport_release(peer->conn, push->buffer);
		peer->buffer[push->buffer] = WF_BUFFER_FREE;
		peer->held--;
		push->buffer = WF_BUFFER_FREE;
	}
	if (push->chunk != WF_PARK_NONE) {
		wf_store_unpark(&lane->store, push->chunk);
		push->chunk = WF_PARK_NONE;
	}
	push->data = NULL;
}

/* Copy a waiting push aside, so that its slot is free again. */
static void
park(struct wf_lane *lane, struct wf_peer *peer, uint32_t buffer)
{
	uint32_t ordinal = peer->buffer[buffer];
	struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
	WF_ASSERT(push->buffer == buffer && push->data != NULL && push->chunk == WF_PARK_NONE);
	uint64_t entered = wf_turn_enter(&lane->turn);
	push->chunk = wf_store_park(&lane->store, &lane->store.stored[ordinal], push->data);
	(void)wf_turn_leave(&lane->turn, WF_LANE_PARK_TIME_NS, entered);
	push->data = wf_store_parked(&lane->store, push->chunk);
	push->buffer = WF_BUFFER_FREE;
	peer->buffer[buffer] = WF_BUFFER_FREE;
	peer->held--;
	wf_stats_add(&lane->stats, WF_LANE_SLICE_PARKED_COUNT, 1);
	wf_stats_add(&lane->stats, WF_LANE_SLICE_PARKED_BYTES,
		     lane->store.stored[ordinal].count * sizeof(float));
	wf_stats_raise(&lane->stats, WF_LANE_PARK_PEAK_BYTES, wf_store_parked_bytes(&lane->store));
}

void
wf_round_park_window(struct wf_lane *lane, struct wf_peer *peer)
{
	for (uint32_t i = 0; i < lane->opts.slot_count && peer->held > 0; i++) {
		if (peer->buffer[i] != WF_BUFFER_FREE) {
			park(lane, peer, i);
		}
	}
	WF_ASSERT(peer->held == 0);
}

/* The window is full of slices that wait for other trainers: without this, two trainers that push
 * in opposite orders would block each other. */
static void
park_full_window(struct wf_lane *lane, struct wf_peer *peer)
{
	WF_ASSERT(peer->credit_count == 0); /* check_put */
	for (uint32_t i = 0; i < lane->opts.slot_count; i++) {
		WF_ASSERT(peer->buffer[i] != WF_BUFFER_FREE);
		park(lane, peer, i);
		wf_transport_release(peer->conn, i);
		peer->credit[peer->credit_count++] = (uint16_t)i;
	}
	wf_peer_due(peer);
}

/* Names the trainers whose gradients were not finite; the sum alone may be it too (overflow). */
static void
report_nonfinite(struct wf_lane *lane, uint32_t ordinal, size_t bad)
{
	const struct wf_stored *stored = &lane->store.stored[ordinal];
	uint64_t step = lane->round[ordinal].next;
	uint32_t culprit = UINT32_MAX;
	size_t found = 0;
	for (uint32_t t = 0; t < lane->peer_count && found == 0; t++) {
		const struct wf_push *push = wf_push_of(lane, ordinal, t);
		if (push->data != NULL) {
			found = lane->store.kernels->count_nonfinite(push->data, stored->count);
			culprit = t;
		}
	}
	wf_stats_add(&lane->stats, WF_LANE_GRADIENT_SKIPPED_COUNT, bad);
	char who[64] = "the sum over trainers";
	if (found > 0) {
		(void)snprintf(who, sizeof(who), "trainer %u", culprit);
	}
	bool abort = lane->job.nonfinite == WF_NONFINITE_ABORT;
	if (abort) {
		wf_lane_fail(lane, WEFT_DATA, step,
			     "%zu values of the gradient of %.60s from %s are NaN or infinite in "
			     "step %" PRIu64
			     "; lower the learning rate, clip, or run with --nonfinite=skip",
			     bad, stored->tensor->name, who, step);
		return;
	}
	if (!wf_log_limit_pass(&lane->nonfinite_log, wf_now_ns(lane->env), WF_NS_PER_S)) {
		return; /* counted; told once a second */
	}
	wf_log(lane->env, WF_LOG_WARN,
	       "lane %u: %zu values of the gradient of %s from %s are NaN or infinite in step "
	       "%" PRIu64 ": skipped, %" PRIu64 " so far",
	       lane->opts.idx, bad, stored->tensor->name, who, step,
	       wf_stats_get(&lane->stats, WF_LANE_GRADIENT_SKIPPED_COUNT) -
		       lane->report.job[WF_LANE_GRADIENT_SKIPPED_COUNT]);
}

static void
step_is_done(struct wf_lane *lane, uint64_t applied_ns)
{
	struct wf_step_sum *sum = &lane->sum;
	wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	if (lane->turn.on) {
		wf_hist_record(&lane->step_time, applied_ns - sum->since_ns);
	}
	sum->samples_before += sum->samples;
	sum->step++;
	sum->samples = 0;
	sum->heard = 0;
	sum->out = 0;
	sum->applied = 0;
	sum->since_ns = 0;
}

static void
fill_apply(struct wf_lane *lane, uint32_t ordinal, struct wf_apply *apply)
{
	const struct wf_store *store = &lane->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	const struct wf_job_tensor *tensor = stored->tensor;
	const struct wf_step_sum *sum = &lane->sum;
	double rate = wf_learning_rate(&store->optimizer, sum->samples_before, sum->samples) *
		      tensor->rate_multiplier;
	double decay = tensor->decay < 0 ? store->optimizer.decay : tensor->decay;
	double clip = tensor->clip < 0 ? store->optimizer.clip : tensor->clip;
	bool mean = lane->job.grad_reduce == WF_REDUCE_MEAN;
	*apply = (struct wf_apply){
		.param = wf_store_param(store, stored),
		.grad = lane->gradient,
		.count = stored->count,
		.divisor = mean ? (float)sum->samples : 1.0f,
		.decay = (float)decay,
		.clip = (float)clip,
	};
	for (unsigned i = 0; i < store->state_count; i++) {
		apply->state[i] = wf_store_state(store, stored, i);
	}
	wf_apply_scalars(&store->optimizer, rate, sum->step, apply);
}

/* All pushes of the slice are here and nothing reads the store's copy: sum, update, answer. */
static void
apply_round(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_round *round = &lane->round[ordinal];
	WF_ASSERT(round->next == lane->sum.step && round->lent == 0);
	struct wf_apply apply;
	fill_apply(lane, ordinal, &apply);
	struct wf_push *pushes = wf_push_of(lane, ordinal, 0);
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		const struct wf_push *push = &pushes[t];
		if (push->data != NULL) {
			lane->gradient[apply.grad_count++] = push->data;
		}
	}
	WF_ASSERT(apply.grad_count == round->arrived);
	uint64_t entered = wf_turn_enter(&lane->turn);
	size_t bad = lane->store.kernels->apply[lane->store.optimizer.kind](&apply);
	uint64_t applied_ns = wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	if (bad > 0) {
		report_nonfinite(lane, ordinal, bad);
	}
	round->next++;
	round->arrived = 0;
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		struct wf_push *push = &pushes[t];
		if (push->data != NULL) {
			consume(lane, &lane->peer[t], push);
			wf_answer_push(&lane->peer[t], ordinal);
		}
	}
	wf_stats_add(&lane->stats, WF_LANE_SLICE_APPLIED_COUNT, 1);
	if (++lane->sum.applied == lane->store.pushable_count) {
		step_is_done(lane, applied_ns);
	}
}

static void
try_apply(struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_round *round = &lane->round[ordinal];
	uint32_t members = lane->peer_count - lane->sum.out;
	if (lane->state == WF_LANE_RUNNING && round->next == lane->sum.step && round->lent == 0 &&
	    round->arrived == members && members > 0) {
		apply_round(lane, ordinal);
	}
}

void
wf_round_done(struct wf_lane *lane, uint32_t ordinal)
{
	WF_ASSERT(ordinal < lane->store.stored_count && lane->round[ordinal].lent > 0);
	lane->round[ordinal].lent--;
	if (lane->sum.heard > 0) {
		try_apply(lane, ordinal);
	}
}

static enum weft_status
go_out(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_step *msg)
{
	if (peer->out && peer->out_pass == msg->pass) {
		return WEFT_OK; /* said again, after a reconnect */
	}
	if (msg->step != peer->step_next) {
		return wf_fail(WEFT_PROTOCOL,
			       "STEP: out of data in step %" PRIu64 ", %" PRIu64 " is next",
			       msg->step, peer->step_next);
	}
	if (peer->step_next == lane->sum.step + 1 && peer->pushed < lane->store.pushable_count) {
		return wf_fail(WEFT_PROTOCOL,
			       "STEP: out of data in step %" PRIu64 ", after %u of %u slices of "
			       "step %" PRIu64,
			       msg->step, peer->pushed, lane->store.pushable_count, lane->sum.step);
	}
	peer->out = true;
	peer->out_pass = msg->pass;
	if (lane->sum.heard == 0 || lane->sum.pass != msg->pass || lane->sum.step < msg->step) {
		return WEFT_OK; /* counted when somebody begins the step */
	}
	lane->sum.out++;
	uint64_t step = lane->sum.step;
	for (uint32_t i = 0; i < lane->store.stored_count && lane->sum.step == step; i++) {
		if (lane->round[i].arrived > 0) {
			try_apply(lane, i);
		}
	}
	return WEFT_OK;
}

/* Back after a pass that it ended early: what it did not push is nobody's loss. */
static void
come_back(struct wf_lane *lane, struct wf_peer *peer, uint64_t step)
{
	peer->out = false;
	peer->step_next = step;
	for (uint32_t i = 0; i < lane->store.stored_count; i++) {
		if (!lane->store.stored[i].tensor->is_static) {
			struct wf_push *push = wf_push_of(lane, i, peer->trainer);
			push->next = step;
			push->mine = false;
		}
	}
}

static void
begin_step(struct wf_lane *lane, uint32_t pass)
{
	struct wf_step_sum *sum = &lane->sum;
	sum->pass = pass;
	sum->since_ns = lane->turn.on ? wf_now_ns(lane->env) : 0; /* 0: the turn's end says */
	sum->out = 0;
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		sum->out += is_out(lane, &lane->peer[i]) ? 1 : 0;
	}
}

static enum weft_status
check_step(const struct wf_lane *lane, const struct wf_msg_step *msg)
{
	if (!lane->ready || lane->uninitialised > 0 || lane->store.pushable_count == 0) {
		return wf_fail(WEFT_PROTOCOL, "STEP %" PRIu64 ": this lane waits for no step",
			       msg->step);
	}
	if (msg->epoch != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "STEP %" PRIu64 ": epoch %" PRIu64 ", the job is in epoch 0",
			       msg->step, msg->epoch);
	}
	return WEFT_OK;
}

enum weft_status
wf_round_step(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_step *msg)
{
	enum weft_status st = check_step(lane, msg);
	if (st != WEFT_OK) {
		return st;
	}
	if ((msg->flags & WF_STEP_OUT_OF_DATA) != 0) {
		return go_out(lane, peer, msg);
	}
	if (msg->step < peer->step_next) {
		return WEFT_OK; /* said again, after a reconnect */
	}
	struct wf_step_sum *sum = &lane->sum;
	bool returns = peer->out && msg->pass > peer->out_pass;
	if (msg->step != sum->step || (peer->out && !returns) ||
	    (!peer->out && msg->step != peer->step_next) ||
	    (sum->heard > 0 && msg->pass != sum->pass)) {
		return wf_fail(WEFT_PROTOCOL,
			       "STEP %" PRIu64 " of pass %u, the lane is in step %" PRIu64
			       " of pass %u, step %" PRIu64 " is this trainer's next",
			       msg->step, msg->pass, sum->step, sum->pass, peer->step_next);
	}
	if (peer->out) {
		come_back(lane, peer, msg->step);
	}
	if (sum->heard == 0) {
		begin_step(lane, msg->pass);
	}
	sum->heard++;
	sum->samples += msg->samples;
	peer->step_next = msg->step + 1;
	peer->pushed = 0;
	for (uint32_t i = 0; i < lane->peer_count && lane->gone_count > 0; i++) {
		const struct wf_peer *other = &lane->peer[i];
		if (other->state == WF_PEER_GONE && is_missing(lane, other)) {
			wf_lane_fail(lane, WEFT_LOST, msg->step,
				     "trainer %u left in good order, and step %" PRIu64
				     " waits for it: all trainers make the same number of passes",
				     i, msg->step);
		}
	}
	return WEFT_OK;
}

static bool
is_fresh(const struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->store.stored_count; i++) {
		if (lane->round[i].next != 0) {
			return false;
		}
	}
	return true;
}

/* Trainer 0 says where the job begins; nothing may have come before. Said again on a new path. */
enum weft_status
wf_round_init(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_init *msg)
{
	struct wf_msg_init *init = &lane->init;
	bool again = msg->step == init->step && msg->samples == init->samples &&
		     msg->sections == init->sections;
	if (peer->trainer != 0 || !lane->ready || (!again && !is_fresh(lane))) {
		return wf_fail(WEFT_PROTOCOL, "INIT: from trainer %u, after %u of %u slices",
			       peer->trainer, lane->store.stored_count - lane->uninitialised,
			       lane->store.stored_count);
	}
	if (msg->sections != 1 && msg->sections != 1 + lane->store.state_count) {
		return wf_fail(WEFT_PROTOCOL,
			       "INIT: %u sections, the optimizer has %u state arrays",
			       msg->sections, lane->store.state_count);
	}
	if (again) {
		return WEFT_OK;
	}
	*init = *msg;
	for (uint32_t i = 0; i < lane->store.stored_count; i++) {
		lane->round[i].next = 0 - (uint64_t)(msg->sections - 1);
		wf_push_of(lane, i, 0)->next = lane->round[i].next;
	}
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		lane->peer[t].step_next = msg->step + 1;
	}
	lane->sum.step = msg->step + 1;
	lane->sum.samples_before = msg->samples;
	return WEFT_OK;
}

/* One section of trainer 0's initial values: everybody's start. */
static void
initialise(struct wf_lane *lane, uint32_t ordinal, const void *data)
{
	const struct wf_stored *stored = &lane->store.stored[ordinal];
	struct wf_round *round = &lane->round[ordinal];
	uint64_t section = round->next + lane->init.sections - 1;
	float *at = section == 0 ? wf_store_param(&lane->store, stored)
				 : wf_store_state(&lane->store, stored, (unsigned)section - 1);
	memcpy(at, data, stored->count * sizeof(float));
	if (round->next++ != 0) {
		return; /* more sections follow */
	}
	round->next = lane->init.step + 1;
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		wf_push_of(lane, ordinal, t)->next = round->next;
	}
	WF_ASSERT(lane->uninitialised > 0);
	lane->uninitialised--;
	for (uint32_t t = 0; t < lane->peer_count && lane->uninitialised == 0; t++) {
		wf_peer_due(&lane->peer[t]); /* its INIT */
	}
}

/* A tag's slot is ordinal * slot_count + buffer, and slot_count a power of two (wf_lane_create). */
static inline uint32_t
tag_ordinal(const struct wf_lane *lane, uint32_t tag)
{
	return wf_tag_slot(tag) >> __builtin_ctz(lane->opts.slot_count);
}

static inline uint32_t
tag_buffer(const struct wf_lane *lane, uint32_t tag)
{
	return wf_tag_slot(tag) & (lane->opts.slot_count - 1);
}

/* Is this the push that the slice waits for from this trainer? */
static enum weft_status
check_put(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t tag)
{
	uint32_t ordinal = tag_ordinal(lane, tag);
	if (!lane->ready || ordinal >= lane->store.stored_count) {
		return wf_fail(WEFT_PROTOCOL, "PUT: slice %u of %u", ordinal,
			       lane->store.stored_count);
	}
	const struct wf_stored *stored = &lane->store.stored[ordinal];
	uint64_t step = wf_push_of(lane, ordinal, peer->trainer)->next;
	bool initial = wf_is_initial(step);
	bool begun = initial || (!peer->out && step + 1 == peer->step_next);
	bool due = step == lane->round[ordinal].next && wf_tag_step(tag) == (uint8_t)step;
	bool allowed = initial ? peer->trainer == 0 : !stored->tensor->is_static;
	if (!begun || !due || !allowed) {
		return wf_fail(
			WEFT_PROTOCOL,
			"PUT: slice %u of %s for step %u (modulo 256), waited for is step %" PRIu64,
			stored->slice, stored->tensor->name, wf_tag_step(tag), step);
	}
	if (peer->credit_count > 0) { /* parked, all of the window, and nobody knows it yet */
		return wf_fail(WEFT_PROTOCOL, "PUT: into slot %u before its CREDIT",
			       tag_buffer(lane, tag));
	}
	if (peer->buffer[tag_buffer(lane, tag)] != WF_BUFFER_FREE) {
		return wf_fail(WEFT_PROTOCOL, "PUT: into slot %u, which is in use",
			       tag_buffer(lane, tag));
	}
	return WEFT_OK;
}

/* A gradient has come and stays: for whom? */
static void
count_wait(struct wf_lane *lane, const struct wf_round *round)
{
	bool complete = round->arrived == lane->peer_count - lane->sum.out;
	wf_stats_add(&lane->stats,
		     complete && round->lent > 0 ? WF_LANE_WAIT_LENT_COUNT
						 : WF_LANE_WAIT_TRAINER_COUNT,
		     1);
}

enum weft_status
wf_round_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t tag, const void *data)
{
	enum weft_status st = check_put(lane, peer, tag);
	if (st != WEFT_OK) {
		return st;
	}
	uint32_t ordinal = tag_ordinal(lane, tag);
	uint32_t buffer = tag_buffer(lane, tag);
	struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
	push->mine = true;
	if (wf_is_initial(push->next++)) {
		initialise(lane, ordinal, data);
		wf_transport_release(peer->conn, buffer);
		wf_answer_push(peer, ordinal);
		return WEFT_OK;
	}
	push->data = data;
	push->buffer = buffer;
	peer->buffer[buffer] = ordinal;
	peer->held++;
	peer->pushed++;
	lane->round[ordinal].arrived++;
	try_apply(lane, ordinal);
	if (push->data != NULL) {
		count_wait(lane, &lane->round[ordinal]);
	}
	if (peer->held == lane->opts.slot_count) {
		park_full_window(lane, peer);
	}
	return WEFT_OK;
}

enum weft_status
wf_round_have(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_steps *msg)
{
	if (!lane->ready || msg->first != peer->had ||
	    msg->count > lane->store.stored_count - peer->had) {
		return wf_fail(WEFT_PROTOCOL, "HAVE: slices %u and %u more, of %u", msg->first,
			       msg->count, lane->store.stored_count);
	}
	peer->had += msg->count;
	for (uint32_t i = 0; i < msg->count; i++) {
		uint32_t ordinal = msg->first + i;
		uint64_t answered = msg->step_of[i] + 1; /* as "next"; WF_STEP_NONE gives 0 */
		uint64_t applied = lane->round[ordinal].next;
		if (!wf_is_initial(answered) && (wf_is_initial(applied) || answered > applied)) {
			return wf_fail(WEFT_PROTOCOL,
				       "HAVE: slice %u answered in step %" PRIu64
				       ", applied are %" PRIu64,
				       ordinal, msg->step_of[i], applied);
		}
		const struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
		bool pushed = push->mine && push->next == applied;
		if (pushed && answered != applied) {
			wf_answer_push(peer, ordinal);
		}
	}
	return WEFT_OK;
}

bool
wf_round_others_need(const struct wf_lane *lane, const struct wf_peer *peer)
{
	bool heard = peer->step_next > lane->sum.step;
	uint32_t others = lane->sum.heard - (lane->sum.heard > 0 && heard ? 1 : 0);
	return others > 0 && is_missing(lane, peer);
}

/* "1, 3 and 5 more" */
static void
list_peers(const struct wf_lane *lane,
	   bool (*listed)(const struct wf_lane *lane, const struct wf_peer *peer), char *out,
	   size_t bytes)
{
	size_t used = 0;
	unsigned more = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		if (!listed(lane, &lane->peer[i])) {
			continue;
		}
		if (used + 32 > bytes) {
			more++;
			continue;
		}
		used += (size_t)snprintf(out + used, bytes - used, "%s%u", used > 0 ? ", " : "", i);
	}
	if (more > 0) {
		(void)snprintf(out + used, bytes - used, " and %u more", more);
	}
}

static bool
is_absent(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return peer->state == WF_PEER_ABSENT;
}

static bool
lacks_reduce(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return peer->reduce_id == lane->reduction.id;
}

/* Somebody has not come yet, or the initial values are not all here. */
static bool
is_starting(const struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		if (is_absent(lane, &lane->peer[i])) {
			return true;
		}
	}
	return !lane->ready || lane->uninitialised > 0;
}

uint64_t
wf_round_waits_since(const struct wf_lane *lane)
{
	if (is_starting(lane)) {
		return lane->start_ns;
	}
	return lane->sum.heard > 0 ? lane->sum.since_ns : lane->reduction.since_ns;
}

void
wf_round_waits_for(const struct wf_lane *lane, char *out, size_t bytes)
{
	char who[128];
	list_peers(lane, is_absent, who, sizeof(who));
	if (who[0] != '\0') {
		(void)snprintf(out, bytes, "the job waits for trainer %s to come", who);
	} else if (is_starting(lane)) {
		(void)snprintf(out, bytes, "the job waits for the initial values from trainer 0");
	} else if (lane->sum.heard > 0) {
		list_peers(lane, is_missing, who, sizeof(who));
		(void)snprintf(out, bytes, "step %" PRIu64 " waits for trainer %s", lane->sum.step,
			       who);
	} else {
		list_peers(lane, lacks_reduce, who, sizeof(who));
		(void)snprintf(out, bytes, "a barrier, reduce or pass end waits for trainer %s",
			       who);
	}
}
