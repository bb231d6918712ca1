/* SPDX-License-Identifier: Apache-2.0 */
/* crowd: the bare kernels that one pserver and a few trainers need for asynchronous pushes.
 * In one process, slice by slice, the optimizer's step over each trainer's gradients, and a copy of
 * what came of it into a window of that trainer's, for the slice changes before the trainer has it;
 * in a process for each trainer the copy of as many bytes out of the window into its own
 * parameters. All over one piece of shared memory, and nobody waits for anybody. Thread: starting
 * and ending: the benchmark's. */
#pragma once

#include "tools/rdma_bench/limits/limit.h"

#define WF_CROWD_MAX 4u

struct wf_crowd_opts {
	struct wf_env *env;
	int either[2]; /* CPUs of all of them */
	uint64_t bytes, slice_bytes;
	unsigned trainer_count; /* at most WF_CROWD_MAX */
};

struct wf_crowd {
	struct wf_worker worker[1 + WF_CROWD_MAX]; /* 0: the pserver's part */
	struct wf_side side;
	struct wf_slab memory;
	struct wf_env *env;
};

enum weft_status wf_crowd_start(const struct wf_crowd_opts *opts,
				struct wf_crowd *out) WEFT_MUST_CHECK;
void wf_crowd_end(struct wf_crowd *crowd); /* accepts a half-started one */
