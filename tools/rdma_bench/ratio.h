/* SPDX-License-Identifier: Apache-2.0 */
/* ratio: how many times as large the values of one sample are as those of another, with an
 * interval, whatever the distribution of the values.
 *
 * The estimate is the median of all quotients b/a (Hodges and Lehmann), and the interval runs
 * between two of them that the distribution of Mann and Whitney's U picks: if the values of both
 * are independent draws that differ by a factor, it covers this factor with the stated confidence.
 * J. L. Hodges, E. L. Lehmann, Ann. Math. Stat. 34 (1963); H. B. Mann, D. R. Whitney, ibid. 18
 * (1947). For the ratios of pairs the interval is that of their median, which runs between two of
 * them that the binomial distribution picks (the sign test): it covers the median of the
 * distribution that they come from. W. R. Thompson, Ann. Math. Stat. 7 (1936). Thread: main. */
#pragma once

#include "tools/rdma_bench/result.h"

#define WF_RATIO_CONFIDENCE 0.95

struct wf_ratio {
	double middle, from, to;
	/* Of the interval: at least WF_RATIO_CONFIDENCE, or, with so few values that not even the
	 * widest interval reaches it, what that one has. */
	double confidence;
};

/* Counts are 1 to WF_SAMPLES_MAX; values are above 0. */
void wf_ratio_estimate(const double *a, unsigned a_count, const double *b, unsigned b_count,
		       struct wf_ratio *out);
/* The median of the ratios of `count` pairs, 1 to WF_SAMPLES_MAX, and its interval. */
void wf_ratio_of_pairs(const double *ratio, unsigned count, struct wf_ratio *out);
