/* SPDX-License-Identifier: Apache-2.0 */
/* turn: where the time of a thread goes that polls, and sleeps when a poll was empty.
 *
 * Turns read the clock once anyway, for their deadlines; that reading is what time is charged from,
 * so that measuring a turn costs no reading of its own. Only around a sleep are there two more,
 * without which the work beside it would count as sleep; and two around each piece that is charged
 * by itself. Cycle counters are cheaper still, but count what no two machines agree
 * on, and know nothing of simulated time.
 *
 *     wf_turn_begin(turn);
 *     send; events = poll(); work;
 *     if (wf_turn_rests(turn, events > 0)) {
 *             return;                 // armed and empty: the caller sleeps
 *     }
 *     uint64_t now = wf_now_ns(env);  // as without stats
 *     wf_turn_charge(turn, now, events > 0);
 *     ...
 *     wf_turn_arm(turn, something is due);  // before the turn that decides on sleeping
 *
 * Thread: the one that polls. */
#pragma once

#include "base/env.h"
#include "base/stats.h"

#define WF_TURN_BLIND_MAX 7u /* turns of a spinning thread between two that read the clock */

enum wf_turn_gap {
	WF_TURN_NEXT,  /* the next turn follows at once */
	WF_TURN_SLEPT, /* a sleep: the turn was armed and empty */
	WF_TURN_AWAY,  /* the thread does something else between two turns */
};

/* What a caller may do that would sleep. */
enum wf_rest {
	WF_REST_NOT,      /* take a turn that is likely to do something; no sleep may follow */
	WF_REST_IF_EMPTY, /* take a turn, and sleep if it does nothing */
	WF_REST_NOW,      /* sleep: there is nothing to do */
};

struct wf_turn {
	bool on;
	bool armed; /* if the next turn is empty, a sleep follows */
	bool empty; /* the last turn had no events */
	bool was_busy;
	bool spins;     /* the thread does not mean to sleep after this turn */
	unsigned blind; /* turns since the clock was read */
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
	if (turn->on && turn->gap != WF_TURN_NEXT) {
		wf_turn_resume(turn);
	}
}

/* An armed turn without anything `busy` to look after ends before it looks at the clock: a sleep
 * follows, and the turn after that looks, whatever it brings. */
static inline bool
wf_turn_rests(struct wf_turn *turn, bool busy)
{
	bool rests = turn->armed && !busy && turn->gap != WF_TURN_SLEPT;
	turn->armed = false;
	if (rests && turn->on) {
		wf_turn_charge_on(turn, wf_now_ns(turn->env), false);
	}
	turn->gap = rests ? WF_TURN_SLEPT : turn->gap;
	return rests;
}

/* Before a turn of a thread that spins: others follow it at once. */
static inline void
wf_turn_spin(struct wf_turn *turn)
{
	turn->spins = true;
}

/* The sleep that follows needs no turn before it. */
static inline void
wf_turn_rest(struct wf_turn *turn)
{
	turn->armed = false;
	if (turn->on) {
		wf_turn_begin(turn);
		wf_turn_charge_on(turn, wf_now_ns(turn->env), false);
	}
	turn->gap = WF_TURN_SLEPT;
}

/* A turn that may do without the clock: others follow at once, nothing is charged, and nothing is
 * `urgent`. It ends here, as wf_turn_charge would end it. */
static inline bool
wf_turn_is_blind(struct wf_turn *turn, bool busy, bool urgent)
{
	bool blind = turn->spins && !turn->on && !urgent && turn->gap == WF_TURN_NEXT &&
		     turn->blind < WF_TURN_BLIND_MAX;
	turn->spins = false;
	turn->blind = blind ? turn->blind + 1 : 0;
	turn->empty = blind ? !busy : turn->empty;
	return blind;
}

/* `busy`: the turn had events. What was sent in it may be done in the next, so one empty turn after
 * a busy one counts as work. */
static inline void
wf_turn_charge(struct wf_turn *turn, uint64_t now_ns, bool busy)
{
	turn->gap = WF_TURN_NEXT;
	turn->empty = !busy;
	if (turn->on) {
		wf_turn_charge_on(turn, now_ns, busy);
	}
}

/* Before a turn of a caller that would sleep. Arming is for the last turn before a sleep: not for
 * the first after one, nor for one that has something to send, unless the last had, too, to no
 * effect. */
static inline bool
wf_turn_arm(struct wf_turn *turn, bool sends)
{
	turn->armed = turn->gap != WF_TURN_SLEPT && (!sends || turn->empty);
	return turn->armed;
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
