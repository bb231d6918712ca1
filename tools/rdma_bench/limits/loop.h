/* SPDX-License-Identifier: Apache-2.0 */
/* loop: the arguments with which all hand-written loops start. Thread: the caller's. */
#pragma once

#include "tools/rdma_bench/limits/limit.h"

#define WF_LIMIT_WINDOW 8u /* slices under way, as a lane grants */
#define WF_LIMIT_RATE 0.001f

/* One process of a limit. */
struct wf_limit_part {
	const char *name; /* lives as long as the limit */
	int cpu;          /* WF_CPU_ANY: either */
	enum weft_status (*run)(struct wf_bench_seat *seat, const void *arg);
	const void *arg; /* the process has its own copy from the fork on */
};

/* Starts `count` processes, at most WF_SIDE_WORKERS_MAX, and waits until all are ready. */
enum weft_status wf_limit_start(const struct wf_limit_opts *opts, const struct wf_limit_part *part,
				unsigned count, struct wf_limit *limit) WEFT_MUST_CHECK;

/* limit->shared, for all that are started afterwards. WEFT_NOMEM */
enum weft_status wf_limit_share(struct wf_limit *limit, size_t bytes) WEFT_MUST_CHECK;
