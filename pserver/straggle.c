/* SPDX-License-Identifier: Apache-2.0 */
/* straggle: which trainers keep the others of a synchronous step waiting, by how much, and with
 * what. With a stats_period, and from when somebody watches (view.h).
 *
 * On the lane's clock: a trainer has *arrived* when its last slice of the step is here. The time
 * from the end of the step before to that is its *interval*; the part that it reports as spent on
 * computing (STEP, one step later, on its own clock) is *compute*, the rest *network*: its answers
 * on their way there, its gradients on their way here, and their delays. The time from the last
 * arrival to the end of the step is *apply*. The first step of a pass is not counted, because a
 * trainer that is late to it has tested, or saved.
 *
 * This follows the barrier statistics of the original (log_barrier_lowest_nodes), which compared
 * arrivals at named points, and forward-backward times. Thread: the lane's. */
#include "pserver/straggle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/dense.h"
#include "wire/watch_messages.h"

#define LINES_MAX 5u /* the most trainers that are listed */

static void
add_split(struct wf_straggle *to, uint64_t compute_ns, uint64_t network_ns)
{
	to->split++;
	to->compute_ns += compute_ns;
	to->network_ns += network_ns;
}

static uint64_t
straggle_bytes(const struct wf_lane *lane)
{
	bool may_measure = lane->turn.times.on || lane->opts.views != NULL;
	return may_measure ? sizeof(struct wf_straggle_state) +
				     lane->peers.count * sizeof(struct wf_straggle_peer)
			   : 0;
}

static enum weft_status
open_straggle(struct wf_feature *self, struct wf_lane *lane)
{
	struct wf_straggle_state *state = wf_zalloc(lane->env, sizeof(*state));
	self->state = state;
	if (state != NULL) {
		state->peer = wf_zalloc_array(lane->env, lane->peers.count, sizeof(*state->peer));
	}
	if (state == NULL || state->peer == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for the times of %u trainers",
			       lane->opts.idx, lane->peers.count);
	}
	if (lane->turn.times.on) {
		wf_feature_wake(self, lane);
	}
	return WEFT_OK;
}

static void
close_straggle(struct wf_feature *self, struct wf_lane *lane)
{
	struct wf_straggle_state *state = self->state;
	if (state != NULL) {
		wf_free(lane->env, state->peer, lane->peers.count * sizeof(*state->peer));
		wf_free(lane->env, state, sizeof(*state));
	}
}

/* With its next STEP a trainer reports how long it computed the last one. */
static void
step_said(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	  const struct wf_msg_step *msg)
{
	const struct wf_straggle_state *state = self->state;
	struct wf_straggle_peer *own = &state->peer[peer->trainer];
	(void)lane;
	bool is_out = (msg->flags & WF_STEP_OUT_OF_DATA) != 0;
	if (is_out || own->interval_ns == 0 || msg->compute_ns == 0) {
		return;
	}
	uint64_t compute = msg->compute_ns < own->interval_ns ? msg->compute_ns : own->interval_ns;
	add_split(&own->sum, compute, own->interval_ns - compute);
	own->interval_ns = 0;
}

/* The step under way is not the first of its pass. */
static bool
is_timed(const struct wf_straggle_state *state, const struct wf_lane *lane)
{
	return state->done_ns != 0 && state->done_pass == lane->order.sum.pass;
}

static void
step_is_here(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_straggle_state *state = self->state;
	struct wf_straggle_peer *own = &state->peer[peer->trainer];
	own->arrived_ns = wf_now_ns(lane->env);
	own->interval_ns = is_timed(state, lane) ? own->arrived_ns - state->done_ns : 0;
}

static void
add_last(struct wf_straggle *to, uint64_t behind_next_ns, uint64_t behind_first_ns)
{
	to->last++;
	to->behind_next_ns += behind_next_ns;
	to->behind_first_ns += behind_first_ns;
}

/* Which trainer arrived last, and when the one before it and the first one did. next_ns: 0 if it
 * was alone. */
