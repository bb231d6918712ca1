/* SPDX-License-Identifier: Apache-2.0 */
/* members_lane: a lane's part when a trainer is dropped or leaves (members.h). It holds from its
 * report to the border. The path of a trainer that is lost goes DOWN, which copies aside what it
 * has pushed; then, when the lane is in the step of the border, the trainer is taken out of it,
 * and is from there on as one that is out of data for ever and has sent GOODBYE. Thread: the
 * lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "pserver/service.h"

#define LOOK_NS WF_NS_PER_MS /* between two looks while a change is under way */

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

/* Whether the lane knows the process that a change is about. */
static bool
is_known(const struct wf_peer *peer, const struct wf_registry_member *change)
{
	const bool joins = (change->flags & WF_REGISTRY_MEMBER_JOINS) != 0;
	const uint64_t own =
		peer->joining.ordered ? peer->joining.incarnation : peer->hello.incarnation;
	return joins ? peer->leaving.ordered
		     : peer->state == WF_PEER_ABSENT || own == change->incarnation;
}

static struct wf_member_stand
find_stand(const struct wf_lane *lane, const struct wf_registry_member *change)
{
	struct wf_member_stand stand = {.received = UINT64_MAX};
	const struct wf_step_sum *sum = &lane->order.sum;
	const struct wf_peer *peer = change->trainer < lane->peers.count && lane->job.is_here
					     ? &lane->peers.all[change->trainer]
					     : NULL;
	stand.ready = peer != NULL && is_known(peer, change) && lane->job.is_ready &&
		      lane->job.owed == NULL;
	stand.highest = lane->order.own_steps ? lane->order.highest : 0;
	if (!stand.ready || lane->order.own_steps || !lane->job.has_steps) {
		return stand; /* its steps end without it */
	}
	lane->service->stands(lane, peer, &stand.applied, &stand.received);
	stand.shared = true;
	stand.total = sum->samples_before;
	stand.total += stand.applied == sum->step ? sum->samples + sum->gone_samples : 0;
	/* Samples are what trainers send, and STANDS has room for so many. */
	stand.total = stand.total < INT64_MAX ? stand.total : INT64_MAX;
	if (peer->leaving.ordered) { /* it is no member here */
		stand.received = peer->joining.ordered ? peer->joining.border - 1 : UINT64_MAX;
		return stand;
	}
	stand.counted = stand.applied > 0 && peer->member.step_next > stand.applied;
	if (stand.counted) {
		stand.samples = peer->member.samples;
		stand.alone = is_alone(lane, peer, stand.applied);
	}
	return stand;
}

