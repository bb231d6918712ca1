/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_sq: the slots of a send queue, counted in software. A slot is free again when a completion
 * that covers it was polled, and at no other time: some devices free slots earlier, and code that
 * relies on this stalls on devices that do not. Thread: the transport's owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct wf_verbs_sq {
	uint32_t depth;   /* slots */
	uint32_t reserve; /* slots reserved for frames that return credits */
	uint64_t posted;  /* number of work requests so far, which is the position of the next */
	uint64_t completed;
	bool flushed; /* the last one posted has failed, so all before it are over too */
};

static inline void
wf_verbs_sq_init(struct wf_verbs_sq *sq, uint32_t depth, uint32_t reserve)
{
	WF_ASSERT(reserve < depth);
	*sq = (struct wf_verbs_sq){.depth = depth, .reserve = reserve};
}

/* Slots that data may use now. */
static inline uint32_t
wf_verbs_sq_room(const struct wf_verbs_sq *sq)
{
	uint64_t used = sq->posted - sq->completed;
	uint32_t usable = sq->depth - sq->reserve;
	return used >= usable ? 0 : usable - (uint32_t)used;
}

/* Slots that anything may use. */
static inline uint32_t
wf_verbs_sq_room_all(const struct wf_verbs_sq *sq)
{
	return sq->depth - (uint32_t)(sq->posted - sq->completed);
}

/* Reserves a slot and returns its position. There must be one. */
static inline uint64_t
wf_verbs_sq_reserve(struct wf_verbs_sq *sq)
{
	WF_ASSERT(sq->posted - sq->completed < sq->depth);
	return sq->posted++;
}

/* The last `count` reserved slots were not posted: no completion will come for them. */
static inline void
wf_verbs_sq_give_back(struct wf_verbs_sq *sq, uint32_t count)
{
	WF_ASSERT(count <= sq->posted - sq->completed);
	sq->posted -= count;
}

/* The work request whose position has these low 32 bits is complete, and so are all before it.
 * Returns false if there is none such. */
static inline bool
wf_verbs_sq_complete(struct wf_verbs_sq *sq, uint32_t position)
{
	uint64_t count = (uint32_t)(position - (uint32_t)sq->completed) + 1ull;
	if (count > sq->posted - sq->completed) {
		return false;
	}
	sq->completed += count;
	return true;
}

/* The work request whose position has these low 32 bits has failed. When a queue pair is in error
 * all fail, in order, and nothing is posted behind them. */
static inline void
wf_verbs_sq_fail(struct wf_verbs_sq *sq, uint32_t position)
{
	sq->flushed = sq->flushed || position == (uint32_t)(sq->posted - 1);
}

/* Whether no completion is outstanding. */
static inline bool
wf_verbs_sq_is_ended(const struct wf_verbs_sq *sq)
{
	return sq->flushed || sq->completed == sq->posted;
}

/* Whether the work request at `position` is over. */
static inline bool
wf_verbs_sq_is_over(const struct wf_verbs_sq *sq, uint64_t position)
{
	return position < sq->completed;
}
