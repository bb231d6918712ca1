/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer's share of the rows, cut into batches. Thread: the owner's. */
#include "trainer/program/shard.h"

#include "base/assert.h"
#include "base/rng.h"

#define TRAINER_BITS 32u

enum weft_status
wf_shard_init(struct wf_env *env, const struct wf_shard_opts *opts, struct wf_shard *out)
{
	const size_t rows = opts->train_rows;

	WF_ASSERT(opts->trainer < opts->trainers);
	WF_ASSERT(rows < UINT32_MAX);
	struct wf_shard shard = {
		.trainer = opts->trainer,
		.trainers = opts->trainers,
		.count = rows / opts->trainers + (opts->trainer < rows % opts->trainers),
	};
	shard.batch_rows = shard.count;
	if (opts->batch_size != 0 && opts->batch_size < shard.count) {
		shard.batch_rows = (size_t)opts->batch_size;
	}
	if (shard.count > 0) {
		shard.order = wf_zalloc_array(env, shard.count, sizeof(*shard.order));
		if (shard.order == NULL) {
			return wf_fail(WEFT_NOMEM, "order of %zu rows", shard.count);
		}
	}
	*out = shard;
	return WEFT_OK;
}

void
wf_shard_fini(struct wf_env *env, struct wf_shard *shard)
{
	wf_free(env, shard->order, shard->count * sizeof(*shard->order));
	*shard = (struct wf_shard){0};
}

void
wf_shard_shuffle(struct wf_shard *shard, uint64_t seed, uint64_t pass)
{
	struct wf_rng rng;

	for (size_t i = 0; i < shard->count; i++) {
		shard->order[i] = (uint32_t)i;
	}
	/* Stream 0 is the initial values'. */
	wf_rng_init(&rng, seed, ((pass + 1) << TRAINER_BITS) | shard->trainer);
	wf_rng_shuffle(&rng, shard->order, shard->count);
}

size_t
wf_shard_batch_count(const struct wf_shard *shard)
{
	return shard->count == 0 ? 0 : (shard->count + shard->batch_rows - 1) / shard->batch_rows;
}

/* How many rows a batch has, and where in the order they start. */
static size_t
batch_rows(const struct wf_shard *shard, size_t batch, size_t *first)
{
	*first = batch * shard->batch_rows;
	WF_ASSERT(*first < shard->count);
	size_t rows = shard->count - *first;
	return rows < shard->batch_rows ? rows : shard->batch_rows;
}

static size_t
row_at(const struct wf_shard *shard, size_t place)
{
	return shard->trainer + (size_t)shard->order[place] * shard->trainers;
}

size_t
wf_shard_rows(const struct wf_shard *shard, size_t batch, uint32_t *row)
{
	size_t first = 0;
	size_t rows = batch_rows(shard, batch, &first);

	for (size_t i = 0; i < rows; i++) {
		row[i] = (uint32_t)row_at(shard, first + i);
	}
	return rows;
}
