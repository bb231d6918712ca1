/* SPDX-License-Identifier: Apache-2.0 */
/* turn: where the time of a thread goes that polls, and sleeps when a poll was empty.
 *
 * Every turn reads the clock once anyway, for its deadlines; that reading is what time is charged
 * from, so that measuring a turn costs no reading of its own. Only after a sleep is there one more,
 * without which the work of the turn that follows would count as sleep; and two around each piece
 * that is charged by itself. Cycle counters are cheaper still, but count what no two machines agree
 * on, and know nothing of simulated time.
 *
 *     wf_turn_begin(turn);
 *     events = poll(); work;
 *     uint64_t now = wf_now_ns(env);  // as without stats
 *     wf_turn_charge(turn, now, events > 0);
 *     send;                           // charged with the next turn
 *     ...
 *     wf_turn_arm(turn);              // before the poll that decides on sleeping
 *
 * Thread: the one that polls. */
#pragma once

#include "base/env.h"
#include "base/stats.h"

enum wf_turn_gap {
	WF_TURN_NEXT,  /* the next turn follows at once */
	WF_TURN_ARMED, /* one more poll, then perhaps sleep */
	WF_TURN_SLEPT, /* that poll was empty */
	WF_TURN_AWAY,  /* the thread does something else between two turns */
};

struct wf_turn {
	bool on;
	bool was_busy;
	enum wf_turn_gap gap;
	struct wf_env *env;
	struct wf_stats *stats;
	unsigned poll, idle, away; /* counters, ns */
	uint64_t mark_ns;          /* up to here all time is charged */
	uint64_t inner_ns;         /* after it, charged by wf_turn_leave */
};

/* The first turn is charged from now on. Not called: off, and costs a branch a turn. */
void wf_turn_start(struct wf_turn *turn, struct wf_env *env, struct wf_stats *stats);
void wf_turn_resume(struct wf_turn *turn);
void wf_turn_charge_on(struct wf_turn *turn, uint64_t now_ns, bool busy);
uint64_t wf_turn_leave_on(struct wf_turn *turn, unsigned counter, uint64_t entered_ns);

static inline void
wf_turn_begin(struct wf_turn *turn)
{
	if (turn->on && turn->gap >= WF_TURN_SLEPT) {
		wf_turn_resume(turn);
	}
}

/* `busy`: the turn had events. The sends of the turn before are in this one, so one empty turn
 * after a busy one counts as work. */
static inline void
wf_turn_charge(struct wf_turn *turn, uint64_t now_ns, bool busy)
{
	if (turn->on) {
		wf_turn_charge_on(turn, now_ns, busy);
	}
}

static inline void
wf_turn_arm(struct wf_turn *turn)
{
	turn->gap = WF_TURN_ARMED;
}

/* The time until the next turn is the caller's own. */
static inline void
wf_turn_go_away(struct wf_turn *turn)
{
	turn->gap = WF_TURN_AWAY;
}

/* A piece of a turn that is charged to a counter of its own. Returns what leave wants. */
static inline uint64_t
wf_turn_enter(const struct wf_turn *turn)
{
	return turn->on ? wf_now_ns(turn->env) : 0;
}

/* Returns the time, 0 when off. */
static inline uint64_t
wf_turn_leave(struct wf_turn *turn, unsigned counter, uint64_t entered_ns)
{
	return turn->on ? wf_turn_leave_on(turn, counter, entered_ns) : 0;
}
