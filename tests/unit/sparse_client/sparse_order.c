/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_order: whether rows lie as WEFT_ROWS_IN_ORDER has them. Thread: the caller's. */
#include "base/assert.h"
#include "sparse_job.h"

#define LANES_MAX 64u

void
sparse_job_check_order(const struct sparse_job *job, const struct weft_table *table,
		       const struct weft_rows *rows, const uint64_t *key, uint32_t count)
{
	const uint32_t *place = weft_rows_place(rows);
	uint32_t next = 0;
	bool straight = weft_rows_count(rows) == count;
	for (uint32_t lane = 0; lane < LANES_MAX && job->in_order; lane++) {
		for (uint32_t i = 0; i < count; i++) {
			bool of_lane = weft_table_key_lane(table, key[i]) == lane;
			WF_ASSERT(!of_lane || place[i] <= next);
			next += of_lane && place[i] == next ? 1 : 0;
		}
	}
	WF_ASSERT(!job->in_order || next == weft_rows_count(rows));
	for (uint32_t i = 0; i < count; i++) {
		straight = straight && place[i] == i;
	}
	WF_ASSERT((weft_rows_in_order(rows) != 0) == straight);
}
