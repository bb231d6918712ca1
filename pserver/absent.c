/* SPDX-License-Identifier: Apache-2.0 */
/* absent: what is known of trainers that the job waits for. Of those that are not admitted: which
 * were refused, and which had begun to connect and are gone. All members are notified at once. The
 * job ends if that trainer has not joined in time and the job cannot run without it; if it can, or
 * does, a stranger or another job could end it otherwise. Of those that are here: which take no
 * turns (beats.c), which is reported in the same way. Thread: the lane's. */
#include "pserver/service.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static struct wf_absentee *
find(struct wf_lane *lane, uint32_t trainer)
{
	for (uint32_t i = 0; i < lane->waits.absent.count; i++) {
		if (lane->waits.absent.known[i].trainer == trainer) {
			return &lane->waits.absent.known[i];
		}
	}
	return NULL;
}

static void
send_all(struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		if (lane->peers.all[i].conn != NULL) {
			wf_absent_send(lane, &lane->peers.all[i]);
		}
	}
}

bool
wf_lane_has_run(const struct wf_lane *lane)
{
	static const enum wf_lane_counter counter[] = {WF_LANE_STEP_APPLIED_COUNT,
						       WF_LANE_SLICE_APPLIED_COUNT};
	for (size_t i = 0; i < WF_ARRAY_COUNT(counter); i++) {
		if (wf_stats_get(&lane->stats, counter[i]) !=
		    lane->report.lines.whole.counter[counter[i]]) {
			return true;
		}
	}
	return false;
}

bool
wf_lane_needs_all(const struct wf_lane *lane)
{
	return lane->job.needs_all;
}

void
wf_lane_on_needs_all(struct wf_lane *lane)
{
	/* Then it is the same job: a trainer that has made a step is on all lanes. */
	if (lane->job.has_steps && wf_lane_has_run(lane)) {
		lane->waits.absent.others_need_all = true;
	}
}

static bool
is_awaited(const struct wf_lane *lane, const struct wf_hello *hello)
{
	uint32_t trainer = hello->trainer_id;
	return lane->state == WF_LANE_RUNNING && trainer < lane->peers.count &&
	       lane->peers.all[trainer].state == WF_PEER_ABSENT;
}

static void
note(struct wf_lane *lane, const struct wf_hello *hello, const struct wf_absentee *news)
{
	uint32_t trainer = hello->trainer_id;
	struct wf_absentee *absentee = find(lane, trainer);
	if (absentee == NULL && lane->waits.absent.count == WF_ABSENTEES_MAX) {
		return; /* each of the others ends the job as well */
	}
	/* The first event that limits the time to join counts, and no later one gives more. */
	uint64_t deadline_ns = absentee != NULL && absentee->deadline_ns < news->deadline_ns
				       ? absentee->deadline_ns
				       : news->deadline_ns;
	absentee =
		absentee != NULL ? absentee : &lane->waits.absent.known[lane->waits.absent.count++];
	*absentee = *news;
	absentee->trainer = trainer;
	absentee->deadline_ns = deadline_ns;
	send_all(lane);
}

void
wf_absent_note_refusal(struct wf_lane *lane, const struct wf_hello *hello)
{
	const struct wf_error *refusal = wf_error_record();
	struct wf_absentee news = {
		.status = refusal->status,
		.deadline_ns = wf_now_ns(lane->env) + lane->opts.reconnect_timeout_ns,
	};
	bool passes = refusal->status == WEFT_UNAVAILABLE || refusal->status == WEFT_REFUSED;
	if (passes || !is_awaited(lane, hello)) {
		return; /* it is to try again, or no trainer waits for it */
	}
	(void)snprintf(news.why, sizeof(news.why), "refused: %.*s", WF_REASON_BYTES - 10,
		       refusal->text);
	note(lane, hello, &news);
}

/* A process that dies cannot close its connections in good order, so who does is alive: its attempt
 * to connect took too long, and it tries again for as long as trainers may connect. */
