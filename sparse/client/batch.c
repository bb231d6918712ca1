/* SPDX-License-Identifier: Apache-2.0 */
/* batch: deduplicates keys, sorts them, deals them to lanes, cuts parts, sums gradients. Thread:
 * its owner's. Keys are sorted (sort.h), repetitions and all, which then lie side by side and are
 * merged; then they are dealt to lanes by counting. In the caller's order, they are deduplicated
 * through a hash table of ordinals, and sorted only when gradients are written. Every stage works
 * in arrays that wf_batch_create has allocated. */
#include "sparse/client/batch.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/sort.h"
#include "wire/job.h"
#include "wire/partition.h"
#include "wire/sparse_messages.h"

#define ASCEND_BLOCK 64u
#define FAR_APART ((uint64_t)1 << 28)    /* mean difference of keys at which to send them whole */
#define SCORE_BYTES (2u * sizeof(float)) /* show and click of a row */

/* Numbers that follow from the settings. */
struct plan {
	size_t row_bytes;    /* of gradients, as sent */
	size_t front_bytes;  /* of a row's gradients and scores, which precede the keys */
	uint32_t part_rows;  /* of a full part */
	uint32_t part_max;   /* length of part */
	uint32_t bucket_max; /* length of bucket; a power of two, at least 2 keys_max */
	uint64_t hash_seed;  /* so that no peer can choose keys that collide; no result depends on
			      * it */
	uint32_t lane_of[WF_PARTITION_COUNT];
};

/* With a format of 16 bits: the caller's keys by row, in their order. */
struct narrow {
	uint32_t *row_first; /* [keys_max + 1]: those of row r are row_key[row_first[r]] up to */
	uint32_t *row_key;   /* [keys_max] row_key[row_first[r + 1]], not included */
	float *sum;          /* [dim] scratch */
};

/* Scratch while a batch is filled. */
struct work {
	uint32_t *bucket;    /* [bucket_max]: 1 + ordinal of a distinct key; 0: free */
	uint64_t *key_other; /* [keys_max] */
	uint32_t *ordinal;   /* [keys_max]: the distinct key at this place, by first occurrence */
	uint32_t *ordinal_other; /* [keys_max] */
	uint32_t *first_seen;    /* [keys_max] by ordinal */
	uint32_t *first, *place; /* [keys_max] as the batch's */
	uint32_t *rank;     /* [keys_max] by ordinal: its row; before that: its lane by place */
	uint64_t *push_key; /* [keys_max] keys that are sorted when gradients are written */
	struct wf_sort sort;
};

struct wf_batch {
	/* Fixed. */
	struct wf_env *env;
	struct wf_batch_opts opts;
	struct plan plan;
	uint32_t *identity; /* [keys_max] 0, 1, 2 and so on */

	/* Of the last fill. */
	uint32_t key_count;
	uint32_t row_count;
	bool sorts_late;  /* keys do not ascend, and are sorted when gradients are written */
	bool is_straight; /* place is 0, 1, 2 and so on */
	uint64_t *key;    /* [keys_max]; row_count of them */
	/* [row_count] of a row: the first of the caller's keys that are its key; [key_count] the
	 * row of each of these. In `work`, or both are `identity`. */
	const uint32_t *first, *place;
	size_t *grad_at;     /* [keys_max] of a row: bytes from the start of the send buffer */
	size_t *score_at;    /* [keys_max] of a row: its show; its click lies click_gap further */
	uint32_t *click_gap; /* [keys_max] bytes; both arrays exist only with scores */
	struct narrow narrow;
	uint32_t *lane_first;       /* [lane_count + 1] */
	uint32_t *lane_part;        /* [lane_count + 1] */
	struct wf_batch_part *part; /* [part_max] */

	struct work work;
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
	return opts->dim * wf_value_bytes(opts->format) + (opts->has_scores ? SCORE_BYTES : 0);
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
			       "their keys: give it room for a row, and at most %llu bytes",
			       opts->part_bytes_max, front_bytes_of(opts) + WF_KEY_BYTES,
			       WF_SLICE_BYTES_MAX);
	}
	return WEFT_OK;
}

static bool
is_narrow(const struct wf_batch *b)
{
	return b->opts.format != WEFT_VALUES_F32;
}

