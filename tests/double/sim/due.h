/* SPDX-License-Identifier: Apache-2.0 */
/* due: things that happen at a virtual time, in order of (time, order of adding). The order does
 * not depend on addresses, so that a seed gives the same run everywhere. Thread: the world's. */
#pragma once

#include <stdint.h>

/* Embedded in objects that have something due. Zeroed: not in a heap. */
struct wf_due {
	uint64_t at_ns;
	uint64_t seq; /* breaks ties */
	void (*fire)(struct wf_due *due);
	uint32_t place; /* 1 + index in the heap; 0: not in it */
};

struct wf_due_heap {
	struct wf_due **item; /* binary heap, earliest first */
	uint32_t count;
	uint32_t capacity;
	uint64_t next_seq;
};

void wf_due_heap_fini(struct wf_due_heap *heap);
/* Removes it first if it is in the heap. */
void wf_due_add(struct wf_due_heap *heap, struct wf_due *due, uint64_t at_ns);
/* Nothing if it is not in. */
void wf_due_cancel(struct wf_due_heap *heap, struct wf_due *due);
/* The earliest, still in the heap; NULL: nothing is due. */
struct wf_due *wf_due_first(const struct wf_due_heap *heap);
