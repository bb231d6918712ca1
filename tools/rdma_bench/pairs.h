/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: product and limit in turn, with a probe of the placement before and after, until there are
 * enough pairs of one placement. Thread: the benchmark's. */
#pragma once

#include "tools/rdma_bench/bench.h"

enum wf_measure {
	WF_MEASURE_LATENCY, /* us: time of an operation */
	WF_MEASURE_RATE,    /* GB/s: bytes of an operation by its time */
	WF_MEASURE_ROWS,    /* M/s: the same, of rows: `bytes` of the sides is their number */
};

struct wf_pairs {
	struct wf_side *product, *limit;
	enum wf_measure measure;
	bool one_core; /* both ends of either on one CPU: nothing to probe, all pairs are kept */
};

/* Fills in all but names, bytes and target. */
enum weft_status wf_pairs_run(struct wf_bench *bench, const struct wf_pairs *pairs,
			      struct wf_result *out) WEFT_MUST_CHECK;
