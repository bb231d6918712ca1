/* SPDX-License-Identifier: Apache-2.0 */
/* slabs: the memory of a table's rows: slabs of equal rows, numbered through, kept until the end.
 * Thread: the lane's.
 *
 * The first slabs are small, each twice as large as the one before, so that a table of few rows
 * needs little memory. They have as many numbers as the others, and do not use them all: the nth
 * row (wf_slabs_nth) need not have number n. Full slabs are allocated one at a time while there are
 * few, then in runs whose bytes are a multiple of a huge page, because the system uses small pages
 * for memory that ends within one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sparse/table/budget.h"

/* A number that no row has. */
#define WF_ROW_NONE UINT32_MAX

struct wf_slabs {
	struct wf_budget *budget;
	unsigned node; /* 1 + NUMA node of the memory; 0: anywhere */

	/* Fixed at init. */
	size_t row_bytes;     /* a multiple of 8 */
	unsigned slab_shift;  /* rows of a full slab, as a power of 2 */
	unsigned small_shift; /* of the first slab; slab_shift: there are no small ones */
	uint32_t small_count; /* slabs that are not full */

	char **slab; /* [capacity] */
	uint32_t count;
	uint32_t capacity;
	uint32_t run_slabs; /* slabs of a run; 1: there are none */
	/* Slabs of runs: [run_first, run_end). After a failed allocation slabs come one by one. */
	uint32_t run_first, run_end;
	bool no_runs;
	size_t fixed_bytes;  /* of all rows of a fixed vocabulary, which are one piece; 0: none */
	uint32_t room_count; /* rows that the slabs have room for */
};

/* Allocates nothing yet. `slab_bytes` is approximate: a slab has at least one row. */
void wf_slabs_init(struct wf_slabs *slabs, struct wf_budget *budget, size_t row_bytes,
		   size_t slab_bytes, unsigned node);
void wf_slabs_fini(struct wf_slabs *slabs); /* accepts zeroed */
/* Adds room for more rows, zeroed: a slab, or a run of them. false: no memory. */
bool wf_slabs_add(struct wf_slabs *slabs);
/* Adds room for rows 0 .. count - 1 at once, zeroed, whose numbers are their ranks, and for no
 * others. false: no memory; fini frees what was allocated. */
bool wf_slabs_add_all(struct wf_slabs *slabs, uint32_t count);
/* The bytes of a full slab. */
size_t wf_slabs_slab_bytes(const struct wf_slabs *slabs);
/* The end of the piece of memory that has the nth row, counted in rows. */
uint32_t wf_slabs_piece_end(const struct wf_slabs *slabs, uint32_t n);

static inline bool
wf_slabs_are_fixed(const struct wf_slabs *slabs)
{
	return slabs->fixed_bytes > 0;
}

/* The number of the nth row, n below room_count; it grows with n. */
static inline uint32_t
wf_slabs_nth(const struct wf_slabs *slabs, uint32_t n)
{
	const uint64_t from_one = (uint64_t)n + ((uint64_t)1 << slabs->small_shift);

	if (from_one >> slabs->slab_shift != 0) { /* in a full slab */
		uint64_t before = (uint64_t)slabs->small_count << slabs->slab_shift;
		return (uint32_t)(before + from_one - ((uint64_t)1 << slabs->slab_shift));
	}
	unsigned bits = 63u - (unsigned)__builtin_clzll(from_one);
	uint32_t within = (uint32_t)(from_one ^ (uint64_t)1 << bits);
	return (bits - slabs->small_shift) << slabs->slab_shift | within;
}

/* n, of the nth row's number. */
static inline uint32_t
wf_slabs_rank(const struct wf_slabs *slabs, uint32_t number)
{
	const uint32_t slab = number >> slabs->slab_shift;
	const uint32_t within = number & (((uint32_t)1 << slabs->slab_shift) - 1);
	const uint32_t full = slab < slabs->small_count ? 0 : slab - slabs->small_count;
	const uint32_t shift =
		slab < slabs->small_count ? slabs->small_shift + slab : slabs->slab_shift;

	return ((full + 1) << shift) - ((uint32_t)1 << slabs->small_shift) + within;
}

/* Where the row of that number begins. */
static inline char *
wf_slabs_at(const struct wf_slabs *slabs, uint32_t row)
{
	size_t within = row & (((uint32_t)1 << slabs->slab_shift) - 1);
	return slabs->slab[row >> slabs->slab_shift] + within * slabs->row_bytes;
}
