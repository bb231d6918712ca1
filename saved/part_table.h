/* SPDX-License-Identifier: Apache-2.0 */
/* part_table: what the rows and counters of a table have in common, as the part of a sparse lane
 * has it: the payload of a block WF_PART_LANE, in front of all other blocks of the table.
 * Little-endian: u64 vocabulary, u32 dim, u32 state_floats, u32 has_score, u32 counter_count, u32
 * rest, u32 0. Thread: any; pure functions. */
#pragma once

#include "base/status.h"
#include "wire/row_record.h"

#define WF_PART_TABLE_BYTES 32u

struct wf_part_table {
	struct wf_row_shape row;
	uint64_t vocabulary;    /* 0: any u64 */
	uint32_t counter_count; /* of admission, in each partition */
	uint32_t rest;          /* enum weft_value_format */
};

/* `out` is [WF_PART_TABLE_BYTES]. */
void wf_part_table_put(const struct wf_part_table *table, uint8_t *out);
/* WEFT_DATA: it is none. */
enum weft_status wf_part_table_get(const uint8_t *payload,
				   struct wf_part_table *out) WEFT_MUST_CHECK;