static uint32_t
least_of(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Computes all numbers that follow from the settings. */
static void
set_fixed(struct wf_batch *b, struct wf_env *env, const struct wf_batch_opts *opts)
{
	b->env = env;
	b->opts = *opts;
	if (b->opts.kernels == NULL) {
		b->opts.kernels = wf_kernels_best();
	}
	b->plan.row_bytes = opts->dim * wf_value_bytes(opts->format);
	b->plan.front_bytes = front_bytes_of(opts);
	b->plan.part_rows = least_of(opts->part_bytes_max / (b->plan.front_bytes + WF_KEY_BYTES),
				     WF_SPARSE_ROWS_MAX);
	/* Each lane that has rows may have one part that is not full. */
	uint32_t owners = least_of(opts->lane_count, WF_PARTITION_COUNT);
	b->plan.part_max = opts->keys_max / b->plan.part_rows + least_of(owners, opts->keys_max);
	for (b->plan.bucket_max = 4; b->plan.bucket_max / 2 < opts->keys_max;
	     b->plan.bucket_max *= 2) {
	}
	b->plan.hash_seed = wf_random(env);
	for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
		b->plan.lane_of[p] = wf_partition_lane(p, opts->lane_count);
	}
}

/* An array of a batch. */
struct array {
	void **at;
	size_t count;
	size_t item_bytes;
};

#define ARRAY_COUNT 23u
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
	size_t narrowed = is_narrow(b) ? keys : 1;
	size_t lanes = (size_t)b->opts.lane_count + 1;
	unsigned n = 0;

	list[n++] = ARRAY(key, keys);
	list[n++] = ARRAY(identity, keys);
	list[n++] = ARRAY(grad_at, keys);
	list[n++] = ARRAY(score_at, scored);
	list[n++] = ARRAY(click_gap, scored);
	list[n++] = ARRAY(narrow.row_first, narrowed + 1);
	list[n++] = ARRAY(narrow.row_key, narrowed);
	list[n++] = ARRAY(narrow.sum, b->opts.dim);
	list[n++] = ARRAY(lane_first, lanes);
	list[n++] = ARRAY(lane_part, lanes);
	list[n++] = ARRAY(part, b->plan.part_max);
	list[n++] = ARRAY(work.bucket, b->plan.bucket_max);
	list[n++] = ARRAY(work.key_other, keys);
	list[n++] = ARRAY(work.ordinal, keys);
	list[n++] = ARRAY(work.ordinal_other, keys);
	list[n++] = ARRAY(work.first_seen, keys);
	list[n++] = ARRAY(work.first, keys);
	list[n++] = ARRAY(work.place, keys);
	list[n++] = ARRAY(work.rank, keys);
	list[n++] = ARRAY(work.push_key, keys);
	list[n++] = ARRAY(work.sort.pair, keys);
	list[n++] = ARRAY(work.sort.pair_other, keys);
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
	for (uint32_t i = 0; i < opts->keys_max; i++) {
		b->identity[i] = i;
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
	return (size_t)b->opts.keys_max * b->opts.dim * sizeof(float);
}

size_t
wf_batch_send_bytes(const struct wf_batch *b)
{
	return b->opts.keys_max * (b->plan.front_bytes + WF_KEY_BYTES) +
	       (size_t)b->plan.part_max * (WF_BATCH_ALIGN - 1);
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

/* The bucket of `key` among mask + 1: the one that holds it, or the free one where it belongs. */
static uint32_t *
find_bucket(struct wf_batch *b, uint64_t key, uint32_t mask)
{
	uint32_t at = (uint32_t)wf_key_mix(key ^ b->plan.hash_seed) & mask;

	while (b->work.bucket[at] != 0 && b->key[b->work.bucket[at] - 1] != key) {
		at = (at + 1) & mask;
	}
	return &b->work.bucket[at];
}

/* Fills key and first_seen with the distinct keys by first occurrence, and ordinal by place. */
static void
deduplicate(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	uint32_t buckets = 4;
	uint32_t distinct = 0;

	while (buckets / 2 < count) {
		buckets *= 2; /* as many as this batch needs: a short one clears little */
	}
	WF_ASSERT(buckets <= b->plan.bucket_max);
	memset(b->work.bucket, 0, buckets * sizeof(b->work.bucket[0]));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *bucket = find_bucket(b, key[i], buckets - 1);
		if (*bucket == 0) {
			b->key[distinct] = key[i];
			b->work.ordinal[distinct] = distinct;
			b->work.first_seen[distinct] = i;
			*bucket = ++distinct;
		}
		b->work.place[i] = *bucket - 1;
	}
	b->key_count = count;
	b->row_count = distinct;
}

