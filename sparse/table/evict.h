/* SPDX-License-Identifier: Apache-2.0 */
/* evict: whether a row has expired, and which of two rows should go first. The answers follow from
 * the row and the last step alone. Lookups and pushes ask here, so that their results do not depend
 * on when the memory of an expired row is freed (table_evict.c). Thread: any; pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sparse/table/rows.h"
#include "sparse/table/table.h"

struct wf_evict {
	struct wf_evict_opts opts;
	const struct wf_rows *rows; /* whose heads are asked about */
	bool has_score;             /* rows carry show and click */
	bool can_expire;            /* by age or by score */
};

/* The options are checked ones; `rows` is lent. */
void wf_evict_init(struct wf_evict *evict, const struct wf_evict_opts *opts,
		   const struct wf_rows *rows);
/* Whether a live row has expired, `step` being the last one; and whether by its age. */
bool wf_evict_is_expired(const struct wf_evict *evict, struct wf_row_head *head, uint32_t step);
bool wf_evict_is_too_old(const struct wf_evict *evict, const struct wf_row_head *head,
			 uint32_t step);
/* Whether `a` should go before `b`. */
bool wf_evict_is_worse(const struct wf_evict *evict, struct wf_row_head *a, struct wf_row_head *b,
		       uint32_t step);
/* Brings show and click from the step `stamp` to `step`. */
void wf_evict_fade(const struct wf_evict *evict, struct wf_row_score *score, uint32_t stamp,
		   uint32_t step);
