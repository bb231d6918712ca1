/* SPDX-License-Identifier: Apache-2.0 */
/* due: binary heap of pointers to embedded items, each of which knows its index. Thread: the
 * world's. */
#include "tests/double/sim/due.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/assert.h"

void
wf_due_heap_fini(struct wf_due_heap *heap)
{
	free(heap->item);
	*heap = (struct wf_due_heap){0};
}

static bool
is_before(const struct wf_due *a, const struct wf_due *b)
{
	if (a->at_ns != b->at_ns) {
		return a->at_ns < b->at_ns;
	}
	return a->seq < b->seq;
}

static void
set(struct wf_due_heap *heap, uint32_t idx, struct wf_due *due)
{
	heap->item[idx] = due;
	due->place = idx + 1;
}

static void
sift_up(struct wf_due_heap *heap, uint32_t idx, struct wf_due *due)
{
	while (idx > 0) {
		uint32_t parent = (idx - 1) / 2;
		if (!is_before(due, heap->item[parent])) {
			break;
		}
		set(heap, idx, heap->item[parent]);
		idx = parent;
	}
	set(heap, idx, due);
}

static void
sift_down(struct wf_due_heap *heap, uint32_t idx, struct wf_due *due)
{
	for (;;) {
		uint32_t child = 2 * idx + 1;
		if (child >= heap->count) {
			break;
		}
		if (child + 1 < heap->count &&
		    is_before(heap->item[child + 1], heap->item[child])) {
			child++;
		}
		if (!is_before(heap->item[child], due)) {
			break;
		}
		set(heap, idx, heap->item[child]);
		idx = child;
	}
	set(heap, idx, due);
}

void
wf_due_cancel(struct wf_due_heap *heap, struct wf_due *due)
{
	if (due->place == 0) {
		return;
	}
	uint32_t idx = due->place - 1;
	WF_ASSERT(idx < heap->count && heap->item[idx] == due);
	due->place = 0;
	struct wf_due *last = heap->item[--heap->count];
	if (last == due) {
		return;
	}
	if (idx > 0 && is_before(last, heap->item[(idx - 1) / 2])) {
		sift_up(heap, idx, last);
	} else {
		sift_down(heap, idx, last);
	}
}

static void
grow(struct wf_due_heap *heap)
{
	uint32_t capacity = heap->capacity == 0 ? 256 : heap->capacity * 2;
	WF_ASSERT(capacity > heap->capacity);
	struct wf_due **item = realloc(heap->item, capacity * sizeof(struct wf_due *));
	WF_ASSERT(item != NULL); /* a test instrument: out of memory ends it */
	heap->item = item;
	heap->capacity = capacity;
}

void
wf_due_add(struct wf_due_heap *heap, struct wf_due *due, uint64_t at_ns)
{
	WF_ASSERT(due->fire != NULL);
	wf_due_cancel(heap, due);
	if (heap->count == heap->capacity) {
		grow(heap);
	}
	due->at_ns = at_ns;
	due->seq = heap->next_seq++;
	sift_up(heap, heap->count++, due);
}

struct wf_due *
wf_due_first(const struct wf_due_heap *heap)
{
	return heap->count > 0 ? heap->item[0] : NULL;
}