static bool
ascends(const uint64_t *key, uint32_t count)
{
	for (uint32_t first = 1; first < count; first += ASCEND_BLOCK) {
		uint32_t end = least_of((uint64_t)first + ASCEND_BLOCK, count);
		bool all = true;
		for (uint32_t i = first; i < end; i++) {
			all &= key[i] > key[i - 1];
		}
		if (!all) {
			return false;
		}
	}
	return true;
}

/* Lists keys that ascend already, each of them a row. False: they do not. */
static bool
use_ascending(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	if (!ascends(key, count)) {
		return false;
	}
	if (count > 0) {
		memcpy(b->key, key, count * sizeof(*key));
	}
	b->key_count = count;
	b->row_count = count;
	return true;
}

/* The same for rows that go on to several lanes. */
static void
number_ascending(struct wf_batch *b)
{
	const size_t bytes = b->row_count * sizeof(*b->identity);

	memcpy(b->work.ordinal, b->identity, bytes);
	memcpy(b->work.first_seen, b->identity, bytes);
	memcpy(b->work.place, b->identity, bytes);
}

static struct wf_sort_list
list_of(const struct wf_batch *b)
{
	return (struct wf_sort_list){b->key, b->work.key_other, b->work.ordinal,
				     b->work.ordinal_other, b->row_count};
}

static void
set_list(struct wf_batch *b, const struct wf_sort_list *list)
{
	b->key = list->key;
	b->work.key_other = list->key_other;
	b->work.ordinal = list->number;
	b->work.ordinal_other = list->number_other;
}

/* Turns counts into places of first entries. */
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

/* Sorts the caller's keys, after which repetitions lie side by side, in the caller's order, and
 * keeps each once. On a single lane that is the order of rows. */
static void
sort_and_merge(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	uint32_t rows = 0;

	for (uint32_t i = 0; i < count; i++) {
		b->key[i] = key[i];
		b->work.ordinal[i] = i;
	}
	b->row_count = count;
	struct wf_sort_list list = list_of(b);
	wf_sort_keys(&b->work.sort, &list);
	set_list(b, &list);
	uint64_t last = ~b->key[0];
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t at = b->work.ordinal[i];
		const bool is_new = b->key[i] != last;
		last = b->key[i];
		rows += is_new;
		b->key[rows - 1] = last;
		b->work.ordinal[rows - 1] = rows - 1; /* i is not before it */
		b->work.first[rows - 1] = is_new ? at : b->work.first[rows - 1];
		b->work.first_seen[rows - 1] = b->work.first[rows - 1];
		b->work.place[at] = rows - 1;
	}
	b->key_count = count;
	b->row_count = rows;
}

static uint32_t
lane_of_key(const struct wf_batch *b, uint64_t key)
{
	return b->plan.lane_of[b->opts.vocabulary > 0 ? wf_partition_of_fixed(key)
						      : wf_partition_of(key)];
}

/* Orders rows by lane, stably, and fills lane_first. `rank` holds lanes meanwhile. */
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
		b->work.rank[r] = lane_of_key(b, b->key[r]);
		b->lane_first[b->work.rank[r]]++;
	}
	counts_to_firsts(b->lane_first, lanes + 1);
	memcpy(next, b->lane_first, lanes * sizeof(next[0]));
	for (uint32_t r = 0; r < b->row_count; r++) {
		uint32_t to = next[b->work.rank[r]]++;
		b->work.key_other[to] = b->key[r];
		b->work.ordinal_other[to] = b->work.ordinal[r];
	}
	struct wf_sort_list list = list_of(b);
	wf_sort_swap(&list);
	set_list(b, &list);
}

/* Turns ordinals into rows. */
static void
rank_rows(struct wf_batch *b)
{
	bool straight = b->row_count == b->key_count;

	for (uint32_t r = 0; r < b->row_count; r++) {
		b->work.rank[b->work.ordinal[r]] = r;
		b->work.first[r] = b->work.first_seen[b->work.ordinal[r]];
	}
	for (uint32_t i = 0; i < b->key_count; i++) {
		b->work.place[i] = b->work.rank[b->work.place[i]];
		straight &= b->work.place[i] == i;
	}
	b->is_straight = straight;
}

