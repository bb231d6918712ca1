/* SPDX-License-Identifier: Apache-2.0 */
/* motions: what steps without a gradient do to a row, in a table that makes up for them by closed
 * forms: of any number of steps at the settings' rate, or, under a schedule, of those that were
 * applied (missed.h). In every other table rows stay still. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/rows.h"
#include "sparse/table/budget.h"
#include "sparse/table/missed.h"

/* The number of motions that are computed at init: of 0 steps and up. */
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
void wf_motions_fini(struct wf_motions *motions); /* accepts zeroed */
/* Steps missed are made up for at the settings' rate: a push at another would not be what a dense
 * run does. Under a schedule, at the rates of all pushes: none may be left out. WEFT_INVALID */
enum weft_status wf_motions_check(const struct wf_motions *motions,
				  const struct wf_motions_step *step) WEFT_MUST_CHECK;
/* Room for what a row that this step does not touch will miss. WEFT_NOMEM: nothing has changed. */
enum weft_status wf_motions_reserve(struct wf_motions *motions,
				    const struct wf_motions_step *step) WEFT_MUST_CHECK;
/* The step is applied; after wf_motions_reserve. */
void wf_motions_add(struct wf_motions *motions, double rate);

static inline bool
wf_motions_are_still(const struct wf_motions *motions)
{
	return motions->ready == NULL;
}

/* The last `steps` steps, without a gradient; `room` may be used for them. Not where rows stay
 * still. */
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

/* Bring a row of f32 up over the last `steps`. */
static inline void
wf_motions_move(const struct wf_motions *motions, uint32_t steps, float *row, size_t dim)
{
	struct wf_row_motion room;
	wf_row_move(wf_motions_last(motions, steps, &room), row, dim);
}

/* The values that it would have then. */
static inline void
wf_motions_look(const struct wf_motions *motions, uint32_t steps, float *out, const float *row,
		size_t dim)
{
	struct wf_row_motion room;
	wf_row_look(wf_motions_last(motions, steps, &room), out, row, dim);
}
