/* SPDX-License-Identifier: Apache-2.0 */
/* regions: a table of WF_REGIONS_MAX; callers may pass a number that does not exist. Thread: the
 * transport's owner. */
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

void
wf_regions_remove(struct wf_regions *regions, uint32_t number)
{
	WF_ASSERT(wf_regions_find(regions, number) != NULL);
	regions->region[number - 1] = (struct wf_region){.memfd = -1};
	regions->generation[number - 1] = 0;
}
