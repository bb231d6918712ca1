/* SPDX-License-Identifier: Apache-2.0 */
/* order: when a push is applied, and when its answer may be sent. The members of a job (its
 * trainers) announce their steps to a lane and push for them. A push arrives in *units* (slices of
 * tensors), or in the same message that announces the step (rows of tables). The payload on the
 * lane sums, applies and answers; this file only counts.
 *
 * Synchronous: all members are in one step of the lane, which ends when the pushes of all of them
 * have been applied. A member that reports that it is out of data takes part in no step from that
 * one until the pass ends.
 *
 * Asynchronous: a push is applied when it arrives, and each member counts its own steps. If some
 * units are summed and others are applied on arrival, all members are in one step of the lane,
 * except that units of the second kind may arrive when the lane is one step ahead.
 *
 * The *lag* of a push that is applied on arrival is the number of pushes of others that were
 * applied to the same target (a slice, or all tables of a lane) since the values from which it was
 * computed were read. A push that lags too much is discarded, and its answer reports that.
 *
 * Bounded: asynchronous, but the answer to a member's step p is held until each other member of the
 * pass has pushed all of step p - staleness, so that the member's *lead* is at most the staleness.
 *
 * In every mode a member announces its steps one by one, each when all of the previous one has
 * arrived. Between passes others may have made steps that it has not made; in a new pass it
 * continues at their step.
 *
 * Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/status.h"

/* One member as one lane sees it, embedded in the payload's struct for the member. Zero at first,
 * except step_next. */
struct wf_member {
	uint64_t step_next; /* the first step that it has not announced, from 1 */
	uint64_t made;      /* steps that it has announced, also in lives of the job before this */
	uint64_t samples;   /* of step step_next - 1 */
	uint64_t base;      /* the step before its first of this pass */
	uint32_t pass;      /* of step step_next - 1 */
	uint32_t out_pass;
	/* Units of step step_next - 1 that have arrived: summed ones, and those applied on arrival.
	 */
	uint32_t summed, came;
	uint32_t offered; /* units that have not arrived, and wait for permission to be pushed */
	/* Since when answers to it have waited for other members; 0: none waits. */
	uint64_t held_since_ns;
	bool begun; /* it has announced a step */
	bool out;   /* it is out of data in out_pass */
	bool left;  /* it has left in good order: it pushes no more */
};

/* The step that the lane waits for. A member begins step k + 1 only after it has all answers of
 * step k, so one step at a time is enough. */
struct wf_step_sum {
	uint64_t step;           /* from 1 */
	uint64_t samples;        /* announced by members for this step */
	uint64_t samples_before; /* applied in earlier steps */
	/* Of members that were dropped in the midst of the step, after parts of it had been applied
	 * with them: they count in samples_before of the next step. */
	uint64_t gone_samples;
	uint32_t heard; /* members that announced the step */
	uint32_t out;   /* members out of data in `pass`; counted from the first announcement on */
	uint32_t pass;
	uint64_t since_ns; /* time of the first announcement; 0 without stats */
	/* Since when a member that has done its part waits for others; 0: none does. */
	uint64_t done_ns;
};

/* The order of one lane. Zero: there is no job. */
struct wf_order {
	/* Members are embedded in an array of larger structs: the first member, the distance in
	 * bytes from one to the next, and their number. */
	struct wf_member *first;
	size_t stride;
	uint32_t count;
	uint32_t out_count; /* members that are out of data, in any pass */
	/* Units of a member's step that are summed, and those that are applied on arrival. */
	uint32_t summed_count, came_count;
	bool own_steps;     /* nothing is summed: each member counts its own steps */
	uint64_t staleness; /* the smallest staleness of what is pushed here */
	uint64_t highest;   /* the highest step that any member has begun, with own_steps */
	struct wf_step_sum sum;
};

#define WF_ORDER_NEVER UINT64_MAX

/* The limits that follow from the mode of a push. */
struct wf_order_terms {
	/* A push with this lag or more is discarded; WF_ORDER_NEVER: none is. */
	uint64_t discard_lag;
	/* Answers wait while the lead is longer; WF_ORDER_NEVER: they never wait. */
	uint64_t staleness;
};

/* One member's view of a target that counts pushes: a slice, or all tables of a lane. */
struct wf_order_view {
	uint64_t own;    /* pushes of this member that were applied */
	uint64_t others; /* pushes of others, when the values with which it computes were read */
	bool discarded;  /* its last push was discarded */
};

/* A member's announcement of a step, in STEP or PUSH. */
struct wf_step_said {
	const char *message; /* the name of that message */
	uint64_t step;
	uint64_t epoch;
	uint64_t samples;
	uint32_t pass;
	bool out; /* of data */
};

enum wf_step_news {
	WF_STEP_AGAIN, /* announced before, and repeated after a reconnect */
	WF_STEP_NEW,
	/* New, and the member was out of data in the last pass, or others have made steps that it
	 * has not made. */
	WF_STEP_BACK,
};

static inline struct wf_member *
wf_order_member(const struct wf_order *order, uint32_t idx)
{
	return (struct wf_member *)(void *)((char *)order->first + idx * order->stride);
}

/* The number of members whose pushes are summed in this step, which some member has begun. */
static inline uint32_t
wf_order_taking_part(const struct wf_order *order)
{
	return order->count - order->sum.out;
}

static inline bool
wf_order_is_out(const struct wf_order *order, const struct wf_member *member)
{
	return member->out && member->out_pass >= order->sum.pass;
}

/* Whether the step cannot end before the member, if it is not out of data, announces or pushes
 * something. */
