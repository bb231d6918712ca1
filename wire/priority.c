/* SPDX-License-Identifier: Apache-2.0 */
/* priority: out of line, so that rings without priorities pay only for a check. Thread: any; a pure
 * function.
 */
#include "wire/priority.h"

void
wf_priority_sift(struct wf_ordinal_ring *ring, uint32_t count)
{
	const int32_t *priority = ring->priority;
	WF_ASSERT(count >= 1 && count <= ring->capacity && ring->first < ring->capacity);
	for (uint32_t behind = count - 1; behind > 0; behind--) {
		uint32_t *at = wf_ordinal_ring_at(ring, behind);
		uint32_t *before = wf_ordinal_ring_at(ring, behind - 1);
		if (priority[*before] >= priority[*at]) {
			return;
		}
		uint32_t passed = *before;
		*before = *at;
		*at = passed;
	}
}
