/* SPDX-License-Identifier: Apache-2.0 */
/* table_run: a run of a table's contents, as it is fetched from a lane and restored: whole row
 * records and the counters of admission, by partition and key, in sections. What does not fit into
 * one piece follows in the next, from a cursor on. Layout: wire/protocol.md. Thread: any; pure
 * functions. */
#pragma once

#include <stdint.h>

#include "base/status.h"
#include "wire/row_record.h"

#define WF_RUN_HEAD_BYTES 32u /* in front of the sections of an answer */
#define WF_RUN_SECTION_BYTES 16u

enum wf_run_kind {
	WF_RUN_COUNTERS = 1, /* all of a partition, u16 each */
	WF_RUN_ROWS = 2,
};

/* Where a run continues. */
struct wf_run_cursor {
	uint32_t partition;
	uint32_t kind; /* WF_RUN_COUNTERS: from the beginning of the partition; WF_RUN_ROWS: */
	uint64_t key;  /* with the first row whose key is not below; else 0 */
};

struct wf_run_head {
	uint64_t request_id;
	uint32_t bytes; /* of head and sections */
	uint32_t step;  /* the table's step: stamps are at most this */
	struct wf_run_cursor next;
};

struct wf_run_section {
	uint32_t partition;
	uint32_t kind;  /* enum wf_run_kind */
	uint32_t count; /* of counters or rows */
	const uint8_t *at;
	uint64_t bytes; /* of what `at` has */
};

void wf_run_head_put(const struct wf_run_head *head, uint8_t *out);
/* `bytes` are at least WF_RUN_HEAD_BYTES. */
void wf_run_head_get(const uint8_t *bytes, struct wf_run_head *out);
/* Writes partition, kind and count; the counters or rows follow. */
void wf_run_section_put(const struct wf_run_section *section, uint8_t *out);
/* Reads the section at `*used` of `all` bytes, and advances `*used` behind it. Every byte is read
 * once. WEFT_DATA: it is no section, or it goes beyond the end. */
enum weft_status wf_run_section_get(const struct wf_row_shape *shape, const uint8_t *bytes,
				    uint64_t all, uint64_t *used,
				    struct wf_run_section *out) WEFT_MUST_CHECK;
