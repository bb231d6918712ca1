/* SPDX-License-Identifier: Apache-2.0 */
/* feed: the batches of one trainer in a pass, block after block; a batch has rows of one block
 * only. Thread: the run's. */
#pragma once

#include "trainer/program/shard.h"
#include "trainer/program/walk.h"

struct wf_feed {
	struct wf_env *env; /* lent until fini */
	struct wf_walk walk;
	struct wf_shard shard;
	struct wf_block block; /* the one that batches are made of */
	uint32_t *row;         /* [row_max] of the batch being made */
	size_t row_max;
	size_t at; /* next batch of this block */
	uint64_t seed, pass;
};

struct wf_feed_opts {
	const struct wf_set *set;          /* lent until fini */
	const struct wf_shard_opts *shard; /* borrowed */
	size_t rows_max;                   /* of the largest batch */
	uint64_t ahead_until;              /* as of wf_stream_open */
};

/* `feed` ends with wf_feed_fini, also if this fails. WEFT_NOMEM. */
enum weft_status wf_feed_init(struct wf_env *env, const struct wf_feed_opts *opts,
			      struct wf_feed *feed) WEFT_MUST_CHECK;
void wf_feed_fini(struct wf_feed *feed); /* accepts a zeroed one */
void wf_feed_begin(struct wf_feed *feed, uint64_t seed, uint64_t pass);
/* Leaves out the next batches of the pass, which may have fewer. WEFT_NOMEM, or as of the walk. */
enum weft_status wf_feed_skip(struct wf_feed *feed, uint64_t batches) WEFT_MUST_CHECK;
/* Whether the pass has a next batch: reads the block that it is in. Status as of wf_feed_next. */
enum weft_status wf_feed_has_next(struct wf_feed *feed, bool *out) WEFT_MUST_CHECK;
/* Puts the next batch of the pass together; it has 0 rows when there are no more. WEFT_NOMEM, or
 * as of the walk. */
enum weft_status wf_feed_next(struct wf_feed *feed, struct wf_bag_batch *out) WEFT_MUST_CHECK;
