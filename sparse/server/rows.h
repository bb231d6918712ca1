/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the arena of a table's rows: slabs of equal rows, numbered through. A row never moves while
 * it lives. Thread: the lane's.
 *
 * A row is two f32 of show and click where the table counts them, a head, the values, and the
 * optimizer's state. Slabs are kept until the end; rows given back are used again, last first.
 *
 * Slabs are taken one at a time while there are few, then in runs whose bytes are a multiple of a
 * huge page: of memory that ends within one the system makes small pages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sparse/server/budget.h"

#define WF_ROW_NONE UINT32_MAX

struct wf_row_head {
	uint64_t key;   /* of a free row: the number of the next one, or WF_ROW_NONE */
	uint32_t stamp; /* step of the last update; while one is being made: its group's number */
	uint32_t born;  /* 1 + step of birth; 0: no row here */
};

struct wf_row_score {
	float show, click; /* as of the stamp */
};

struct wf_rows {
	struct wf_budget *budget;

	/* Fixed at init. */
	size_t row_bytes;    /* a multiple of 8 */
	size_t head_offset;  /* bytes, of the head in a row */
	size_t value_floats; /* values and state */
	unsigned slab_shift; /* rows of a slab, as a power of 2 */

	char **slab; /* [slab_capacity], slab_count of them taken */
	uint32_t slab_count;
	uint32_t slab_capacity;
	uint32_t run_slabs; /* slabs of a run; 1: there are none */
	/* Slabs of runs: [run_first, run_end). After memory has ended once they come one by one. */
	uint32_t run_first, run_end;
	bool no_runs;
	uint32_t used_count; /* rows ever taken: live and free ones have lower numbers */
	uint32_t live_count;
	uint32_t free_first; /* WF_ROW_NONE: none */
};

/* `slab_bytes`: about; a slab has at least one row. Takes nothing yet. */
void wf_rows_init(struct wf_rows *rows, struct wf_budget *budget, size_t value_floats,
		  bool with_score, size_t slab_bytes);
void wf_rows_fini(struct wf_rows *rows); /* accepts zeroed */
/* A row whose bytes are all 0; the caller makes it live by its `born`. WF_ROW_NONE: no memory. */
uint32_t wf_rows_take(struct wf_rows *rows);
void wf_rows_give(struct wf_rows *rows, uint32_t row);
/* Rows 0 .. count - 1 at once, zeroed: for a fixed vocabulary, which takes none later. false: no
 * memory; what was taken is given back by fini. */
bool wf_rows_take_all(struct wf_rows *rows, uint32_t count);

static inline struct wf_row_head *
wf_row_at(const struct wf_rows *rows, uint32_t row)
{
	size_t within = row & (((uint32_t)1 << rows->slab_shift) - 1);
	char *at =
		rows->slab[row >> rows->slab_shift] + within * rows->row_bytes + rows->head_offset;
	return (struct wf_row_head *)(void *)at;
}

static inline float *
wf_row_values(struct wf_row_head *head)
{
	return (float *)(void *)(head + 1);
}

static inline struct wf_row_head *
wf_row_of_values(float *values)
{
	return (struct wf_row_head *)(void *)values - 1;
}

/* Only where the table counts them. */
static inline struct wf_row_score *
wf_row_score(struct wf_row_head *head)
{
	return (struct wf_row_score *)(void *)head - 1;
}
