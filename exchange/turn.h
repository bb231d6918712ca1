/* SPDX-License-Identifier: Apache-2.0 */
/* turn: what one end of a lane's links does again and again: send what is due, take the events of
 * its transport, look at the clock, and decide whether to poll on or to sleep. Lanes of a pserver
 * and sessions of a trainer are such ends; what they do with events, and what is due, is theirs.
 *
 * Whoever drives an end calls
 *
 *     if (wf_turn_round(turn, ops, &deadline_ns)) {
 *             wf_transport_wait(turn->transport, deadline_ns);
 *     }
 *
 * or the parts of a round, where it sleeps on more than the transport. Sleep is one state:
 *
 *     BUSY    The last turn brought something.
 *     EMPTY   It brought nothing.
 *     ARMED   The transport is armed: a sleep follows if the next turn brings nothing.
 *     ASLEEP  A sleep follows, or has just ended.
 *     AWAY    The driver does something else: nobody sleeps on the transport.
 *
 *     from \ by | arm, nothing to | arm, something | turn that     | empty  | rest   | go away
 *               | send            | to send        | brings events | turn   |        |
 *     ----------+-----------------+----------------+---------------+--------+--------+---------
 *     BUSY      | ARMED           | refused        | BUSY          | EMPTY  | ASLEEP | AWAY
 *     EMPTY     | ARMED           | ARMED          | BUSY          | EMPTY  | ASLEEP | AWAY
 *     ARMED     | ARMED           | refused        | BUSY          | ASLEEP | ASLEEP | AWAY
 *     ASLEEP    | refused         | refused        | BUSY          | EMPTY  | ASLEEP | AWAY
 *     AWAY      | ARMED           | refused        | BUSY          | EMPTY  | ASLEEP | AWAY
 *
 * Arming costs something at every peer, so it is for the last turn before a sleep: not for the
 * first after one, which was woken for something, and not for a turn that sends, unless the one
 * before it brought nothing in spite of that.
 *
 * Where the time of the thread goes is charged from the readings of the clock that turns make
 * anyway; only around a sleep there are two more, and two around each piece that is charged by
 * itself (wf_turn_enter). Each nanosecond is charged once.
 *
 * Thread: the one that drives. */
#pragma once

#include "base/env.h"
#include "base/spin.h"
#include "base/stats.h"
#include "transport/transport.h"

#define WF_TURN_BLIND_MAX 7u /* turns of a polling thread between two that read the clock */
#define WF_TURN_EVENTS 64u   /* of one poll */

enum wf_turn_state {
	WF_TURN_BUSY,
	WF_TURN_EMPTY,
	WF_TURN_ARMED,
	WF_TURN_ASLEEP,
	WF_TURN_AWAY,
};

/* What a driver that would sleep does next. */
enum wf_rest {
	WF_REST_NOT,      /* take a turn that is likely to bring something; no sleep may follow */
	WF_REST_IF_EMPTY, /* take a turn, and sleep if it brings nothing */
	WF_REST_NOW,      /* sleep: there is nothing to do */
};

/* To whom something is to be sent. Embedded in a link or a peer, zero at first. */
struct wf_due {
	struct wf_due *next;
	bool queued;
};

/* What an end does in a turn. `end`: of wf_turn_init. Tables are constants that the compiler sees,
 * so that the calls cost nothing. */
struct wf_turn_ops {
	void (*event)(void *end, const struct wf_event *event);
	/* Send what is due. Returns whether something is left for the next turn. */
	bool (*flush)(struct wf_due *due);
	/* The transport cannot be polled; the recorded failure says why. */
	void (*failed)(void *end, enum weft_status status);
	/* A bounded piece of the work beside events. Returns whether there is more. NULL: there is
	 * never any. */
	bool (*work)(void *end);
	/* The clock was read, for the first time since `before_ns`. NULL: nothing. */
	void (*clock)(void *end, uint64_t before_ns);
	/* turn->tick_ns has come. Says in turn->tick_ns when it is to be called again. */
	void (*tick)(void *end, uint64_t now_ns);
};

/* Where the time of the thread goes. Written by turn.c alone, but for the numbers of the counters,
 * which the end sets before wf_turn_start. Off: costs a branch a turn. */
struct wf_turn_times {
	bool on, was_busy;
	unsigned poll, idle, away; /* counters of `stats`, ns */
	struct wf_stats *stats;
	uint64_t mark_ns;  /* up to here all time is charged */
	uint64_t inner_ns; /* after it, charged by wf_turn_leave */
};

struct wf_turn {
	void *end;
	struct wf_env *env;
	struct wf_transport *transport; /* the end's */
	struct wf_due *due;             /* those to whom something is to be sent */
	bool works;                     /* there is work beside events */
	bool awaits_done;               /* the end waits for DONEs, which no sleep may pass over */

