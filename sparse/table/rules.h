/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the values that settings of admission and eviction may have, and which settings of a table
 * exclude each other. Trainers check when a table is declared, lanes when they create it. Thread:
 * any; all of it is pure. */
#pragma once

#include "sparse/table/table.h"
#include "weft/sparse.h"

/* From the settings as users give them. */
static inline struct wf_admit_opts
wf_admit_of(const struct weft_table_opts *set)
{
	return (struct wf_admit_opts){.count = set->admit_count,
				      .probability = set->admit_probability,
				      .slot_count = set->admit_slots};
}

static inline struct wf_evict_opts
wf_evict_of(const struct weft_table_opts *set)
{
	return (struct wf_evict_opts){.age_steps = set->evict_age_steps,
				      .score_least = set->evict_score_least,
				      .show_weight = set->evict_show_weight,
				      .click_weight = set->evict_click_weight,
				      .fade = set->evict_fade,
				      .fade_steps = set->evict_fade_steps,
				      .at_cap = set->evict_at_cap != 0};
}

/* Checks each by itself. WEFT_INVALID: names setting, value and limit. */
enum weft_status wf_admit_check(const struct wf_admit_opts *opts) WEFT_MUST_CHECK;
enum weft_status wf_evict_check(const struct wf_evict_opts *opts) WEFT_MUST_CHECK;
/* Both, and what they rule together with the vocabulary (0: any key) and the cap (0: none). */
enum weft_status wf_table_rules_check(const struct wf_admit_opts *admit,
				      const struct wf_evict_opts *evict, uint64_t vocabulary,
				      uint64_t memory_cap_bytes) WEFT_MUST_CHECK;
