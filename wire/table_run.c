/* SPDX-License-Identifier: Apache-2.0 */
/* table_run: see table_run.h. Thread: any. */
#include "wire/table_run.h"

#include <inttypes.h>

#include "wire/little.h"
#include "wire/partition.h"

void
wf_run_head_put(const struct wf_run_head *head, uint8_t *out)
{
	wf_store_u64(out, head->request_id);
	wf_store_u32(out + 8, head->bytes);
	wf_store_u32(out + 12, head->next.partition);
	wf_store_u64(out + 16, head->next.key);
	wf_store_u32(out + 24, head->next.kind);
	wf_store_u32(out + 28, head->step);
}

void
wf_run_head_get(const uint8_t *bytes, struct wf_run_head *out)
{
	*out = (struct wf_run_head){
		.request_id = wf_load_u64(bytes),
		.bytes = wf_load_u32(bytes + 8),
		.step = wf_load_u32(bytes + 28),
		.next =
			{
				.partition = wf_load_u32(bytes + 12),
				.key = wf_load_u64(bytes + 16),
				.kind = wf_load_u32(bytes + 24),
			},
	};
}

void
wf_run_section_put(const struct wf_run_section *section, uint8_t *out)
{
	wf_store_u32(out, section->partition);
	wf_store_u32(out + 4, section->kind);
	wf_store_u32(out + 8, section->count);
	wf_store_u32(out + 12, 0);
}

enum weft_status
wf_run_section_get(const struct wf_row_shape *shape, const uint8_t *bytes, uint64_t all,
		   uint64_t *used, struct wf_run_section *out)
{
	if (all - *used < WF_RUN_SECTION_BYTES) {
		return wf_fail(WEFT_DATA, "run of a table: %" PRIu64 " bytes behind its sections",
			       all - *used);
	}
	const uint8_t *at = bytes + *used;
	struct wf_run_section section = {
		.partition = wf_load_u32(at),
		.kind = wf_load_u32(at + 4),
		.count = wf_load_u32(at + 8),
		.at = at + WF_RUN_SECTION_BYTES,
	};
	if (section.partition >= WF_PARTITION_COUNT ||
	    (section.kind != WF_RUN_COUNTERS && section.kind != WF_RUN_ROWS)) {
		return wf_fail(WEFT_DATA,
			       "run of a table: partition %" PRIu32 ", kind %" PRIu32
			       ": below 1024, 1 (counters) or 2 (rows)",
			       section.partition, section.kind);
	}
	uint64_t item = section.kind == WF_RUN_ROWS ? wf_row_record_bytes(shape) : 2;
	section.bytes = section.count * item;
	if (section.bytes > all - *used - WF_RUN_SECTION_BYTES) {
		return wf_fail(WEFT_DATA,
			       "run of a table: %" PRIu32 " items of %" PRIu64
			       " bytes in partition %" PRIu32 ", beyond its end",
			       section.count, item, section.partition);
	}
	*used += WF_RUN_SECTION_BYTES + section.bytes;
	*out = section;
	return WEFT_OK;
}