static struct wf_straggle_peer *
find_last(const struct wf_straggle_state *state, uint32_t count, uint64_t *next_ns,
	  uint64_t *first_ns)
{
	struct wf_straggle_peer *last = NULL;
	*next_ns = 0;
	*first_ns = UINT64_MAX;
	for (uint32_t t = 0; t < count; t++) {
		struct wf_straggle_peer *own = &state->peer[t];
		if (own->arrived_ns == 0) {
			continue; /* did not take part */
		}
		*first_ns = own->arrived_ns < *first_ns ? own->arrived_ns : *first_ns;
		if (last == NULL || own->arrived_ns >= last->arrived_ns) {
			*next_ns = last != NULL ? last->arrived_ns : 0;
			last = own;
		} else if (own->arrived_ns > *next_ns) {
			*next_ns = own->arrived_ns;
		}
	}
	return last;
}

static void
add_arrivals(struct wf_straggle_state *state, uint32_t count, uint64_t last_ns)
{
	for (uint32_t t = 0; t < count; t++) {
		struct wf_straggle_peer *own = &state->peer[t];
		if (own->arrived_ns > state->done_ns) {
			own->sum.arrived++;
			own->sum.arrive_ns += own->arrived_ns - state->done_ns;
			own->sum.ahead_ns += last_ns - own->arrived_ns;
		}
	}
}

static void
count_step(struct wf_straggle_state *state, struct wf_lane *lane, uint64_t applied_ns)
{
	uint64_t next_ns;
	uint64_t first_ns;
	struct wf_straggle_peer *last = find_last(state, lane->peers.count, &next_ns, &first_ns);
	WF_ASSERT(last != NULL);
	uint64_t last_ns = last->arrived_ns;
	state->sum.steps++;
	state->sum.apply_ns += applied_ns > last_ns ? applied_ns - last_ns : 0;
	if (next_ns != 0 && last_ns > next_ns) {
		add_last(&last->sum, last_ns - next_ns, last_ns - first_ns);
	}
	add_arrivals(state, lane->peers.count, last_ns);
	wf_stats_add(&lane->stats, WF_LANE_STRAGGLER_TIME_NS, next_ns != 0 ? last_ns - next_ns : 0);
}

static void
step_done(const struct wf_feature *self, struct wf_lane *lane, uint64_t applied_ns)
{
	struct wf_straggle_state *state = self->state;
	if (is_timed(state, lane)) {
		count_step(state, lane, applied_ns);
	}
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		state->peer[t].arrived_ns = 0;
	}
	state->done_ns = applied_ns;
	state->done_pass = lane->order.sum.pass;
}

/* What the lines of a job or of a period say of a trainer. */
static struct wf_straggle
sum_of(const struct wf_straggle_peer *own, bool of_job)
{
	struct wf_straggle sum = own->sum;
	if (!of_job) {
		const struct wf_straggle *logged = &own->logged;
		sum.last -= logged->last;
		sum.behind_next_ns -= logged->behind_next_ns;
		sum.behind_first_ns -= logged->behind_first_ns;
		sum.split -= logged->split;
		sum.compute_ns -= logged->compute_ns;
		sum.network_ns -= logged->network_ns;
	}
	return sum;
}

/* Which of two trainers is listed first: the one that was waited for longer. */
static bool
comes_first(const struct wf_straggle_state *state, bool of_job, uint32_t a, uint32_t b)
{
	uint64_t of_a = sum_of(&state->peer[a], of_job).behind_next_ns;
	uint64_t of_b = sum_of(&state->peer[b], of_job).behind_next_ns;
	return of_a > of_b || (of_a == of_b && a < b);
}

static double
mean_ms(uint64_t sum_ns, uint64_t count)
{
	return count > 0 ? (double)sum_ns / (double)count / 1e6 : 0;
}

static void
write_line(const struct wf_lane *lane, const struct wf_straggle *s, uint64_t steps,
	   uint32_t trainer)
{
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: straggler trainer %u: last %" PRIu64 " of %" PRIu64
	       " behind_next_ms %.3f behind_first_ms %.3f compute_ms %.3f network_ms %.3f",
	       lane->opts.idx, trainer, s->last, steps, mean_ms(s->behind_next_ns, s->last),
	       mean_ms(s->behind_first_ns, s->last), mean_ms(s->compute_ns, s->split),
	       mean_ms(s->network_ns, s->split));
}

/* The trainer that is listed after `told`, or first. */
static uint32_t
next_listed(const struct wf_straggle_state *state, const struct wf_lane *lane, bool of_job,
	    uint32_t told)
{
	uint32_t next = UINT32_MAX;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		bool before = told != UINT32_MAX && !comes_first(state, of_job, told, t);
		if (!before && (next == UINT32_MAX || comes_first(state, of_job, t, next))) {
			next = t;
		}
	}
	return next;
}