/* Counting sort of the caller's keys by row: stable, so that sums are in the caller's order. */
static void
list_by_row(struct wf_batch *b)
{
	uint32_t *next = b->work.rank;

	memset(next, 0, b->row_count * sizeof(next[0]));
	for (uint32_t i = 0; i < b->key_count; i++) {
		next[b->place[i]]++;
	}
	counts_to_firsts(next, b->row_count);
	memcpy(b->narrow.row_first, next, b->row_count * sizeof(next[0]));
	b->narrow.row_first[b->row_count] = b->key_count;
	for (uint32_t i = 0; i < b->key_count; i++) {
		b->narrow.row_key[next[b->place[i]]++] = i;
	}
}

/* Sets where row r, the nth of its part, has gradients and scores. */
static inline void
lay_out_row(struct wf_batch *b, const struct wf_batch_part *part, uint32_t n, uint32_t r)
{
	b->grad_at[r] = part->at + n * b->plan.row_bytes;
	if (b->opts.has_scores) {
		b->score_at[r] = part->at + part->row_count * b->plan.row_bytes + n * sizeof(float);
		b->click_gap[r] = part->row_count * (uint32_t)sizeof(float);
	}
}

/* Whether keys that ascend lie so close together, on average, that differences are worth the work:
 * reading one of 5 bytes or more costs the lane more time than it saves in bytes. */
static bool
are_close(const uint64_t *key, uint32_t count)
{
	return (key[count - 1] - key[0]) / count < FAR_APART;
}

/* The coding of a part's keys, which ascend, and their bytes. */
static void
choose_coding(const struct wf_batch *b, struct wf_batch_part *part, const uint64_t *key)
{
	size_t raw = (size_t)part->row_count * WF_KEY_BYTES;
	size_t delta = raw;

	if (b->opts.may_delta && are_close(key, part->row_count)) {
		delta = wf_keys_bytes(WF_KEYS_DELTA, key, part->row_count);
	}
	part->coding = delta < raw ? WF_KEYS_DELTA : WF_KEYS_RAW;
	part->key_bytes = (uint32_t)(delta < raw ? delta : raw);
}

/* Lays out one part from its rows; returns where it ends. */
static size_t
lay_out(struct wf_batch *b, struct wf_batch_part *part)
{
	part->key_at = part->at + part->row_count * b->plan.front_bytes;
	if (b->sorts_late) {
		part->coding = WF_KEYS_ANY;
		part->key_bytes = part->row_count * WF_KEY_BYTES;
		return part->key_at + part->key_bytes;
	}
	choose_coding(b, part, b->key + part->first);
	for (uint32_t i = 0; i < part->row_count; i++) {
		lay_out_row(b, part, i, part->first + i);
	}
	return part->key_at + part->key_bytes;
}

/* For a push: sorts the rows of a part by ascending key, and writes the keys. The pulled rows are
 * no longer used. */
static void
sort_part(struct wf_batch *b, struct wf_batch_part *part, uint8_t *send)
{
	const uint32_t first = part->first;
	struct wf_sort_list list = {b->work.push_key + first, b->work.key_other + first,
				    b->work.ordinal + first, b->work.ordinal_other + first,
				    part->row_count};

	for (uint32_t i = 0; i < part->row_count; i++) {
		list.key[i] = b->key[first + i];
		list.number[i] = first + i;
	}
	wf_sort_keys(&b->work.sort, &list);
	choose_coding(b, part, list.key);
	for (uint32_t i = 0; i < part->row_count; i++) {
		lay_out_row(b, part, i, list.number[i]);
	}
	(void)wf_keys_encode(part->coding, list.key, part->row_count, send + part->key_at);
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
			WF_ASSERT(parts < b->plan.part_max);
			struct wf_batch_part *part = &b->part[parts++];
			part->first = first;
			part->row_count = least_of(end - first, b->plan.part_rows);
			part->at = (at + WF_BATCH_ALIGN - 1) / WF_BATCH_ALIGN * WF_BATCH_ALIGN;
			at = lay_out(b, part);
			first += part->row_count;
		}
	}
	b->lane_part[b->opts.lane_count] = parts;
	WF_ASSERT(at <= wf_batch_send_bytes(b));
}

