/* SPDX-License-Identifier: Apache-2.0 */
/* shard: which rows of a block a trainer trains on, and in which order. Of a set that all trainers
 * share, trainer i of N has the rows i, i + N, i + 2N, ... of the set; a set of its own it has
 * whole. Each pass visits the rows of a block in a new order, drawn from seed, pass, block and
 * trainer alone, so that a sequential run sees the same batches. Thread: the owner's. */
#pragma once

#include "trainer/program/set.h"

struct wf_shard_opts {
	uint32_t trainer;    /* whose order it is */
	uint32_t idx, count; /* it has the rows whose number % count == idx */
	uint64_t batch_size; /* 0: all rows of the shard */
};

struct wf_shard {
	struct wf_shard_opts opts;
	uint32_t *order; /* [count] rows of the block's source */
	size_t order_alloc;
	size_t count;      /* rows of this shard; may be 0 */
	size_t batch_rows; /* of every batch but the last */
};

/* The rows among `rows`, counted from 0, that are a shard's. */
size_t wf_shard_share(const struct wf_shard_opts *opts, size_t rows);
/* An empty shard, which ends with wf_shard_fini. */
void wf_shard_init(const struct wf_shard_opts *opts, struct wf_shard *out);
void wf_shard_fini(struct wf_env *env, struct wf_shard *shard); /* accepts a zeroed one */
/* Draws the order of a block in a pass. WEFT_NOMEM. */
enum weft_status wf_shard_draw(struct wf_env *env, struct wf_shard *shard,
			       const struct wf_block *block, uint64_t seed,
			       uint64_t pass) WEFT_MUST_CHECK;
/* Batches in the block; 0 if there are no rows. */
size_t wf_shard_batch_count(const struct wf_shard *shard);
/* A batch's rows, row [batch_rows]; returns how many it has. */
size_t wf_shard_rows(const struct wf_shard *shard, size_t batch, uint32_t *row);
