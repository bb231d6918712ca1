/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the arena of a table's rows. A row never moves while it lives; freed rows are used again,
 * the last one first. Thread: the lane's.
 *
 * A row is a head, values with the optimizer's state, and two f32 of show and click where the table
 * counts them. Four rows make a block: their heads, which fill a line of cache, then the values of
 * each, then the counts of each. A block is a multiple of a line, so values that are one, too, lie
 * on lines of their own: a pull of 64 values reads four lines, and not a fifth. The address of a
 * head alone tells which of the four it is. slabs.h has the memory of blocks, lead.h what makes it
 * present in time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/prefetch.h"
#include "sparse/table/budget.h"
#include "sparse/table/lead.h"
#include "sparse/table/slabs.h"

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
	size_t slab_bytes;      /* approximate; a slab has at least one block */
	size_t ahead_bytes_max; /* how far ahead of its use memory is allocated and made present */
	struct wf_env *helper;  /* its helper makes memory present; NULL: nothing does */
	unsigned node;          /* 1 + NUMA node of the memory; 0: anywhere */
};

struct wf_rows {
	struct wf_slabs slabs;
	struct wf_lead lead;
	size_t value_bytes;  /* of a row's values and state, a multiple of 8; fixed at init */
	bool with_score;     /* likewise */
	uint32_t used_count; /* rows ever in use, live and free: the 0th to the last */
	uint32_t live_count;
	uint32_t free_first; /* WF_ROW_NONE: none */
};

/* Allocates nothing yet. */
void wf_rows_init(struct wf_rows *rows, struct wf_budget *budget, const struct wf_rows_opts *opts);
/* Sleeps while the helper works on memory of the rows. Accepts a zeroed struct. */
void wf_rows_fini(struct wf_rows *rows);
/* Allocates a row of zeros; the caller makes it live by its `born`. WF_ROW_NONE: no memory. */
uint32_t wf_rows_alloc(struct wf_rows *rows);
void wf_rows_give(struct wf_rows *rows, uint32_t row);
/* Allocates rows 0 .. count - 1, zeroed, for a fixed vocabulary: it allocates none later, and its
 * rows are numbered by their ranks. false: no memory; fini frees what was allocated. */
bool wf_rows_alloc_all(struct wf_rows *rows, uint32_t count);
/* Counts the first use of a row of a fixed vocabulary, and makes memory of more rows present. */
void wf_rows_first_use(struct wf_rows *rows, uint32_t row);
void wf_rows_look_ahead(struct wf_rows *rows);

/* The number of the nth row, n below used_count; it grows with n. */
static inline uint32_t
wf_rows_nth(const struct wf_rows *rows, uint32_t n)
{
	return wf_slabs_nth(&rows->slabs, n);
}

/* Lines of cache of the first `bytes` of a row's values, for wf_prefetch. */
static inline unsigned
wf_rows_lines(const struct wf_rows *rows, size_t bytes)
{
	const bool is_whole = rows->value_bytes % WF_LINE_BYTES == 0; /* each begins a line */
	return wf_prefetch_lines(is_whole ? bytes : bytes + WF_LINE_BYTES - sizeof(uint64_t));
}

/* Where a row lies. */
struct wf_row_spot {
	struct wf_row_head *head;
	float *values;
};

/* The bytes of a block's heads: a line of cache, at which it begins. */
#define WF_ROW_HEADS_BYTES (WF_SLAB_BLOCK_ROWS * sizeof(struct wf_row_head))

static inline struct wf_row_spot
wf_row_spot(const struct wf_rows *rows, uint32_t row)
{
	const uint32_t place = row % WF_SLAB_BLOCK_ROWS;
	char *block = wf_slabs_at(&rows->slabs, row - place);
	char *values = block + WF_ROW_HEADS_BYTES + place * rows->value_bytes;
	return (struct wf_row_spot){(struct wf_row_head *)(void *)block + place,
				    (float *)(void *)values};
}

static inline struct wf_row_head *
wf_row_at(const struct wf_rows *rows, uint32_t row)
{
	return wf_row_spot(rows, row).head;
}

/* Which of its block a row is. */
static inline size_t
wf_row_place(const struct wf_row_head *head)
{
	return (uintptr_t)head % WF_ROW_HEADS_BYTES / sizeof(*head);
}

static inline float *
wf_row_values(const struct wf_rows *rows, struct wf_row_head *head)
{
	const size_t place = wf_row_place(head);
	char *values = (char *)(head - place) + WF_ROW_HEADS_BYTES;
	return (float *)(void *)(values + place * rows->value_bytes);
}

/* To be called only where the table counts show and click. */
static inline struct wf_row_score *
wf_row_score(const struct wf_rows *rows, struct wf_row_head *head)
{
	const size_t place = wf_row_place(head);
	char *values = (char *)(head - place) + WF_ROW_HEADS_BYTES;
	return (struct wf_row_score *)(void *)(values + WF_SLAB_BLOCK_ROWS * rows->value_bytes) +
	       place;
}
