/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer of a part and its reader agree on: which heads and blocks there can be. Thread:
 * any. */
#include "saved/part_layout.h"

#include <stddef.h>

#include "wire/head.h"

const char *
wf_part_head_objection(const struct wf_part_head *head)
{
	if (head->service != WF_SERVICE_DENSE && head->service != WF_SERVICE_SPARSE) {
		return "its service is neither dense nor sparse";
	}
	return head->lane < head->lane_count ? NULL : "its lane is not one of the lanes";
}

const char *
wf_part_block_objection(const struct wf_part_block *block)
{
	if (block->kind < WF_PART_SLICE || block->kind > WF_PART_VERSIONS) {
		return "its kind is unknown";
	}
	if (block->bytes > WF_PART_BLOCK_BYTES_MAX) {
		return "its payload is too long";
	}
	if (block->count > INT64_MAX || block->first > INT64_MAX - block->count) {
		return "it reaches beyond what can be counted";
	}
	return NULL;
}
