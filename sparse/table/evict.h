/* SPDX-License-Identifier: Apache-2.0 */
/* evict: when a row's time is over, and which of two rows is the worse one. A function of the row
 * and of the last step, and of nothing else: the table asks it in lookups and pushes, and what they
 * give does not depend on when it came by to free the memory (table_evict.c). Thread: any; pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sparse/table/rows.h"
#include "sparse/table/table.h"

struct wf_evict {
	struct wf_evict_opts opts;
	bool has_score;  /* rows carry show and click */
	bool can_expire; /* by age or by score */
};

void wf_evict_init(struct wf_evict *evict, const struct wf_evict_opts *opts); /* checked ones */
/* Of a live row, `step` being the last one: its time is over; and that by its age. */
bool wf_evict_is_expired(const struct wf_evict *evict, struct wf_row_head *head, uint32_t step);
bool wf_evict_is_too_old(const struct wf_evict *evict, const struct wf_row_head *head,
			 uint32_t step);
/* Whether `a` should go before `b`. */
bool wf_evict_is_worse(const struct wf_evict *evict, struct wf_row_head *a, struct wf_row_head *b,
		       uint32_t step);
/* Bring show and click from the step `stamp` to `step`. */
void wf_evict_fade(const struct wf_evict *evict, struct wf_row_score *score, uint32_t stamp,
		   uint32_t step);
