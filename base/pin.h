/* SPDX-License-Identifier: Apache-2.0 */
/* pin: placing threads and their memory with hwloc. `--pin=auto|off|CPULIST`.
 *
 * auto: the i-th thread that asks gets the i-th core of the process's own cpuset (affinity mask),
 * one hardware thread of each core first, cores of one NUMA node together; with more threads than
 * cores nobody is pinned. CPULIST ("0,2-5"): the i-th thread gets the i-th CPU of the list, in the
 * list's order, round again when it is used up; a CPU outside the process's cpuset is refused.
 * Thread: created on the main thread; wf_pin_self may be called by any. */
#pragma once

#include "base/env.h"

struct wf_pin;

struct wf_pin_place {
	int cpu;       /* operating system's number; -1: not pinned */
	int numa_node; /* -1: unknown or not pinned */
};

/* `setting` is the option's text; `thread_count` how many threads will ask. */
enum weft_status wf_pin_create(struct wf_env *env, const char *setting, unsigned thread_count,
			       struct wf_pin **out) WEFT_MUST_CHECK;
void wf_pin_destroy(struct wf_pin *pin); /* accepts NULL */
/* Where thread `idx` (0 <= idx < thread_count) belongs. */
struct wf_pin_place wf_pin_place_of(const struct wf_pin *pin, unsigned idx);
/* Bind the calling thread to place `idx`. A no-op for an unpinned place. */
enum weft_status wf_pin_self(const struct wf_pin *pin, unsigned idx) WEFT_MUST_CHECK;
/* How many CPUs this process may run on (affinity mask), at least 1. */
unsigned wf_pin_cpu_count(void);
