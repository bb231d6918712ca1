/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/table/rules.h"

#include <inttypes.h>

#include "base/status.h"

#define LARGE 1e30 /* weights and scores are below it */

enum weft_status
wf_admit_check(const struct wf_admit_opts *opts)
{
	if (opts->count > WF_ADMIT_COUNT_MAX) {
		return wf_fail(WEFT_INVALID, "admit_count %u: give at most %u", opts->count,
			       (unsigned)WF_ADMIT_COUNT_MAX);
	}
	if (!(opts->probability > 0.0 && opts->probability <= 1.0)) {
		return wf_fail(WEFT_INVALID, "admit_probability %g: give above 0, up to 1",
			       opts->probability);
	}
	if ((opts->slot_count & (opts->slot_count - 1)) != 0 ||
	    opts->slot_count > WF_ADMIT_SLOTS_MAX) {
		return wf_fail(WEFT_INVALID, "admit_slots %u: give a power of 2, up to %u",
			       opts->slot_count, WF_ADMIT_SLOTS_MAX);
	}
	return WEFT_OK;
}

enum weft_status
wf_evict_check(const struct wf_evict_opts *opts)
{
	if (opts->age_steps > WF_TABLE_STEP_MAX) {
		return wf_fail(WEFT_INVALID, "evict_age_steps %" PRIu64 ": give at most %llu",
			       opts->age_steps, (unsigned long long)WF_TABLE_STEP_MAX);
	}
	if (!(opts->score_least >= 0.0 && opts->score_least < LARGE)) {
		return wf_fail(WEFT_INVALID, "evict_score_least %g: give 0 or more, below %g",
			       opts->score_least, LARGE);
	}
	if (opts->score_least == 0.0) {
		return WEFT_OK;
	}
	if (!(opts->show_weight >= 0.0 && opts->show_weight < LARGE && opts->click_weight >= 0.0 &&
	      opts->click_weight < LARGE)) {
		return wf_fail(WEFT_INVALID,
			       "evict_show_weight %g, evict_click_weight %g: give 0 or more, below "
			       "%g",
			       opts->show_weight, opts->click_weight, LARGE);
	}
	if (!(opts->fade > 0.0 && opts->fade <= 1.0) || opts->fade_steps == 0 ||
	    opts->fade_steps > WF_TABLE_STEP_MAX) {
		return wf_fail(WEFT_INVALID,
			       "evict_fade %g every %" PRIu64
			       " steps: give above 0 up to 1, and at least 1 step",
			       opts->fade, opts->fade_steps);
	}
	return WEFT_OK;
}

enum weft_status
wf_table_rules_check(const struct wf_admit_opts *admit, const struct wf_evict_opts *evict,
		     uint64_t vocabulary, uint64_t memory_cap_bytes)
{
	bool evicts = evict->age_steps > 0 || evict->score_least > 0.0 || evict->at_cap;
	bool waits = admit->count > 1 || admit->probability < 1.0;
	enum weft_status st = wf_admit_check(admit);
	if (st == WEFT_OK) {
		st = wf_evict_check(evict);
	}
	if (st == WEFT_OK && vocabulary > 0 && (evicts || waits)) {
		st = wf_fail(WEFT_INVALID, "a fixed vocabulary has all its rows from the start: "
					   "leave out admission and eviction");
	}
	if (st == WEFT_OK && evict->at_cap && memory_cap_bytes == 0) {
		st = wf_fail(WEFT_INVALID, "evict_at_cap needs memory_cap_bytes above 0");
	}
	return st;
}
