/* SPDX-License-Identifier: Apache-2.0 */
/* pin: placing threads and their memory. `--pin=auto|auto:I/N|off|CPULIST`.
 *
 * auto: seats.h says where, with this process alone on its host; auto:I/N: with N processes like
 * it, of which it is number I, from 0. CPULIST ("0,2-5"): the i-th thread gets the i-th CPU of the
 * list, in the list's order, round again when it is used up; a CPU outside the process's cpuset is
 * refused. Thread: created on the main thread; wf_pin_self may be called by any. */
#pragma once

#include "base/env.h"
#include "base/seats.h"

struct wf_pin;

struct wf_pin_place {
	int cpu;            /* operating system's number; -1: not pinned */
	int numa_node;      /* -1: unknown or not pinned */
	const char *device; /* that is best for its traffic; "": any. Lives as long as the pin */
	uint32_t port;      /* of it, from 1; 0: any */
};

/* `setting` is the option's text, `ask` has one process. Places are numbered as the seats of one
 * process are: dense lanes, sparse lanes, compute threads, progress threads. WEFT_INVALID: names
 * setting and remedy. */
enum weft_status wf_pin_create_for(struct wf_env *env, const char *setting,
				   const struct wf_seat_ask *ask,
				   struct wf_pin **out) WEFT_MUST_CHECK;
/* The same for `thread_count` threads that belong together and have no traffic. */
enum weft_status wf_pin_create(struct wf_env *env, const char *setting, unsigned thread_count,
			       struct wf_pin **out) WEFT_MUST_CHECK;
void wf_pin_destroy(struct wf_pin *pin); /* accepts NULL */
/* Where thread `idx` (0 <= idx < thread_count) belongs. */
struct wf_pin_place wf_pin_place_of(const struct wf_pin *pin, unsigned idx);
/* "cpu 2, node 1 (memory bound), device mlx5_0 port 1"; "not pinned". */
void wf_pin_describe(const struct wf_pin *pin, unsigned idx, char *out, size_t bytes);
/* Bind the calling thread to place `idx`. A no-op for an unpinned place. */
enum weft_status wf_pin_self(const struct wf_pin *pin, unsigned idx) WEFT_MUST_CHECK;
/* The CPU that the calling thread is bound to; -1: it may run on several. */
int wf_pin_own_cpu(void);
/* How many CPUs this process may keep busy (affinity mask, quota of its container), at least 1. */
unsigned wf_pin_cpu_count(void);
