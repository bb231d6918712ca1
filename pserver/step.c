/* SPDX-License-Identifier: Apache-2.0 */
/* step: who takes part in a step, and who is waited for. A trainer out of data takes part in no
 * step from the one it says so until the end of the pass. Thread: the lane's. */
#include "pserver/service.h"

#include <inttypes.h>
#include <stdio.h>

bool
wf_step_is_out(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return peer->out && peer->out_pass == lane->sum.pass;
}

static bool
is_missing(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return !wf_step_is_out(lane, peer) && lane->service->is_missing(lane, peer);
}

void
wf_step_is_done(struct wf_lane *lane, uint64_t applied_ns)
{
	struct wf_step_sum *sum = &lane->sum;
	wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	if (lane->turn.on) {
		wf_hist_record(&lane->step_time, applied_ns - sum->since_ns);
	}
	sum->samples_before += sum->samples;
	sum->step++;
	sum->samples = 0;
	sum->heard = 0;
	sum->out = 0;
	sum->since_ns = 0;
	sum->done_ns = 0;
}

static enum weft_status
check_out(const struct wf_lane *lane, const struct wf_peer *peer, const struct wf_step_said *said,
	  enum wf_step_news *out)
{
	if (peer->out && peer->out_pass == said->pass) {
		*out = WF_STEP_AGAIN;
		return WEFT_OK;
	}
	if (said->step != peer->step_next) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s: out of data in step %" PRIu64 ", %" PRIu64 " is next",
			       said->message, said->step, peer->step_next);
	}
	if (peer->step_next == lane->sum.step + 1 && lane->service->is_missing(lane, peer)) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s: out of data in step %" PRIu64 ", before all of step %" PRIu64
			       " was pushed",
			       said->message, said->step, lane->sum.step);
	}
	*out = WF_STEP_NEW;
	return WEFT_OK;
}

enum weft_status
wf_step_check(const struct wf_lane *lane, const struct wf_peer *peer,
	      const struct wf_step_said *said, enum wf_step_news *out)
{
	const struct wf_step_sum *sum = &lane->sum;
	if (said->epoch != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s %" PRIu64 ": epoch %" PRIu64 ", the job is in epoch 0",
			       said->message, said->step, said->epoch);
	}
	if (said->out) {
		return check_out(lane, peer, said, out);
	}
	if (said->step < peer->step_next) {
		*out = WF_STEP_AGAIN;
		return WEFT_OK;
	}
	bool returns = peer->out && said->pass > peer->out_pass;
	if (said->step != sum->step || (peer->out && !returns) ||
	    (!peer->out && said->step != peer->step_next) ||
	    (sum->heard > 0 && said->pass != sum->pass)) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s %" PRIu64 " of pass %u, the lane is in step %" PRIu64
			       " of pass %u, step %" PRIu64 " is this trainer's next",
			       said->message, said->step, said->pass, sum->step, sum->pass,
			       peer->step_next);
	}
	*out = returns ? WF_STEP_BACK : WF_STEP_NEW;
	return WEFT_OK;
}

static void
begin_step(struct wf_lane *lane, uint32_t pass)
{
	struct wf_step_sum *sum = &lane->sum;
	sum->pass = pass;
	sum->since_ns = lane->turn.on ? wf_now_ns(lane->env) : 0;
	sum->out = 0;
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		sum->out += wf_step_is_out(lane, &lane->peer[i]) ? 1 : 0;
	}
}

static void
go_out(struct wf_lane *lane, struct wf_peer *peer, const struct wf_step_said *said)
{
	struct wf_step_sum *sum = &lane->sum;
	peer->out = true;
	peer->out_pass = said->pass;
	/* Else it is counted when somebody begins the step. */
	if (sum->heard > 0 && sum->pass == said->pass && sum->step >= said->step) {
		sum->out++;
	}
}

/* Who has left does not push any more. */
static void
fail_if_gone(struct wf_lane *lane, uint64_t step)
{
	for (uint32_t i = 0; i < lane->peer_count && lane->gone_count > 0; i++) {
		const struct wf_peer *other = &lane->peer[i];
		if (other->state == WF_PEER_GONE && is_missing(lane, other)) {
			wf_lane_fail(lane, WEFT_LOST, step,
				     "trainer %u left in good order, and step %" PRIu64
				     " waits for it: all trainers make the same number of passes",
				     i, step);
		}
	}
}

enum weft_status
wf_step_take(struct wf_lane *lane, struct wf_peer *peer, const struct wf_step_said *said,
	     enum wf_step_news *out)
{
	enum weft_status st = wf_step_check(lane, peer, said, out);
	if (st != WEFT_OK || *out == WF_STEP_AGAIN) {
		return st;
	}
	if (said->out) {
		go_out(lane, peer, said);
		return WEFT_OK;
	}
	struct wf_step_sum *sum = &lane->sum;
	peer->out = false;
	if (sum->heard == 0) {
		begin_step(lane, said->pass);
	}
	sum->heard++;
	sum->samples += said->samples;
	peer->step_next = said->step + 1;
	fail_if_gone(lane, said->step);
	return WEFT_OK;
}

bool
wf_step_others_need(const struct wf_lane *lane, const struct wf_peer *peer)
{
	bool heard = peer->step_next > lane->sum.step;
	uint32_t others = lane->sum.heard - (lane->sum.heard > 0 && heard ? 1 : 0);
	return others > 0 && is_missing(lane, peer);
}

