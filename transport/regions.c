/* SPDX-License-Identifier: Apache-2.0 */
/* regions: a table of WF_REGIONS_MAX; who asks names a number that may be wrong.
 * Thread: the transport's owner. */
#include "transport/regions.h"

#include "base/assert.h"

enum weft_status
wf_regions_add(struct wf_regions *regions, const char *backend, const struct wf_region *region,
	       uint32_t *out)
{
	WF_ASSERT(region->base != NULL);
	for (uint32_t i = 0; i < WF_REGIONS_MAX; i++) {
		if (regions->region[i].base == NULL) {
			regions->region[i] = *region;
			regions->generation[i] = ++regions->added;
			*out = i + 1;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_NOMEM, "%s: %u regions are the most; use fewer and larger ones",
		       backend, WF_REGIONS_MAX);
}

const struct wf_region *
wf_regions_find(const struct wf_regions *regions, uint32_t number)
{
	if (number == 0 || number > WF_REGIONS_MAX || regions->region[number - 1].base == NULL) {
		return NULL;
	}
	return &regions->region[number - 1];
}

void
wf_regions_remove(struct wf_regions *regions, uint32_t number)
{
	WF_ASSERT(wf_regions_find(regions, number) != NULL);
	regions->region[number - 1] = (struct wf_region){.memfd = -1};
	regions->generation[number - 1] = 0;
}

bool
wf_regions_hold(const struct wf_regions *regions, uint32_t number, const void *at, uint64_t bytes)
{
	const struct wf_region *region = wf_regions_find(regions, number);
	if (region == NULL || (uintptr_t)at < (uintptr_t)region->base) {
		return false;
	}
	uint64_t offset = (uintptr_t)at - (uintptr_t)region->base;
	return offset <= region->bytes && bytes <= region->bytes - offset;
}
