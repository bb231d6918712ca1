/* SPDX-License-Identifier: Apache-2.0 */
/* One trainer's batches. Thread: the run's. */
#include "trainer/program/feed.h"

#include "base/assert.h"

enum weft_status
wf_feed_init(struct wf_env *env, const struct wf_feed_opts *opts, struct wf_feed *feed)
{
	*feed = (struct wf_feed){.env = env};
	wf_shard_init(opts->shard, &feed->shard);
	feed->row = wf_zalloc_array(env, opts->rows_max, sizeof(*feed->row));
	if (feed->row == NULL) {
		return wf_fail(WEFT_NOMEM, "a batch of %zu rows", opts->rows_max);
	}
	feed->row_max = opts->rows_max;
	return wf_walk_init(env, opts->set, WF_PART_TRAIN, opts->ahead_until, &feed->walk);
}

void
wf_feed_fini(struct wf_feed *feed)
{
	if (feed->env != NULL) {
		wf_free(feed->env, feed->row, feed->row_max * sizeof(*feed->row));
		wf_shard_fini(feed->env, &feed->shard);
		wf_walk_fini(&feed->walk);
	}
	*feed = (struct wf_feed){0};
}

void
wf_feed_begin(struct wf_feed *feed, uint64_t seed, uint64_t pass)
{
	feed->seed = seed;
	feed->pass = pass;
	feed->block = (struct wf_block){0};
	feed->at = 0;
	feed->shard.count = 0;
	wf_walk_begin(&feed->walk, seed, pass);
}

/* Goes on to a block that has a batch left; `*is_over` is whether there is none. */
static enum weft_status
find_batch(struct wf_feed *feed, bool *is_over)
{
	*is_over = true;
	/* A block may have no row of this trainer. */
	while (feed->at == wf_shard_batch_count(&feed->shard)) {
		enum weft_status st = wf_walk_next(&feed->walk, &feed->block);
		if (st == WEFT_OK && feed->block.rows > 0) {
			st = wf_shard_draw(feed->env, &feed->shard, &feed->block, feed->seed,
					   feed->pass);
		}
		if (st != WEFT_OK || feed->block.rows == 0) {
			return st;
		}
		feed->at = 0;
	}
	*is_over = false;
	return WEFT_OK;
}

enum weft_status
wf_feed_skip(struct wf_feed *feed, uint64_t batches)
{
	enum weft_status st = WEFT_OK;
	bool is_over = false;
	while (st == WEFT_OK && batches-- > 0) {
		st = find_batch(feed, &is_over);
		if (is_over) {
			return st;
		}
		feed->at++;
	}
	return st;
}

enum weft_status
wf_feed_has_next(struct wf_feed *feed, bool *out)
{
	bool is_over = false;
	enum weft_status st = find_batch(feed, &is_over);

	*out = st == WEFT_OK && !is_over;
	return st;
}

enum weft_status
wf_feed_next(struct wf_feed *feed, struct wf_bag_batch *out)
{
	bool is_over = false;

	out->rows = 0;
	enum weft_status st = find_batch(feed, &is_over);
	if (st != WEFT_OK || is_over) {
		return st;
	}
	const size_t rows = wf_shard_rows(&feed->shard, feed->at++, feed->row);
	WF_ASSERT(rows <= feed->row_max);
	wf_source_gather(feed->block.source, feed->row, rows, out);
	return WEFT_OK;
}
