/* SPDX-License-Identifier: Apache-2.0 */
/* turn: see turn.h. Thread: the driver's. */
#include "exchange/turn.h"

#include "base/assert.h"

void
wf_turn_init(struct wf_turn *turn, struct wf_env *env, void *end, uint64_t spin_ns)
{
	*turn = (struct wf_turn){.env = env, .end = end};
	wf_spin_init(&turn->spin, spin_ns);
}

void
wf_turn_start(struct wf_turn *turn, struct wf_stats *stats)
{
	struct wf_turn_times *times = &turn->times;
	WF_ASSERT(times->poll < stats->count && times->idle < stats->count &&
		  times->away < stats->count);
	times->stats = stats;
	times->mark_ns = wf_now_ns(turn->env);
	times->inner_ns = 0;
	times->on = true;
}

void
wf_turn_resume(struct wf_turn *turn)
{
	struct wf_turn_times *times = &turn->times;
	uint64_t now = wf_now_ns(turn->env);
	unsigned counter = turn->state == WF_TURN_AWAY ? times->away : times->idle;
	wf_stats_add(times->stats, counter, now - times->mark_ns);
	times->mark_ns = now;
}

void
wf_turn_charge_on(struct wf_turn *turn, uint64_t now_ns, bool busy)
{
	struct wf_turn_times *times = &turn->times;
	uint64_t outer_ns = now_ns - times->mark_ns - times->inner_ns;
	WF_ASSERT(outer_ns <= now_ns);
	wf_stats_add(times->stats, busy || times->was_busy ? times->poll : times->idle, outer_ns);
	times->mark_ns = now_ns;
	times->inner_ns = 0;
	times->was_busy = busy;
}

uint64_t
wf_turn_leave_on(struct wf_turn *turn, unsigned counter, uint64_t entered_ns)
{
	struct wf_turn_times *times = &turn->times;
	uint64_t now = wf_now_ns(turn->env);
	uint64_t spent = now - entered_ns;
	wf_stats_add(times->stats, counter, spent);
	times->inner_ns += spent;
	return now;
}
