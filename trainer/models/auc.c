/* SPDX-License-Identifier: Apache-2.0 */
/* Rank statistic over sorted scores; counts are whole numbers below 2^53, so that the result does
 * not depend on the order of equal ones. Thread: any. */
#include "trainer/models/auc.h"

#include <stdlib.h>

static int
by_score(const void *left, const void *right)
{
	const struct wf_auc_row *a = left;
	const struct wf_auc_row *b = right;
	return (a->score > b->score) - (a->score < b->score);
}

double
wf_auc(struct wf_auc_row *row, size_t count)
{
	double below = 0.0; /* rows of class 0 so far */
	double above = 0.0; /* rows of class 1 so far */
	double ordered = 0.0;

	for (size_t i = 0; i < count; i++) {
		if (row[i].score != row[i].score) {
			return __builtin_nan("");
		}
	}
	qsort(row, count, sizeof(*row), by_score);
	for (size_t i = 0, end; i < count; i = end) {
		double zeros = 0.0;
		double ones = 0.0;
		for (end = i; end < count && row[end].score == row[i].score; end++) {
			zeros += row[end].y > 0.0f ? 0.0 : 1.0;
			ones += row[end].y > 0.0f ? 1.0 : 0.0;
		}
		ordered += ones * (below + 0.5 * zeros);
		below += zeros;
		above += ones;
	}
	return below > 0.0 && above > 0.0 ? ordered / (below * above) : 0.5;
}
