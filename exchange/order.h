/* SPDX-License-Identifier: Apache-2.0 */
/* order: when a push is applied, and when its answer may go. The members of a job (its trainers)
 * say their steps to a lane and push for them; what they push comes in *units* (slices of tensors),
 * or with the words that say the step (rows of tables). Who sums, applies and answers is the
 * payload on the lane; this file counts.
 *
 * Synchronous: all members are in one step of the lane, which ends when what all of them pushed is
 * applied. A member that is out of data takes part in no step from the one it says so for until the
 * pass ends.
 *
 * Asynchronous: what is pushed is applied when it comes, and each member counts steps of its own.
 * Where some units are summed and others applied as they come, all members are in one step of the
 * lane, but for units of the second kind, which may come when the lane is a step further.
 *
 * The *lag* of a push that is applied when it comes is how many pushes of others were applied to
 * the same thing (a slice, all tables of a lane) since the values were read that it was computed
 * with. One that lags too much is not applied; its answer says so.
 *
 * Bounded: asynchronous, but the answer to a member's step p waits until each other member of the
 * pass has pushed all of step p - staleness: the member's *lead* is no longer than that.
 *
 * In every mode a member says its steps one by one, each when all of the last is here. Between
 * passes others may have made steps that it has not: in a new pass it goes on where they are.
 *
 * Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/status.h"

/* One member as one lane sees it. Embedded in what else is known of it; zero at first, but for
 * step_next. */
struct wf_member {
	uint64_t step_next; /* what it has not said yet, from 1 */
	uint64_t samples;   /* of step step_next - 1 */
	uint64_t base;      /* the step before its first of this pass */
	uint32_t pass;      /* of step step_next - 1 */
	uint32_t out_pass;
	/* Units of step step_next - 1 that are here: summed ones, and those applied as they came.
	 */
	uint32_t summed, came;
	uint32_t offered;       /* those that are not here, and wait for leave to be pushed */
	uint64_t held_since_ns; /* answers of its wait for other members; 0: none does */
	bool begun;             /* it has said a step */
	bool out;               /* of data in out_pass */
	bool left;              /* in good order: it pushes no more */
};

/* The step that the lane waits for. A member begins step k + 1 only when all its answers of step k
 * are there, so one at a time is enough. */
struct wf_step_sum {
	uint64_t step;           /* from 1 */
	uint64_t samples;        /* that members have said */
	uint64_t samples_before; /* applied in earlier steps */
	uint32_t heard;          /* members that said the step */
	uint32_t out; /* members out of data in `pass`; counted from the first heard on */
	uint32_t pass;
	uint64_t since_ns; /* first heard; 0 without stats */
	uint64_t done_ns;  /* somebody has done its part, and waits for the others; 0: nobody has */
};

/* Of one lane. Zero is no job. */
struct wf_order {
	/* Members stand in an array of what they are embedded in: the first, the distance in bytes
	 * from one to the next, and their number. */
	struct wf_member *first;
	size_t stride;
	uint32_t count;
	uint32_t out_count; /* members out of data, in whatever pass */
	/* Units of a member's step that are summed, and that are applied as they come. */
	uint32_t summed_count, came_count;
	bool own_steps;     /* nothing is summed: each member counts steps of its own */
	uint64_t staleness; /* the least of what is pushed here */
	uint64_t highest;   /* that any member has begun, in steps of its own */
	struct wf_step_sum sum;
};

#define WF_ORDER_NEVER UINT64_MAX

/* What the mode of what is pushed comes to. */
struct wf_order_terms {
	uint64_t discard_lag; /* a push with so much lag is not applied; WF_ORDER_NEVER: all are */
	uint64_t staleness;   /* with a longer lead answers wait; WF_ORDER_NEVER: with none */
};

/* One member, and what counts pushes: a slice, or all tables of a lane. */
struct wf_order_view {
	uint64_t own;    /* pushes of this member that were applied */
	uint64_t others; /* those of others, when the values were read that it computes with */
	bool discarded;  /* its last push */
};

/* What a member says of a step: STEP, or PUSH. */
struct wf_step_said {
	const char *message; /* its name */
	uint64_t step;
	uint64_t epoch;
	uint64_t samples;
	uint32_t pass;
	bool out; /* of data */
};

enum wf_step_news {
	WF_STEP_AGAIN, /* heard before: said again, after a reconnect */
	WF_STEP_NEW,
	/* New, and the member was out of data in the last pass, or others have made steps since
	 * that it has not. */
	WF_STEP_BACK,
};