void
wf_absent_note_gone(struct wf_lane *lane, const struct wf_hello *hello, enum weft_status how,
		    const char *text)
{
	bool tries_again = how == WEFT_CLOSED;
	const uint64_t lost_ns =
		wf_now_ns(lane->env) + lane->opts.reconnect_timeout_ns + WF_REFUSAL_FIRST_NS;
	struct wf_absentee news = {
		.status = wf_lane_loss(lane),
		.deadline_ns = tries_again ? lane->admission.deadline_ns : lost_ns,
	};
	if (!is_awaited(lane, hello)) {
		return;
	}
	(void)snprintf(news.why, sizeof(news.why), "host %s, pid %u %s: %.110s", hello->host,
		       hello->pid,
		       tries_again ? "has given up an attempt to connect and tries again"
				   : "had begun to connect and is gone",
		       text);
	wf_log(lane->env, WF_LOG_WARN, "lane %u: trainer %u: %s", lane->opts.idx, hello->trainer_id,
	       news.why);
	note(lane, hello, &news);
}

bool
wf_absent_is_any(const struct wf_lane *lane)
{
	return lane->waits.absent.count > 0 || lane->waits.absent.silent > 0;
}

void
wf_absent_release(struct wf_lane *lane)
{
	lane->waits.absent = (struct wf_absences){0};
}

void
wf_absent_forget(struct wf_lane *lane, uint32_t trainer)
{
	struct wf_absentee *absentee = find(lane, trainer);
	if (absentee == NULL) {
		return;
	}
	*absentee = lane->waits.absent.known[--lane->waits.absent.count];
	send_all(lane);
}

const char *
wf_absent_why(const struct wf_lane *lane, uint32_t trainer)
{
	for (uint32_t i = 0; i < lane->waits.absent.count; i++) {
		if (lane->waits.absent.known[i].trainer == trainer) {
			return lane->waits.absent.known[i].why;
		}
	}
	return "";
}

void
wf_absent_check(struct wf_lane *lane, uint64_t now)
{
	/* An asynchronous job runs without the absent trainer, and may have begun to since the
	 * trainer was refused; a lane without steps cannot know whether it runs elsewhere. */
	bool needs_all = lane->job.needs_all || lane->waits.absent.others_need_all;
	bool may_end = needs_all || (lane->job.has_steps && !wf_lane_has_run(lane));
	for (uint32_t i = 0; i < lane->waits.absent.count && may_end; i++) {
		const struct wf_absentee *absentee = &lane->waits.absent.known[i];
		if (now < absentee->deadline_ns) {
			continue;
		}
		wf_lane_fail(lane, absentee->status, 0,
			     "trainer %u did not join within %.1f s; %.200s", absentee->trainer,
			     (double)lane->opts.reconnect_timeout_ns / 1e9, absentee->why);
		return;
	}
}

void
wf_absent_send(struct wf_lane *lane, struct wf_peer *peer)
{
	WF_ASSERT(peer->lane == lane);
	peer->absent_due = true;
	wf_peer_due(peer);
}

void
wf_absent_note_silent(struct wf_lane *lane, uint32_t silent)
{
	if (lane->waits.absent.silent != silent) {
		lane->waits.absent.silent = silent;
		send_all(lane);
	}
}

/* False: no trainer that `peer` could wait for is silent; that one moves again is reported at the
 * next look. */
static bool
fill_silent(const struct wf_lane *lane, const struct wf_peer *peer, struct wf_msg_absent *msg)
{
	if (lane->waits.absent.silent == 0 || lane->waits.absent.silent - 1 == peer->trainer) {
		return false;
	}
	const struct wf_peer *silent = &lane->peers.all[lane->waits.absent.silent - 1];
	msg->silent_ns = wf_beat_silent_ns(&silent->beat, &lane->waits.beats);
	if (msg->silent_ns == 0) {
		return false;
	}
	msg->trainer = silent->trainer;
	(void)snprintf(msg->reason, sizeof(msg->reason), "(host %s, pid %u) %s", silent->hello.host,
		       silent->hello.pid, wf_beat_lacks(&silent->beat));
	return true;
}

/* The newer one first: a refused trainer was reported when it was refused. */
bool
wf_absent_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_msg_absent msg = {0};
	if (!fill_silent(lane, peer, &msg) && lane->waits.absent.count > 0) {
		msg.trainer = lane->waits.absent.known[0].trainer;
		memcpy(msg.reason, lane->waits.absent.known[0].why, sizeof(msg.reason));
	}
	wf_msg_absent_encode(&msg, &lane->msg);
	peer->absent_due = !wf_control_send(peer, &lane->msg);
	return !peer->absent_due;
}
