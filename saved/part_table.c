/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: any. */
#include "saved/part_table.h"

#include "wire/little.h"

void
wf_part_table_put(const struct wf_part_table *table, uint8_t *out)
{
	wf_store_u64(out, table->vocabulary);
	wf_store_u32(out + 8, table->row.dim);
	wf_store_u32(out + 12, table->row.state_floats);
	wf_store_u32(out + 16, table->row.has_score ? 1 : 0);
	wf_store_u32(out + 20, table->counter_count);
	wf_store_u32(out + 24, table->rest);
	wf_store_u32(out + 28, 0);
}

enum weft_status
wf_part_table_get(const uint8_t *payload, struct wf_part_table *out)
{
	const uint32_t has_score = wf_load_u32(payload + 16);

	*out = (struct wf_part_table){
		.vocabulary = wf_load_u64(payload),
		.row = {.dim = wf_load_u32(payload + 8),
			.state_floats = wf_load_u32(payload + 12),
			.has_score = has_score != 0},
		.counter_count = wf_load_u32(payload + 20),
		.rest = wf_load_u32(payload + 24),
	};
	return has_score <= 1 && wf_load_u32(payload + 28) == 0
		       ? WEFT_OK
		       : wf_fail(WEFT_DATA, "what describes a table has other fields");
}
