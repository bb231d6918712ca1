/* SPDX-License-Identifier: Apache-2.0 */
/* async: slices of tensors of the asynchronous modes. A push is applied when it arrives, to its
 * slice alone, and answered with the current values of the slice; a slice counts the pushes applied
 * to it. exchange/order.h decides which messages are valid, which push comes too late and which
 * answer waits. Its lag is that of the original less the trainer's own push, because with one
 * trainer and its default of 1.5 the original drops every push; and a verdict is for a slice, where
 * that of the original was for a request.
 *
 * Answers do not leave from the store, which may change before they are DONE, but from buffers of
 * their trainer: `copies`. The pass that applies a push fills one of them (`fresh`). If the slice
 * has changed when the transport is about to accept the answer, it is copied once more, so an
 * answer is never older than necessary, nor torn. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/apply.h"
#include "pserver/codec.h"
#include "pserver/dense.h"

WF_STATIC_ASSERT(WF_SLICE_COUNT_MAX <= 1u << 23, "ordinals leave WF_TAG_DISCARDED free");

#define LINES_MAX 8u /* the most trainers that are listed */

static struct wf_order_view *
view_of(const struct wf_lane *lane, uint32_t ordinal, uint32_t trainer)
{
	const struct wf_dense *dense = lane->own;
	return &dense->async.view[(uint64_t)ordinal * lane->peers.count + trainer];
}

void
wf_async_count(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	struct wf_order *order = &lane->order;
	dense->async.count = 0;
	for (uint32_t i = 0; i < store->stored_count; i++) {
		const struct wf_job_terms terms =
			wf_job_terms_of(&dense->job, store->stored[i].tensor);
		dense->async.count += wf_job_terms_lag(&terms) ? 1 : 0;
	}
	WF_ASSERT(dense->async.count <= store->pushable_count);
	order->came_count = dense->async.count;
	order->summed_count = store->pushable_count - dense->async.count;
	order->own_steps = order->came_count > 0 && order->summed_count == 0;
}

/* What follows from the modes of the tensors. */
static void
fill_slices(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		struct wf_async_slice *slice = &dense->async.slice[i];
		const struct wf_job_terms mode =
			wf_job_terms_of(&dense->job, dense->store.stored[i].tensor);
		slice->is_async = wf_job_terms_lag(&mode);
		if (!slice->is_async) {
			continue;
		}
		slice->terms = wf_order_add_terms(&lane->order, mode.discard_ratio,
						  mode.mode == WEFT_DENSE_BOUNDED, mode.staleness);
		uint64_t staleness = slice->terms.staleness;
		dense->async.staleness_max = staleness > dense->async.staleness_max
						     ? staleness
						     : dense->async.staleness_max;
	}
}

uint64_t
wf_async_table_bytes(const struct wf_lane *lane, uint32_t slices)
{
	const uint64_t seen = lane->opts.snapshots != NULL ? sizeof(uint64_t) : 0;
	return lane->peers.count * (slices * (sizeof(struct wf_order_view) + seen) +
				    wf_staging_table_bytes(lane->opts.slot_count) +
				    wf_fresh_table_bytes(lane->opts.slot_count));
}

enum weft_status
wf_async_alloc(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	uint32_t slices = dense->store.stored_count;
	dense->async.view = wf_zalloc_array(lane->env, (uint64_t)slices * lane->peers.count + 1,
					    sizeof(*dense->async.view));
	dense->async.slice = wf_zalloc_array(lane->env, slices + 1u, sizeof(*dense->async.slice));
	bool has_seen = lane->opts.snapshots != NULL;
	if (has_seen) {
		dense->async.seen = wf_zalloc_array(lane->env, (uint64_t)slices * lane->peers.count,
						    sizeof(*dense->async.seen));
	}
	if (dense->async.view == NULL || dense->async.slice == NULL ||
	    (has_seen && dense->async.seen == NULL)) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u slices of %u trainers",
			       lane->opts.idx, slices, lane->peers.count);
	}
	fill_slices(lane);
	const struct wf_staging_opts opts = {
		.trainer_count = lane->peers.count,
		.each = lane->opts.slot_count,
		.buffer_bytes = dense->store.slot_bytes,
		.numa_node = lane->opts.numa_node,
	};
	enum weft_status st =
		wf_staging_open(&dense->async.copies, lane->env, lane->turn.transport, &opts);
	return st == WEFT_OK ? wf_fresh_open(&dense->async.fresh, lane->env, &dense->async.copies)
			     : st;
}

