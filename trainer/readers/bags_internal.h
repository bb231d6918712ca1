/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of bags share. A set that is being read is filled row by row: begin_row, for
 * each slot its entries and end_slot, end_row. Thread: the caller's. */
#pragma once

#include "trainer/readers/bags.h"

struct wf_bags_limits {
	size_t row_bytes_min; /* of the shortest line that is a row, line feed included */
	bool has_headers;     /* the first line of each file is no row */
	size_t entries_max;   /* 0: one for each slot */
};

/* Allocates for as many rows as the text can hold; slots, features and classes are set. */
enum weft_status wf_bags_init(struct wf_env *env, const struct wf_text *text,
			      const struct wf_bags_limits *limits,
			      struct wf_bags *bags) WEFT_MUST_CHECK;
/* WEFT_DATA: the line is one more than lines of `row_bytes_min` could be. */
enum weft_status wf_bags_begin_row(const struct wf_bags *bags,
				   const struct wf_cut *cut) WEFT_MUST_CHECK;
/* One more entry of the bag that is being filled. */
void wf_bags_add(struct wf_bags *bags, uint64_t key, float weight);
/* The bag `slot` of the row that is being filled is full. */
void wf_bags_end_slot(struct wf_bags *bags, uint32_t slot);
void wf_bags_end_row(struct wf_bags *bags);
/* Reads a file and parses it. */
enum weft_status wf_bags_read(struct wf_env *env, const char *path,
			      enum weft_status (*parse)(struct wf_env *env,
							const struct wf_text *text,
							struct wf_bags *out),
			      struct wf_bags *out) WEFT_MUST_CHECK;
