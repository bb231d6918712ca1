/* SPDX-License-Identifier: Apache-2.0 */
/* batch: deduplicate, sort, deal to lanes, cut into parts, sum gradients. Thread: its owner's.
 *
 * Keys are first deduplicated through a hash table of ordinals, as batches of real data repeat
 * theirs, then sorted by a radix sort that passes over digits in which all keys agree, then dealt
 * to lanes by counting. Every stage works in arrays that were there from the start. */
#include "sparse/client/batch.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "wire/job.h"
#include "wire/partition.h"
#include "wire/sparse_messages.h"

#define DIGIT_BITS 8u
#define DIGIT_COUNT (64u / DIGIT_BITS)
#define DIGIT_VALUES (1u << DIGIT_BITS)
#define SCORE_BYTES (2u * sizeof(float)) /* show and click of a row */

struct wf_batch {
	/* Fixed. */
	struct wf_env *env;
	struct wf_batch_opts opts;
	size_t row_bytes;    /* of gradients */
	size_t front_bytes;  /* of a row's gradients and scores: what stands before the keys */
	uint32_t part_rows;  /* of a full part */
	uint32_t part_max;   /* length of part */
	uint32_t bucket_max; /* length of bucket; a power of two, at least 2 keys_max */
	uint64_t hash_seed;  /* so that nobody can choose keys that collide; no result has it */
	uint32_t lane_of[WF_PARTITION_COUNT];

	/* Of the last fill. */
	uint32_t key_count;
	uint32_t row_count;
	uint64_t *key;        /* [keys_max]; row_count of them */
	uint32_t *first;      /* [keys_max] of a row: the first of the caller's keys that it has */
	uint32_t *place;      /* [keys_max]; key_count of them */
	size_t *grad_at;      /* [keys_max] of a row: bytes from the start of the send buffer */
	size_t *score_at;     /* [keys_max] of a row: its show; its click lies click_gap further */
	uint32_t *click_gap;  /* [keys_max] bytes; both only with scores */
	uint32_t *lane_first; /* [lane_count + 1] */
	uint32_t *lane_part;  /* [lane_count + 1] */
	struct wf_batch_part *part; /* [part_max] */

	/* While it is filled. */
	uint32_t *bucket;    /* [bucket_max]: 1 + ordinal of a distinct key; 0: free */
	uint64_t *key_other; /* [keys_max] */
	uint32_t *ordinal;   /* [keys_max]: which distinct key stands here, by first occurrence */
	uint32_t *ordinal_other; /* [keys_max] */
	uint32_t *first_seen;    /* [keys_max] by ordinal */
	uint32_t *rank; /* [keys_max] by ordinal: its row; before that: its lane by place */
	uint32_t histogram[DIGIT_COUNT][DIGIT_VALUES];
};

/* Making and unmaking. */

static enum weft_status
check_number(const char *field, uint64_t value, uint64_t most)
{
	if (value >= 1 && value <= most) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "batch: %s is %" PRIu64 ", give 1 to %" PRIu64, field, value,
		       most);
}

static size_t
front_bytes_of(const struct wf_batch_opts *opts)
{
	return opts->dim * sizeof(float) + (opts->has_scores ? SCORE_BYTES : 0);
}

static enum weft_status
check_opts(const struct wf_batch_opts *opts)
{
	enum weft_status st = WEFT_OK;

	if ((st = check_number("dim", opts->dim, WF_ROW_DIM_MAX)) != WEFT_OK ||
	    (st = check_number("lane_count", opts->lane_count, WF_LANE_COUNT_MAX)) != WEFT_OK ||
	    (st = check_number("keys_max", opts->keys_max, WF_BATCH_KEYS_MAX)) != WEFT_OK) {
		return st;
	}
	if (opts->part_bytes_max < front_bytes_of(opts) + WF_KEY_BYTES ||
	    opts->part_bytes_max > WF_SLICE_BYTES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "batch: a slot of %" PRIu64 " bytes for rows of %zu bytes with "
			       "their keys: give one row or more, up to %llu bytes",
			       opts->part_bytes_max, front_bytes_of(opts) + WF_KEY_BYTES,
			       WF_SLICE_BYTES_MAX);
	}
	return WEFT_OK;
}

static uint32_t
least_of(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* All numbers that follow from the settings. */
static void
set_fixed(struct wf_batch *b, struct wf_env *env, const struct wf_batch_opts *opts)
{
	b->env = env;
	b->opts = *opts;
	if (b->opts.kernels == NULL) {
		b->opts.kernels = wf_kernels_best();
	}
	b->row_bytes = opts->dim * sizeof(float);
	b->front_bytes = front_bytes_of(opts);
	b->part_rows = least_of(opts->part_bytes_max / (b->front_bytes + WF_KEY_BYTES),
				WF_SPARSE_ROWS_MAX);
	/* Each lane that has rows may have one part that is not full. */
	uint32_t owners = least_of(opts->lane_count, WF_PARTITION_COUNT);
	b->part_max = opts->keys_max / b->part_rows + least_of(owners, opts->keys_max);
	for (b->bucket_max = 4; b->bucket_max / 2 < opts->keys_max; b->bucket_max *= 2) {
	}
	b->hash_seed = wf_random(env);
	for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
		b->lane_of[p] = wf_partition_lane(p, opts->lane_count);
	}
}

