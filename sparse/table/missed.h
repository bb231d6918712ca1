/* SPDX-License-Identifier: Apache-2.0 */
/* missed: steps without a gradient whose rates differ: what the last n of them do to a row, for any
 * n, in at most three products. A table has such a record where closed forms bring rows up to date
 * under a schedule (wf_row_motion_varies). Thread: the lane's.
 *
 * Steps are kept in blocks of 256: for each step the product of those that follow it in its block,
 * and for each block the product of all blocks behind it. Adding a step costs at most 256 products,
 * and one for each earlier block when a block is full. A step needs 64 bytes. */
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
void wf_missed_fini(struct wf_missed *missed); /* accepts a zeroed struct */
/* Allocates room for one more step. false: no memory; nothing has changed. */
bool wf_missed_reserve(struct wf_missed *missed);
/* Adds a step, for which wf_missed_reserve has made room. */
void wf_missed_add(struct wf_missed *missed, const struct wf_row_motion *step);
/* The product of the last `steps` that were added. */
struct wf_row_motion wf_missed_last(const struct wf_missed *missed, uint32_t steps);
