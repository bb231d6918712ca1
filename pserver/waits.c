/* SPDX-License-Identifier: Apache-2.0 */
/* waits: which trainers the lane waits for, in which way and since when. Thread: the lane's. */
#include "pserver/service.h"

#include <inttypes.h>
#include <stdio.h>

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
wf_waits_look(struct wf_lane *lane)
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
wf_waits_on(const struct wf_lane *lane, enum wf_lane_awaits kind, const struct wf_peer *peer)
{
	switch (kind) {
	case WF_LANE_AWAITS_START: /* the initial values are missing from trainer 0, or the
				  * description from its sender */
		return lane->job.is_ready ? peer->trainer == 0 && lane->job.owed != NULL
					  : peer->loading.is_due;
	case WF_LANE_AWAITS_HOLDS:
		return is_held_up_by(lane, peer);
	case WF_LANE_AWAITS_STEP:
		return is_missing(lane, peer);
	case WF_LANE_AWAITS_REDUCE:
		return wf_reduce_lacks(lane, peer);
	}
	return false;
}

uint64_t
wf_waits_since(const struct wf_lane *lane, enum wf_lane_awaits kind)
{
	if (kind == WF_LANE_AWAITS_START) {
		return is_starting(lane) ? lane->admission.start_ns : 0;
	}
	if (!lane->job.is_ready) {
		return 0;
	}
	switch (kind) {
	case WF_LANE_AWAITS_START:
		return 0;
	case WF_LANE_AWAITS_HOLDS:
		return wf_order_holds_since(&lane->order);
	case WF_LANE_AWAITS_STEP:
		return step_since(lane);
	case WF_LANE_AWAITS_REDUCE:
		return wf_reduce_since(lane);
	}
	return 0;
}

uint64_t
wf_waits_reported_since(const struct wf_lane *lane, enum wf_lane_awaits kind)
{
	bool hidden = kind != WF_LANE_AWAITS_START && is_starting(lane);
	return hidden ? 0 : wf_waits_since(lane, kind);
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
		const struct wf_absentee *first = &lane->waits.absent.known[0];
		size_t used =
			(size_t)snprintf(out, bytes, "the job waits for trainer %s to come", who);
		if (lane->waits.absent.count > 0 && used < bytes) {
			(void)snprintf(out + used, bytes - used, "; trainer %u: %s", first->trainer,
				       first->why);
		}
		return;
	}
	const struct wf_lane_source *source = lane->opts.source;
	const char *owed = lane->job.is_here ? lane->job.owed : "its description";
	if (lane->job.is_here && !lane->job.is_ready) {
		owed = "the state with which it begins";
		if (source != NULL && source->waits_for != NULL) {
			source->waits_for(source, lane, who, sizeof(who));
			owed = who;
		}
	}
	(void)snprintf(out, bytes, "the job waits for %s", owed);
}

static void
reduce_waits_for(const struct wf_lane *lane, char *out, size_t bytes)
{
	static const char what[] = "a barrier, reduce, all_reduce or pass end";
	char who[128];
	wf_peers_list(lane, wf_reduce_lacks, who, sizeof(who));
	if (who[0] == '\0') {
		(void)snprintf(out, bytes,
			       "%s waits until all pservers know of a trainer that goes or comes",
			       what);
		return;
	}
	(void)snprintf(out, bytes, "%s waits for trainer %s", what, who);
}

void
wf_waits_describe(const struct wf_lane *lane, enum wf_lane_awaits kind, char *out, size_t bytes)
{
	char who[128];
	switch (kind) {
	case WF_LANE_AWAITS_START:
		start_waits_for(lane, out, bytes);
		return;
	case WF_LANE_AWAITS_HOLDS:
		wf_peers_list(lane, is_held_up_by, who, sizeof(who));
		(void)snprintf(out, bytes, "answers of bounded %s wait for trainer %s",
			       lane->service->payload, who);
		return;
	case WF_LANE_AWAITS_STEP:
		step_waits_for(lane, out, bytes);
		return;
	case WF_LANE_AWAITS_REDUCE:
		reduce_waits_for(lane, out, bytes);
		return;
	}
}