	/* When the clock decides something again. 0: in this turn, for something has changed that
	 * it depends on; WF_NEVER: not before it is set. */
	uint64_t tick_ns;
	uint64_t now_ns;   /* when the clock was last read */
	uint64_t event_ns; /* the same, in or before the last turn with events */
	uint64_t wait_ns;  /* of the wait under way: the last event, or its beginning; 0: none is */
	struct wf_spin spin;
	enum wf_turn_state state;
	bool spins;     /* this turn: others follow it at once */
	bool ticked;    /* the last turn called tick */
	unsigned blind; /* turns since the clock was read */
	struct wf_turn_times times;

	struct wf_event event[WF_TURN_EVENTS];
};

/* `spin_ns`: as wf_spin_init has it. The transport is set by who opens it. */
void wf_turn_init(struct wf_turn *turn, struct wf_env *env, void *end, uint64_t spin_ns);
/* Charge all time from now on: to `poll`, `idle` and `away` of `stats`, as the end has numbered
 * them. */
void wf_turn_start(struct wf_turn *turn, struct wf_stats *stats);
void wf_turn_resume(struct wf_turn *turn);
void wf_turn_charge_on(struct wf_turn *turn, uint64_t now_ns, bool busy);
uint64_t wf_turn_leave_on(struct wf_turn *turn, unsigned counter, uint64_t entered_ns);

/* Something is to be sent: the next turn does. */
static inline void
wf_turn_due(struct wf_turn *turn, struct wf_due *due)
{
	if (!due->queued) {
		due->queued = true;
		due->next = turn->due;
		turn->due = due;
	}
}

static inline void
wf_turn_tick_before(struct wf_turn *turn, uint64_t when_ns)
{
	turn->tick_ns = when_ns < turn->tick_ns ? when_ns : turn->tick_ns;
}

/* A piece of a turn that is charged to a counter of its own. Returns what leave wants. */
static inline uint64_t
wf_turn_enter(const struct wf_turn *turn)
{
	return turn->times.on ? wf_now_ns(turn->env) : 0;
}

/* Returns the time, 0 when off. */
static inline uint64_t
wf_turn_leave(struct wf_turn *turn, unsigned counter, uint64_t entered_ns)
{
	return turn->times.on ? wf_turn_leave_on(turn, counter, entered_ns) : 0;
}

/* ---- the state ---- */

static inline void
wf_turn_begin(struct wf_turn *turn)
{
	if (turn->times.on && turn->state >= WF_TURN_ASLEEP) {
		wf_turn_resume(turn);
	}
}

/* False: refused. */
static inline bool
wf_turn_may_arm(struct wf_turn *turn, bool sends)
{
	bool may = turn->state != WF_TURN_ASLEEP && (!sends || turn->state == WF_TURN_EMPTY);
	if (may) {
		wf_turn_begin(turn); /* the time away ends here */
		turn->state = WF_TURN_ARMED;
	}
	return may;
}

/* The turn ends with a sleep, before it looks at the clock: the first one after the sleep looks,
 * whatever it brings. `busy`: there were events, or the clock is to be looked at. */
static inline bool
wf_turn_rests(struct wf_turn *turn, bool busy)
{
	if (turn->state != WF_TURN_ARMED || busy) {
		return false;
	}
	turn->state = WF_TURN_ASLEEP;
	if (turn->times.on) {
		wf_turn_charge_on(turn, wf_now_ns(turn->env), false);
	}
	return true;
}

/* The turn ends without a look at the clock: others follow at once, nothing is charged, nothing is
 * `urgent`, and the time was looked at a few turns ago. */
static inline bool
wf_turn_is_blind(struct wf_turn *turn, bool busy, bool urgent)
{
	bool blind = turn->spins && !turn->times.on && !urgent && turn->state < WF_TURN_ASLEEP &&
		     turn->blind < WF_TURN_BLIND_MAX;
	turn->spins = false;
	turn->blind = blind ? turn->blind + 1 : 0;
	if (blind) {
		turn->state = busy ? WF_TURN_BUSY : WF_TURN_EMPTY;
	}
	return blind;
}

/* The turn ends. What was sent in it may be done in the next, so one empty turn after a busy one
 * counts as work. */
static inline void
wf_turn_charge(struct wf_turn *turn, uint64_t now_ns, bool busy)
{
	turn->state = busy ? WF_TURN_BUSY : WF_TURN_EMPTY;
	if (turn->times.on) {
		wf_turn_charge_on(turn, now_ns, busy);
	}
}

/* A sleep follows without a turn before it. */
static inline void
wf_turn_rest(struct wf_turn *turn)
{
	if (turn->times.on) {
		wf_turn_begin(turn);
		wf_turn_charge_on(turn, wf_now_ns(turn->env), false);
	}
	turn->state = WF_TURN_ASLEEP;
}

/* The time until the next turn is the driver's own. */
static inline void
wf_turn_go_away(struct wf_turn *turn)
{
	turn->state = WF_TURN_AWAY;
	turn->wait_ns = 0;
}

/* ---- a turn and a round ---- */

