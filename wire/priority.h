/* SPDX-License-Identifier: Apache-2.0 */
/* priority: in which order slices go that wait for the same: buffers of a window, a transport that
 * takes no more, room in an inbox. Higher priority of their tensors first, then as they came.
 * Thread: any. */
#pragma once

#include <stdint.h>

/* A ring of ordinals has got one more, as its last of `count`: bring it to its place. Costs a few
 * instructions for each that it passes. `priority`: of a lane's slices, by ordinal; where tensors
 * do not differ there is none, and nobody calls this. */
void wf_priority_sift(const int32_t *priority, uint32_t *ring, uint32_t capacity, uint32_t first,
		      uint32_t count);
