/* SPDX-License-Identifier: Apache-2.0 */
/* missed: see missed.h. Thread: the lane's. */
#include "sparse/table/missed.h"

#include "base/assert.h"

#define BLOCK_STEPS 256u
#define BLOCKS_AT_FIRST 16u

struct wf_missed_block {
	/* [i]: the block's steps from its ith on; of the last block, as far as there are some. */
	struct wf_row_motion rest[BLOCK_STEPS];
	struct wf_row_motion behind; /* all steps of the blocks between it and the last one */
};

void
wf_missed_init(struct wf_missed *missed, struct wf_budget *budget, const struct wf_row_motion *step)
{
	*missed = (struct wf_missed){.budget = budget, .none = wf_row_motion_power(step, 0)};
}

void
wf_missed_fini(struct wf_missed *missed)
{
	for (uint32_t b = 0; b < missed->block_count; b++) {
		wf_budget_give(missed->budget, missed->block[b], sizeof(*missed->block[b]));
	}
	if (missed->block != NULL) {
		wf_budget_give(missed->budget, missed->block,
			       missed->block_capacity * sizeof(*missed->block));
	}
	*missed = (struct wf_missed){0};
}

bool
wf_missed_reserve(struct wf_missed *missed)
{
	if (missed->step_count < missed->block_count * BLOCK_STEPS) {
		return true;
	}
	if (missed->block_count == missed->block_capacity) {
		const uint32_t old = missed->block_capacity;
		const uint32_t capacity = old == 0 ? BLOCKS_AT_FIRST : 2 * old;
		void *block = missed->block;
		if (!wf_budget_grow(missed->budget, &block, old * sizeof(*missed->block),
				    capacity * sizeof(*missed->block))) {
			return false;
		}
		missed->block = block;
		missed->block_capacity = capacity;
	}
	struct wf_missed_block *next = wf_budget_alloc(missed->budget, sizeof(*next));
	if (next == NULL) {
		return false;
	}
	missed->block[missed->block_count++] = next;
	return true;
}

/* The last block is full: its steps follow those of the blocks before it. */
static void
close_block(struct wf_missed *missed, uint32_t full)
{
	missed->block[full]->behind = missed->none;
	for (uint32_t b = 0; b < full; b++) {
		struct wf_row_motion *behind = &missed->block[b]->behind;
		*behind = wf_row_motion_chain(behind, &missed->block[full]->rest[0]);
	}
}

void
wf_missed_add(struct wf_missed *missed, const struct wf_row_motion *step)
{
	const uint32_t last = missed->step_count / BLOCK_STEPS;
	const uint32_t within = missed->step_count % BLOCK_STEPS;

	WF_ASSERT(last < missed->block_count);
	WF_ASSERT(step->kind == missed->none.kind);
	if (within == 0 && last > 0) {
		close_block(missed, last - 1);
	}
	struct wf_missed_block *block = missed->block[last];
	for (uint32_t i = 0; i < within; i++) {
		block->rest[i] = wf_row_motion_chain(&block->rest[i], step);
	}
	block->rest[within] = *step;
	missed->step_count++;
}

struct wf_row_motion
wf_missed_last(const struct wf_missed *missed, uint32_t steps)
{
	WF_ASSERT(steps <= missed->step_count);
	if (steps == 0) {
		return missed->none;
	}
	const uint32_t from = missed->step_count - steps;
	const uint32_t last = (missed->step_count - 1) / BLOCK_STEPS;
	const struct wf_missed_block *block = missed->block[from / BLOCK_STEPS];
	struct wf_row_motion motion = block->rest[from % BLOCK_STEPS];
	if (from / BLOCK_STEPS < last) {
		motion = wf_row_motion_chain(&motion, &block->behind);
		motion = wf_row_motion_chain(&motion, &missed->block[last]->rest[0]);
	}
	return motion;
}
