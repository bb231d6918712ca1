/* SPDX-License-Identifier: Apache-2.0 */
/* members_lane: a lane's part in a change of the members (members.h). It holds from its report to
 * the border. The path of a trainer that leaves goes DOWN, which copies aside what it has pushed;
 * then, when the lane is in the step of the border, the trainer is taken out of it, and is from
 * there on as one that is out of data for ever and has sent GOODBYE. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "pserver/service.h"

#define LOOK_NS WF_NS_PER_MS /* between two looks while a change is under way */

/* ---- a trainer is lost ---- */

bool
wf_members_lose(struct wf_lane *lane, struct wf_peer *peer, const char *reason)
{
	struct wf_members *members = lane->opts.members;
	struct wf_peer_leaving *leaving = &peer->leaving;
	const bool has_begun = lane->job.is_ready && lane->job.owed == NULL;
	if (members == NULL || !has_begun) {
		return false;
	}
	if (leaving->asked || leaving->ordered) {
		return true;
	}
	leaving->asked = wf_members_ask(members, peer->trainer, peer->hello.incarnation, reason);
	if (leaving->asked) {
		wf_log(lane->env, WF_LOG_WARN, "lane %u: %.200s; the job is to go on without it",
		       lane->opts.idx, reason);
		lane->turn.tick_ns = 0;
	}
	return leaving->asked;
}

bool
wf_members_lose_aborted(struct wf_lane *lane, struct wf_peer *peer, enum weft_status status,
			const char *who, const char *reason)
{
	char own[32];
	char text[WF_REASON_BYTES];
	if (lane->opts.members == NULL || (status != WEFT_LOST && status != WEFT_TIMEOUT)) {
		return false;
	}
	(void)snprintf(own, sizeof(own), "trainer %u", peer->trainer);
	size_t length = strlen(own);
	bool is_own = strncmp(who, own, length) == 0 && (who[length] < '0' || who[length] > '9');
	(void)snprintf(text, sizeof(text), "trainer %u has given up: %.200s", peer->trainer,
		       reason);
	return is_own && wf_members_lose(lane, peer, text);
}

enum weft_status
wf_members_check(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t incarnation,
		 const char *who)
{
	const struct wf_peer_leaving *leaving = &peer->leaving;
	if (!leaving->asked && !leaving->ordered) {
		return WEFT_OK;
	}
	if (incarnation != peer->hello.incarnation) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u was dropped from this job, which does not take another "
			       "process in its place; it goes on with those that remain",
			       peer->trainer);
	}
	return wf_fail(WEFT_LOST,
		       "%.60s was dropped from the job in step %" PRIu64
		       ", because it was lost; the job goes on without it",
		       who, lane->order.sum.step);
}

/* ---- what is ordered ---- */

/* Whether a step of others than `peer` has been begun here: whether they take part in `step`. */
static bool
is_alone(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t step)
{
	bool alone = true;
	for (uint32_t i = 0; i < lane->peers.count && alone; i++) {
		const struct wf_peer *other = &lane->peers.all[i];
		const bool has_left = other->leaving.ordered && other->leaving.border <= step;
		alone = other == peer || has_left || other->member.step_next <= step;
	}
	return alone;
}

static struct wf_member_stand
find_stand(const struct wf_lane *lane, const struct wf_registry_leave *leave)
{
	struct wf_member_stand stand = {.received = UINT64_MAX};
	const struct wf_peer *peer = leave->trainer < lane->peers.count && lane->job.is_here
					     ? &lane->peers.all[leave->trainer]
					     : NULL;
	const bool is_known = peer != NULL && (peer->state == WF_PEER_ABSENT ||
					       peer->hello.incarnation == leave->incarnation);
	stand.ready = is_known && lane->job.is_ready && lane->job.owed == NULL;
	if (!stand.ready || lane->order.own_steps || !lane->job.has_steps) {
		return stand; /* its steps end without it */
	}
	lane->service->stands(lane, peer, &stand.applied, &stand.received);
	stand.counted = stand.applied > 0 && peer->member.step_next > stand.applied;
	if (stand.counted) {
		stand.samples = peer->member.samples;
		stand.alone = is_alone(lane, peer, stand.applied);
	}
	return stand;
}

/* The trainer's paths go DOWN, and it has a border. */
static void
begin_leave(struct wf_lane *lane, const struct wf_registry_leave *leave)
{
	const bool is_half = (leave->flags & WF_REGISTRY_LEAVE_HALF) != 0;
	if (!lane->job.is_here || leave->trainer >= lane->peers.count) {
		return;
	}
	struct wf_peer *peer = &lane->peers.all[leave->trainer];
	bool is_other =
		peer->state != WF_PEER_ABSENT && peer->hello.incarnation != leave->incarnation;
	if (peer->leaving.ordered || is_other) {
		return;
	}
	peer->hello.incarnation = leave->incarnation;
	peer->leaving.ordered = true;
	peer->leaving.border = leave->border;
	peer->leaving.alone = (leave->flags & WF_REGISTRY_LEAVE_ALONE) != 0;
	lane->members.leaving_count++;
	lane->members.applied =
		leave->applied > lane->members.applied ? leave->applied : lane->members.applied;
	if (is_half && lane->order.sum.step == leave->border && !lane->order.own_steps) {
		lane->order.sum.gone_samples += leave->samples;
	}
	if (lane->job.owed != NULL && peer->trainer == 0) {
		wf_lane_fail(lane, WEFT_LOST, 0,
			     "trainer 0 was lost before all of its initial values were here");
		return;
	}
	(void)wf_fail(WEFT_LOST, "it was dropped from the job");
	if (peer->successor.conn != NULL) {
		wf_transport_disconnect(peer->successor.conn, WF_DISCONNECT_NOW);
		peer->successor.conn = NULL;
	}
	if (peer->conn != NULL && !peer->closing) {
		wf_peer_end_path(peer);
	}
}