/* "1, 3 and 5 more" */
static void
list_peers(const struct wf_lane *lane,
	   bool (*listed)(const struct wf_lane *lane, const struct wf_peer *peer), char *out,
	   size_t bytes)
{
	size_t used = 0;
	unsigned more = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		if (!listed(lane, &lane->peer[i])) {
			continue;
		}
		if (used + 32 > bytes) {
			more++;
			continue;
		}
		used += (size_t)snprintf(out + used, bytes - used, "%s%u", used > 0 ? ", " : "", i);
	}
	if (more > 0) {
		(void)snprintf(out + used, bytes - used, " and %u more", more);
	}
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
	const struct wf_lane_service *service = lane->service;
	bool offered = service->has_offered != NULL && service->has_offered(lane, peer);
	return is_missing(lane, peer) && !offered;
}

static uint64_t
holds_since(const struct wf_lane *lane)
{
	const struct wf_lane_service *service = lane->service;
	return service->holds_since != NULL ? service->holds_since(lane) : 0;
}

static bool
lacks_reduce(const struct wf_lane *lane, const struct wf_peer *peer)
{
	return peer->reduce_id == lane->reduction.id;
}

/* Somebody has not come yet (others may wait for each other all the same: what is applied as it
 * comes goes on without), or what the job begins with is not all here. */
static bool
is_starting(const struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		if (is_absent(lane, &lane->peer[i])) {
			return true;
		}
	}
	return !lane->ready || lane->service->owed(lane) != NULL;
}

/* Whoever has done its part waits for the others from then on. While nobody has, nobody waits as
 * long as more of the step comes: trainers that push while they compute take their time. */
static uint64_t
step_since(const struct wf_lane *lane)
{
	const struct wf_step_sum *sum = &lane->sum;
	if (sum->heard == 0 || sum->done_ns != 0) {
		return sum->heard == 0 ? 0 : sum->done_ns;
	}
	return lane->turn.event_ns; /* of the step, or later */
}

void
wf_step_look(struct wf_lane *lane)
{
	struct wf_step_sum *sum = &lane->sum;
	for (uint32_t i = 0; i < lane->peer_count && sum->heard > 0 && sum->done_ns == 0; i++) {
		const struct wf_peer *peer = &lane->peer[i];
		bool takes_part = peer->step_next > sum->step && !wf_step_is_out(lane, peer);
		if (takes_part && !is_behind(lane, peer)) {
			sum->done_ns = step_since(lane);
		}
	}
}

bool
wf_step_waits_on(const struct wf_lane *lane, enum wf_step_wait kind, const struct wf_peer *peer)
{
	switch (kind) {
	case WF_STEP_WAIT_START: /* what is owed is trainer 0's, or the description somebody's */
		return lane->ready ? peer->trainer == 0 && lane->service->owed(lane) != NULL
				   : peer->loading;
	case WF_STEP_WAIT_HOLDS:
		return lane->service->holds_for(lane, peer);
	case WF_STEP_WAIT_STEP:
		return is_missing(lane, peer);
	case WF_STEP_WAIT_REDUCE:
		return lacks_reduce(lane, peer);
	}
	return false;
}

uint64_t
wf_step_waits_since(const struct wf_lane *lane, enum wf_step_wait kind)
{
	if (kind == WF_STEP_WAIT_START) {
		return is_starting(lane) ? lane->start_ns : 0;
	}
	if (!lane->ready) {
		return 0;
	}
	switch (kind) {
	case WF_STEP_WAIT_START:
		return 0;
	case WF_STEP_WAIT_HOLDS:
		return holds_since(lane);
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
	list_peers(lane, is_behind, who, sizeof(who));
	if (who[0] == '\0') { /* their gradients are on the way */
		list_peers(lane, is_missing, who, sizeof(who));
	}
	if (who[0] == '\0') {
		(void)snprintf(out, bytes,
			       "step %" PRIu64 " has all its gradients here, and waits for other "
			       "lanes or for answers on their way",
			       lane->sum.step);
		return;
	}
	(void)snprintf(out, bytes, "step %" PRIu64 " waits for trainer %s", lane->sum.step, who);
}

static void
start_waits_for(const struct wf_lane *lane, char *out, size_t bytes)
{
	char who[128];
	list_peers(lane, is_absent, who, sizeof(who));
	if (who[0] != '\0') {
		const struct wf_absentee *first = &lane->absentee[0];
		size_t used =
			(size_t)snprintf(out, bytes, "the job waits for trainer %s to come", who);
		if (lane->absentee_count > 0 && used < bytes) {
			(void)snprintf(out + used, bytes - used, "; trainer %u: %s", first->trainer,
				       first->why);
		}
		return;
	}
	const char *owed = lane->ready ? lane->service->owed(lane) : "its description";
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
		list_peers(lane, lane->service->holds_for, who, sizeof(who));
		(void)snprintf(out, bytes, "answers of bounded tensors wait for trainer %s", who);
		return;
	case WF_STEP_WAIT_STEP:
		step_waits_for(lane, out, bytes);
		return;
	case WF_STEP_WAIT_REDUCE:
		list_peers(lane, lacks_reduce, who, sizeof(who));
		(void)snprintf(out, bytes, "a barrier, reduce or pass end waits for trainer %s",
			       who);
		return;
	}
}
