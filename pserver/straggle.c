/* SPDX-License-Identifier: Apache-2.0 */
/* straggle: who keeps the others of a synchronous step waiting, by how much, and with what. With a
 * stats_period only.
 *
 * On the lane's clock: a trainer has *arrived* when its last slice of the step is here. From the
 * end of the step before to that is its *interval*; what it says it spent of it on computing (STEP,
 * one step later, on its own clock) is *compute*, the rest *network*: its answers on their way
 * there, its gradients on their way here, and whatever kept them. From the last arrival to the end
 * of the step is *apply*. The first step of a pass is not counted: who comes late to it has tested,
 * or saved.
 *
 * After the barrier statistics of the original (log_barrier_lowest_nodes), which compared arrivals
 * at named points, and forward-backward times. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/dense.h"

#define LINES_MAX 5u /* trainers told of */

static void
add_split(struct wf_straggle *to, uint64_t compute_ns, uint64_t network_ns)
{
	to->split++;
	to->compute_ns += compute_ns;
	to->network_ns += network_ns;
}

void
wf_straggle_computed(struct wf_peer *peer, uint64_t compute_ns)
{
	struct wf_dense_peer *own = peer->own;
	if (own->interval_ns == 0 || compute_ns == 0) {
		return;
	}
	uint64_t compute = compute_ns < own->interval_ns ? compute_ns : own->interval_ns;
	add_split(&own->straggle[0], compute, own->interval_ns - compute);
	add_split(&own->straggle[1], compute, own->interval_ns - compute);
	own->interval_ns = 0;
}

/* The step under way is not the first of its pass. */
static bool
is_timed(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	return dense->done_ns != 0 && dense->done_pass == lane->order.sum.pass;
}

void
wf_straggle_arrived(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	own->arrived_ns = wf_now_ns(lane->env);
	own->interval_ns = is_timed(lane) ? own->arrived_ns - dense->done_ns : 0;
}

static void
add_last(struct wf_straggle *to, uint64_t behind_next_ns, uint64_t behind_first_ns)
{
	to->last++;
	to->behind_next_ns += behind_next_ns;
	to->behind_first_ns += behind_first_ns;
}

/* Who arrived last, and when the one before it and the first did. next_ns: 0, if it was alone. */
static struct wf_dense_peer *
find_last(const struct wf_lane *lane, uint64_t *next_ns, uint64_t *first_ns)
{
	const struct wf_dense *dense = lane->own;
	struct wf_dense_peer *last = NULL;
	*next_ns = 0;
	*first_ns = UINT64_MAX;
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		struct wf_dense_peer *own = &dense->peer[t];
		if (own->arrived_ns == 0) {
			continue; /* took no part */
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
count_step(struct wf_lane *lane, uint64_t applied_ns)
{
	struct wf_dense *dense = lane->own;
	uint64_t next_ns;
	uint64_t first_ns;
	struct wf_dense_peer *last = find_last(lane, &next_ns, &first_ns);
	WF_ASSERT(last != NULL);
	uint64_t last_ns = last->arrived_ns;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(dense->straggle); i++) {
		dense->straggle[i].steps++;
		dense->straggle[i].apply_ns += applied_ns > last_ns ? applied_ns - last_ns : 0;
		if (next_ns != 0 && last_ns > next_ns) {
			add_last(&last->straggle[i], last_ns - next_ns, last_ns - first_ns);
		}
	}
	wf_stats_add(&lane->stats, WF_LANE_STRAGGLER_TIME_NS, next_ns != 0 ? last_ns - next_ns : 0);
}

void
wf_straggle_step_done(struct wf_lane *lane, uint64_t applied_ns)
{
	struct wf_dense *dense = lane->own;
	if (is_timed(lane)) {
		count_step(lane, applied_ns);
	}
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		dense->peer[t].arrived_ns = 0;
	}
	dense->done_ns = applied_ns;
	dense->done_pass = lane->order.sum.pass;
}

/* Of two trainers, the one that is told of first: who was waited for longer. */
static bool
comes_first(const struct wf_dense *dense, unsigned of, uint32_t a, uint32_t b)
{
	uint64_t of_a = dense->peer[a].straggle[of].behind_next_ns;
	uint64_t of_b = dense->peer[b].straggle[of].behind_next_ns;
	return of_a > of_b || (of_a == of_b && a < b);
}

