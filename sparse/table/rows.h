/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the arena of a table's rows: slabs of equal rows, numbered through. A row never moves while
 * it lives. Thread: the lane's.
 *
 * A row is two f32 of show and click where the table counts them, a head, the values, and the
 * optimizer's state. Slabs are kept until the end; rows given back are used again, last first.
 *
 * The first slabs are small, each twice as large as the one before, so that a table of few rows
 * takes little. They have as many numbers as the others, and do not use them all: the nth row of a
 * table (wf_rows_nth) need not have number n. Full slabs are taken one at a time while there are
 * few, then in runs whose bytes are a multiple of a huge page: of memory that ends within one the
 * system makes small pages.
 *
 * In large tables memory is taken some way ahead of its use, and made present by the helper
 * (ahead.h). When it is taken depends on the number of rows alone, not on how far the helper is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sparse/table/ahead.h"
#include "sparse/table/budget.h"

#define WF_ROW_NONE UINT32_MAX

struct wf_row_head {
	uint64_t key;   /* of a free row: the number of the next one, or WF_ROW_NONE */
	uint32_t stamp; /* step of the last update; while one is being made: its group's number */
	uint32_t born;  /* 1 + step of birth; 0: no row here */
};

struct wf_row_score {
	float show, click; /* as of the stamp */
};

struct wf_rows_opts {
	size_t value_floats; /* values and state */
	bool with_score;
	size_t slab_bytes;      /* about; a slab has at least one row */
	size_t ahead_bytes_max; /* how far ahead of its use memory is allocated and made present */
	struct wf_ahead *ahead; /* lent until fini, and over by then; NULL: nothing is got ready */
	unsigned node;          /* 1 + NUMA node of the memory; 0: anywhere */
};

struct wf_rows {
	struct wf_budget *budget;

	/* Fixed at init. */
	struct wf_rows_opts opts;
	size_t row_bytes;     /* a multiple of 8 */
	size_t head_offset;   /* bytes, of the head in a row */
	unsigned slab_shift;  /* rows of a full slab, as a power of 2 */
	unsigned small_shift; /* of the first slab; slab_shift: there are no small ones */
	uint32_t small_count; /* slabs that are not full */

	char **slab; /* [slab_capacity], slab_count of them in use */
	uint32_t slab_count;
	uint32_t slab_capacity;
	uint32_t run_slabs; /* slabs of a run; 1: there are none */
	/* Slabs of runs: [run_first, run_end). After memory has ended once they come one by one. */
	uint32_t run_first, run_end;
	bool no_runs;
	size_t fixed_bytes;  /* of all rows of a fixed vocabulary, which are one piece; 0: none */
	uint32_t room_count; /* rows that the slabs have room for */
	uint32_t used_count; /* rows ever in use, live and free: the 0th to the last */
	uint32_t live_count;
	uint32_t free_first; /* WF_ROW_NONE: none */

	/* Memory that is got ready. Rows are counted as in wf_rows_nth. */
	bool no_more_ahead;  /* memory has ended once, or is ending */
	uint32_t look_at;    /* at this number of rows */
	uint32_t asked_from; /* rows of the stretch under way, or of the last one */
	uint32_t asked_end;
	uint32_t ready_from, ready_end; /* ready; those before are in use, or were never requested
					 * */
	uint64_t cleared_bytes; /* rows in use that were not ready: the lane touches them first */
	uint64_t readied_bytes; /* of rows made ready by the helper before they were used */
};

/* Allocates nothing yet. */
void wf_rows_init(struct wf_rows *rows, struct wf_budget *budget, const struct wf_rows_opts *opts);
void wf_rows_fini(struct wf_rows *rows); /* accepts zeroed */
/* A row whose bytes are all 0; the caller makes it live by its `born`. WF_ROW_NONE: no memory. */
uint32_t wf_rows_alloc(struct wf_rows *rows);
void wf_rows_give(struct wf_rows *rows, uint32_t row);
/* Rows 0 .. count - 1 at once, zeroed: for a fixed vocabulary, which allocates none later, and
 * whose rows are numbered by their ranks. false: no memory; fini frees what was allocated. */
bool wf_rows_alloc_all(struct wf_rows *rows, uint32_t count);
/* Of a fixed vocabulary: a row is used for the first time; and more of them are got ready. */
void wf_rows_first_use(struct wf_rows *rows, uint32_t row);
void wf_rows_look_ahead(struct wf_rows *rows);

/* The number of the nth row, n below used_count; it grows with n. */
static inline uint32_t
wf_rows_nth(const struct wf_rows *rows, uint32_t n)
{
	const uint64_t from_one = (uint64_t)n + ((uint64_t)1 << rows->small_shift);

	if (from_one >> rows->slab_shift != 0) { /* in a full slab */
		uint64_t before = (uint64_t)rows->small_count << rows->slab_shift;
		return (uint32_t)(before + from_one - ((uint64_t)1 << rows->slab_shift));
	}
	unsigned bits = 63u - (unsigned)__builtin_clzll(from_one);
	uint32_t within = (uint32_t)(from_one ^ (uint64_t)1 << bits);
	return (bits - rows->small_shift) << rows->slab_shift | within;
}

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