/* An array of a batch. */
struct array {
	void **at;
	size_t count;
	size_t item_bytes;
};

#define ARRAY_COUNT 16u
#define ARRAY(field, items)                                                                        \
	(struct array)                                                                             \
	{                                                                                          \
		.at = (void **)&b->field, .count = (items), .item_bytes = sizeof(*b->field)        \
	}

static void
list_arrays(struct wf_batch *b, struct array list[ARRAY_COUNT])
{
	size_t keys = b->opts.keys_max;
	size_t scored = b->opts.has_scores ? keys : 1;
	size_t lanes = (size_t)b->opts.lane_count + 1;
	unsigned n = 0;

	list[n++] = ARRAY(key, keys);
	list[n++] = ARRAY(first, keys);
	list[n++] = ARRAY(place, keys);
	list[n++] = ARRAY(grad_at, keys);
	list[n++] = ARRAY(score_at, scored);
	list[n++] = ARRAY(click_gap, scored);
	list[n++] = ARRAY(lane_first, lanes);
	list[n++] = ARRAY(lane_part, lanes);
	list[n++] = ARRAY(part, b->part_max);
	list[n++] = ARRAY(bucket, b->bucket_max);
	list[n++] = ARRAY(key_other, keys);
	list[n++] = ARRAY(ordinal, keys);
	list[n++] = ARRAY(ordinal_other, keys);
	list[n++] = ARRAY(first_seen, keys);
	list[n++] = ARRAY(rank, keys);
	WF_ASSERT(n < ARRAY_COUNT);
	list[n] = (struct array){0};
}

enum weft_status
wf_batch_create(struct wf_env *env, const struct wf_batch_opts *opts, struct wf_batch **out)
{
	struct array list[ARRAY_COUNT];
	enum weft_status st = check_opts(opts);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_batch *b = wf_zalloc(env, sizeof(*b));
	if (b == NULL) {
		return wf_fail(WEFT_NOMEM, "batch: %zu bytes", sizeof(*b));
	}
	set_fixed(b, env, opts);
	list_arrays(b, list);
	for (const struct array *a = list; a->at != NULL; a++) {
		*a->at = wf_zalloc_array(env, a->count, a->item_bytes);
		if (*a->at == NULL) {
			wf_batch_destroy(b);
			return wf_fail(WEFT_NOMEM, "batch of %" PRIu32 " keys: %zu bytes",
				       opts->keys_max, a->count * a->item_bytes);
		}
	}
	*out = b;
	return WEFT_OK;
}

void
wf_batch_destroy(struct wf_batch *b)
{
	struct array list[ARRAY_COUNT];

	if (b == NULL) {
		return;
	}
	list_arrays(b, list);
	for (const struct array *a = list; a->at != NULL; a++) {
		wf_free(b->env, *a->at, a->count * a->item_bytes);
	}
	wf_free(b->env, b, sizeof(*b));
}

size_t
wf_batch_rows_bytes(const struct wf_batch *b)
{
	return b->opts.keys_max * b->row_bytes;
}

size_t
wf_batch_send_bytes(const struct wf_batch *b)
{
	return b->opts.keys_max * (b->front_bytes + WF_KEY_BYTES) +
	       (size_t)b->part_max * (WF_BATCH_ALIGN - 1);
}

/* Filling. */

static enum weft_status
check_keys(const struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	if (count > b->opts.keys_max) {
		return wf_fail(WEFT_INVALID,
			       "batch: %" PRIu32 " keys, but it was made for %" PRIu32
			       ": give fewer, or make it for more",
			       count, b->opts.keys_max);
	}
	for (uint32_t i = 0; b->opts.vocabulary > 0 && i < count; i++) {
		if (key[i] >= b->opts.vocabulary) {
			return wf_fail(WEFT_INVALID,
				       "batch: key %" PRIu32 " is %" PRIu64
				       ", but the vocabulary ends at %" PRIu64,
				       i, key[i], b->opts.vocabulary - 1);
		}
	}
	return WEFT_OK;
}

/* The bucket of `key` among mask + 1: its own, or the free one where it belongs. */
static uint32_t *
find_bucket(struct wf_batch *b, uint64_t key, uint32_t mask)
{
	uint32_t at = (uint32_t)wf_key_mix(key ^ b->hash_seed) & mask;

	while (b->bucket[at] != 0 && b->key[b->bucket[at] - 1] != key) {
		at = (at + 1) & mask;
	}
	return &b->bucket[at];
}