void
wf_async_release(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	uint64_t views = (uint64_t)dense->store.stored_count * lane->peers.count + 1;
	wf_fresh_close(&dense->async.fresh, lane->env);
	wf_staging_close(&dense->async.copies, lane->env, lane->turn.transport);
	wf_free(lane->env, dense->async.view, views * sizeof(*dense->async.view));
	wf_free(lane->env, dense->async.seen, (views - 1) * sizeof(*dense->async.seen));
	wf_free(lane->env, dense->async.slice,
		(dense->store.stored_count + 1u) * sizeof(*dense->async.slice));
}

/* Trainer 0 has sent the step at which the job begins. */
void
wf_async_init(struct wf_lane *lane, const struct wf_msg_init *init)
{
	struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count && !dense->async.is_loaded; i++) {
		dense->async.slice[i].version = init->step;
		dense->async.slice[i].samples = init->samples;
	}
}

void
wf_async_go_on(struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_async_start *start = &dense->peer[t].start;
		struct wf_member *member = &lane->peers.all[t].member;
		if (start->step == 0) {
			continue;
		}
		member->step_next = start->step + 1;
		member->made = start->made;
		member->pass = start->pass;
		for (uint32_t i = 0; i < dense->store.stored_count; i++) {
			if (!wf_slice_is_piece(dense, i)) {
				wf_push_of(lane, i, t)->next = start->step + 1;
			}
		}
	}
}

/* One slice more of the trainer's step is here. A step that others are summed in ends when they are
 * applied. */
static void
count_slice(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense_peer *own = peer->own;
	peer->member.came++;
	if (!lane->order.own_steps || !wf_order_is_whole(&lane->order, &peer->member)) {
		return;
	}
	wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	if (lane->turn.times.on && own->since_ns != 0) { /* 0: it began before */
		wf_hist_record(&lane->report.step_time, wf_now_ns(lane->env) - own->since_ns);
	}
}

/* A trainer that reads answers where they lie reads them on a core of its own. If they are many and
 * written past the caches, it need not wait for lines that this core has changed. */
static bool
goes_past(const struct wf_lane *lane, const struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	struct wf_path_info path;
	const uint64_t bytes = dense->store.slab.bytes + dense->async.copies.memory.slab.bytes;
	if (dense->async.count == 0 || !wf_apply_is_far(bytes)) {
		return false;
	}
	wf_transport_path(peer->conn, &path);
	return path.in_place;
}

void
wf_async_path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense_peer *own = peer->own;
	own->copies_past = goes_past(lane, peer);
}

/* Where the push is to leave the values it makes for its answer; NULL: nowhere. Only values that
 * travel as they are. */
static float *
begin_copy(struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	if (dense->features.codec != NULL || !wf_answer_can_be_due(peer, ordinal)) {
		return NULL;
	}
	return wf_fresh_begin(&dense->async.fresh, peer->trainer, ordinal,
			      dense->async.slice[ordinal].version + 1);
}

