/* SPDX-License-Identifier: Apache-2.0 */
/* fiber: a function with its own stack that can pause in its middle. Sanitizers are notified of
 * every switch. Thread: one enters and leaves it, always the same. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

#include "base/status.h"

/* One side of a switch. Where no sanitizer looks, `context` only begins the fiber, and the switches
 * between `place`s need no system call, as those between contexts do: for the mask of signals. */
struct wf_fiber_side {
	ucontext_t context;
	jmp_buf place;
	bool has_place;
};

struct wf_fiber {
	void (*entry)(void *arg);
	void *arg;
	struct wf_fiber_side inside;
	struct wf_fiber_side outside;
	void *map; /* guard page, stack, guard page */
	size_t map_bytes;
	void *stack;
	size_t stack_bytes;
	/* AddressSanitizer: the fake stacks of both sides, and where the outer stack is. */
	void *fake_inside;
	void *fake_outside;
	const void *outside_stack;
	size_t outside_bytes;
	/* ThreadSanitizer. */
	void *tsan_inside;
	void *tsan_outside;
};

/* `entry(arg)` starts at the first enter; when it returns, the fiber must not be entered again. */
enum weft_status wf_fiber_init(struct wf_fiber *fiber, void (*entry)(void *arg),
			       void *arg) WEFT_MUST_CHECK;
/* In any state but entered: what is on the stack is dropped. Accepts a zeroed fiber. */
void wf_fiber_fini(struct wf_fiber *fiber);
/* Run it until it leaves or returns. */
void wf_fiber_enter(struct wf_fiber *fiber);
/* Called inside the fiber: switches back to the one that entered it. */
void wf_fiber_leave(struct wf_fiber *fiber);
