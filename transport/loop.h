/* SPDX-License-Identifier: Apache-2.0 */
/* loop: the parts that all transports which wait for descriptors have in common: one epoll
 * descriptor, the eventfd with which other threads wake the poller, the list of connections that
 * have something to do, the earliest deadline, the time, and whether the caller sleeps.
 *
 * A poll of a medium looks like this:
 *
 *     wf_loop_begin(loop);
 *     if (wf_loop_must_look(loop) || ...) {
 *             wf_loop_collect(loop);          // calls the sources that have something
 *     }
 *     if (wf_loop_timer_is_due(loop)) { ... } // run what is due, set the next timer
 *     visit what wf_loop_pop returns;
 *     if (wf_loop_end(loop, event_count)) {
 *             wf_loop_rest(loop);
 *     }
 *
 * Sleep is one state:
 *
 *     AWAKE    The caller polls again, whatever this poll brings.
 *     ARMED    It has armed: it sleeps if the next poll brings nothing.
 *     ASLEEP   It may be asleep, or have been: the next poll looks at the descriptors, because one
 *              of them may have ended the sleep.
 *     LOOKING  Both: the next poll looks at the descriptors, and a sleep follows if it brings
 *              nothing.
 *
 *     from \ by | arm      quiet arm  poll with events  empty poll  wait that    wait cut short,
 *               |                                                   brought all  or that timed out
 *     ----------+---------------------------------------------------------------------------------
 *     AWAKE     | ARMED    LOOKING    AWAKE             AWAKE       AWAKE        ASLEEP
 *     ARMED     | ARMED    LOOKING    AWAKE             ASLEEP      AWAKE        ASLEEP
 *     ASLEEP    | LOOKING  LOOKING    AWAKE             AWAKE       AWAKE        ASLEEP
 *     LOOKING   | LOOKING  LOOKING    AWAKE             ASLEEP      AWAKE        ASLEEP
 *
 * A quiet arm allows the caller to sleep without another poll, hence LOOKING. A wait that brought
 * all there was has already called the sources, so the poll that follows need not look. When an
 * empty poll goes from ARMED or LOOKING to ASLEEP, no work may be left that neither a descriptor
 * nor the caller's deadline announces: if there is such work, wf_loop_rest makes the sleep end at
 * once.
 *
 * Media of one transport share an epoll descriptor: their loops are members of the transport's
 * loop, their owner. A member is a loop like any other, with a state and an eventfd of its own. A
 * look or a wait of any member calls the sources of all members, and marks the other members as
 * noticed: a member that sleeps need not be polled before it is noticed, or before the deadline
 * that its arm gave. If a look in an armed poll notices a member whose turn has passed, the
 * transport polls that member once more, or makes the sleep end at once. The wake-up of a member
 * that is `apart` is reported only once. So if the look of another member consumes it, the member's
 * own next poll looks: AWAKE becomes ASLEEP, and ARMED becomes LOOKING.
 *
 * Thread: the transport's owner, except for a write to `wake_fd`, which any thread may do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"

#define WF_LOOP_EVENTS 64      /* the most events of one epoll_wait */
#define WF_LOOP_LONG_AGO 1024u /* polls; no medium leaves out as many looks */

/* The struct of type `type` whose member `member` is at `at`. */
#define WF_LOOP_OWNER(at, type, member)                                                            \
	((type *)(void *)((unsigned char *)(at)-offsetof(type, member)))

/* Something with a descriptor: a connection, a listener, a device. It is embedded in its owner,
 * whose memory must stay until a later poll than the one in which the descriptor was closed or
 * removed, because epoll may have reported it already. */
struct wf_loop_source {
	struct wf_loop *loop; /* set by wf_loop_watch */
	/* Called with the `mask` that epoll reported. Records it, or reads the descriptor; events
	 * are delivered by the poll. */
	void (*notify)(struct wf_loop_source *source, uint32_t mask);
};