/* The trainer has a border, and its paths go DOWN, unless it leaves on purpose. */
static void
begin_leave(struct wf_lane *lane, const struct wf_registry_member *leave)
{
	const bool is_half = (leave->flags & WF_REGISTRY_MEMBER_HALF) != 0;
	if (!lane->job.is_here || leave->trainer >= lane->peers.count) {
		return;
	}
	struct wf_peer *peer = &lane->peers.all[leave->trainer];
	const bool is_to_join = peer->joining.ordered;
	if (!is_known(peer, leave) || (peer->leaving.ordered && !is_to_join)) {
		return;
	}
	lane->members.applied =
		leave->applied > lane->members.applied ? leave->applied : lane->members.applied;
	if (is_half && lane->order.sum.step == leave->border && !lane->order.own_steps) {
		lane->order.sum.gone_samples += leave->samples;
	}
	if (is_to_join) {
		wf_members_end_join(lane, peer);
		return;
	}
	peer->hello.incarnation = leave->incarnation;
	peer->leaving.ordered = true;
	peer->leaving.border = leave->border;
	peer->leaving.alone = (leave->flags & WF_REGISTRY_MEMBER_ALONE) != 0;
	peer->leaving.is_willing = (leave->flags & WF_REGISTRY_MEMBER_WILLING) != 0;
	lane->members.leaving_count++;
	if (lane->job.owed != NULL && peer->trainer == 0) {
		wf_lane_fail(lane, WEFT_LOST, 0,
			     "trainer 0 was lost before all of its initial values were here");
		return;
	}
	if (peer->leaving.is_willing) {
		return; /* nothing of it is under way, and it waits for the answer to GOODBYE */
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
	/* Who leaves comes back for the acknowledgement. */
	peer->farewell.is_over = peer->conn == NULL && !peer->leaving.is_willing;
	peer->farewell.answer_due = peer->leaving.has_left && peer->conn != NULL;
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

/* Drops those whose path is down, and whose border is here. Whether there is one whose path is not
 * down yet. */
static bool
drop_due(struct wf_lane *lane)
{
	bool is_left = false;
	for (uint32_t i = 0; i < lane->peers.count && lane->members.leaving_count > 0; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		const struct wf_peer_leaving *leaving = &peer->leaving;
		bool is_here = lane->order.own_steps || !lane->job.has_steps ||
			       lane->order.sum.step >= leaving->border;
		const bool may_go = peer->conn == NULL || leaving->is_willing;
		bool is_due = leaving->ordered && !leaving->is_dropped && is_here &&
			      lane->state == WF_LANE_RUNNING;
		if (is_due && may_go) {
			drop(lane, peer);
		}
		is_left = is_left || (is_due && !may_go);
	}
	return is_left;
}

/* Whether the lane has yet to take the step in which somebody that it has dropped was alone. A
 * sparse lane may have to wait for copies of a snapshot before. */
static bool
skips_later(const struct wf_lane *lane)
{
	const struct wf_step_sum *sum = &lane->order.sum;
	bool skips = false;
	for (uint32_t i = 0; i < lane->peers.count && sum->heard == 0 && !skips; i++) {
		const struct wf_peer_leaving *leaving = &lane->peers.all[i].leaving;
		skips = leaving->is_dropped && leaving->alone && leaving->border == sum->step;
	}
	return skips && lane->job.has_steps && !lane->order.own_steps;
}

/* All others have sent GOODBYE, so no border matters for anybody's steps, and the registrar may be
 * gone: the lane drops those who are lost by itself. */
static void
drop_last(struct wf_lane *lane)
{
	uint32_t waiting = 0, lost = 0, left = 0;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		if (peer->state != WF_PEER_GONE &&
		    (!peer->leaving.asked || peer->leaving.ordered)) {
			return;
		}
		waiting += peer->state != WF_PEER_GONE ? 1 : 0;
		lost += peer->state != WF_PEER_GONE && !peer->leaving.has_left ? 1 : 0;
		left += peer->state == WF_PEER_GONE && !peer->leaving.is_dropped ? 1 : 0;
	}
	if (lost > 0 && left < wf_members_min(lane->opts.members)) {
		wf_lane_fail(lane, WEFT_LOST, lane->order.sum.step,
			     "%u trainer%s lost while the job ended, and --min_trainers is %u",
			     lost, lost == 1 ? " was" : "s were",
			     wf_members_min(lane->opts.members));
		return;
	}
	for (uint32_t i = 0; i < lane->peers.count && waiting > 0; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		const uint32_t willing = peer->leaving.has_left ? WF_REGISTRY_MEMBER_WILLING : 0;
		if (peer->state != WF_PEER_GONE) {
			begin_leave(lane, &(struct wf_registry_member){
						  .incarnation = peer->hello.incarnation,
						  .border = lane->order.sum.step,
						  .flags = willing,
						  .trainer = i});
		}
	}
	(void)drop_due(lane);
}

static void
follow_order(struct wf_lane *lane)
{
	struct wf_registry_member leave;
	struct wf_members *members = lane->opts.members;
	const uint64_t number = wf_members_read(members, &leave);
	lane->members.seen = number;
	lane->members.unanswered = 0;
	if (number == 0) {
		return;
	}
	if (leave.border == 0) {
		const struct wf_member_stand stand = find_stand(lane, &leave);
		lane->members.holds = true;
		wf_members_answer(members, lane->opts.idx, number, &stand);
		return;
	}
	if ((leave.flags & WF_REGISTRY_MEMBER_JOINS) != 0) {
		wf_members_begin_join(lane, &leave);
	} else {
		begin_leave(lane, &leave);
	}
	lane->members.holds = false;
	lane->members.unanswered = number;
}

/* Answers an order with a border when it is carried out, as far as that is up to this lane. */
static void
answer_order(struct wf_lane *lane)
{
	if (lane->members.unanswered != 0) {
		wf_members_answer(lane->opts.members, lane->opts.idx, lane->members.unanswered,
				  NULL);
		lane->members.unanswered = 0;
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
	wf_members_ask_again_to_leave(lane);
	if (!drop_due(lane) && !skips_later(lane)) {
		answer_order(lane);
	}
	if (lane->state == WF_LANE_RUNNING) {
		wf_members_look_for_joins(lane, now_ns);
	}
	if (lane->state == WF_LANE_RUNNING && lane->peers.gone_count > 0) {
		drop_last(lane);
	}
	if (lane->state != WF_LANE_RUNNING) {
		return;
	}
	if (held && !lane->members.holds) {
		lane->service->go_on(lane);
		wf_reduce_try_complete(lane);
	}
	if (lane->members.holds || lane->members.leaving_count > 0 ||
	    lane->members.joining_count > 0 || lane->members.unanswered != 0) {
		wf_turn_tick_before(&lane->turn, now_ns + LOOK_NS);
	}
}
