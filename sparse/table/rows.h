/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the arena of a table's rows. A row never moves while it lives; freed rows are used again,
 * the last one first. Thread: the lane's.
 *
 * A row is a head, values with the optimizer's state, and two f32 of show and click where the table
 * counts them, one behind the other: a look-up sees by the head that the row is its key's, and that
 * line of cache, which the next ones follow, costs less than one that lies elsewhere. slabs.h has
 * the memory of rows, lead.h what makes it present in time. */
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
	size_t slab_bytes;      /* approximate; a slab has at least one row */
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

/* Lines of cache of a row's head and the first `bytes` of its values, for wf_prefetch. */
static inline unsigned
wf_rows_lines(const struct wf_rows *rows, size_t bytes)
{
	/* A row begins at a multiple of the highest power of two of its length. */
	const size_t power = rows->slabs.row_bytes & -rows->slabs.row_bytes;
	const size_t before = power < WF_LINE_BYTES ? WF_LINE_BYTES - power : 0;
	return wf_prefetch_lines(before + sizeof(struct wf_row_head) + bytes);
}

static inline struct wf_row_head *
wf_row_at(const struct wf_rows *rows, uint32_t row)
{
	return (struct wf_row_head *)(void *)wf_slabs_at(&rows->slabs, row);
}

static inline float *
wf_row_values(struct wf_row_head *head)
{
	return (float *)(void *)(head + 1);
}

/* To be called only where the table counts show and click. */
static inline struct wf_row_score *
wf_row_score(const struct wf_rows *rows, struct wf_row_head *head)
{
	return (struct wf_row_score *)(void *)((char *)(head + 1) + rows->value_bytes);
}
