/* SPDX-License-Identifier: Apache-2.0 */
/* turn: the event loop of one end: send what is due, handle the events of its transport, check the
 * clock, and decide whether to poll on or to sleep. Lanes of a pserver and sessions of a trainer
 * are such ends; what is due, and how events are handled, is theirs.
 *
 * The driver of an end calls
 *
 *     if (wf_turn_round(turn, ops, &deadline_ns)) {
 *             wf_transport_wait(turn->transport, deadline_ns);
 *             wf_turn_run(turn, ops); // may be left out: the next round does it
 *     }
 *
 * or the parts of a round if it sleeps on more than the transport. Sleep is one state:
 *
 *     BUSY    The last turn brought something.
 *     EMPTY   It brought nothing.
 *     ARMED   The transport is armed: a sleep follows if the next turn brings nothing.
 *     ASLEEP  A sleep follows, or has just ended.
 *     AWAY    The driver does something else, and does not sleep on the transport.
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
 * Arming has a cost at every peer, so only the last turn before a sleep arms: not the first turn
 * after a sleep, which was woken for a reason, and not a turn that sends, unless the turn before it
 * brought nothing.
 *
 * The thread's time is charged to counters from the readings of the clock that turns make anyway.
 * Only a sleep needs two more, and so does each piece that is charged by itself (wf_turn_enter).
 * Each nanosecond is charged once.
 *
 * Thread: the driver's. */
#pragma once

#include "base/env.h"
#include "base/spin.h"
#include "base/stats.h"
#include "transport/transport.h"

#define WF_TURN_BLIND_MAX 7u /* turns of a polling thread between two that read the clock */
#define WF_TURN_EVENTS 64u   /* the most events of one poll */

enum wf_turn_state {
	WF_TURN_BUSY,
	WF_TURN_EMPTY,
	WF_TURN_ARMED,
	WF_TURN_ASLEEP,
	WF_TURN_AWAY,
};

/* What a driver that is about to sleep does next. */
enum wf_rest {
	WF_REST_NOT,      /* run a turn that is likely to bring something; no sleep may follow */
	WF_REST_IF_EMPTY, /* run a turn, and sleep if it brings nothing */
	WF_REST_NOW,      /* sleep: there is nothing to do */
};

/* A destination to which something is to be sent. Embedded in a link or a peer, zero at first. */
struct wf_due {
	struct wf_due *next;
	bool queued;
	bool whole; /* any kind of message may be due, not only what wf_turn_owes queues */
};

/* What an end does in a turn. `end` is that of wf_turn_init. Tables are constants that the compiler
 * sees, so that the calls are inlined. */
struct wf_turn_ops {
	void (*event)(void *end, const struct wf_event *event);
	/* Sends what is due. Returns whether something is left for the next turn. */
	bool (*flush)(struct wf_due *due);
	/* The same of what wf_turn_owes queues: what each exchange sends, so that it asks for
	 * nothing else. NULL: nothing is queued so. */
	bool (*flush_owed)(struct wf_due *due);
	/* The transport cannot be polled; the recorded failure says why. */
	void (*failed)(void *end, enum weft_status status);
	/* Does a bounded piece of the work that is not driven by events. Returns whether there is
	 * more. NULL: there is no such work. */
	bool (*work)(void *end);
	/* Called when the clock was read, for the first time since `before_ns`. May be NULL. */
	void (*clock)(void *end, uint64_t before_ns);
	/* turn->tick_ns has passed. Sets turn->tick_ns to the time of the next call. */
	void (*tick)(void *end, uint64_t now_ns);
};

/* How the thread spends its time. Written by turn.c alone, except for the numbers of the counters,
 * which the end sets before wf_turn_start. When off it costs one branch per turn. */
struct wf_turn_times {
	bool on, was_busy;
	unsigned poll, idle, away; /* counters of `stats`, ns */
	struct wf_stats *stats;
	uint64_t mark_ns;  /* all time before this is charged */
	uint64_t inner_ns; /* time after it that wf_turn_leave has charged */
};

struct wf_turn {
	void *end;
	struct wf_env *env;
	struct wf_transport *transport; /* the end's */
	struct wf_due *due;             /* list of destinations to which something is to be sent */
	bool works;                     /* there is work that is not driven by events */
	bool awaits_done; /* the end waits for DONEs, so it may not sleep without a poll */

