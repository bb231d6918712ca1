/* SPDX-License-Identifier: Apache-2.0 */
/* walk: the way through one part of a set, block by block, in each pass anew. A set in memory is
 * one block. Thread: the owner's. */
#pragma once

#include "trainer/program/stream.h"

struct wf_walk {
	const struct wf_set *set; /* lent until fini */
	struct wf_piece piece;    /* of a set in memory, */
	bool is_over;             /* and whether its block has been given */
	struct wf_stream *stream; /* of one that is not; otherwise NULL */
};

/* `ahead_until`: as of wf_stream_open, whose statuses this has. */
enum weft_status wf_walk_init(struct wf_env *env, const struct wf_set *set, enum wf_part part,
			      uint64_t ahead_until, struct wf_walk *out) WEFT_MUST_CHECK;
void wf_walk_fini(struct wf_walk *walk); /* accepts a zeroed one */
/* Begins a pass, also in the middle of another. */
void wf_walk_begin(struct wf_walk *walk, uint64_t seed, uint64_t pass);
/* The next block. Its `rows` are 0 when the pass is over. Status as of wf_stream_next. */
enum weft_status wf_walk_next(struct wf_walk *walk, struct wf_block *out) WEFT_MUST_CHECK;
