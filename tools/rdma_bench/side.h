/* SPDX-License-Identifier: Apache-2.0 */
/* side: one of the two sides that a pair compares: workers that receive the same commands, and the
 * number of operations that takes about the requested time. Thread: the benchmark's. */
#pragma once

#include "tools/rdma_bench/worker.h"

#define WF_SIDE_WORKERS_MAX 64u

struct wf_side {
	/* All get each order; figures are those of the slowest. Borrowed. */
	struct wf_worker *worker[WF_SIDE_WORKERS_MAX];
	unsigned worker_count;
	uint32_t mode;
	uint64_t bytes;    /* of one operation, all workers together; for rates */
	uint64_t multiple; /* operations are counted in multiples of this */
	bool slow;         /* its workers take twice their time */

	uint64_t count; /* of the next run; 0: not known yet */
};

/* Runs once, for about `duration_ns`. The first run finds out how many operations that is. */
enum weft_status wf_side_run(struct wf_side *side, uint64_t duration_ns, uint64_t timeout_ns,
			     struct wf_figures *out) WEFT_MUST_CHECK;