/* key, ordinal and first_seen of the distinct keys by first occurrence; place is an ordinal. */
static void
deduplicate(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	uint32_t buckets = 4;
	uint32_t distinct = 0;

	while (buckets / 2 < count) {
		buckets *= 2; /* for this batch: a short one clears little */
	}
	WF_ASSERT(buckets <= b->bucket_max);
	memset(b->bucket, 0, buckets * sizeof(b->bucket[0]));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *bucket = find_bucket(b, key[i], buckets - 1);
		if (*bucket == 0) {
			b->key[distinct] = key[i];
			b->ordinal[distinct] = distinct;
			b->first_seen[distinct] = i;
			*bucket = ++distinct;
		}
		b->place[i] = *bucket - 1;
	}
	b->key_count = count;
	b->row_count = distinct;
}

/* As deduplicate and sort_keys, for keys that ascend already. false: they do not. */
static bool
take_ascending(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		if (key[i] <= key[i - 1]) {
			return false;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		b->key[i] = key[i];
		b->ordinal[i] = i;
		b->first_seen[i] = i;
		b->place[i] = i;
	}
	b->key_count = count;
	b->row_count = count;
	return true;
}

static void
swap_sides(struct wf_batch *b)
{
	uint64_t *key = b->key;
	uint32_t *ordinal = b->ordinal;

	b->key = b->key_other;
	b->key_other = key;
	b->ordinal = b->ordinal_other;
	b->ordinal_other = ordinal;
}

static uint32_t
digit_of(uint64_t key, unsigned digit)
{
	return (uint32_t)(key >> (digit * DIGIT_BITS)) & (DIGIT_VALUES - 1);
}

/* Counts become places of first entries. */
static void
counts_to_firsts(uint32_t *count, uint32_t length)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < length; i++) {
		uint32_t here = count[i];
		count[i] = before;
		before += here;
	}
}

static void
sort_by_digit(struct wf_batch *b, unsigned digit)
{
	uint32_t *next = b->histogram[digit];

	if (next[digit_of(b->key[0], digit)] == b->row_count) {
		return; /* all have the same */
	}
	counts_to_firsts(next, DIGIT_VALUES);
	for (uint32_t r = 0; r < b->row_count; r++) {
		uint32_t to = next[digit_of(b->key[r], digit)]++;
		b->key_other[to] = b->key[r];
		b->ordinal_other[to] = b->ordinal[r];
	}
	swap_sides(b);
}

static void
sort_keys(struct wf_batch *b)
{
	WF_ASSERT(b->row_count > 0); /* none at all ascend */
	memset(b->histogram, 0, sizeof(b->histogram));
	for (uint32_t r = 0; r < b->row_count; r++) {
		for (unsigned digit = 0; digit < DIGIT_COUNT; digit++) {
			b->histogram[digit][digit_of(b->key[r], digit)]++;
		}
	}
	for (unsigned digit = 0; digit < DIGIT_COUNT; digit++) {
		sort_by_digit(b, digit);
	}
}

static uint32_t
lane_of_key(const struct wf_batch *b, uint64_t key)
{
	return b->lane_of[b->opts.vocabulary > 0 ? wf_partition_of_fixed(key)
						 : wf_partition_of(key)];
}

/* Rows by lane, ascending keys stay so within each; lane_first. `rank` has lanes meanwhile. */
static void
deal_to_lanes(struct wf_batch *b)
{
	uint32_t lanes = b->opts.lane_count;
	uint32_t *next = b->lane_part; /* filled later */

	memset(b->lane_first, 0, ((size_t)lanes + 1) * sizeof(b->lane_first[0]));
	if (lanes == 1) {
		b->lane_first[1] = b->row_count;
		return;
	}
	for (uint32_t r = 0; r < b->row_count; r++) {
		b->rank[r] = lane_of_key(b, b->key[r]);
		b->lane_first[b->rank[r]]++;
	}
	counts_to_firsts(b->lane_first, lanes + 1);
	memcpy(next, b->lane_first, lanes * sizeof(next[0]));
	for (uint32_t r = 0; r < b->row_count; r++) {
		uint32_t to = next[b->rank[r]]++;
		b->key_other[to] = b->key[r];
		b->ordinal_other[to] = b->ordinal[r];
	}
	swap_sides(b);
}

/* From ordinals to rows. */
static void
rank_rows(struct wf_batch *b)
{
	for (uint32_t r = 0; r < b->row_count; r++) {
		b->rank[b->ordinal[r]] = r;
		b->first[r] = b->first_seen[b->ordinal[r]];
	}
	for (uint32_t i = 0; i < b->key_count; i++) {
		b->place[i] = b->rank[b->place[i]];
	}
}