static inline bool
wf_order_lacks(const struct wf_order *order, const struct wf_member *member)
{
	return !order->own_steps &&
	       (member->step_next <= order->sum.step || member->summed < order->summed_count);
}

/* Whether it has offered everything that the step lacks from it, and waits for permission to push.
 */
static inline bool
wf_order_has_offered(const struct wf_order *order, const struct wf_member *member)
{
	return member->step_next > order->sum.step &&
	       member->summed + member->offered >= order->summed_count;
}

static inline bool
wf_order_waits_for(const struct wf_order *order, const struct wf_member *member)
{
	return !wf_order_is_out(order, member) && wf_order_lacks(order, member);
}

/* Whether everything that the member has to push for the last step it announced has arrived. */
static inline bool
wf_order_is_whole(const struct wf_order *order, const struct wf_member *member)
{
	return (member->summed == order->summed_count && member->came == order->came_count) ||
	       !member->begun;
}

/* The whole step has been applied: begins the next one. */
static inline void
wf_order_step_is_applied(struct wf_order *order)
{
	struct wf_step_sum *sum = &order->sum;
	sum->samples_before += sum->samples + sum->gone_samples;
	sum->step++;
	sum->samples = 0;
	sum->gone_samples = 0;
	sum->heard = 0;
	sum->out = 0;
	sum->since_ns = 0;
	sum->done_ns = 0;
}

/* Adds a mode in which something is pushed, and returns its terms; the order keeps the least
 * staleness of all of them. A push is discarded when its lag reaches discard_ratio times the number
 * of members, rounded down; 0 discards none. `staleness`: in steps; used if is_bounded. */
static inline struct wf_order_terms
wf_order_add_terms(struct wf_order *order, double discard_ratio, bool is_bounded,
		   uint32_t staleness)
{
	const uint64_t lag = (uint64_t)(discard_ratio * order->count);
	const struct wf_order_terms terms = {.discard_lag = lag > 0 ? lag : WF_ORDER_NEVER,
					     .staleness = is_bounded ? staleness : WF_ORDER_NEVER};
	if (terms.staleness < order->staleness) {
		order->staleness = terms.staleness;
	}
	return terms;
}

/* Whether an answer to a member with that lead may be sent. */
static inline bool
wf_order_may_answer(const struct wf_order_terms *terms, uint64_t lead)
{
	return lead <= terms->staleness;
}

/* Records whether answers to the member wait for others, and since when. */
static inline void
wf_order_hold(struct wf_member *member, struct wf_env *env, bool holds)
{
	if (!holds) {
		member->held_since_ns = 0;
	} else if (member->held_since_ns == 0) {
		member->held_since_ns = wf_now_ns(env);
	}
}

/* The pushes of others among `applied` pushes. */
static inline uint64_t
wf_order_others(const struct wf_order_view *view, uint64_t applied)
{
	WF_ASSERT(applied >= view->own);
	return applied - view->own;
}

/* The member computes from now on with the values as they are after `applied` pushes. */
static inline void
wf_order_read(struct wf_order_view *view, uint64_t applied)
{
	view->others = wf_order_others(view, applied);
}

/* The member's push has arrived after `applied` pushes: sets view->discarded if it is too late.
 * Returns its lag: pushes of others since the values from which it was computed were read. */
static inline uint64_t
wf_order_judge(struct wf_order_view *view, const struct wf_order_terms *terms, uint64_t applied)
{
	uint64_t others = wf_order_others(view, applied);
	WF_ASSERT(others >= view->others);
	uint64_t lag = others - view->others;
	view->discarded = lag >= terms->discard_lag;
	return lag;
}

/* All members continue after `step`. */
void wf_order_begin(struct wf_order *order, uint64_t step, uint64_t samples);
/* Checks whether the member may announce it now. WEFT_PROTOCOL: it may not. */
enum weft_status wf_order_check(const struct wf_order *order, const struct wf_member *member,
				const struct wf_step_said *said,
				enum wf_step_news *out) WEFT_MUST_CHECK;
/* Checks the member's announcement, and counts it. */
enum weft_status wf_order_on_step(struct wf_order *order, struct wf_member *member,
				  const struct wf_step_said *said,
				  enum wf_step_news *out) WEFT_MUST_CHECK;
/* The same for the step after the member's last one, with the samples and in the pass of that one.
 */
enum weft_status wf_order_on_next(struct wf_order *order, struct wf_member *member) WEFT_MUST_CHECK;
/* The member takes part in nothing any more, from the step under way on: as one that is out of data
 * for ever. The payload drops what it has pushed for that step. */
void wf_order_drop(struct wf_order *order, struct wf_member *member);
/* The member takes part from `step` on, which is not below the one under way. It was dropped. */
void wf_order_enter(struct wf_order *order, struct wf_member *member, uint64_t step);
/* Whether another member has begun the step, and the step cannot end without what `member` has not
 * pushed yet. */
bool wf_order_others_need(const struct wf_order *order, const struct wf_member *member);
/* The number of steps by which the member is ahead of the slowest other member in its pass. Members
 * that are out of data in the pass, or have left, do not count; a member that has not entered the
 * pass yet counts as being where this member began it. */
uint64_t wf_order_lead(const struct wf_order *order, const struct wf_member *member);
/* Since when answers have waited for other members; 0: none waits. And whether one waits for
 * `member`. */
uint64_t wf_order_holds_since(const struct wf_order *order);
bool wf_order_holds_for(const struct wf_order *order, const struct wf_member *member);
/* A step has been begun: returns the first member that has left and that the step waits for;
 * `count` if there is none. */
uint32_t wf_order_find_left(const struct wf_order *order);