static double
mean_ms(uint64_t sum_ns, uint64_t count)
{
	return count > 0 ? (double)sum_ns / (double)count / 1e6 : 0;
}

static void
write_line(const struct wf_lane *lane, unsigned of, uint32_t trainer)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_straggle *s = &dense->peer[trainer].straggle[of];
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: straggler trainer %u: last %" PRIu64 " of %" PRIu64
	       " behind_next_ms %.3f behind_first_ms %.3f compute_ms %.3f network_ms %.3f",
	       lane->opts.idx, trainer, s->last, dense->straggle[of].steps,
	       mean_ms(s->behind_next_ns, s->last), mean_ms(s->behind_first_ns, s->last),
	       mean_ms(s->compute_ns, s->split), mean_ms(s->network_ns, s->split));
}

/* Means per step of the period, or of the job: of the lane, then of trainers, who was waited for
 * longest first. */
void
wf_straggle_lines(struct wf_lane *lane, bool job_ends)
{
	struct wf_dense *dense = lane->own;
	unsigned of = job_ends ? 0 : 1;
	if (lane->peer_count < 2 || dense->straggle[of].steps == 0) {
		return;
	}
	wf_log(lane->env, WF_LOG_INFO, "lane %u: stragglers of %s: steps %" PRIu64 " apply_ms %.3f",
	       lane->opts.idx, job_ends ? "the job" : "the period", dense->straggle[of].steps,
	       mean_ms(dense->straggle[of].apply_ns, dense->straggle[of].steps));
	uint32_t told = UINT32_MAX;
	for (unsigned line = 0; line < LINES_MAX && line < lane->peer_count; line++) {
		uint32_t next = UINT32_MAX;
		for (uint32_t t = 0; t < lane->peer_count; t++) {
			bool before = told != UINT32_MAX && !comes_first(dense, of, told, t);
			if (!before && (next == UINT32_MAX || comes_first(dense, of, t, next))) {
				next = t;
			}
		}
		WF_ASSERT(next != UINT32_MAX);
		write_line(lane, of, next);
		told = next;
	}
	dense->straggle[1] = (struct wf_straggle_lane){0};
	for (uint32_t t = 0; t < lane->peer_count; t++) {
		dense->peer[t].straggle[1] = (struct wf_straggle){0};
	}
}

enum weft_status
wf_straggle_ask(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_report *msg)
{
	struct wf_dense_peer *own = peer->own;
	if (!lane->ready || msg->trainer >= lane->peer_count || own->report_due) {
		return wf_fail(WEFT_PROTOCOL, "REPORT: of trainer %u of %u%s", msg->trainer,
			       lane->peer_count,
			       own->report_due ? ", before the one asked for was told" : "");
	}
	own->report = *msg;
	own->report_due = true;
	wf_peer_due(peer);
	return WEFT_OK;
}

void
wf_straggle_report(const struct wf_lane *lane, struct wf_msg_report *report)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_dense_peer *of = &dense->peer[report->trainer];
	const struct wf_straggle *s = &of->straggle[0];
	const uint64_t value[WF_REPORT_VALUES] = {
		[WF_REPORT_STEPS] = dense->straggle[0].steps,
		[WF_REPORT_APPLY_NS] = dense->straggle[0].apply_ns,
		[WF_REPORT_LAST] = s->last,
		[WF_REPORT_BEHIND_NEXT_NS] = s->behind_next_ns,
		[WF_REPORT_BEHIND_FIRST_NS] = s->behind_first_ns,
		[WF_REPORT_SPLIT] = s->split,
		[WF_REPORT_COMPUTE_NS] = s->compute_ns,
		[WF_REPORT_NETWORK_NS] = s->network_ns,
		[WF_REPORT_APPLIED] = of->applied,
		[WF_REPORT_DISCARDED] = of->discarded,
		[WF_REPORT_LAG_SUM] = of->lag_sum,
		[WF_REPORT_LAG_MAX] = of->lag_max,
	};
	memcpy(report->value, value, sizeof(value));
}
