/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_use: how much of the benchmark's CPUs others use. Thread: the benchmark's. */
#pragma once

#include <sys/types.h>

#include "base/env.h"

struct wf_cpu_use {
	uint64_t when_ns;
	double busy_s; /* of those CPUs since the machine started; below 0: not known */
	double own_s;  /* of this process and its children; below 0: not known */
};

/* Of two CPUs, or of one, twice named. What the benchmark runs, it runs there. */
struct wf_cpu_use wf_cpu_use_now(struct wf_env *env, const int cpu[2]);
/* Cores that others used between two looks; below 0: not known. No child may have come or gone. */
double wf_cpu_use_foreign(const struct wf_cpu_use *before, const struct wf_cpu_use *after);
/* Seconds that a process has used, all its threads; 0: itself. 0 where it is gone. */
double wf_cpu_use_process(pid_t pid);