static void
apply(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, const void *gradient)
{
	struct wf_dense *dense = lane->own;
	struct wf_async_slice *slice = &dense->async.slice[ordinal];
	struct wf_apply apply;
	wf_apply_fill(
		lane, ordinal,
		&(struct wf_apply_scale){.samples_before = slice->samples,
					 .samples = peer->member.samples,
					 .pass = peer->member.pass,
					 .updates = slice->version + 1,
					 .divisor = wf_apply_divisor(dense, peer->member.samples)},
		&apply);
	dense->gradient[0] = gradient;
	apply.grad_count = 1;
	apply.copy = begin_copy(lane, peer, ordinal);
	apply.copy_past = ((const struct wf_dense_peer *)peer->own)->copies_past;
	uint64_t entered = wf_turn_enter(&lane->turn);
	size_t bad = wf_codec_apply(lane, ordinal, &apply, peer->member.step_next - 1);
	(void)wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	if (bad > 0) {
		wf_apply_report_nonfinite(lane, ordinal, peer->member.step_next - 1, bad);
	}
	if (wf_dense_has_hook(dense, WF_AT_MARK)) {
		wf_features_mark(lane, peer, WF_TRACE_APPLIED, ordinal);
	}
	slice->version++;
	slice->samples += peer->member.samples;
	wf_stats_add(&lane->stats, WF_LANE_SLICE_APPLIED_COUNT, 1);
}

/* Whether the slice has the trainer's step already, from before the snapshot with which the job
 * began: the trainer makes it once more, because other slices lack it. If not, it has it now. */
static bool
has_step(struct wf_lane *lane, uint32_t ordinal, const struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	if (dense->async.seen == NULL) {
		return false;
	}
	uint64_t *seen = &dense->async.seen[(uint64_t)ordinal * lane->peers.count + peer->trainer];
	bool has = peer->member.made <= *seen;
	*seen = has ? *seen : peer->member.made;
	return has;
}

void
wf_async_push(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, const void *data)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	struct wf_order_view *view = view_of(lane, ordinal, peer->trainer);
	const struct wf_async_slice *slice = &dense->async.slice[ordinal];
	WF_ASSERT(dense->round[ordinal].lent == 0);
	if (has_step(lane, ordinal, peer)) {
		view->discarded = false;
		count_slice(lane, peer);
		wf_answer_push(peer, ordinal);
		return;
	}
	uint64_t lag = wf_order_judge(view, &slice->terms, slice->version);
	own->lag_sum += lag;
	own->lag_max = lag > own->lag_max ? lag : own->lag_max;
	if (view->discarded) {
		own->discarded++;
		wf_stats_add(&lane->stats, WF_LANE_SLICE_DISCARDED_COUNT, 1);
	} else {
		struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
		push->data = data; /* for the report of values that are not finite */
		apply(lane, peer, ordinal, data);
		push->data = NULL;
		view->own++;
		own->applied++;
	}
	count_slice(lane, peer);
	wf_answer_push(peer, ordinal);
}

/* Lets `op` leave from the buffer, which has its bytes. */
static void
leave_from(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal,
	   uint32_t buffer, struct wf_op *op)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_staging *copies = &dense->async.copies;
	op->src = wf_staging_at(copies, buffer);
	op->region = copies->memory.region;
	op->cookie = WF_COPY_COOKIE | buffer;
	op->tag = wf_tag(ordinal, wf_push_of(lane, ordinal, peer->trainer)->next - 1);
}

bool
wf_async_copy(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, struct wf_op *op)
{
	struct wf_dense *dense = lane->own;
	struct wf_staging *copies = &dense->async.copies;
	if (!wf_staging_has_free(copies, peer->trainer)) {
		return false;
	}
	uint32_t buffer = wf_staging_claim(copies, peer->trainer);
	memcpy(wf_staging_at(copies, buffer), op->src, op->bytes);
	leave_from(lane, peer, ordinal, buffer, op);
	return true;
}

bool
wf_async_answer(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, struct wf_op *op)
{
	struct wf_dense *dense = lane->own;
	bool is_current;
	uint32_t buffer = wf_fresh_pop(&dense->async.fresh, peer->trainer, ordinal,
				       dense->async.slice[ordinal].version, &is_current);
	if (buffer == WF_STAGING_NONE) {
		return wf_async_copy(lane, peer, ordinal, op);
	}
	if (!is_current) {
		memcpy(wf_staging_at(&dense->async.copies, buffer), op->src, op->bytes);
	}
	leave_from(lane, peer, ordinal, buffer, op);
	return true;
}

