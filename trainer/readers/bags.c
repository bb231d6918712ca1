/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bags, and batches out of them. Thread: the caller's. */
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "trainer/readers/bags_internal.h"

#define ROWS_MIN 5u /* so that four fifths leave a row to test on */

enum weft_status
wf_bags_init(struct wf_env *env, const struct wf_text *text, const struct wf_bags_limits *limits,
	     struct wf_bags *bags)
{
	size_t lines = wf_text_line_count(text);
	size_t rows_max = (text->count + 1) / limits->row_bytes_min;

	WF_ASSERT(bags->slots >= 1 && bags->rows == 0);
	lines -= limits->has_headers ? wf_text_first_line_count(text) : 0;
	bags->row_alloc = lines < rows_max ? lines : rows_max;
	bags->entry_alloc =
		limits->entries_max > 0 ? limits->entries_max : bags->row_alloc * bags->slots;
	bags->first = wf_zalloc_array(env, bags->row_alloc * bags->slots + 1, sizeof(*bags->first));
	bags->key = wf_zalloc_array(env, bags->entry_alloc + 1, sizeof(*bags->key));
	bags->weight = wf_zalloc_array(env, bags->entry_alloc + 1, sizeof(*bags->weight));
	bags->x = wf_zalloc_array(env, bags->row_alloc * bags->features + 1, sizeof(*bags->x));
	bags->y = wf_zalloc_array(env, bags->row_alloc + 1, sizeof(*bags->y));
	if (bags->first == NULL || bags->key == NULL || bags->weight == NULL || bags->x == NULL ||
	    bags->y == NULL) {
		enum weft_status st = wf_fail(WEFT_NOMEM, "%s: %zu rows with %zu entries",
					      text->path, bags->row_alloc, bags->entry_alloc);
		wf_bags_fini(env, bags);
		return st;
	}
	return WEFT_OK;
}

void
wf_bags_fini(struct wf_env *env, struct wf_bags *bags)
{
	const size_t bag_count = bags->row_alloc * bags->slots;
	const size_t x_count = bags->row_alloc * bags->features;

	wf_free(env, bags->first, (bag_count + 1) * sizeof(*bags->first));
	wf_free(env, bags->key, (bags->entry_alloc + 1) * sizeof(*bags->key));
	wf_free(env, bags->weight, (bags->entry_alloc + 1) * sizeof(*bags->weight));
	wf_free(env, bags->x, (x_count + 1) * sizeof(*bags->x));
	wf_free(env, bags->y, (bags->row_alloc + 1) * sizeof(*bags->y));
	*bags = (struct wf_bags){0};
}

enum weft_status
wf_bags_begin_row(const struct wf_bags *bags, const struct wf_cut *cut)
{
	if (bags->rows == bags->row_alloc) {
		return wf_fail(WEFT_DATA, "%s: line %zu: is too short to be a row", cut->path,
			       cut->line);
	}
	return WEFT_OK;
}

void
wf_bags_add(struct wf_bags *bags, uint64_t key, float weight)
{
	WF_ASSERT(bags->entries < bags->entry_alloc);
	bags->key[bags->entries] = key;
	bags->weight[bags->entries] = weight;
	bags->entries++;
}

void
wf_bags_end_slot(struct wf_bags *bags, uint32_t slot)
{
	WF_ASSERT(bags->rows < bags->row_alloc && slot < bags->slots);
	bags->first[bags->rows * bags->slots + slot + 1] = (uint32_t)bags->entries;
}

void
wf_bags_end_row(struct wf_bags *bags)
{
	const uint32_t *first = bags->first + bags->rows * bags->slots;
	size_t entries = first[bags->slots] - first[0];

	WF_ASSERT(first[bags->slots] == bags->entries);
	if (entries > bags->row_entries_max) {
		bags->row_entries_max = entries;
	}
	bags->rows++;
}

enum weft_status
wf_bags_split(const char *path, struct wf_bags *bags)
{
	if (bags->rows < ROWS_MIN) {
		return wf_fail(WEFT_DATA, "%s: has %zu rows; at least %u are needed", path,
			       bags->rows, ROWS_MIN);
	}
	bags->train_rows = bags->rows * 4 / 5;
	return WEFT_OK;
}

enum weft_status
wf_bags_read(struct wf_env *env, const char *path,
	     enum weft_status (*parse)(struct wf_env *env, const struct wf_text *text,
				       struct wf_bags *out),
	     struct wf_bags *out)
{
	struct wf_text text = {0};
	enum weft_status st = wf_text_read(env, path, &text);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_bags bags = {0};
	st = parse(env, &text, &bags);
	wf_text_fini(env, &text);
	if (st == WEFT_OK) {
		st = wf_bags_split(path, &bags);
	}
	if (st != WEFT_OK) {
		wf_bags_fini(env, &bags);
		return st;
	}
	*out = bags;
	return WEFT_OK;
}

