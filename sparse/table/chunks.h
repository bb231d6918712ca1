/* SPDX-License-Identifier: Apache-2.0 */
/* chunks: zeroed pieces of one size, cut from chunks of memory that are kept until the end. Thread:
 * the lane's.
 *
 * The first chunks are small, each twice as large as the one before, so that few pieces need little
 * memory; a full chunk is a huge page. From the first full chunk on the next one is allocated while
 * a chunk is being cut, as a spare, and the helper makes it present (ahead.h). When it is allocated
 * depends on the number of chunks alone, and near the cap it is not, so that how far the helper has
 * got does not decide which piece finds no memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ahead.h"
#include "sparse/table/budget.h"

#define WF_PIECE_BYTES ((size_t)32 << 10)

struct wf_chunks {
	struct wf_budget *budget;
	unsigned node; /* 1 + NUMA node of the memory; 0: anywhere */
	char **chunk;  /* [capacity] */
	uint32_t count;
	uint32_t capacity;
	uint32_t cut;       /* the chunk that the next piece is cut from */
	uint32_t cut_count; /* pieces cut from it */
	size_t cut_ready;   /* bytes of it that are ready, from its beginning on */

	struct wf_ahead ahead;
	bool makes_spares;      /* there is a helper to get them ready */
	bool has_spare;         /* the last chunk is one */
	uint32_t asked;         /* the chunk of the last request to the helper; 0: none */
	uint64_t cleared_bytes; /* of pieces that were not ready when they were cut */
	uint64_t readied_bytes;
};

/* Allocates nothing. `env`: its helper makes spares present; NULL: there are no spares. */
void wf_chunks_init(struct wf_chunks *chunks, struct wf_budget *budget, struct wf_env *env,
		    unsigned node);
/* Frees all pieces; sleeps while the helper works on a spare. Accepts a zeroed struct. */
void wf_chunks_fini(struct wf_chunks *chunks);
/* A piece of WF_PIECE_BYTES, zeroed, that is valid until fini. NULL: no memory. */
void *wf_chunks_alloc(struct wf_chunks *chunks);