uint32_t
wf_async_verdict(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal)
{
	return view_of(lane, ordinal, peer->trainer)->discarded ? WF_TAG_DISCARDED : 0;
}

/* Releases the buffer of a copy; returns its trainer. */
static uint32_t
release_copy(struct wf_lane *lane, uint64_t cookie)
{
	struct wf_dense *dense = lane->own;
	return wf_staging_release(&dense->async.copies, (uint32_t)(cookie & ~WF_COPY_COOKIE));
}

void
wf_async_posted(struct wf_lane *lane, struct wf_peer *peer, const struct wf_op *op, bool taken)
{
	const struct wf_dense *dense = lane->own;
	uint32_t ordinal = wf_answer_ordinal(op->tag);
	struct wf_order_view *view = view_of(lane, ordinal, peer->trainer);
	if (!taken) {
		(void)release_copy(lane, op->cookie);
		return;
	}
	/* With state, or parameters as f32, a trainer does not compute. */
	const struct wf_grant_key *values = &peer->places.key[WF_PLACE_VALUES];
	if (memcmp(&op->key, values, sizeof(op->key)) == 0) {
		wf_order_read(view, dense->async.slice[ordinal].version);
	}
	if (*op->copied) {
		(void)release_copy(lane, op->cookie);
	}
}

void
wf_async_forget(struct wf_lane *lane, const struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	wf_fresh_forget(&dense->async.fresh, peer->trainer);
}

void
wf_async_done(struct wf_lane *lane, uint64_t cookie)
{
	WF_ASSERT((cookie & WF_COPY_COOKIE) != 0);
	struct wf_peer *peer = &lane->peers.all[release_copy(lane, cookie)];
	const struct wf_dense_peer *own = peer->own;
	if (peer->conn != NULL && (own->answers.count > 0 || own->pulls.count > 0)) {
		wf_peer_due(peer);
	}
}

/* Which of two trainers is listed first. */
static bool
comes_first(const struct wf_dense *dense, uint32_t a, uint32_t b)
{
	uint64_t of_a = dense->peer[a].discarded;
	uint64_t of_b = dense->peer[b].discarded;
	return of_a > of_b || (of_a == of_b && a < b);
}

static void
write_line(const struct wf_lane *lane, uint32_t trainer)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_dense_peer *own = &dense->peer[trainer];
	uint64_t pushed = own->applied + own->discarded;
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: trainer %u: slices_applied %" PRIu64 " slices_discarded %" PRIu64
	       " lag_mean %.2f lag_max %" PRIu64,
	       lane->opts.idx, trainer, own->applied, own->discarded,
	       pushed > 0 ? (double)own->lag_sum / (double)pushed : 0, own->lag_max);
}

/* Of a job that is over: a line about each trainer, the most discarded first. */
void
wf_async_lines(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	uint32_t last = UINT32_MAX;
	for (unsigned line = 0; line < LINES_MAX && line < lane->peers.count; line++) {
		uint32_t next = UINT32_MAX;
		for (uint32_t t = 0; t < lane->peers.count; t++) {
			bool told = last != UINT32_MAX && !comes_first(dense, last, t);
			if (!told && (next == UINT32_MAX || comes_first(dense, t, next))) {
				next = t;
			}
		}
		WF_ASSERT(next != UINT32_MAX);
		write_line(lane, next);
		last = next;
	}
}

void
wf_async_report(const struct wf_lane *lane, uint32_t trainer, uint64_t value[WF_REPORT_VALUES])
{
	const struct wf_dense_peer *of = &((const struct wf_dense *)lane->own)->peer[trainer];
	value[WF_REPORT_APPLIED] = of->applied;
	value[WF_REPORT_DISCARDED] = of->discarded;
	value[WF_REPORT_LAG_SUM] = of->lag_sum;
	value[WF_REPORT_LAG_MAX] = of->lag_max;
}
