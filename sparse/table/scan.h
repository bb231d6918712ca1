/* SPDX-License-Identifier: Apache-2.0 */
/* scan: the rows of a table partition by partition, by ascending key, for a save.
 *
 * No step may be applied while one is under way. Lookups and tend may come between partitions: a
 * row that is created meanwhile is in the scan or not, which changes no visible value; one that is
 * evicted is left out. It needs 6 bytes a row, from the env and not from the table's cap, and 16
 * for each row of the largest partition. Thread: the lane's. */
#pragma once

#include "sparse/table/table.h"
#include "wire/row_record.h"

struct wf_scan;

/* WEFT_NOMEM */
enum weft_status wf_scan_create(struct wf_table *table, struct wf_scan **out) WEFT_MUST_CHECK;
void wf_scan_destroy(struct wf_scan *scan); /* accepts NULL; the table is still there */
/* Finds the partition of each row, of at most `rows` rows now. `*done`: all have been visited, and
 * partitions can be read. WEFT_NOMEM */
enum weft_status wf_scan_prepare(struct wf_scan *scan, uint32_t rows, bool *done) WEFT_MUST_CHECK;
/* Begins a partition of this lane, and sorts it. Returns the number of its rows; until they have
 * been read, no other function of the table may be called. */
uint32_t wf_scan_partition(struct wf_scan *scan, uint32_t partition);
/* The next row of it, lent until the next call for the table. false: there is none. */
bool wf_scan_next(struct wf_scan *scan, struct wf_row_record *out);

/* As wf_table_put. */
enum weft_status wf_table_put_record(struct wf_table *table,
				     const struct wf_row_record *row) WEFT_MUST_CHECK;
/* As wf_table_put_later. */
enum weft_status wf_table_put_later_record(struct wf_table *table, const struct wf_row_record *row,
					   uint32_t border) WEFT_MUST_CHECK;
