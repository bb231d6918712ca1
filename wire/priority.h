/* SPDX-License-Identifier: Apache-2.0 */
/* priority: the order of slices that wait for the same resource: buffers of a window, a transport
 * that accepts no more, room in an inbox. The higher priority of their tensors goes first, then the
 * order of arrival. Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

/* A ring of ordinals of a lane's slices, each of them at most once. */
struct wf_ordinal_ring {
	uint32_t *ordinal; /* [capacity], the owner's */
	uint32_t capacity; /* slices of the lane */
	uint32_t first, count;
	const int32_t *priority; /* [capacity] by ordinal; NULL: all are equal */
};

/* The last of the first `count` entries of the ring is new: moves it to its place among them. Costs
 * a few instructions for each entry that it passes. Not for a ring without priorities. */
void wf_priority_sift(struct wf_ordinal_ring *ring, uint32_t count);

/* The entry that is `behind` places after the first; at most `capacity`. Without a division, which
 * would cost as much as all other work on the entry. */
static inline uint32_t *
wf_ordinal_ring_at(const struct wf_ordinal_ring *ring, uint32_t behind)
{
	uint32_t at = ring->first + behind;
	return &ring->ordinal[at >= ring->capacity ? at - ring->capacity : at];
}

static inline void
wf_ordinal_ring_push(struct wf_ordinal_ring *ring, uint32_t ordinal)
{
	WF_ASSERT(ring->count < ring->capacity);
	*wf_ordinal_ring_at(ring, ring->count++) = ordinal;
	if (ring->priority != NULL) {
		wf_priority_sift(ring, ring->count);
	}
}

static inline uint32_t
wf_ordinal_ring_pop(struct wf_ordinal_ring *ring)
{
	WF_ASSERT(ring->count > 0);
	uint32_t ordinal = ring->ordinal[ring->first];
	ring->first = ring->first + 1 == ring->capacity ? 0 : ring->first + 1;
	ring->count--;
	return ordinal;
}