/* The link of a connection in the list of those that are ready, embedded in the connection. */
struct wf_loop_ready {
	struct wf_loop_ready *next;
	bool queued;
};

enum wf_loop_state {
	WF_LOOP_AWAKE,
	WF_LOOP_ARMED,
	WF_LOOP_ASLEEP, /* from here on the next poll looks */
	WF_LOOP_LOOKING,
};

/* Membership among loops that share an epoll descriptor. The owner has the list of members. */
struct wf_loop_member {
	struct wf_loop *first; /* owner: list of members, the newest first */
	struct wf_loop *next;
	/* The look of another member found something for this one. Cleared by the transport's poll.
	 */
	bool noticed;
	/* Its sources read their descriptors, which stay readable until then: they are called only
	 * in looks of its own. */
	bool apart;
	bool woken; /* apart: on_wake is due in its own next look */
	bool *told; /* set when its look found something for another member; NULL: not needed */
};

struct wf_loop {
	struct wf_env *env; /* lent until close */
	int epoll_fd;       /* the descriptor that a caller sleeps on */
	int wake_fd;        /* eventfd, edge-triggered and never read: each write is one edge */
	struct wf_loop_source wake_source;
	void (*on_wake)(struct wf_loop *loop); /* after a write to wake_fd; NULL: nothing */

	struct wf_loop *owner; /* whose epoll descriptor it shares; NULL: it has its own */
	struct wf_loop_member member;

	enum wf_loop_state state;
	/* This poll leaves work that neither a descriptor nor a deadline announces. The medium sets
	 * it, and clears it when a poll begins. */
	bool left;
	struct wf_loop_ready *ready_first, *ready_last; /* oldest first */
	unsigned ready_count;

	uint64_t turn; /* number of the poll */
	/* Poll in which, or after which, epoll was last called; long ago if it is to be called. */
	uint64_t look_turn;
	uint64_t now_turn; /* poll in which the clock was last read */
	uint64_t now_ns;   /* the last reading of the clock */
	uint64_t timer_ns; /* no timer is due before this; may be early; WF_NEVER: no timer runs */
	uint64_t armed_ns; /* deadline that the last arm returned to the caller */
};

/* Initialises a loop without descriptors: AWAKE, no connection is ready, no timer runs. `on_wake`
 * may be NULL, or be set later. `owner` of a member is set after this. */
void wf_loop_init(struct wf_loop *loop, struct wf_env *env, void (*on_wake)(struct wf_loop *loop));
/* Creates the descriptors; a member joins its owner, which is open. WEFT_IO: no descriptors are
 * left; close has to be called all the same.
 */
enum weft_status wf_loop_open(struct wf_loop *loop) WEFT_MUST_CHECK;
/* Accepts a loop that was not opened. Sources are removed before it, or children of fork close
 * whatever has the number of their descriptors by then. */
void wf_loop_close(struct wf_loop *loop);

/* Adds a descriptor, changes the events for which it is watched, removes it. Closing a descriptor
 * removes it only if it has no duplicate, as in a child of fork, and children close those that are
 * watched. `mask` is that of epoll. WEFT_IO, WEFT_NOMEM: the system has no room for it. */
enum weft_status wf_loop_watch(struct wf_loop *loop, int fd, uint32_t mask,
			       struct wf_loop_source *source) WEFT_MUST_CHECK;
void wf_loop_watch_change(struct wf_loop *loop, int fd, uint32_t mask,
			  struct wf_loop_source *source);
void wf_loop_unwatch(struct wf_loop *loop, int fd);
/* Removes a descriptor, watched or not, closes it, and sets `*fd` to -1. */
void wf_loop_close_fd(struct wf_loop *loop, int *fd);

/* Calls epoll without waiting, and the sources that have something. Returns false if there may be
 * more than one call brings. */
bool wf_loop_collect(struct wf_loop *loop);
/* Sleeps until a descriptor has something or the deadline has passed, and calls the sources. May
 * return early, or late by up to a millisecond. */
