/* SPDX-License-Identifier: Apache-2.0 */
/* end: how a path and the job end. What a peer sent costs it its connection (offence); what makes
 * going on pointless for everybody ends the job (fail, abort, stop), and its first cause is sent to
 * all. A job has ended when no connection of it is left. This file calls no other one of the lane
 * but peers.c, and what the lanes share (members.c), so all of them may call it. Thread: the
 * lane's. */
#include "pserver/members.h"
#include "pserver/service.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

#define END_TIMEOUT_NS WF_NS_PER_S

bool
wf_lane_may_warn(struct wf_lane *lane)
{
	return wf_log_limit_pass(&lane->newcomers.warnings, wf_now_ns(lane->env), WF_NS_PER_S);
}

void
wf_peer_end_path(struct wf_peer *peer)
{
	(void)snprintf(peer->lost.why, sizeof(peer->lost.why), "%.*s", WF_WHY_BYTES - 1,
		       weft_last_error());
	peer->closing = true;
	wf_transport_disconnect(peer->conn, WF_DISCONNECT_NOW);
}

void
wf_lane_offence(struct wf_lane *lane, struct wf_peer *peer)
{
	char who[WF_REASON_BYTES];
	wf_peer_describe(peer, who, sizeof(who));
	if (wf_lane_may_warn(lane)) {
		wf_log(lane->env, WF_LOG_WARN, "lane %u: %s: %s; its connection is closed",
		       lane->opts.idx, who, weft_last_error());
	}
	peer->lost.offended = true;
	wf_peer_end_path(peer);
}

/* The lane has nothing to say any more of members that change. A process that waits for a place is
 * told so when it comes again. */
static void
leave_members(struct wf_lane *lane)
{
	if (lane->opts.members == NULL) {
		return;
	}
	wf_members_seat(lane->opts.members, lane->opts.idx, false);
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		struct wf_held *newcomer = &lane->peers.all[i].successor;
		if (newcomer->conn != NULL && !wf_peer_has_newer_path(&lane->peers.all[i])) {
			wf_transport_disconnect(newcomer->conn, WF_DISCONNECT_NOW);
			newcomer->conn = NULL;
		}
	}
}

void
wf_lane_abort(struct wf_lane *lane, const struct wf_lane_cause *cause)
{
	WF_ASSERT(cause->status != WEFT_OK);
	if (lane->state != WF_LANE_RUNNING && !lane->end.holds) {
		return;
	}
	lane->end.holds = false;
	lane->end.cause = *cause;
	bool goes_back = cause->status == WEFT_ROLLED_BACK && lane->opts.rejoin_timeout_ns > 0;
	if (cause->status == WEFT_ROLLED_BACK && !goes_back) { /* this pserver does not */
		lane->end.cause.status = WEFT_LOST;
	}
	lane->state = WF_LANE_FAILED;
	leave_members(lane);
	lane->end.deadline_ns = wf_now_ns(lane->env) + END_TIMEOUT_NS;
	lane->turn.tick_ns = 0;
	wf_log(lane->env, goes_back ? WF_LOG_WARN : WF_LOG_ERROR,
	       "lane %u: the job %s: %s (said %s)", lane->opts.idx,
	       goes_back ? "goes back" : "ends", cause->reason, cause->who);
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		if (lane->peers.all[i].conn != NULL) {
			lane->peers.all[i].abort_due = true;
			wf_peer_due(&lane->peers.all[i]);
		}
	}
	/* A connection that waits for its admission receives it too: admit checks the state
	 * first. */
	uint32_t held = lane->newcomers.held_count;
	lane->newcomers.held_count = 0;
	for (uint32_t i = 0; i < held; i++) {
		wf_transport_disconnect(lane->newcomers.held[i].conn,
					WF_DISCONNECT_NOW); /* reconnects, and receives the cause */
	}
}

void
wf_lane_fail(struct wf_lane *lane, enum weft_status status, uint64_t step, const char *format, ...)
{
	struct wf_lane_cause cause = {.status = status, .step = step};
	va_list args;
	va_start(args, format);
	(void)vsnprintf(cause.reason, sizeof(cause.reason), format, args);
	va_end(args);
	(void)snprintf(cause.who, sizeof(cause.who), "pserver %u lane %u",
		       lane->admission.first.pserver_idx, lane->opts.idx);
	wf_lane_abort(lane, &cause);
}

bool
wf_lane_stop(struct wf_lane *lane, const char *where, const char *how)
{
	if (lane->state != WF_LANE_RUNNING) {
		return false;
	}
	struct wf_lane_cause cause = {.status = wf_lane_loss(lane), .step = lane->order.sum.step};
	uint32_t pserver = lane->admission.first.pserver_idx;
	(void)snprintf(cause.who, sizeof(cause.who), "pserver %u", pserver);
	(void)snprintf(cause.reason, sizeof(cause.reason), "pserver %u (%.140s) %.60s", pserver,
		       where, how);
	wf_lane_abort(lane, &cause);
	return true;
}

void
wf_end_finish(struct wf_lane *lane)
{
	lane->state = WF_LANE_FINISHED;
	leave_members(lane);
	lane->end.deadline_ns = wf_now_ns(lane->env) + lane->opts.reconnect_timeout_ns;
	lane->turn.tick_ns = 0;
}

void
wf_end_at_once(struct wf_lane *lane, enum weft_status st)
{
	lane->turn.tick_ns = 0;
	lane->state = WF_LANE_FAILED;
	leave_members(lane);
	lane->end.complete = true;
	if (lane->end.cause.status == WEFT_OK) {
		struct wf_lane_cause cause = {.status = st};
		(void)snprintf(cause.reason, sizeof(cause.reason), "%.200s", weft_last_error());
		lane->end.cause = cause;
	}
}

bool
wf_end_look(struct wf_lane *lane, uint64_t now)
{
	bool late = now >= lane->end.deadline_ns;
	bool left = false;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		bool wait = lane->state == WF_LANE_FINISHED && !peer->farewell.is_over && !late;
		left = left || peer->conn != NULL || wait;
		if (late && peer->conn != NULL) {
			wf_transport_disconnect(peer->conn, WF_DISCONNECT_NOW);
		}
	}
	/* A failed job stays for members that are reconnecting, so that they receive the cause. If
	 * it goes back they find out by themselves. */
	bool stays = lane->state == WF_LANE_FAILED && lane->end.cause.status != WEFT_ROLLED_BACK;
	lane->end.holds = !left && lane->state == WF_LANE_FINISHED &&
			  lane->service->is_over != NULL && !lane->service->is_over(lane, now);
	lane->end.complete = !left && !lane->end.holds && (late || !stays);
	return lane->end.complete;
}

void
wf_end_forget(struct wf_lane *lane)
{
	WF_ASSERT(lane->end.complete);
	bool rolled_back = lane->end.cause.status == WEFT_ROLLED_BACK;
	lane->state = WF_LANE_IDLE;
	lane->end = (struct wf_lane_end){.rolled_back = rolled_back};
}
