/* SPDX-License-Identifier: Apache-2.0 */
/* turn: see turn.h. Thread: the one that drives. */
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
	WF_ASSERT(turn->poll < stats->count && turn->idle < stats->count &&
		  turn->away < stats->count);
	turn->stats = stats;
	turn->mark_ns = wf_now_ns(turn->env);
	turn->inner_ns = 0;
	turn->on = true;
}

void
wf_turn_resume(struct wf_turn *turn)
{
	uint64_t now = wf_now_ns(turn->env);
	unsigned counter = turn->state == WF_TURN_AWAY ? turn->away : turn->idle;
	wf_stats_add(turn->stats, counter, now - turn->mark_ns);
	turn->mark_ns = now;
}

void
wf_turn_charge_on(struct wf_turn *turn, uint64_t now_ns, bool busy)
{
	uint64_t outer_ns = now_ns - turn->mark_ns - turn->inner_ns;
	WF_ASSERT(outer_ns <= now_ns);
	wf_stats_add(turn->stats, busy || turn->was_busy ? turn->poll : turn->idle, outer_ns);
	turn->mark_ns = now_ns;
	turn->inner_ns = 0;
	turn->was_busy = busy;
}

uint64_t
wf_turn_leave_on(struct wf_turn *turn, unsigned counter, uint64_t entered_ns)
{
	uint64_t now = wf_now_ns(turn->env);
	uint64_t spent = now - entered_ns;
	wf_stats_add(turn->stats, counter, spent);
	turn->inner_ns += spent;
	return now;
}