/* Means per step of the period, or of the job: for the lane, then for trainers, those that were
 * waited for longest first. */
static void
lines(const struct wf_feature *self, struct wf_lane *lane, bool job_ends)
{
	struct wf_straggle_state *state = self->state;
	uint64_t steps = state->sum.steps - (job_ends ? 0 : state->logged.steps);
	uint64_t apply_ns = state->sum.apply_ns - (job_ends ? 0 : state->logged.apply_ns);
	if (lane->peers.count < 2 || steps == 0) {
		return;
	}
	wf_log(lane->env, WF_LOG_INFO, "lane %u: stragglers of %s: steps %" PRIu64 " apply_ms %.3f",
	       lane->opts.idx, job_ends ? "the job" : "the period", steps,
	       mean_ms(apply_ns, steps));
	uint32_t told = UINT32_MAX;
	for (unsigned line = 0; line < LINES_MAX && line < lane->peers.count; line++) {
		told = next_listed(state, lane, job_ends, told);
		WF_ASSERT(told != UINT32_MAX);
		const struct wf_straggle sum = sum_of(&state->peer[told], job_ends);
		write_line(lane, &sum, steps, told);
	}
	state->logged = state->sum;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		state->peer[t].logged = state->peer[t].sum;
	}
}

/* The sums of a trainer, as REPORTED and the record for who watches have them. */
static const struct {
	uint16_t at;      /* in struct wf_straggle */
	uint8_t watched;  /* enum wf_watch_member */
	uint8_t reported; /* enum wf_report_value; WF_REPORT_VALUES: it is not */
} shown[] = {
	{offsetof(struct wf_straggle, last), WF_MEMBER_LAST, WF_REPORT_LAST},
	{offsetof(struct wf_straggle, behind_next_ns), WF_MEMBER_NEXT_NS, WF_REPORT_BEHIND_NEXT_NS},
	{offsetof(struct wf_straggle, behind_first_ns), WF_MEMBER_FIRST_NS,
	 WF_REPORT_BEHIND_FIRST_NS},
	{offsetof(struct wf_straggle, arrived), WF_MEMBER_ARRIVED, WF_REPORT_VALUES},
	{offsetof(struct wf_straggle, arrive_ns), WF_MEMBER_ARRIVE_NS, WF_REPORT_VALUES},
	{offsetof(struct wf_straggle, ahead_ns), WF_MEMBER_AHEAD_NS, WF_REPORT_VALUES},
	{offsetof(struct wf_straggle, split), WF_MEMBER_SPLIT, WF_REPORT_SPLIT},
	{offsetof(struct wf_straggle, compute_ns), WF_MEMBER_COMPUTE_NS, WF_REPORT_COMPUTE_NS},
	{offsetof(struct wf_straggle, network_ns), WF_MEMBER_NETWORK_NS, WF_REPORT_NETWORK_NS},
};

static uint64_t
shown_value(const struct wf_straggle *sum, unsigned i)
{
	uint64_t value;
	memcpy(&value, (const uint8_t *)sum + shown[i].at, sizeof(value));
	return value;
}

void
wf_straggle_watch(const struct wf_straggle_state *state, uint32_t trainer, uint64_t *value)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(shown); i++) {
		value[shown[i].watched] = shown_value(&state->peer[trainer].sum, i);
	}
}

static void
report(const struct wf_feature *self, uint32_t trainer, uint64_t value[WF_REPORT_VALUES])
{
	const struct wf_straggle_state *state = self->state;
	value[WF_REPORT_STEPS] = state->sum.steps;
	value[WF_REPORT_APPLY_NS] = state->sum.apply_ns;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(shown); i++) {
		if (shown[i].reported < WF_REPORT_VALUES) {
			value[shown[i].reported] = shown_value(&state->peer[trainer].sum, i);
		}
	}
}

const struct wf_feature_hooks wf_straggle_hooks = {
	.name = "times",
	.sleeps = true, /* until times are measured */
	.bytes = straggle_bytes,
	.open = open_straggle,
	.close = close_straggle,
	.step_said = step_said,
	.step_is_here = step_is_here,
	.step_done = step_done,
	.lines = lines,
	.report = report,
};
