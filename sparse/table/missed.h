/* SPDX-License-Identifier: Apache-2.0 */
/* missed: steps without a gradient whose rate is not always the same: what the last n of them do to
 * a row, for any n, by at most three products however large n is. A table keeps one where rows are
 * brought up by closed forms under a schedule (wf_row_motion_varies). Thread: the lane's.
 *
 * Steps are kept in blocks of 256: of each step what follows it in its block, and of each block
 * what follows it up to the last one. A step is added in 256 products at most, and one for each
 * block before when a block is full; 64 bytes a step are kept, taken a block at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/rows.h"
#include "sparse/table/budget.h"

struct wf_missed_block;

struct wf_missed {
	struct wf_budget *budget;
	struct wf_row_motion none;      /* of no steps */
	struct wf_missed_block **block; /* [block_capacity], block_count of them in use */
	uint32_t block_count;
	uint32_t block_capacity;
	uint32_t step_count;
};

/* Allocates nothing yet. `step`: any one, for its kind. */
void wf_missed_init(struct wf_missed *missed, struct wf_budget *budget,
		    const struct wf_row_motion *step);
void wf_missed_fini(struct wf_missed *missed); /* accepts zeroed */
/* There is room for one step more. false: no memory; nothing has changed. */
bool wf_missed_reserve(struct wf_missed *missed);
/* After wf_missed_reserve. */
void wf_missed_add(struct wf_missed *missed, const struct wf_row_motion *step);
/* The last `steps` of those added. */
struct wf_row_motion wf_missed_last(const struct wf_missed *missed, uint32_t steps);
