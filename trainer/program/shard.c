/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer's share of a block, cut into batches. Thread: the owner's. */
#include "trainer/program/shard.h"

#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

#define TRAINER_BITS 32u
#define BLOCK_SALT 0x9e3779b97f4a7c15u /* odd: the seeds of 2^64 blocks differ */

size_t
wf_shard_share(const struct wf_shard_opts *opts, size_t rows)
{
	return rows / opts->count + (opts->idx < rows % opts->count);
}

void
wf_shard_init(const struct wf_shard_opts *opts, struct wf_shard *out)
{
	WF_ASSERT(opts->idx < opts->count);
	*out = (struct wf_shard){.opts = *opts};
}

void
wf_shard_fini(struct wf_env *env, struct wf_shard *shard)
{
	wf_free(env, shard->order, shard->order_alloc * sizeof(*shard->order));
	*shard = (struct wf_shard){0};
}

/* The first row of a piece that is the shard's, as an offset; it may lie behind the piece. */
static size_t
first_own(const struct wf_shard_opts *opts, const struct wf_piece *piece)
{
	return (size_t)((opts->idx + opts->count - piece->row % opts->count) % opts->count);
}

static size_t
count_own(const struct wf_shard_opts *opts, const struct wf_piece *piece)
{
	const size_t first = first_own(opts, piece);

	return first < piece->count ? (piece->count - first - 1) / opts->count + 1 : 0;
}

static enum weft_status
make_room(struct wf_env *env, struct wf_shard *shard, size_t rows)
{
	if (rows <= shard->order_alloc) {
		return WEFT_OK;
	}
	wf_free(env, shard->order, shard->order_alloc * sizeof(*shard->order));
	shard->order_alloc = 0;
	shard->order = wf_zalloc_array(env, rows, sizeof(*shard->order));
	if (shard->order == NULL) {
		return wf_fail(WEFT_NOMEM, "order of %zu rows", rows);
	}
	shard->order_alloc = rows;
	return WEFT_OK;
}

enum weft_status
wf_shard_draw(struct wf_env *env, struct wf_shard *shard, const struct wf_block *block,
	      uint64_t seed, uint64_t pass)
{
	const struct wf_shard_opts *opts = &shard->opts;
	struct wf_rng rng;
	size_t rows = 0;
	size_t used = 0;

	for (size_t i = 0; i < block->piece_count; i++) {
		rows += count_own(opts, &block->piece[i]);
	}
	shard->count = 0;
	enum weft_status st = make_room(env, shard, rows);
	if (st != WEFT_OK) {
		return st;
	}
	for (size_t i = 0; i < block->piece_count; i++) {
		const struct wf_piece *piece = &block->piece[i];
		for (size_t at = first_own(opts, piece); at < piece->count; at += opts->count) {
			shard->order[used++] = (uint32_t)(piece->first + at);
		}
	}
	WF_ASSERT(used == rows);
	shard->count = rows;
	shard->batch_rows =
		opts->batch_size != 0 && opts->batch_size < rows ? (size_t)opts->batch_size : rows;
	/* Stream 0 is the initial values'. */
	wf_rng_init(&rng, seed + block->idx * BLOCK_SALT,
		    ((pass + 1) << TRAINER_BITS) | opts->trainer);
	wf_rng_shuffle(&rng, shard->order, rows);
	return WEFT_OK;
}

size_t
wf_shard_batch_count(const struct wf_shard *shard)
{
	return shard->count == 0 ? 0 : (shard->count + shard->batch_rows - 1) / shard->batch_rows;
}

size_t
wf_shard_rows(const struct wf_shard *shard, size_t batch, uint32_t *row)
{
	const size_t first = batch * shard->batch_rows;

	WF_ASSERT(first < shard->count);
	const size_t left = shard->count - first;
	const size_t rows = left < shard->batch_rows ? left : shard->batch_rows;
	memcpy(row, shard->order + first, rows * sizeof(*row));
	return rows;
}
