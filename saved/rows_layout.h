/* SPDX-License-Identifier: Apache-2.0 */
/* rows_layout: the places of fields in a file of rows, for its writer and its reader. Private to
 * this folder. Thread: any. */
#pragma once

#include "saved/rows.h"

#define WF_ROWS_MAGIC "weftrows"
#define WF_ROWS_HEAD_BYTES 64u
#define WF_ROWS_HEAD_CRC_AT 60u
#define WF_ROWS_SECTION_BYTES 16u /* partition, 0, rows */
#define WF_ROWS_CRC_BYTES 4u
#define WF_ROWS_FLAG_SCORE 1u

/* Why a row cannot come next in the partition; NULL: it can. `last`: the one before, NULL: none. */
const char *wf_rows_objection(const struct wf_rows_head *head, uint32_t partition,
			      const uint64_t *last, const struct wf_row_record *row);