void wf_loop_wait(struct wf_loop *loop, uint64_t deadline_ns);
/* Ends the sleep of an armed caller at once, or keeps it from beginning. */
void wf_loop_kick(struct wf_loop *loop);

/* ---- a poll ---- */

static inline void
wf_loop_begin(struct wf_loop *loop)
{
	loop->turn++;
}

/* The next poll calls epoll, however recently that was done. */
static inline void
wf_loop_look_next(struct wf_loop *loop)
{
	loop->look_turn = loop->turn - WF_LOOP_LONG_AGO;
}

/* Whether a sleep may follow this poll. */
static inline bool
wf_loop_is_armed(const struct wf_loop *loop)
{
	return loop->state == WF_LOOP_ARMED || loop->state == WF_LOOP_LOOKING;
}

/* Whether a descriptor may have ended a sleep, and epoll has not been called since. */
static inline bool
wf_loop_must_look(const struct wf_loop *loop)
{
	return loop->state >= WF_LOOP_ASLEEP;
}

/* Ends a poll that brought `event_count` events. Returns true if a sleep follows; the caller then
 * calls wf_loop_rest. */
static inline bool
wf_loop_end(struct wf_loop *loop, unsigned event_count)
{
	bool rests = event_count == 0 && wf_loop_is_armed(loop);
	loop->state = rests ? WF_LOOP_ASLEEP : WF_LOOP_AWAKE;
	return rests;
}

/* Makes the sleep end at once if work is left: a connection is ready, a timer runs that the caller
 * does not know, or `left` is set. */
void wf_loop_rest(struct wf_loop *loop);

/* The caller is about to sleep until `deadline_ns`; with `quiet` possibly without another poll. */
static inline void
wf_loop_arm(struct wf_loop *loop, bool quiet, uint64_t deadline_ns)
{
	loop->state = quiet || wf_loop_must_look(loop) ? WF_LOOP_LOOKING : WF_LOOP_ARMED;
	loop->armed_ns = deadline_ns;
}

/* ---- time ---- */

/* The time of this poll. The first call in a poll reads the clock. */
static inline uint64_t
wf_loop_now_ns(struct wf_loop *loop)
{
	if (loop->now_turn != loop->turn) {
		loop->now_ns = wf_now_ns(loop->env);
		loop->now_turn = loop->turn;
	}
	return loop->now_ns;
}

/* The number of polls since the clock was read. */
static inline uint64_t
wf_loop_turns_blind(const struct wf_loop *loop)
{
	return loop->turn - loop->now_turn;
}

static inline void
wf_loop_timer_before(struct wf_loop *loop, uint64_t when_ns)
{
	if (when_ns < loop->timer_ns) {
		loop->timer_ns = when_ns;
	}
}

/* Whether a timer is due. Without a timer the clock is not read. */
static inline bool
wf_loop_timer_is_due(struct wf_loop *loop)
{
	return loop->timer_ns != WF_NEVER && loop->timer_ns <= wf_loop_now_ns(loop);
}

/* ---- connections that are ready ---- */

/* The next poll visits it. */
static inline void
wf_loop_push(struct wf_loop *loop, struct wf_loop_ready *ready)
{
	if (ready->queued) {
		return;
	}
	ready->queued = true;
	ready->next = NULL;
	if (loop->ready_last == NULL) {
		loop->ready_first = ready;
	} else {
		loop->ready_last->next = ready;
	}
	loop->ready_last = ready;
	loop->ready_count++;
}

/* Returns the oldest. There must be one. */
static inline struct wf_loop_ready *
wf_loop_pop(struct wf_loop *loop)
{
	struct wf_loop_ready *ready = loop->ready_first;
	loop->ready_first = ready->next;
	if (loop->ready_first == NULL) {
		loop->ready_last = NULL;
	}
	loop->ready_count--;
	ready->queued = false;
	return ready;
}