/* It takes part in nothing any more. */
static void
drop(struct wf_lane *lane, struct wf_peer *peer)
{
	peer->leaving.is_dropped = true;
	lane->members.leaving_count--;
	if (peer->state != WF_PEER_GONE) {
		peer->state = WF_PEER_GONE;
		lane->peers.gone_count++;
	}
	peer->farewell.is_over = true;
	wf_absent_forget(lane, peer->trainer);
	if (lane->waits.absent.silent == peer->trainer + 1) {
		wf_absent_note_silent(lane, 0);
	}
	wf_log(lane->env, WF_LOG_WARN,
	       "lane %u: trainer %u takes no part from step %" PRIu64 " on, and has made %" PRIu64
	       " steps here",
	       lane->opts.idx, peer->trainer, peer->leaving.border, peer->member.made);
	wf_order_drop(&lane->order, &peer->member);
	lane->service->drop(lane, peer);
	wf_reduce_try_complete(lane);
	for (uint32_t i = 0; i < lane->peers.count; i++) { /* answers that waited for it */
		if (lane->peers.all[i].conn != NULL) {
			wf_peer_due(&lane->peers.all[i]);
		}
	}
	wf_control_finish_if_left(lane);
}

/* Those whose path is down, and whose border is here. */
static void
drop_due(struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peers.count && lane->members.leaving_count > 0; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		const struct wf_peer_leaving *leaving = &peer->leaving;
		bool is_here = lane->order.own_steps || !lane->job.has_steps ||
			       lane->order.sum.step >= leaving->border;
		if (leaving->ordered && !leaving->is_dropped && peer->conn == NULL && is_here &&
		    lane->state == WF_LANE_RUNNING) {
			drop(lane, peer);
		}
	}
}

/* All others have sent GOODBYE, so no border matters for anybody's steps, and the registrar may be
 * gone: the lane drops those who are lost by itself. */
static void
drop_last(struct wf_lane *lane)
{
	uint32_t lost = 0, left = 0;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		if (peer->state != WF_PEER_GONE &&
		    (!peer->leaving.asked || peer->leaving.ordered)) {
			return;
		}
		lost += peer->state != WF_PEER_GONE ? 1 : 0;
		left += peer->state == WF_PEER_GONE && !peer->leaving.is_dropped ? 1 : 0;
	}
	if (lost > 0 && left < wf_members_min(lane->opts.members)) {
		wf_lane_fail(lane, WEFT_LOST, lane->order.sum.step,
			     "%u trainers were lost while the job ended, and --min_trainers is %u",
			     lost, wf_members_min(lane->opts.members));
		return;
	}
	for (uint32_t i = 0; i < lane->peers.count && lost > 0; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		if (peer->state != WF_PEER_GONE) {
			begin_leave(lane, &(struct wf_registry_leave){
						  .incarnation = peer->hello.incarnation,
						  .border = lane->order.sum.step,
						  .trainer = i});
		}
	}
	drop_due(lane);
}

bool
wf_members_hold(const struct wf_lane *lane)
{
	bool holds = lane->members.holds;
	for (uint32_t i = 0; i < lane->peers.count && lane->members.leaving_count > 0; i++) {
		const struct wf_peer_leaving *leaving = &lane->peers.all[i].leaving;
		holds = holds || (leaving->ordered && !leaving->is_dropped &&
				  lane->order.sum.step >= leaving->border);
	}
	return holds;
}

static void
follow_order(struct wf_lane *lane)
{
	struct wf_registry_leave leave;
	struct wf_members *members = lane->opts.members;
	const uint64_t number = wf_members_read(members, &leave);
	lane->members.seen = number;
	if (number == 0) {
		return;
	}
	if (leave.border == 0) {
		const struct wf_member_stand stand = find_stand(lane, &leave);
		lane->members.holds = true;
		wf_members_answer(members, lane->opts.idx, number, &stand);
		return;
	}
	begin_leave(lane, &leave);
	lane->members.holds = false;
	wf_members_answer(members, lane->opts.idx, number, NULL);
}

void
wf_members_job_begins(struct wf_lane *lane)
{
	if (lane->opts.members != NULL) {
		wf_members_seat(lane->opts.members, lane->opts.idx, true);
	}
}

void
wf_members_look(struct wf_lane *lane, uint64_t now_ns)
{
	const struct wf_members *members = lane->opts.members;
	if (!lane->job.is_ready || lane->state != WF_LANE_RUNNING) {
		return;
	}
	const bool held = lane->members.holds;
	if (wf_members_order_number(members) != lane->members.seen) {
		follow_order(lane);
	}
	drop_due(lane);
	if (lane->state == WF_LANE_RUNNING && lane->peers.gone_count > 0) {
		drop_last(lane);
	}
	if (lane->state != WF_LANE_RUNNING) {
		return;
	}
	if (held && !lane->members.holds) {
		lane->service->go_on(lane);
	}
	if (lane->members.holds || lane->members.leaving_count > 0) {
		wf_turn_tick_before(&lane->turn, now_ns + LOOK_NS);
	}
}
