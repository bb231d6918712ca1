/* SPDX-License-Identifier: Apache-2.0 */
/* members_ask: what a lane asks of the registrar, and whom it refuses (members.h): a trainer is
 * lost, leaves, or another process comes in its place; and what a change that is under way makes
 * wait. Nothing here changes who takes part in a step. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pserver/members.h"
#include "pserver/service.h"

/* ---- a trainer is lost ---- */

/* Whether the registrar knows, or does now, that the trainer is to be taken out. */
static bool
ask(struct wf_lane *lane, struct wf_peer *peer, enum wf_member_wish what, const char *reason)
{
	struct wf_peer_leaving *leaving = &peer->leaving;
	struct wf_member_news news = {
		.what = what, .trainer = peer->trainer, .incarnation = peer->hello.incarnation};
	if (leaving->asked || leaving->ordered || lane->state != WF_LANE_RUNNING) {
		return true; /* if the lane has finished, it may be out already */
	}
	(void)snprintf(news.reason, sizeof(news.reason), "%.*s", WF_REASON_BYTES - 1, reason);
	leaving->asked = wf_members_ask(lane->opts.members, &news);
	if (leaving->asked) {
		wf_log(lane->env, WF_LOG_WARN, "lane %u: %.200s; the job is to go on without it",
		       lane->opts.idx, reason);
		lane->turn.tick_ns = 0;
	}
	return leaving->asked;
}

bool
wf_members_lose(struct wf_lane *lane, struct wf_peer *peer, const char *reason)
{
	const bool has_begun = lane->job.is_ready && lane->job.owed == NULL;
	return lane->opts.members != NULL && has_begun && ask(lane, peer, WF_MEMBER_LOST, reason);
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

static void
ask_to_leave(struct wf_lane *lane, struct wf_peer *peer)
{
	char reason[WF_REASON_BYTES];
	char who[WF_REASON_BYTES];
	wf_peer_describe(peer, who, sizeof(who));
	(void)snprintf(reason, sizeof(reason), "%.150s leaves after step %" PRIu64, who,
		       peer->member.step_next - 1);
	(void)ask(lane, peer, WF_MEMBER_LEAVES, reason);
}

enum weft_status
wf_members_on_leave(struct wf_lane *lane, struct wf_peer *peer)
{
	if (lane->opts.members == NULL || lane->job.owed != NULL) {
		return wf_fail(WEFT_PROTOCOL,
			       "GOODBYE: no trainer can leave this job while it goes on");
	}
	peer->leaving.has_left = true;
	ask_to_leave(lane, peer); /* until it is heard */
	return WEFT_OK;
}

/* ---- who comes ---- */

bool
wf_members_is_newcomer(const struct wf_lane *lane, const struct wf_peer *peer,
		       const struct wf_hello *hello)
{
	return lane->opts.members != NULL && lane->state == WF_LANE_RUNNING && hello->epoch != 0 &&
	       peer->leaving.is_dropped && peer->conn == NULL &&
	       hello->incarnation != peer->hello.incarnation;
}

/* Whether the place has been promised to another process, or another one waits for it. */
static bool
is_promised(const struct wf_peer *peer, const struct wf_hello *hello)
{
	const struct wf_held *waits = &peer->successor;
	return (peer->joining.ordered && peer->joining.incarnation != hello->incarnation) ||
	       (waits->conn != NULL && (waits->hello.incarnation != hello->incarnation ||
					waits->hello.path >= hello->path));
}

/* WEFT_UNAVAILABLE: it has to try again. */
static enum weft_status
check_newcomer(const struct wf_lane *lane, const struct wf_peer *peer, const struct wf_hello *hello)
{
	const bool is_first = lane->opts.idx == 0 && lane->admission.first.pserver_idx == 0;
	if (is_first && lane->job.is_ready && !lane->job.has_steps) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "no trainer can join this job: it pushes no tensor to the first "
			       "lane of the first pserver, which knows the pass; use fewer "
			       "pservers or a smaller ports_num");
	}
	if (!wf_members_is_newcomer(lane, peer, hello) || is_promised(peer, hello)) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "the place of trainer %u is not empty yet, or another process "
			       "waits for it; try again",
			       peer->trainer);
	}
	return WEFT_OK;
}

enum weft_status
wf_members_check(const struct wf_lane *lane, const struct wf_peer *peer,
		 const struct wf_hello *hello, const char *who)
{
	const struct wf_peer_leaving *leaving = &peer->leaving;
	if (!leaving->asked && !leaving->ordered) {
		return WEFT_OK;
	}
	if (hello->incarnation != peer->hello.incarnation && hello->epoch != 0) {
		return check_newcomer(lane, peer, hello);
	}
	if (hello->incarnation != peer->hello.incarnation) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u was dropped from this job, or has left it; another "
			       "process can take its place if it asks to join (join)",
			       peer->trainer);
	}
	if (leaving->has_left || leaving->is_willing) { /* it has not heard that it is out */
		return WEFT_OK;
	}
	return wf_fail(WEFT_LOST,
		       "%.60s was dropped from the job in step %" PRIu64
		       ", because it was lost; the job goes on without it",
		       who, lane->order.sum.step);
}

void
wf_members_on_newcomer(struct wf_lane *lane, struct wf_peer *peer, const struct wf_hello *hello)
{
	const struct wf_member_news news = {.what = WF_MEMBER_COMES,
					    .trainer = peer->trainer,
					    .incarnation = hello->incarnation};
	if (peer->joining.ordered) {
		return; /* it has its border */
	}
	(void)wf_members_ask(lane->opts.members, &news); /* without a job, it comes again */
	lane->turn.tick_ns = 0;
}

/* ---- what waits ---- */

bool
wf_members_is_at_border(const struct wf_lane *lane, uint64_t border)
{
	const struct wf_order *order = &lane->order;
	return !lane->job.has_steps ||
	       (order->own_steps ? order->highest >= border
				 : order->sum.step >= border && order->sum.heard > 0);
}

bool
wf_members_join_is_due(const struct wf_lane *lane)
{
	bool is_due = false;
	for (uint32_t i = 0; i < lane->peers.count && lane->members.joining_count > 0 && !is_due;
	     i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		is_due = peer->joining.ordered &&
			 wf_members_is_at_border(lane, peer->joining.border);
	}
	return is_due;
}

bool
wf_members_hold(const struct wf_lane *lane)
{
	bool holds = lane->members.holds;
	const uint32_t changing = lane->members.leaving_count + lane->members.joining_count;
	for (uint32_t i = 0; i < lane->peers.count && changing > 0 && !holds; i++) {
		const struct wf_peer_leaving *leaving = &lane->peers.all[i].leaving;
		const struct wf_peer_joining *joining = &lane->peers.all[i].joining;
		holds = (leaving->ordered && !leaving->is_dropped &&
			 lane->order.sum.step >= leaving->border) ||
			(joining->ordered && lane->order.sum.step >= joining->border);
	}
	return holds;
}

/* Those that leave, and that lane 0 has not heard of. */
void
wf_members_ask_again_to_leave(struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		const struct wf_peer_leaving *leaving = &peer->leaving;
		if (leaving->has_left && !leaving->asked && !leaving->ordered) {
			ask_to_leave(lane, peer);
		}
	}
}

void
wf_members_job_begins(struct wf_lane *lane)
{
	if (lane->opts.members != NULL) {
		wf_members_seat(lane->opts.members, lane->opts.idx, true);
	}
}