/* Lay out one part from its rows; returns where it ends. */
static size_t
lay_out(struct wf_batch *b, struct wf_batch_part *part)
{
	const uint64_t *key = b->key + part->first;
	size_t raw = (size_t)part->row_count * WF_KEY_BYTES;
	size_t delta = b->opts.may_delta ? wf_keys_bytes(WF_KEYS_DELTA, key, part->row_count) : raw;

	part->coding = delta < raw ? WF_KEYS_DELTA : WF_KEYS_RAW;
	part->key_bytes = (uint32_t)(delta < raw ? delta : raw);
	part->key_at = part->at + part->row_count * b->front_bytes;
	size_t show_at = part->at + part->row_count * b->row_bytes;
	for (uint32_t i = 0; i < part->row_count; i++) {
		b->grad_at[part->first + i] = part->at + i * b->row_bytes;
	}
	for (uint32_t i = 0; b->opts.has_scores && i < part->row_count; i++) {
		b->score_at[part->first + i] = show_at + i * sizeof(float);
		b->click_gap[part->first + i] = part->row_count * (uint32_t)sizeof(float);
	}
	return part->key_at + part->key_bytes;
}

static void
cut_into_parts(struct wf_batch *b)
{
	uint32_t parts = 0;
	size_t at = 0;

	for (uint32_t lane = 0; lane < b->opts.lane_count; lane++) {
		uint32_t end = b->lane_first[lane + 1];
		b->lane_part[lane] = parts;
		for (uint32_t first = b->lane_first[lane]; first < end;) {
			WF_ASSERT(parts < b->part_max);
			struct wf_batch_part *part = &b->part[parts++];
			part->first = first;
			part->row_count = least_of(end - first, b->part_rows);
			part->at = (at + WF_BATCH_ALIGN - 1) / WF_BATCH_ALIGN * WF_BATCH_ALIGN;
			at = lay_out(b, part);
			first += part->row_count;
		}
	}
	b->lane_part[b->opts.lane_count] = parts;
	WF_ASSERT(at <= wf_batch_send_bytes(b));
}

enum weft_status
wf_batch_fill(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	enum weft_status st = check_keys(b, key, count);
	if (st != WEFT_OK) {
		return st;
	}
	if (!take_ascending(b, key, count)) {
		deduplicate(b, key, count);
		sort_keys(b);
	}
	deal_to_lanes(b);
	rank_rows(b);
	cut_into_parts(b);
	return WEFT_OK;
}

void
wf_batch_view(const struct wf_batch *b, struct wf_batch_view *out)
{
	*out = (struct wf_batch_view){
		.key = b->key,
		.row_count = b->row_count,
		.place = b->place,
		.key_count = b->key_count,
		.lane_first = b->lane_first,
		.lane_part = b->lane_part,
		.part = b->part,
	};
}

/* What is sent. */

void
wf_batch_put_keys(const struct wf_batch *b, uint8_t *send)
{
	uint32_t parts = b->lane_part[b->opts.lane_count];

	for (uint32_t i = 0; i < parts; i++) {
		const struct wf_batch_part *part = &b->part[i];
		size_t bytes = wf_keys_encode(part->coding, b->key + part->first, part->row_count,
					      send + part->key_at);
		WF_ASSERT(bytes == part->key_bytes);
	}
}

/* Show and click of the caller's key i go to row r. */
static void
put_score(const struct wf_batch *b, const struct wf_batch_grads *grads, uint32_t i, uint8_t *send)
{
	uint32_t r = b->place[i];
	float *show = (float *)(send + b->score_at[r]);
	float *click = (float *)(send + b->score_at[r] + b->click_gap[r]);
	float show_more = grads->show != NULL ? grads->show[i] : 1.0f;
	float click_more = grads->click != NULL ? grads->click[i] : 0.0f;

	if (b->first[r] == i) {
		*show = show_more;
		*click = click_more;
	} else {
		*show += show_more;
		*click += click_more;
	}
}

void
wf_batch_put_grads(const struct wf_batch *b, const struct wf_batch_grads *grads, uint8_t *send)
{
	size_t dim = b->opts.dim;

	WF_ASSERT((uintptr_t)send % WF_BATCH_ALIGN == 0);
	for (uint32_t i = 0; i < b->key_count; i++) {
		uint32_t r = b->place[i];
		float *sum = (float *)(send + b->grad_at[r]);
		const float *grad = grads->grad + i * dim;
		if (b->first[r] == i) {
			memcpy(sum, grad, b->row_bytes);
		} else {
			const float *two[] = {sum, grad};
			b->opts.kernels->sum(sum, two, 2, dim);
		}
		if (b->opts.has_scores) {
			put_score(b, grads, i, send);
		}
	}
}
