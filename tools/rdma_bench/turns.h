/* SPDX-License-Identifier: Apache-2.0 */
/* turns: two of the product by turns, where a figure is not the time of an operation and no
 * placement of two CPUs counts. Thread: the benchmark's. */
#pragma once

#include "tools/rdma_bench/bench.h"

/* One sample of a side, in the unit of the result. */
typedef enum weft_status (*wf_turn)(struct wf_bench *bench, void *side, double *out);

struct wf_turns {
	wf_turn run;
	void *product, *limit; /* the sides */
};

/* Fills in value, limit, fraction and samples; lower_is_better is the caller's. */
enum weft_status wf_turns_run(struct wf_bench *bench, const struct wf_turns *turns,
			      struct wf_result *out) WEFT_MUST_CHECK;
