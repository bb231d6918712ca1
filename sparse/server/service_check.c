/* SPDX-License-Identifier: Apache-2.0 */
/* service_check: whether keys are this lane's and of their table, and failures of a table with its
 * name. Thread: the lane's. */
#include <inttypes.h>

#include "sparse/server/service_internal.h"
#include "wire/partition.h"

enum weft_status
wf_sparse_fail_table(const struct wf_sparse *sparse, uint32_t idx, uint64_t refused)
{
	const struct wf_table_desc *desc = &sparse->desc[idx];
	struct wf_error why = *wf_error_record();
	if (sparse->ceiling.refused_count == refused) {
		return wf_fail(why.status, "table %.40s: %.200s", desc->name, why.text);
	}
	return wf_fail(why.status,
		       "table %.40s (--max_shard_bytes leaves %" PRIu64 " bytes): %.150s",
		       desc->name, sparse->ceiling.limit_bytes, why.text);
}

static uint32_t
partition_of(const struct wf_table_desc *desc, uint64_t key)
{
	return desc->set.vocabulary > 0 ? wf_partition_of_fixed(key) : wf_partition_of(key);
}

enum weft_status
wf_sparse_check_keys(const struct wf_sparse *sparse, const struct wf_sparse_part *part,
		     const uint64_t *key)
{
	const struct wf_table_desc *desc = &sparse->desc[part->table];
	const struct wf_served *served = &sparse->served[part->table];
	/* Keys ascend, so the last one is the greatest, unless they come in any order. */
	uint32_t first = part->coding == WF_KEYS_ANY ? 0 : part->row_count - 1;
	for (uint32_t i = first; desc->set.vocabulary > 0 && i < part->row_count; i++) {
		if (key[i] >= desc->set.vocabulary) {
			return wf_fail(WEFT_INVALID,
				       "table %.60s: key %" PRIu64
				       " is outside its vocabulary of %" PRIu64,
				       desc->name, key[i], desc->set.vocabulary);
		}
	}
	if (served->partition_count == WF_PARTITION_COUNT) {
		return WEFT_OK;
	}
	for (uint32_t i = 0; i < part->row_count; i++) {
		uint32_t partition = partition_of(desc, key[i]);
		if (partition - served->partition_first >= served->partition_count) {
			return wf_fail(WEFT_INVALID,
				       "table %.60s: key %" PRIu64
				       " belongs to partition %u of another lane",
				       desc->name, key[i], partition);
		}
	}
	return WEFT_OK;
}