	/* When `tick` is due. 0: in this turn, because something that it depends on has changed;
	 * WF_NEVER: not until it is set. */
	uint64_t tick_ns;
	uint64_t now_ns; /* when the clock was last read */
	/* The last reading of the clock in or before the last turn with events. */
	uint64_t event_ns;
	uint64_t wait_ns; /* the wait under way: time of its last event or its beginning; 0: none */
	struct wf_spin spin;
	enum wf_turn_state state;
	bool spins;     /* other turns follow this one at once */
	bool ticked;    /* the last turn called tick */
	unsigned blind; /* turns since the clock was read */
	struct wf_turn_times times;

	struct wf_event event[WF_TURN_EVENTS];
};

/* `spin_ns`: as for wf_spin_init. The transport is set by the code that opens it. */
void wf_turn_init(struct wf_turn *turn, struct wf_env *env, void *end, uint64_t spin_ns);
/* Charges all time from now on to the counters `poll`, `idle` and `away` of `stats`, as the end has
 * numbered them. */
void wf_turn_start(struct wf_turn *turn, struct wf_stats *stats);
void wf_turn_resume(struct wf_turn *turn);
void wf_turn_charge_on(struct wf_turn *turn, uint64_t now_ns, bool busy);
uint64_t wf_turn_leave_on(struct wf_turn *turn, unsigned counter, uint64_t entered_ns);

/* Something is due that `flush_owed` sends: the next turn sends it. */
static inline void
wf_turn_owes(struct wf_turn *turn, struct wf_due *due)
{
	if (!due->queued) {
		due->queued = true;
		due->next = turn->due;
		turn->due = due;
	}
}

/* Something is due: the next turn sends it. */
static inline void
wf_turn_due(struct wf_turn *turn, struct wf_due *due)
{
	due->whole = true;
	wf_turn_owes(turn, due);
}

static inline void
wf_turn_tick_before(struct wf_turn *turn, uint64_t when_ns)
{
	turn->tick_ns = when_ns < turn->tick_ns ? when_ns : turn->tick_ns;
}

/* Begins a piece of a turn that is charged to a counter of its own. Returns `entered_ns` for
 * wf_turn_leave. */
static inline uint64_t
wf_turn_enter(const struct wf_turn *turn)
{
	return turn->times.on ? wf_now_ns(turn->env) : 0;
}

/* Returns the nanoseconds that were charged, 0 when off. */
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

/* Returns false if arming is refused. */
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

/* Whether the turn ends with a sleep, before it reads the clock; the first turn after the sleep
 * reads it in any case. `busy`: there were events, or the clock has to be read. */
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

/* Whether the turn ends without reading the clock: others follow at once, nothing is charged,
 * nothing is `urgent`, and the clock was read a few turns ago. */
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

/* Ends the turn. What was sent in it may complete in the next one, so one empty turn after a busy
 * one counts as work. */
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

/* Sends what is due to one destination. What becomes due meanwhile is queued again. */
static inline void
wf_turn_flush_one(struct wf_turn *turn, const struct wf_turn_ops *ops, struct wf_due *due)
{
	due->queued = false;
	if (!due->whole) {
		if (ops->flush_owed(due)) {
			wf_turn_owes(turn, due);
		}
		return;
	}
	due->whole = false;
	if (ops->flush(due)) {
		wf_turn_due(turn, due);
	}
}

/* Destinations that still have something to send are put on the new list. */
static inline void
wf_turn_flush(struct wf_turn *turn, const struct wf_turn_ops *ops)
{
	struct wf_due *next = turn->due;
	turn->due = NULL;
	while (next != NULL) {
		struct wf_due *due = next;
		next = due->next;
		wf_turn_flush_one(turn, ops, due);
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
 * that did not read the clock counts with the time of the last one that did. */
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

/* Runs one turn. Returns whether it brought anything; if it did not, what is due waits for an
 * event. */
static inline bool
wf_turn_run(struct wf_turn *turn, const struct wf_turn_ops *ops)
{
	wf_turn_begin(turn);
	turn->ticked = false;
	unsigned count = 0;
	bool again = false;
	do { /* one place from which events are handled, so that the handler is inlined */
		wf_turn_flush(turn, ops);
		unsigned news = wf_turn_handle_events(turn, ops);
		count += news;
		/* Without another turn at once arm comes next, which polls, too. */
		again = news > 0 && turn->due != NULL && turn->spins && !again;
	} while (again);
	if (count > 0 && turn->due != NULL) {
		wf_turn_flush(turn, ops); /* what the events made due leaves in this turn */
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

/* Prepares a sleep until `*deadline_ns`: sends what is due, and arms the transport. */
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

/* Polls, or arms and polls once more. Returns true if the caller may sleep on the transport until
 * `*deadline_ns`: anything that happens before that wakes it. */
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
