/* SPDX-License-Identifier: Apache-2.0 */
/* motions: see motions.h. Thread: the lane's. */
#include "sparse/table/motions.h"

#include <inttypes.h>

#include "base/status.h"

bool
wf_motions_init(struct wf_motions *motions, struct wf_budget *budget, const struct wf_row_opts *row)
{
	*motions = (struct wf_motions){
		.budget = budget,
		.row = row,
		.one = wf_row_motion_of(row),
		.varies = wf_row_motion_varies(row),
	};
	if (motions->one.kind == WF_ROW_STILL) {
		return true;
	}
	wf_missed_init(&motions->missed, budget, &motions->one);
	motions->ready = wf_budget_alloc(budget, WF_MOTIONS * sizeof(*motions->ready));
	for (uint32_t steps = 0; motions->ready != NULL && steps < WF_MOTIONS; steps++) {
		motions->ready[steps] = wf_row_motion_power(&motions->one, steps);
	}
	return motions->ready != NULL;
}

void
wf_motions_fini(struct wf_motions *motions)
{
	if (motions->ready != NULL) {
		wf_budget_give(motions->budget, motions->ready,
			       WF_MOTIONS * sizeof(*motions->ready));
	}
	wf_missed_fini(&motions->missed);
	*motions = (struct wf_motions){0};
}

enum weft_status
wf_motions_check(const struct wf_motions *motions, const struct wf_motions_step *step)
{
	const struct wf_row_opts *row = motions->row;

	if (wf_motions_are_still(motions) ||
	    !(row->set.decay > 0.0 || row->set.l1 > 0.0 || row->set.l2 > 0.0)) {
		return WEFT_OK;
	}
	if (step->rate * row->set.decay >= 1.0) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": rate %g: with decay %g steps missed have no "
			       "closed form: keep it below %g",
			       step->table, step->rate, row->set.decay, 1.0 / row->set.decay);
	}
	if (motions->varies && step->step != (uint64_t)step->last + 1) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": push of step %" PRIu64 " after step %" PRIu32
			       ": steps missed are made up for under a schedule, so every step is "
			       "pushed, if without keys",
			       step->table, step->step, step->last);
	}
	if (motions->varies || (float)step->rate == (float)row->set.learning_rate) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "table %" PRIu32 ": rate %g, but steps missed are made up for at %g: keep "
		       "the rate, or take lazy rows",
		       step->table, step->rate, row->set.learning_rate);
}

enum weft_status
wf_motions_reserve(struct wf_motions *motions, const struct wf_motions_step *step)
{
	struct wf_budget *budget = motions->budget;

	budget->cap_refused = false;
	if (!motions->varies || wf_missed_reserve(&motions->missed)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_NOMEM,
		       "table %" PRIu32 ": no memory to keep step %" PRIu32
		       " for rows that miss it, at %" PRIu64 " bytes: %stake lazy rows",
		       step->table, step->last + 1, budget->used_bytes,
		       budget->cap_refused ? "raise the memory cap, or " : "");
}

void
wf_motions_add(struct wf_motions *motions, double rate)
{
	if (motions->varies) {
		const struct wf_row_motion motion = wf_row_motion_at(motions->row, rate);
		wf_missed_add(&motions->missed, &motion);
	}
}
