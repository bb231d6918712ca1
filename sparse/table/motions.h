/* SPDX-License-Identifier: Apache-2.0 */
/* motions: what steps without a gradient do to a row, in a table that makes up for them by closed
 * forms: for any number of steps at the rate of the settings or, under a schedule, for the steps
 * that were applied (missed.h). In other tables such rows stay as they are. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/rows.h"
#include "sparse/table/budget.h"
#include "sparse/table/missed.h"

/* How many motions are computed at init: those of 0 steps and up. */
#define WF_MOTIONS 256u

struct wf_motions {
	struct wf_budget *budget;
	const struct wf_row_opts *row; /* lent until fini */
	struct wf_row_motion one;      /* of a step at the settings' rate */
	struct wf_row_motion *ready;   /* [WF_MOTIONS]; NULL: rows stay still */
	bool varies;                   /* by the rates of steps */
	struct wf_missed missed;       /* where they vary: the steps applied */
};

/* A push that is about to be applied. */
struct wf_motions_step {
	uint32_t table; /* number in the job */
	uint32_t last;  /* step before it */
	uint64_t step;
	double rate;
};

/* false: no memory; fini frees what was allocated. */
bool wf_motions_init(struct wf_motions *motions, struct wf_budget *budget,
		     const struct wf_row_opts *row);
void wf_motions_fini(struct wf_motions *motions); /* accepts a zeroed struct */
/* Checks the rate of a push. Missed steps are made up for at the rate of the settings: with another
 * rate the result would differ from a dense run. Under a schedule no push may be left out. */
enum weft_status wf_motions_check(const struct wf_motions *motions,
				  const struct wf_motions_step *step) WEFT_MUST_CHECK;
/* Allocates what rows that this step does not touch will need. WEFT_NOMEM: nothing has changed. */
enum weft_status wf_motions_reserve(struct wf_motions *motions,
				    const struct wf_motions_step *step) WEFT_MUST_CHECK;
/* Records that the step is applied; wf_motions_reserve has been called. */
void wf_motions_add(struct wf_motions *motions, double rate);

static inline bool
wf_motions_are_still(const struct wf_motions *motions)
{
	return motions->ready == NULL;
}

/* The motion of the last `steps` steps without a gradient; `room` may be used for it. Not to be
 * called where rows stay as they are. */
static inline const struct wf_row_motion *
wf_motions_last(const struct wf_motions *motions, uint32_t steps, struct wf_row_motion *room)
{
	if (motions->varies) {
		*room = wf_missed_last(&motions->missed, steps);
		return room;
	}
	if (steps < WF_MOTIONS) {
		return &motions->ready[steps];
	}
	*room = wf_row_motion_power(&motions->one, steps);
	return room;
}

/* Brings a row of f32 up to date over the last `steps`. */
static inline void
wf_motions_move(const struct wf_motions *motions, uint32_t steps, float *row, size_t dim)
{
	struct wf_row_motion room;
	wf_row_move(wf_motions_last(motions, steps, &room), row, dim);
}

/* Computes the values that the row would have then. */
static inline void
wf_motions_look(const struct wf_motions *motions, uint32_t steps, float *out, const float *row,
		size_t dim)
{
	struct wf_row_motion room;
	wf_row_look(wf_motions_last(motions, steps, &room), out, row, dim);
}