static void
put_u64(unsigned char *out, uint64_t value)
{
	for (unsigned i = 0; i < sizeof(value); i++) {
		out[i] = (unsigned char)(value >> (8 * i));
	}
}

/* What wf_digest_u64 and wf_digest_string would hash, without a digest to create. */
uint64_t
wf_slot_key(uint32_t slot, const char *value, size_t bytes)
{
	unsigned char fields[2 * sizeof(uint64_t) + WF_SLOT_VALUE_BYTES_MAX];

	WF_ASSERT(bytes <= WF_SLOT_VALUE_BYTES_MAX);
	put_u64(fields, slot);
	put_u64(fields + sizeof(uint64_t), bytes);
	if (bytes > 0) {
		memcpy(fields + 2 * sizeof(uint64_t), value, bytes);
	}
	return wf_digest_of(fields, 2 * sizeof(uint64_t) + bytes);
}

enum weft_status
wf_bag_batch_init(struct wf_env *env, const struct wf_bag_batch_opts *opts,
		  struct wf_bag_batch *out)
{
	struct wf_bag_batch batch = {
		.slots = opts->slots,
		.features = opts->features,
		.rows_max = opts->rows_max,
		.entries_max = opts->rows_max * opts->row_entries_max,
	};
	WF_ASSERT(opts->rows_max >= 1);
	/* One more than needed, so that a batch without entries or features has arrays too. */
	batch.first = wf_zalloc_array(env, batch.rows_max * batch.slots + 1, sizeof(*batch.first));
	batch.key = wf_zalloc_array(env, batch.entries_max + 1, sizeof(*batch.key));
	batch.weight = wf_zalloc_array(env, batch.entries_max + 1, sizeof(*batch.weight));
	batch.x = wf_zalloc_array(env, batch.rows_max * batch.features + 1, sizeof(*batch.x));
	batch.y = wf_zalloc_array(env, batch.rows_max, sizeof(*batch.y));
	if (batch.first == NULL || batch.key == NULL || batch.weight == NULL || batch.x == NULL ||
	    batch.y == NULL) {
		wf_bag_batch_fini(env, &batch);
		return wf_fail(WEFT_NOMEM, "batch: %zu rows with %zu entries", opts->rows_max,
			       opts->rows_max * opts->row_entries_max);
	}
	*out = batch;
	return WEFT_OK;
}

void
wf_bag_batch_fini(struct wf_env *env, struct wf_bag_batch *batch)
{
	const size_t bag_count = batch->rows_max * batch->slots;
	const size_t x_count = batch->rows_max * batch->features;

	wf_free(env, batch->first, (bag_count + 1) * sizeof(*batch->first));
	wf_free(env, batch->key, (batch->entries_max + 1) * sizeof(*batch->key));
	wf_free(env, batch->weight, (batch->entries_max + 1) * sizeof(*batch->weight));
	wf_free(env, batch->x, (x_count + 1) * sizeof(*batch->x));
	wf_free(env, batch->y, batch->rows_max * sizeof(*batch->y));
	*batch = (struct wf_bag_batch){0};
}

void
wf_bags_gather(const struct wf_bags *bags, const uint32_t *row, size_t count,
	       struct wf_bag_batch *batch)
{
	uint32_t entries = 0;

	WF_ASSERT(count <= batch->rows_max && batch->slots == bags->slots);
	WF_ASSERT(batch->features == bags->features);
	batch->rows = count;
	batch->first[0] = 0;
	for (size_t i = 0; i < count; i++) {
		const uint32_t *first = bags->first + (size_t)row[i] * bags->slots;
		uint32_t row_entries = first[bags->slots] - first[0];
		WF_ASSERT(row[i] < bags->rows && entries + row_entries <= batch->entries_max);
		for (uint32_t slot = 1; slot <= bags->slots; slot++) {
			batch->first[i * bags->slots + slot] = entries + first[slot] - first[0];
		}
		memcpy(batch->key + entries, bags->key + first[0], row_entries * sizeof(uint64_t));
		memcpy(batch->weight + entries, bags->weight + first[0],
		       row_entries * sizeof(float));
		memcpy(batch->x + i * bags->features, bags->x + (size_t)row[i] * bags->features,
		       bags->features * sizeof(float));
		batch->y[i] = bags->y[row[i]];
		entries += row_entries;
	}
}
