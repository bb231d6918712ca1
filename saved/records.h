/* SPDX-License-Identifier: Apache-2.0 */
/* records: the rows of a file as weft_table_read gives them and weft_table_write asks for them. It
 * only fills in their callbacks, and calls nothing of a session. Thread: the caller's. */
#pragma once

#include "saved/rows.h"
#include "weft/sparse.h"

/* What is read goes to `to`, which is lent as long as `out` is used. */
void wf_records_save(struct wf_rows_writer *to, struct weft_table_reader *out);
/* What is written comes from `from`, lent likewise, with the step of its head. */
void wf_records_load(struct wf_rows_reader *from, struct weft_table_writer *out);

/* The parts of the latter. The next partition, with its counters; WEFT_DATA: it is another one. */
enum weft_status wf_records_next_partition(struct wf_rows_reader *from, uint32_t partition,
					   struct weft_table_partition *out) WEFT_MUST_CHECK;
struct weft_table_record wf_record_of_row(const struct wf_row_record *row);
