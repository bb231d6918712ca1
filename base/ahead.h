/* SPDX-License-Identifier: Apache-2.0 */
/* ahead: the env's helper touches memory that is allocated and not yet used, so that the lane that
 * writes to it later does not wait while the kernel finds and clears pages. It works on one stretch
 * at a time and changes nothing in it. The lane may use the stretch meanwhile; the kernel then
 * clears the pages that it touches. So no result depends on how far the helper has got.
 *
 * Thread: the lane's; the helper runs the task and touches nothing but it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

/* A shorter stretch is not worth a request. */
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
/* Breaks off the stretch under way and sleeps until the helper has left it; to be called before the
 * memory is freed. Accepts a zeroed struct. */
void wf_ahead_fini(struct wf_ahead *ahead);
/* How many bytes at the beginning of the stretch under way, or of the last one, are ready. */
size_t wf_ahead_reached(const struct wf_ahead *ahead);
/* Whether a request may be made: no stretch is under way. */
bool wf_ahead_is_free(struct wf_ahead *ahead);
/* Requests a stretch; no other may be under way. The helper touches whole pages, which must all be
 * the caller's. */
void wf_ahead_begin(struct wf_ahead *ahead, void *at, size_t bytes);
/* Binds newly allocated memory to a NUMA node: 1 + its number; 0: to none. */
void wf_ahead_place(void *at, size_t bytes, unsigned node);
