/* SPDX-License-Identifier: Apache-2.0 */
/* auc: how well scores put rows of class 1 above rows of class 0. Thread: any. */
#pragma once

#include <stddef.h>

struct wf_auc_row {
	float score;
	float y; /* 0 or 1 */
};

/**
 * Area under the receiver operating characteristic: the share of pairs of a row of class 1 and one
 * of class 0 that are in the right order, equal scores counted half (Hanley and McNeil, "The
 * meaning and use of the area under a receiver operating characteristic (ROC) curve", 1982).
 * @param row [count] is sorted by score
 * @return 0.5 where a class has no row; NaN where a score is NaN
 */
double wf_auc(struct wf_auc_row *row, size_t count);
