/* SPDX-License-Identifier: Apache-2.0 */
/* step: steps as the lane counts and measures them (exchange/order.h has their order), and which
 * trainers are waited for. Thread: the lane's. */
#include "pserver/service.h"

#include <inttypes.h>
#include <stdio.h>

void
wf_step_is_done(struct wf_lane *lane, uint64_t applied_ns)
{
	wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	if (lane->turn.times.on) {
		wf_hist_record(&lane->step_time, applied_ns - lane->order.sum.since_ns);
	}
	wf_order_step_is_applied(&lane->order);
}

void
wf_step_fail_if_left(struct wf_lane *lane, uint64_t step)
{
	uint32_t left = wf_order_find_left(&lane->order);
	if (left < lane->peers.count) {
		wf_lane_fail(lane, WEFT_LOST, step,
			     "trainer %u left in good order, and step %" PRIu64
			     " waits for it: all trainers make the same number of passes",
			     left, step);
	}
}

static bool
is_missing(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return wf_order_waits_for(&lane->order, &peer->member);
}

static bool
is_absent(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return peer->state == WF_PEER_ABSENT;
}

/* The step waits for it, and not it for others. */
static bool
is_behind(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return is_missing(lane, peer) && !wf_order_has_offered(&lane->order, &peer->member);
}

static bool
is_held_up_by(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return wf_order_holds_for(&lane->order, &peer->member);
}

/* A trainer is missing (others may wait for each other in any case: what is applied as it arrives
 * continues without it), or the initial state of the job is not complete. */
static bool
is_starting(const struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		if (is_absent(lane, &lane->peers.all[i])) {
			return true;
		}
	}
	return !lane->job.is_ready || lane->job.owed != NULL;
}

/* A trainer that has done its part waits for the others from then on. Before that none waits as
 * long as more of the step arrives: trainers that push while they compute take their time. */
static uint64_t
step_since(const struct wf_lane *lane)
{
	const struct wf_step_sum *sum = &lane->order.sum;
	if (sum->heard == 0 || sum->done_ns != 0) {
		return sum->heard == 0 ? 0 : sum->done_ns;
	}
	return lane->turn.event_ns; /* of the step, or later */
}

void
wf_step_look(struct wf_lane *lane)
{
	struct wf_step_sum *sum = &lane->order.sum;
	for (uint32_t i = 0; i < lane->peers.count && sum->heard > 0 && sum->done_ns == 0; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		bool takes_part = peer->member.step_next > sum->step &&
				  !wf_order_is_out(&lane->order, &peer->member);
		if (takes_part && !is_behind(lane, peer)) {
			sum->done_ns = step_since(lane);
		}
	}
}

bool
wf_step_waits_on(const struct wf_lane *lane, enum wf_step_wait kind, const struct wf_peer *peer)
{
	switch (kind) {
	case WF_STEP_WAIT_START: /* the initial values are missing from trainer 0, or the
				  * description from its sender */
		return lane->job.is_ready ? peer->trainer == 0 && lane->job.owed != NULL
					  : peer->loading.is_due;
	case WF_STEP_WAIT_HOLDS:
		return is_held_up_by(lane, peer);
	case WF_STEP_WAIT_STEP:
		return is_missing(lane, peer);
	case WF_STEP_WAIT_REDUCE:
		return wf_reduce_lacks(lane, peer);
	}
	return false;
}

uint64_t
wf_step_waits_since(const struct wf_lane *lane, enum wf_step_wait kind)
{
	if (kind == WF_STEP_WAIT_START) {
		return is_starting(lane) ? lane->admission.start_ns : 0;
	}
	if (!lane->job.is_ready) {
		return 0;
	}
	switch (kind) {
	case WF_STEP_WAIT_START:
		return 0;
	case WF_STEP_WAIT_HOLDS:
		return wf_order_holds_since(&lane->order);
	case WF_STEP_WAIT_STEP:
		return step_since(lane);
	case WF_STEP_WAIT_REDUCE:
		return lane->reduction.since_ns;
	}
	return 0;
}

uint64_t
wf_step_tells_since(const struct wf_lane *lane, enum wf_step_wait kind)
{
	bool hidden = kind != WF_STEP_WAIT_START && is_starting(lane);
	return hidden ? 0 : wf_step_waits_since(lane, kind);
}

static void
step_waits_for(const struct wf_lane *lane, char *out, size_t bytes)
{
	char who[128];
	wf_peers_list(lane, is_behind, who, sizeof(who));
	if (who[0] == '\0') { /* their gradients are on the way */
		wf_peers_list(lane, is_missing, who, sizeof(who));
	}
	if (who[0] == '\0') {
		(void)snprintf(out, bytes,
			       "step %" PRIu64 " has all its gradients here, and waits for other "
			       "lanes or for answers on their way",
			       lane->order.sum.step);
		return;
	}
	(void)snprintf(out, bytes, "step %" PRIu64 " waits for trainer %s", lane->order.sum.step,
		       who);
}

static void
start_waits_for(const struct wf_lane *lane, char *out, size_t bytes)
{
	char who[128];
	wf_peers_list(lane, is_absent, who, sizeof(who));
	if (who[0] != '\0') {
		const struct wf_absentee *first = &lane->absent.known[0];
		size_t used =
			(size_t)snprintf(out, bytes, "the job waits for trainer %s to come", who);
		if (lane->absent.count > 0 && used < bytes) {
			(void)snprintf(out + used, bytes - used, "; trainer %u: %s", first->trainer,
				       first->why);
		}
		return;
	}
	const char *owed = lane->job.is_ready ? lane->job.owed : "its description";
	(void)snprintf(out, bytes, "the job waits for %s", owed);
}

void
wf_step_waits_for(const struct wf_lane *lane, enum wf_step_wait kind, char *out, size_t bytes)
{
	char who[128];
	switch (kind) {
	case WF_STEP_WAIT_START:
		start_waits_for(lane, out, bytes);
		return;
	case WF_STEP_WAIT_HOLDS:
		wf_peers_list(lane, is_held_up_by, who, sizeof(who));
		(void)snprintf(out, bytes, "answers of bounded %s wait for trainer %s",
			       lane->service->payload, who);
		return;
	case WF_STEP_WAIT_STEP:
		step_waits_for(lane, out, bytes);
		return;
	case WF_STEP_WAIT_REDUCE:
		wf_peers_list(lane, wf_reduce_lacks, who, sizeof(who));
		(void)snprintf(out, bytes, "a barrier, reduce or pass end waits for trainer %s",
			       who);
		return;
	}
}
