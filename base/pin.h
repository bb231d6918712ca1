/* SPDX-License-Identifier: Apache-2.0 */
/* pin: placing threads and their memory. `--pin=auto|auto:I/N|off|CPULIST`.
 *
 * auto: seats.h decides, as if this process were alone on its host. auto:I/N: as process I, from 0,
 * of N like it. CPULIST ("0,2-5"): the i-th thread gets the i-th CPU of the list, in the list's
 * order, and the list is repeated if it is too short; a CPU outside the process's cpuset is
 * refused. Thread: created on the main thread; wf_pin_self may be called by any. */
#pragma once

#include "base/env.h"
#include "base/seats.h"

struct wf_pin;

struct wf_pin_place {
	int cpu;            /* the operating system's number; -1: not pinned */
	int numa_node;      /* -1: unknown or not pinned */
	const char *device; /* best for its traffic; "": any; lives as long as the pin */
	uint32_t port;      /* of the device, from 1; 0: any */
};

/* `setting` is the option's text, and `ask` has one process. Places are numbered like the seats of
 * a process: dense lanes, sparse lanes, compute threads, progress threads. WEFT_INVALID: the text
 * names setting and remedy. */
enum weft_status wf_pin_create_for(struct wf_env *env, const char *setting,
				   const struct wf_seat_ask *ask,
				   struct wf_pin **out) WEFT_MUST_CHECK;
/* The same for `thread_count` threads that belong together and have no network traffic. */
enum weft_status wf_pin_create(struct wf_env *env, const char *setting, unsigned thread_count,
			       struct wf_pin **out) WEFT_MUST_CHECK;
void wf_pin_destroy(struct wf_pin *pin); /* accepts NULL */
/* The place of thread `idx`, 0 <= idx < thread_count. */
struct wf_pin_place wf_pin_place_of(const struct wf_pin *pin, unsigned idx);
/* "cpu 2, node 1 (memory bound), device mlx5_0 port 1"; "not pinned". */
void wf_pin_describe(const struct wf_pin *pin, unsigned idx, char *out, size_t bytes);
/* Binds the calling thread to place `idx`. Does nothing for a place that is not pinned. */
enum weft_status wf_pin_self(const struct wf_pin *pin, unsigned idx) WEFT_MUST_CHECK;
/* The CPU to which the calling thread is bound; -1: it may run on several. */
int wf_pin_own_cpu(void);
/* The number of CPUs that this process may keep busy, by its affinity mask and the quota of its
 * container; at least 1. */
unsigned wf_pin_cpu_count(void);