static inline struct wf_member *
wf_order_member(const struct wf_order *order, uint32_t idx)
{
	return (struct wf_member *)(void *)((char *)order->first + idx * order->stride);
}

/* Members of whom something is summed in this step, which somebody has begun. */
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

/* The step cannot end without something that the member, if it is not out of data, has not said or
 * pushed. */
static inline bool
wf_order_lacks(const struct wf_order *order, const struct wf_member *member)
{
	return !order->own_steps &&
	       (member->step_next <= order->sum.step || member->summed < order->summed_count);
}

/* It has offered all that the step lacks of it, and waits for leave. */
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

/* All that the member has to push for the last step that it has said is here. */
static inline bool
wf_order_is_whole(const struct wf_order *order, const struct wf_member *member)
{
	return (member->summed == order->summed_count && member->came == order->came_count) ||
	       !member->begun;
}

/* All of the step is applied: the next one begins. */
static inline void
wf_order_step_is_applied(struct wf_order *order)
{
	struct wf_step_sum *sum = &order->sum;
	sum->samples_before += sum->samples;
	sum->step++;
	sum->samples = 0;
	sum->heard = 0;
	sum->out = 0;
	sum->since_ns = 0;
	sum->done_ns = 0;
}

/* A push is dropped when so many times the number of members pushes of others came before it.
 * staleness: steps, in a bounded mode. */
static inline struct wf_order_terms
wf_order_terms_of(const struct wf_order *order, double discard_ratio, bool is_bounded,
		  uint32_t staleness)
{
	uint64_t lag = (uint64_t)(discard_ratio * order->count);
	return (struct wf_order_terms){.discard_lag = lag > 0 ? lag : WF_ORDER_NEVER,
				       .staleness = is_bounded ? staleness : WF_ORDER_NEVER};
}

/* May an answer to a member with that lead go? */
static inline bool
wf_order_may_answer(const struct wf_order_terms *terms, uint64_t lead)
{
	return lead <= terms->staleness;
}

/* Whether answers of the member's wait for others, from now on or still. */
static inline void
wf_order_hold(struct wf_member *member, struct wf_env *env, bool holds)
{
	if (!holds) {
		member->held_since_ns = 0;
	} else if (member->held_since_ns == 0) {
		member->held_since_ns = wf_now_ns(env);
	}
}

/* Of `applied` pushes, those of others. */
static inline uint64_t
wf_order_others(const struct wf_order_view *view, uint64_t applied)
{
	WF_ASSERT(applied >= view->own);
	return applied - view->own;
}

/* After `applied` pushes, the values are read that the member computes with from now on. */
static inline void
wf_order_read(struct wf_order_view *view, uint64_t applied)
{
	view->others = wf_order_others(view, applied);
}

/* The member's push has come after `applied` pushes. Is it too late? The view's verdict says.
 * Returns its lag: pushes of others since the values were read that it was computed with. */
static inline uint64_t
wf_order_judge(struct wf_order_view *view, const struct wf_order_terms *terms, uint64_t applied)
{
	uint64_t others = wf_order_others(view, applied);
	WF_ASSERT(others >= view->others);
	uint64_t lag = others - view->others;
	view->discarded = lag >= terms->discard_lag;
	return lag;
}

/* All members go on from here. */
void wf_order_begin(struct wf_order *order, uint64_t step, uint64_t samples);
/* May the member say it now? WEFT_PROTOCOL: no. */
enum weft_status wf_order_check(const struct wf_order *order, const struct wf_member *member,
				const struct wf_step_said *said,
				enum wf_step_news *out) WEFT_MUST_CHECK;
/* The member has said it: count. */
enum weft_status wf_order_on_step(struct wf_order *order, struct wf_member *member,
				  const struct wf_step_said *said,
				  enum wf_step_news *out) WEFT_MUST_CHECK;
/* Somebody else has begun the step, which cannot end without what `member` has not pushed. */
bool wf_order_others_need(const struct wf_order *order, const struct wf_member *member);
/* Steps by which the member is ahead of who, of the others in its pass, has done least. Who is out
 * of data in the pass, or has left, is not among them; who has still to come into it is where this
 * member began it. */
uint64_t wf_order_lead(const struct wf_order *order, const struct wf_member *member);
/* Since when answers have waited for others; 0: none waits. And does one wait for `member`? */
uint64_t wf_order_holds_since(const struct wf_order *order);
bool wf_order_holds_for(const struct wf_order *order, const struct wf_member *member);
/* A step has been begun: the first member that has left, and that it waits for; `count`: none. */
uint32_t wf_order_find_left(const struct wf_order *order);
