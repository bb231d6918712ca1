/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of tables of numbers share. Thread: the caller's. */
#pragma once

#include "trainer/readers/csv.h"
#include "trainer/readers/dataset.h"

/* Allocates for the rows, splits them and sets y; the caller sets x. On failure nothing is left.
 * WEFT_DATA: too few rows; WEFT_NOMEM */
enum weft_status wf_dataset_init(struct wf_env *env, const struct wf_csv *csv, const char *path,
				 unsigned target_column,
				 struct wf_dataset *dataset) WEFT_MUST_CHECK;
/* x of one feature = (value - mean) / (max - min) of its column, over all rows. WEFT_DATA: the
 * column is constant. */
enum weft_status wf_dataset_scale_column(const struct wf_csv *csv, const char *path,
					 unsigned column, unsigned feature,
					 struct wf_dataset *dataset) WEFT_MUST_CHECK;
