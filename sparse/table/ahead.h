/* SPDX-License-Identifier: Apache-2.0 */
/* ahead: memory that was taken and not written to is made present by the env's helper, so that the
 * lane that writes to it later does not wait while the kernel finds and clears pages. One stretch
 * at a time. Nothing in the memory changes by it: the lane may use the stretch meanwhile, and then
 * clears what it touches by itself. So no result depends on how far the helper has got.
 *
 * Thread: the lane's; the helper runs the task and touches nothing but it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

/* Less is not worth asking for. */
#define WF_AHEAD_LEAST_BYTES ((size_t)1 << 20)

struct wf_ahead {
	struct wf_env *env;
	struct wf_task task;
	bool under_way;
	bool ended; /* the system cannot do it, or there is no helper: not requested again */

	/* Fixed while a stretch is under way. */
	char *at;
	size_t bytes;

	_Atomic size_t reached_bytes; /* A1. helper: store release; lane: load acquire */
	_Atomic bool stop;            /* lane: store relaxed; helper: load relaxed: only sooner */
};

/* Allocates nothing. */
void wf_ahead_init(struct wf_ahead *ahead, struct wf_env *env);
/* Sleeps while a stretch is under way, which is then broken off. Accepts zeroed. Before the memory
 * is given back. */
void wf_ahead_fini(struct wf_ahead *ahead);
/* Bytes of the stretch under way, or of the last one, that are ready, from its beginning on. */
size_t wf_ahead_reached(const struct wf_ahead *ahead);
/* Nothing is under way, and a request may be made. */
bool wf_ahead_is_free(struct wf_ahead *ahead);
/* Only if it is free. Whole pages around the stretch are made present: they are all the caller's.
 */
void wf_ahead_begin(struct wf_ahead *ahead, void *at, size_t bytes);
/* Binds newly allocated memory to that NUMA node: 1 + its number; 0: anywhere. */
void wf_ahead_place(void *at, size_t bytes, unsigned node);