static enum weft_status
fill(struct wf_batch *b, const uint64_t *key, uint32_t count, bool in_order)
{
	enum weft_status st = check_keys(b, key, count);
	if (st != WEFT_OK) {
		return st;
	}
	const bool many_lanes = b->opts.lane_count > 1;
	const bool sorted = use_ascending(b, key, count);
	b->sorts_late = in_order && !sorted;
	b->is_straight = sorted && !many_lanes;
	if (b->sorts_late) {
		deduplicate(b, key, count);
	} else if (!sorted) {
		sort_and_merge(b, key, count);
	} else if (many_lanes) {
		number_ascending(b);
	}
	deal_to_lanes(b);
	if (b->sorts_late || many_lanes) {
		rank_rows(b);
	}
	b->first = sorted && !many_lanes ? b->identity : b->work.first;
	b->place = sorted && !many_lanes ? b->identity : b->work.place;
	cut_into_parts(b);
	if (is_narrow(b)) {
		list_by_row(b);
	}
	return WEFT_OK;
}

enum weft_status
wf_batch_fill(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	return fill(b, key, count, false);
}

enum weft_status
wf_batch_fill_in_order(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	return fill(b, key, count, true);
}

void
wf_batch_view(const struct wf_batch *b, struct wf_batch_view *out)
{
	*out = (struct wf_batch_view){
		.key = b->key,
		.row_count = b->row_count,
		.place = b->place,
		.key_count = b->key_count,
		.is_straight = b->is_straight,
		.lane_first = b->lane_first,
		.lane_part = b->lane_part,
		.part = b->part,
	};
}

/* The send buffer. */

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

/* After gradients of 16 bits a score may have any alignment. */
static void
add_score(uint8_t *at, float more, bool is_first)
{
	float sum = more;

	if (!is_first) {
		memcpy(&sum, at, sizeof(sum));
		sum += more;
	}
	memcpy(at, &sum, sizeof(sum));
}

/* Adds show and click of the caller's key i to its row. */
static void
put_score(const struct wf_batch *b, const struct wf_batch_grads *grads, uint32_t i, uint8_t *send)
{
	uint32_t r = b->place[i];
	uint8_t *show = send + b->score_at[r];
	bool is_first = b->first[r] == i;

	add_score(show, grads->show != NULL ? grads->show[i] : 1.0f, is_first);
	add_score(show + b->click_gap[r], grads->click != NULL ? grads->click[i] : 0.0f, is_first);
}

/* Sums each row in f32, and rounds the sum once. */
static void
put_narrow(const struct wf_batch *b, const float *grad, uint8_t *send)
{
	const struct wf_kernels *kernels = b->opts.kernels;
	const struct wf_row_half *half = &kernels->rows->half[b->opts.format];
	size_t dim = b->opts.dim;

	for (uint32_t r = 0; r < b->row_count; r++) {
		uint32_t at = b->narrow.row_first[r];
		const float *sum = grad + b->narrow.row_key[at] * dim;
		while (++at < b->narrow.row_first[r + 1]) {
			const float *two[] = {sum, grad + b->narrow.row_key[at] * dim};
			kernels->sum(b->narrow.sum, two, 2, dim);
			sum = b->narrow.sum;
		}
		half->narrow((uint16_t *)(void *)(send + b->grad_at[r]), sum, dim);
	}
}

static void
put_wide(const struct wf_batch *b, const float *grads, uint8_t *send)
{
	size_t dim = b->opts.dim;

	for (uint32_t i = 0; i < b->key_count; i++) {
		uint32_t r = b->place[i];
		float *sum = (float *)(send + b->grad_at[r]);
		const float *grad = grads + i * dim;
		if (b->first[r] == i) {
			memcpy(sum, grad, b->plan.row_bytes);
		} else {
			const float *two[] = {sum, grad};
			b->opts.kernels->sum(sum, two, 2, dim);
		}
	}
}

void
wf_batch_put_grads(struct wf_batch *b, const struct wf_batch_grads *grads, uint8_t *send)
{
	WF_ASSERT((uintptr_t)send % WF_BATCH_ALIGN == 0);
	for (uint32_t i = 0; b->sorts_late && i < b->lane_part[b->opts.lane_count]; i++) {
		sort_part(b, &b->part[i], send);
	}
	if (is_narrow(b)) {
		put_narrow(b, grads->grad, send);
	} else {
		put_wide(b, grads->grad, send);
	}
	for (uint32_t i = 0; b->opts.has_scores && i < b->key_count; i++) {
		put_score(b, grads, i, send);
	}
}
