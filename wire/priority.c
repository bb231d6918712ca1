/* SPDX-License-Identifier: Apache-2.0 */
/* priority: out of line, so that who has none pays for a look only. Thread: any; a pure function.
 */
#include "wire/priority.h"

#include "base/assert.h"

void
wf_priority_sift(const int32_t *priority, uint32_t *ring, uint32_t capacity, uint32_t first,
		 uint32_t count)
{
	WF_ASSERT(count >= 1 && count <= capacity && first < capacity);
	for (uint32_t behind = count - 1; behind > 0; behind--) {
		uint32_t at = first + behind;
		at = at >= capacity ? at - capacity : at;
		uint32_t before = at == 0 ? capacity - 1 : at - 1;
		if (priority[ring[before]] >= priority[ring[at]]) {
			return;
		}
		uint32_t passed = ring[before];
		ring[before] = ring[at];
		ring[at] = passed;
	}
}
