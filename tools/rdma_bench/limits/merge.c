/* SPDX-License-Identifier: Apache-2.0 */
/* merge: see merge.h. */
#include "tools/rdma_bench/limits/merge.h"

#include <string.h>

static size_t
slot_of(uint64_t key)
{
	return (size_t)((key * 0x9fb21c651e98df25u) >> 32) % WF_LIMIT_MERGE_SLOTS;
}

void
wf_limit_merge(struct wf_limit_merge *merge, const uint64_t *key, size_t count)
{
	uint32_t distinct = 0;

	memset(merge->slot, 0, sizeof(merge->slot));
	for (size_t i = 0; i < count; i++) {
		size_t at = slot_of(key[i]);
		while (merge->slot[at] != 0 && merge->key[merge->slot[at] - 1] != key[i]) {
			at = (at + 1) % WF_LIMIT_MERGE_SLOTS;
		}
		if (merge->slot[at] == 0) {
			merge->key[distinct] = key[i];
			merge->slot[at] = ++distinct;
		}
		merge->place[i] = merge->slot[at] - 1;
	}
	merge->count = distinct;
}
