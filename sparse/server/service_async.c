/* SPDX-License-Identifier: Apache-2.0 */
/* service_async: asynchronous modes. A push is applied when it is complete; tables count pushes in
 * the place of steps. *Lag*: pushes of other trainers that were applied after the rows of the batch
 * were read; the first lane of a job judges by it, and the others are told. *Bounded*: APPLIED is
 * said to who is ahead only when those behind have come close enough, and nobody pushes before
 * APPLIED. Thread: the lane's. */
#include "base/assert.h"
#include "sparse/server/service_internal.h"

void
wf_async_note_view(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step)
{
	struct wf_view *view = &own->view[step % WF_VIEWS_MAX];
	if (view->is_set && view->step == step && view->has_rows) {
		return; /* the oldest rows of the batch count */
	}
	*view = (struct wf_view){.step = step,
				 .others = wf_order_others(&own->pushes, sparse->pushes),
				 .is_set = true,
				 .has_rows = true};
}

/* A batch that will have no rows here is as old as the end of the step before it. */
static void
note_end(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step)
{
	struct wf_view *view = &own->view[step % WF_VIEWS_MAX];
	if (!view->is_set || view->step != step) {
		*view = (struct wf_view){.step = step,
					 .others = wf_order_others(&own->pushes, sparse->pushes),
					 .is_set = true};
	}
}

/* Who is out of data waits for the others, and reads no rows before they are done. */
static void
forget_end(struct wf_sparse_peer *own, uint64_t step)
{
	struct wf_view *view = &own->view[step % WF_VIEWS_MAX];
	if (view->step == step && !view->has_rows) {
		view->is_set = false;
	}
}

/* A batch whose rows were read for step k - 1 is pushed as step k. */
void
wf_async_begin(struct wf_lane *lane, struct wf_peer *peer, uint64_t step)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	if (own->verdict != 0) {
		own->pushes.discarded = own->verdict == WF_SPARSE_PUSH_DROP;
		return;
	}
	const struct wf_view *view = &own->view[(step - 1) % WF_VIEWS_MAX];
	bool known = view->is_set && view->step == step - 1;
	if (known) {
		own->pushes.others = view->others;
	} else {
		wf_order_read(&own->pushes, sparse->pushes);
	}
	(void)wf_order_judge(&own->pushes, &sparse->terms, sparse->pushes);
}

/* What was pushed is not applied: counted like what is lost. */
static uint64_t
discard(struct wf_lane *lane, const struct wf_sparse_peer *own)
{
	uint64_t pairs = 0;
	for (uint32_t i = 0; i < own->push_count; i++) {
		pairs += own->push[i].row_count;
	}
	wf_stats_add(&lane->stats, WF_LANE_PUSH_DISCARDED_COUNT, 1);
	return pairs;
}

/* Those who were waiting for it may be near enough now. */
static void
wake_others(struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		if (sparse->peer[t].applied_due) {
			wf_peer_due(&lane->peer[t]);
		}
	}
}

void
wf_async_finish(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	const struct wf_step_said *said = &own->said;
	if (said->out) {
		forget_end(own, peer->member.step_next - 1);
		wake_others(lane);
		return;
	}
	struct wf_sparse_applied applied = {
		.step = said->step, .samples = said->samples, .dropped = own->pushes.discarded};
	/* Dropped, it is a step without gradients: so lanes, which drop others, count alike. */
	own->complete = !own->pushes.discarded;
	uint64_t entered = wf_turn_enter(&lane->turn);
	bool runs = wf_push_apply(lane, peer, sparse->version + 1, &applied);
	(void)wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	if (!runs) {
		return;
	}
	if (own->pushes.discarded) {
		applied.pushes_lost += discard(lane, own);
	} else {
		own->pushes.own++;
		sparse->pushes++;
		wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	}
	lane->order.sum.samples_before += said->samples;
	note_end(sparse, own, said->step);
	wf_push_consume(lane, peer, &applied);
	wake_others(lane);
}