/* Whatever still has something to send comes into the new list. */
static inline void
wf_turn_flush(struct wf_turn *turn, const struct wf_turn_ops *ops)
{
	struct wf_due *next = turn->due;
	turn->due = NULL;
	while (next != NULL) {
		struct wf_due *due = next;
		next = due->next;
		due->queued = false;
		if (ops->flush(due)) {
			wf_turn_due(turn, due);
		}
	}
}

static inline unsigned
wf_turn_handle_events(struct wf_turn *turn, const struct wf_turn_ops *ops)
{
	unsigned count = 0;
	enum weft_status st =
		wf_transport_poll(turn->transport, turn->event, WF_TURN_EVENTS, &count);
	if (st != WEFT_OK) {
		ops->failed(turn->end, st);
	}
	const struct wf_event *end = turn->event + count;
	for (const struct wf_event *event = turn->event; event < end; event++) {
		ops->event(turn->end, event);
	}
	return count;
}

/* The wait under way has brought something; another one begins, unless the driver leaves. A turn
 * that did not look at the clock counts with the time of the last one that did. */
static inline void
wf_turn_end_wait(struct wf_turn *turn, bool busy)
{
	if (!busy) {
		return;
	}
	turn->event_ns = turn->now_ns;
	if (turn->wait_ns == 0) {
		return;
	}
	if (turn->spin.is_automatic) {
		wf_spin_end(&turn->spin, turn->now_ns - turn->wait_ns);
	}
	turn->wait_ns = turn->now_ns;
}

/* One turn. Returns whether it brought anything: if not, what is due waits for an event. */
static inline bool
wf_turn_run(struct wf_turn *turn, const struct wf_turn_ops *ops)
{
	wf_turn_begin(turn);
	turn->ticked = false;
	wf_turn_flush(turn, ops);
	unsigned count = wf_turn_handle_events(turn, ops);
	if (count > 0 && turn->due != NULL) {
		wf_turn_flush(turn, ops); /* what follows from them leaves in this turn */
		count += turn->spins ? wf_turn_handle_events(turn, ops) : 0; /* else: arm */
	}
	if (ops->work != NULL && turn->works) {
		turn->works = ops->work(turn->end);
		count++;
	}
	bool urgent = turn->tick_ns == 0;
	if (wf_turn_rests(turn, count > 0 || urgent)) {
		return false;
	}
	if (wf_turn_is_blind(turn, count > 0, urgent)) {
		wf_turn_end_wait(turn, count > 0);
		return count > 0;
	}
	uint64_t before_ns = turn->now_ns;
	turn->now_ns = wf_now_ns(turn->env);
	if (ops->clock != NULL) {
		ops->clock(turn->end, before_ns);
	}
	wf_turn_end_wait(turn, count > 0);
	wf_turn_charge(turn, turn->now_ns, count > 0);
	turn->ticked = turn->now_ns >= turn->tick_ns;
	if (turn->ticked) {
		ops->tick(turn->end, turn->now_ns);
	}
	return count > 0 || turn->ticked;
}

/* Before a sleep until `*deadline_ns`: sends what is due, and arms the transport. */
static inline enum wf_rest
wf_turn_arm(struct wf_turn *turn, const struct wf_turn_ops *ops, uint64_t *deadline_ns)
{
	wf_turn_flush(turn, ops);
	bool sends = turn->due != NULL || turn->works;
	if (!wf_turn_may_arm(turn, sends)) {
		return WF_REST_NOT;
	}
	bool quiet = wf_transport_arm(turn->transport, deadline_ns);
	*deadline_ns = *deadline_ns < turn->tick_ns ? *deadline_ns : turn->tick_ns;
	if (!quiet || sends || turn->awaits_done || turn->tick_ns == 0) {
		return WF_REST_IF_EMPTY;
	}
	wf_turn_rest(turn);
	return WF_REST_NOW;
}

/* Whether the wait under way polls on. A wait is measured from its first turn on. */
static inline bool
wf_turn_polls_on(struct wf_turn *turn)
{
	struct wf_spin *spin = &turn->spin;
	if (spin->limit_ns == 0 && !spin->is_automatic) {
		return false;
	}
	if (turn->wait_ns == 0 && spin->limit_ns == 0) {
		turn->wait_ns = wf_now_ns(turn->env);
	}
	return turn->wait_ns == 0 || wf_spin_goes_on(spin, turn->now_ns - turn->wait_ns);
}

/* Polls, or arms and polls once more. True: nothing happens before `*deadline_ns` that does not
 * wake who sleeps on the transport. */
static inline bool
wf_turn_round(struct wf_turn *turn, const struct wf_turn_ops *ops, uint64_t *deadline_ns)
{
	if (wf_turn_polls_on(turn)) {
		turn->spins = true;
		(void)wf_turn_run(turn, ops);
		turn->wait_ns = turn->wait_ns == 0 ? turn->now_ns : turn->wait_ns;
		return false;
	}
	turn->ticked = false;
	enum wf_rest rest = wf_turn_arm(turn, ops, deadline_ns);
	return (rest == WF_REST_NOW || !wf_turn_run(turn, ops)) && rest != WF_REST_NOT;
}
