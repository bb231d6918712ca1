/* SPDX-License-Identifier: Apache-2.0 */
/* leave: what a dense lane does when a trainer is dropped, leaves or joins while the job goes on
 * (members.md): it applies nothing while members_lane.c holds, takes the pushes of who leaves out
 * of the step, and lets who joins begin with what the job has. Lane 0 keeps the connections to the
 * other pservers, unless snapshots do. Thread: the lane's. */
#include <inttypes.h>

#include "base/assert.h"
#include "pserver/dense.h"
#include "pserver/members.h"
#include "pserver/registry.h"

static uint64_t
leave_bytes(const struct wf_lane *lane)
{
	return lane->opts.members != NULL ? 1 : 0;
}

/* What a job must not have whose trainers may be dropped: the setting, and why. */
static const char *
find_obstacle(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_job *job = &dense->job;
	if (wf_features_need_step(lane) != NULL) {
		return wf_features_need_step(lane);
	}
	if (dense->pieces.count > 0) {
		return "all_reduce of arrays";
	}
	if (wf_session_has_local_steps(&job->set)) {
		return "local steps";
	}
	if (lane->opts.inbox_bytes != 0) {
		return "--inbox_bytes";
	}
	return lane->opts.snapshots != NULL && dense->async.count > 0
		       ? "snapshots of tensors that are applied as their pushes arrive"
		       : NULL;
}

static enum weft_status
open_leave(struct wf_feature *feature, struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const char *obstacle = find_obstacle(lane);
	(void)feature;
	if (obstacle != NULL) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "lane %u: --on_trainer_death=drop is not possible with this job, "
			       "which has %s",
			       lane->opts.idx, obstacle);
	}
	if (lane->opts.idx != 0) {
		return WEFT_OK;
	}
	enum weft_status st = wf_members_begin(lane->opts.members, lane->peers.count);
	if (st == WEFT_OK && lane->opts.snapshots == NULL) {
		st = wf_registry_open(lane, NULL, &dense->registry);
	}
	return st;
}

static void
close_leave(struct wf_feature *feature, struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	(void)feature;
	if (lane->opts.idx != 0) {
		return;
	}
	if (lane->opts.snapshots == NULL) {
		wf_registry_close(dense->registry);
		dense->registry = NULL;
	}
	wf_members_end(lane->opts.members);
}

static bool
may_apply(const struct wf_feature *feature, struct wf_lane *lane, uint32_t ordinal, double *divisor)
{
	(void)feature;
	(void)ordinal;
	(void)divisor;
	return !wf_members_hold(lane);
}

static void
tick(const struct wf_feature *feature, struct wf_lane *lane, uint64_t now_ns)
{
	const struct wf_dense *dense = lane->own;
	(void)feature;
	if (lane->opts.snapshots == NULL && dense->registry != NULL) {
		wf_turn_tick_before(&lane->turn, wf_registry_look(dense->registry, now_ns));
	}
}

const struct wf_feature_hooks wf_leave_hooks = {
	.name = "change of members",
	.bytes = leave_bytes,
	.open = open_leave,
	.close = close_leave,
	.may_apply = may_apply,
	.tick = tick,
};

/* ---- steps ---- */

/* Whether trainers push it, and their pushes are summed. */
static bool
is_summed(const struct wf_dense *dense, uint32_t ordinal)
{
	return !dense->store.stored[ordinal].tensor->is_static &&
	       !wf_slice_is_piece(dense, ordinal) && !wf_slice_is_async(dense, ordinal);
}

void
wf_round_stands(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t *applied,
		uint64_t *received)
{
	const struct wf_dense *dense = lane->own;
	*applied = dense->applied > 0 ? lane->order.sum.step : lane->order.sum.step - 1;
	*received = UINT64_MAX;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		uint64_t last = wf_push_of(lane, i, peer->trainer)->next - 1;
		if (is_summed(dense, i) && last < *received) {
			*received = last;
		}
	}
}

/* Says which slices of the step under way have been applied with the peer. */
static void
log_half(const struct wf_lane *lane, const struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	const bool was_in_step = peer->member.step_next > lane->order.sum.step;
	if (dense->applied > 0 && was_in_step) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: trainer %u is counted in %u of %u slices of step %" PRIu64,
		       lane->opts.idx, peer->trainer, dense->applied, lane->order.summed_count,
		       lane->order.sum.step);
	}
}

static void
drop_pushes(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		struct wf_push *push = wf_push_of(lane, i, peer->trainer);
		push->mine = false;
		if (push->data != NULL) {
			WF_ASSERT(dense->round[i].arrived > 0);
			dense->round[i].arrived--;
			wf_push_consume(lane, peer, push);
		}
	}
}

/* Ends the step, of which others have applied parts of the peer's, and that nobody else is in. */
static void
skip_step(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		if (is_summed(dense, i) && dense->round[i].next == lane->order.sum.step) {
			WF_ASSERT(dense->round[i].arrived == 0);
			dense->round[i].next++;
		}
	}
	wf_round_step_ends(lane, wf_now_ns(lane->env));
}

/* The pass that is under way: lane 0 of pserver 0 knows for certain, and tells the trainer. */
static uint32_t
find_pass(const struct wf_lane *lane)
{
	uint32_t pass = lane->members.pass_ended + 1;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		const struct wf_member *member = &lane->peers.all[i].member;
		pass = member->pass > pass ? member->pass : pass;
	}
	return pass;
}

void
wf_round_enter(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	const struct wf_peer_joining *joining = &peer->joining;
	own->start = (struct wf_async_start){
		.step = joining->border - 1,
		.pass = find_pass(lane),
		.joins = true,
		.samples = joining->samples,
		.left = lane->order.own_steps ? UINT64_MAX : peer->leaving.border - 1};
	own->implies_steps = false;
	own->since_ns = 0;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		struct wf_push *push = wf_push_of(lane, i, peer->trainer);
		WF_ASSERT(push->data == NULL);
		if (!wf_slice_is_piece(dense, i)) {
			push->next = joining->border;
			push->mine = false;
		}
	}
}

/* What it has changed with a step that nobody else is in. */
static void
drop_changes(struct wf_lane *lane, const struct wf_peer_leaving *leaving)
{
	const struct wf_dense *dense = lane->own;
	if (leaving->alone) {
		wf_change_drop(lane, leaving->border);
	} else if (lane->order.sum.heard == 0 && dense->applied == 0) {
		wf_change_drop(lane, lane->order.sum.step);
	}
}

void
wf_round_drop(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_peer_leaving *leaving = &peer->leaving;
	if (!lane->job.has_steps || lane->order.own_steps) {
		return;
	}
	log_half(lane, peer);
	drop_pushes(lane, peer);
	drop_changes(lane, leaving);
	if (leaving->alone && lane->order.sum.step == leaving->border &&
	    lane->order.sum.heard == 0) {
		skip_step(lane);
	}
	wf_round_try_all(lane);
}
