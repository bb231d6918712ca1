/* SPDX-License-Identifier: Apache-2.0 */
/* regions: the memory from which a transport's PUTs are read and into which they are written, by
 * number. A backend embeds the table, all zero at first, and keeps what its medium knows about a
 * region in arrays beside it. Thread: the transport's owner. */
#pragma once

#include "transport/transport.h"

#define WF_REGIONS_MAX 64u /* the most regions of a transport */

struct wf_regions {
	struct wf_region region[WF_REGIONS_MAX]; /* number - 1; base NULL: free */
	uint64_t generation[WF_REGIONS_MAX];     /* the number of the add that made it, from 1 */
	uint64_t added;                          /* number of adds since open */
};

/* Numbers are 1 to WF_REGIONS_MAX, and are reused after remove. WEFT_NOMEM: the table is full; the
 * text names `backend`. */
enum weft_status wf_regions_add(struct wf_regions *regions, const char *backend,
				const struct wf_region *region, uint32_t *out) WEFT_MUST_CHECK;
/* The number must be that of a region. */
void wf_regions_remove(struct wf_regions *regions, uint32_t number);
/* Returns NULL if no region has that number. */
static inline const struct wf_region *
wf_regions_find(const struct wf_regions *regions, uint32_t number)
{
	if (number == 0 || number > WF_REGIONS_MAX || regions->region[number - 1].base == NULL) {
		return NULL;
	}
	return &regions->region[number - 1];
}

/* Whether [at, at + bytes), which is not empty, lies in the region. */
static inline bool
wf_regions_hold(const struct wf_regions *regions, uint32_t number, const void *at, uint64_t bytes)
{
	if (number - 1 >= WF_REGIONS_MAX) { /* also refuses 0 */
		return false;
	}
	const struct wf_region *region =
		&regions->region[number - 1]; /* a free entry has no bytes */
	/* For an address before the region it wraps to more than the size of any region. */
	uint64_t offset = (uintptr_t)at - (uintptr_t)region->base;
	return offset <= region->bytes && bytes <= region->bytes - offset;
}
