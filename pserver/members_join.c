/* SPDX-License-Identifier: Apache-2.0 */
/* members_join: how a process takes the empty place of a trainer while the job goes on (members.h).
 * It waits unanswered until the registrar has named a border. Each lane then takes it in when
 * another trainer has begun the border's step, so that the pass is known, and that the reduces of
 * the passes before are over. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "pserver/service.h"

/* To connect to every lane, for a process that may be waiting between two attempts. */
#define CONNECT_NS (2 * WF_NS_PER_S)

void
wf_members_begin_join(struct wf_lane *lane, const struct wf_registry_member *join)
{
	if (!lane->job.is_here || join->trainer >= lane->peers.count) {
		return;
	}
	struct wf_peer *peer = &lane->peers.all[join->trainer];
	if (!peer->leaving.ordered || peer->joining.ordered) {
		return;
	}
	peer->joining = (struct wf_peer_joining){.ordered = true,
						 .border = join->border,
						 .incarnation = join->incarnation,
						 .samples = join->samples};
	lane->members.joining_count++;
	if (join->applied > lane->members.applied) {
		lane->members.applied = join->applied;
	}
}

void
wf_members_end_join(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_held *waits = &peer->successor;
	WF_ASSERT(peer->joining.ordered && lane->members.joining_count > 0);
	if (waits->conn != NULL) {
		wf_transport_disconnect(waits->conn, WF_DISCONNECT_NOW);
		waits->conn = NULL;
	}
	peer->hello.incarnation = peer->joining.incarnation; /* it has had the place */
	if (peer->leaving.is_dropped) { /* its predecessor may have left, and comes no more */
		peer->leaving.has_left = peer->leaving.is_willing = false;
		peer->farewell.is_over = peer->farewell.is_over || peer->conn == NULL;
	}
	peer->joining = (struct wf_peer_joining){0};
	lane->members.joining_count--;
	wf_reduce_try_complete(lane); /* it may have waited for it */
}

/* Whether the step of the border has been applied here without it: the registrar has named a border
 * that this lane has not reported. */
static bool
is_past_border(const struct wf_lane *lane, uint64_t border)
{
	return lane->job.has_steps && !lane->order.own_steps && lane->order.sum.step > border;
}

/* It is a member from here on, and has a while to connect. */
static void
accept(struct wf_lane *lane, struct wf_peer *peer, uint64_t now_ns)
{
	const struct wf_peer_joining *joining = &peer->joining;
	const bool is_waiting = peer->successor.conn != NULL &&
				peer->successor.hello.incarnation == joining->incarnation;
	wf_log(lane->env, WF_LOG_WARN, "lane %u: trainer %u takes part from step %" PRIu64 " on",
	       lane->opts.idx, peer->trainer, joining->border);
	WF_ASSERT(peer->state == WF_PEER_GONE && lane->peers.gone_count > 0);
	wf_order_enter(&lane->order, &peer->member,
		       lane->job.has_steps ? joining->border : lane->order.sum.step);
	lane->service->enter(lane, peer);
	lane->peers.gone_count--;
	peer->state = WF_PEER_LOST;
	peer->lost = (struct wf_peer_loss){.deadline_ns = now_ns + lane->opts.reconnect_timeout_ns +
							  CONNECT_NS,
					   .why = "it was to join, and has not connected"};
	peer->has_joined = true;
	peer->came_later = true;
	peer->farewell = (struct wf_peer_farewell){0};
	wf_reduce_enter(lane, peer);
	peer->leaving = (struct wf_peer_leaving){0};
	peer->hello.incarnation = joining->incarnation;
	peer->hello.path = 0;
	peer->joining = (struct wf_peer_joining){0};
	lane->members.joining_count--;
	if (is_waiting) {
		wf_admit_enter(lane, peer);
	} else if (peer->successor.conn != NULL) { /* the place is not empty any more */
		wf_transport_disconnect(peer->successor.conn, WF_DISCONNECT_NOW);
		peer->successor.conn = NULL;
	}
}

void
wf_members_look_for_joins(struct wf_lane *lane, uint64_t now_ns)
{
	for (uint32_t i = 0; i < lane->peers.count && lane->members.joining_count > 0; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		if (!peer->joining.ordered || !peer->leaving.is_dropped) {
			continue;
		}
		if (is_past_border(lane, peer->joining.border)) {
			wf_lane_fail(lane, WEFT_PROTOCOL, lane->order.sum.step,
				     "trainer %u was to join in step %" PRIu64
				     ", which was applied before",
				     i, peer->joining.border);
			return;
		}
		if (!wf_members_is_at_border(lane, peer->joining.border)) {
			continue; /* until then who has left may fetch its acknowledgement */
		}
		if (peer->conn == NULL) {
			accept(lane, peer, now_ns);
		} else if (!peer->closing) { /* it is slow to close its connection */
			(void)wf_fail(WEFT_CLOSED, "another process takes its place");
			wf_peer_end_path(peer);
		}
	}
}
