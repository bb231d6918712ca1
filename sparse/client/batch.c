/* SPDX-License-Identifier: Apache-2.0 */
/* batch: deduplicates keys, sorts them, deals them to lanes, cuts parts, sums gradients. Thread:
 * its owner's. Keys are sorted (sort.h), repetitions and all, which then lie side by side and are
 * merged; then they are dealt to lanes by counting. In the caller's order, they are deduplicated
 * through a hash table of ordinals, and sorted only when gradients are written. The caller's keys
 * are listed by row, so that gradients are summed one row after the other: rows are written in the
 * order in which they are sent, and gradients, which lie anywhere, are sent for. Every stage works
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

/* The caller's keys by row, those of a row in their order: of row r, place[first[r]] up to
 * place[first[r + 1]], not included. */
struct by_row {
	uint32_t *first; /* [keys_max + 1] */
	uint32_t *place; /* [keys_max] */
};

/* Scratch while a batch is filled. */
struct work {
	uint32_t *bucket;    /* [bucket_max]: 1 + ordinal of a distinct key; 0: free */
	uint64_t *key_other; /* [keys_max] */
	uint32_t *ordinal;   /* [keys_max] of a row: what it was before rows were dealt to lanes */
	uint32_t *rank;      /* [keys_max] by what a row was: its row; before that: its lane */
	uint32_t *place;     /* [keys_max] as the batch's */
	struct by_row by_row, by_key; /* the batch's; by ascending key, before lanes are dealt to */
	uint64_t *push_key; /* [keys_max] keys that are sorted when gradients are written */
	struct wf_sort sort;
	float *sum; /* [dim] with a format of 16 bits */
};

struct wf_batch {
	/* Fixed. */
	struct wf_env *env;
	struct wf_batch_opts opts;
	struct plan plan;
	uint32_t *identity; /* [keys_max + 1] 0, 1, 2 and so on */

	/* Of the last fill. */
	uint32_t key_count;
	uint32_t row_count;
	bool sorts_late;       /* keys do not ascend, and are sorted when gradients are written */
	bool is_straight;      /* place is 0, 1, 2 and so on */
	uint64_t *key;         /* [keys_max]; row_count of them */
	const uint32_t *place; /* [key_count] the row of each of the caller's keys */
	/* In the order in which rows are pushed, which is theirs unless the batch sorts late. This
	 * and `place` are in `work`, or `identity`. */
	struct by_row by_row;
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

#define ARRAY_COUNT 19u
#define ARRAY(field, items)                                                                        \
	(struct array)                                                                             \
	{                                                                                          \
		.at = (void **)&b->field, .count = (items), .item_bytes = sizeof(*b->field)        \
	}

static void
list_arrays(struct wf_batch *b, struct array list[ARRAY_COUNT])
{
	size_t keys = b->opts.keys_max;
	size_t dealt = b->opts.lane_count > 1 ? keys : 1;
	size_t lanes = (size_t)b->opts.lane_count + 1;
	unsigned n = 0;

	list[n++] = ARRAY(key, keys);
	list[n++] = ARRAY(identity, keys + 1);
	list[n++] = ARRAY(lane_first, lanes);
	list[n++] = ARRAY(lane_part, lanes);
	list[n++] = ARRAY(part, b->plan.part_max);
	list[n++] = ARRAY(work.bucket, b->plan.bucket_max);
	list[n++] = ARRAY(work.key_other, dealt);
	list[n++] = ARRAY(work.ordinal, keys);
	list[n++] = ARRAY(work.rank, keys);
	list[n++] = ARRAY(work.place, keys);
	list[n++] = ARRAY(work.by_row.first, keys + 1);
	list[n++] = ARRAY(work.by_row.place, keys);
	list[n++] = ARRAY(work.by_key.first, dealt + 1);
	list[n++] = ARRAY(work.by_key.place, dealt);
	list[n++] = ARRAY(work.sum, b->opts.dim);
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
	for (uint32_t i = 0; i <= opts->keys_max; i++) {
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

/* Fills key with the distinct keys by first occurrence, and place with their numbers. */
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

/* Sorts the caller's keys, after which repetitions lie side by side, in the caller's order, and
 * keeps each once. On a single lane that is the order of rows. */
static void
sort_and_merge(struct wf_batch *b, const uint64_t *key, uint32_t count, struct by_row *out)
{
	uint32_t rows = 0;

	wf_sort_keys(&b->work.sort, key, count, b->key, out->place);
	uint64_t last = ~b->key[0];
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t here = b->key[i];
		out->first[rows] = i; /* stays, if the key is a new one */
		rows += here != last;
		last = here;
		b->key[rows - 1] = here; /* i is not before it */
		b->work.place[out->place[i]] = rows - 1;
	}
	out->first[rows] = count;
	b->key_count = count;
	b->row_count = rows;
}

static uint32_t
lane_of_key(const struct wf_batch *b, uint64_t key)
{
	return b->plan.lane_of[b->opts.vocabulary > 0 ? wf_partition_of_fixed(key)
						      : wf_partition_of(key)];
}

/* Orders rows by lane, stably, and fills lane_first and ordinal. `rank` holds lanes meanwhile. */
static void
deal_to_lanes(struct wf_batch *b)
{
	uint32_t lanes = b->opts.lane_count;
	uint32_t *next = b->lane_part; /* filled later */
	uint64_t *dealt = b->work.key_other;

	memset(b->lane_first, 0, ((size_t)lanes + 1) * sizeof(b->lane_first[0]));
	for (uint32_t r = 0; r < b->row_count; r++) {
		b->work.rank[r] = lane_of_key(b, b->key[r]);
		b->lane_first[b->work.rank[r]]++;
	}
	wf_sort_counts_to_firsts(b->lane_first, lanes + 1);
	memcpy(next, b->lane_first, lanes * sizeof(next[0]));
	for (uint32_t r = 0; r < b->row_count; r++) {
		uint32_t to = next[b->work.rank[r]]++;
		dealt[to] = b->key[r];
		b->work.ordinal[to] = r;
	}
	b->work.key_other = b->key;
	b->key = dealt;
}

/* Lists the caller's keys by the rows that were dealt, from the list by ascending key. */
static void
list_dealt(struct wf_batch *b, const struct by_row *sorted)
{
	const struct by_row *out = &b->work.by_row;
	bool straight = b->row_count == b->key_count;
	uint32_t n = 0;

	for (uint32_t r = 0; r < b->row_count; r++) {
		const uint32_t was = b->work.ordinal[r];
		out->first[r] = n;
		for (uint32_t i = sorted->first[was]; i < sorted->first[was + 1]; i++, n++) {
			out->place[n] = sorted->place[i];
			b->work.place[sorted->place[i]] = r;
			straight &= sorted->place[i] == r;
		}
	}
	out->first[b->row_count] = n;
	b->is_straight = straight;
}

/* Turns what a row was when its key first occurred into its row. */
static void
rank_rows(struct wf_batch *b)
{
	bool straight = b->row_count == b->key_count;

	for (uint32_t r = 0; r < b->row_count; r++) {
		b->work.rank[b->work.ordinal[r]] = r;
	}
	for (uint32_t i = 0; i < b->key_count; i++) {
		b->work.place[i] = b->work.rank[b->work.place[i]];
		straight &= b->work.place[i] == i;
	}
	b->is_straight = straight;
}

/* Lists the caller's keys by rank of their row, by counting: stable, so that sums are in the
 * caller's order. `ordinal` has places meanwhile. */
static void
list_by_rank(struct wf_batch *b)
{
	const struct by_row *out = &b->work.by_row;
	uint32_t *next = b->work.ordinal;

	memset(next, 0, b->row_count * sizeof(next[0]));
	for (uint32_t i = 0; i < b->key_count; i++) {
		next[b->work.rank[b->place[i]]]++;
	}
	wf_sort_counts_to_firsts(next, b->row_count);
	memcpy(out->first, next, b->row_count * sizeof(next[0]));
	out->first[b->row_count] = b->key_count;
	for (uint32_t i = 0; i < b->key_count; i++) {
		out->place[next[b->work.rank[b->place[i]]]++] = i;
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
	return part->key_at + part->key_bytes;
}

/* For a push: sorts the rows of a part by ascending key, writes the keys, and says in `rank` where
 * each row goes. The pulled rows are no longer used. */
static void
sort_part(struct wf_batch *b, struct wf_batch_part *part, uint8_t *send)
{
	const uint32_t first = part->first;
	uint64_t *key = b->work.push_key + first;
	uint32_t *place = b->work.ordinal + first;

	wf_sort_keys(&b->work.sort, b->key + first, part->row_count, key, place);
	choose_coding(b, part, key);
	for (uint32_t i = 0; i < part->row_count; i++) {
		b->work.rank[first + place[i]] = first + i;
	}
	(void)wf_keys_encode(part->coding, key, part->row_count, send + part->key_at);
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

/* Each key once, and by ascending key, from the caller's, which may `ascend` already. */
static void
fill_sorted(struct wf_batch *b, const uint64_t *key, uint32_t count, bool ascend)
{
	const struct by_row straight = {.first = b->identity, .place = b->identity};
	const bool many_lanes = b->opts.lane_count > 1;

	b->by_row = ascend ? straight : b->work.by_row;
	b->place = ascend ? b->identity : b->work.place;
	b->is_straight = ascend;
	if (ascend) {
		if (count > 0) {
			memcpy(b->key, key, count * sizeof(*key));
		}
		b->key_count = count;
		b->row_count = count;
	} else {
		sort_and_merge(b, key, count, many_lanes ? &b->work.by_key : &b->work.by_row);
	}
	if (many_lanes) {
		deal_to_lanes(b);
		list_dealt(b, ascend ? &straight : &b->work.by_key);
		b->by_row = b->work.by_row;
		b->place = b->work.place;
	}
}

/* The same by first occurrence. */
static void
fill_unsorted(struct wf_batch *b, const uint64_t *key, uint32_t count)
{
	deduplicate(b, key, count);
	b->by_row = b->work.by_row;
	b->place = b->work.place;
	b->is_straight = b->row_count == b->key_count;
	if (b->opts.lane_count > 1) {
		deal_to_lanes(b);
		rank_rows(b);
	}
}

static enum weft_status
fill(struct wf_batch *b, const uint64_t *key, uint32_t count, bool in_order)
{
	enum weft_status st = check_keys(b, key, count);
	if (st != WEFT_OK) {
		return st;
	}
	const bool ascend = ascends(key, count);
	b->sorts_late = in_order && !ascend;
	if (b->sorts_late) {
		fill_unsorted(b, key, count);
	} else {
		fill_sorted(b, key, count, ascend);
	}
	if (b->opts.lane_count == 1) {
		b->lane_first[0] = 0;
		b->lane_first[1] = b->row_count;
	}
	cut_into_parts(b);
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

/* Adds shows and clicks of the caller's keys to the rows of a part. */
static void
put_scores(const struct wf_batch *b, const struct wf_batch_grads *grads,
	   const struct wf_batch_part *part, uint8_t *show)
{
	const size_t click_gap = part->row_count * sizeof(float);
	const uint32_t *first = b->by_row.first + part->first;

	for (uint32_t r = 0; r < part->row_count; r++, show += sizeof(float)) {
		for (uint32_t n = first[r]; n < first[r + 1]; n++) {
			const uint32_t i = b->by_row.place[n];
			const bool is_first = n == first[r];
			add_score(show, grads->show != NULL ? grads->show[i] : 1.0f, is_first);
			add_score(show + click_gap, grads->click != NULL ? grads->click[i] : 0.0f,
				  is_first);
		}
	}
}

/* Sums each row in f32, and rounds the sum once. */
static void
put_narrow(const struct wf_batch *b, const struct wf_row_sums *part, uint8_t *out)
{
	const struct wf_row_kernels *kernels = b->opts.kernels->rows;
	struct wf_row_sums row = *part;

	row.count = 1;
	for (size_t r = 0; r < part->count; r++, row.first++, out += b->plan.row_bytes) {
		kernels->sum(b->work.sum, &row);
		kernels->half[b->opts.format].narrow((uint16_t *)(void *)out, b->work.sum,
						     part->dim);
	}
}

/* Gradients that the caller has as they are sent are copied at once. */
static void
put_wide(const struct wf_batch *b, const struct wf_batch_part *part, const struct wf_row_sums *sums,
	 float *out)
{
	const float *from = sums->grad + part->first * sums->dim;

	if (b->by_row.place == b->identity) {
		b->opts.kernels->sum(out, &from, 1, sums->count * sums->dim);
	} else {
		b->opts.kernels->rows->sum(out, sums);
	}
}

static void
put_part(const struct wf_batch *b, const struct wf_batch_grads *grads,
	 const struct wf_batch_part *part, uint8_t *send)
{
	const struct wf_row_sums sums = {
		.grad = grads->grad,
		.place = b->by_row.place,
		.first = b->by_row.first + part->first,
		.count = part->row_count,
		.dim = b->opts.dim,
	};
	uint8_t *out = send + part->at;

	if (is_narrow(b)) {
		put_narrow(b, &sums, out);
	} else {
		put_wide(b, part, &sums, (float *)(void *)out);
	}
	if (b->opts.has_scores) {
		put_scores(b, grads, part, out + part->row_count * b->plan.row_bytes);
	}
}

void
wf_batch_put_grads(struct wf_batch *b, const struct wf_batch_grads *grads, uint8_t *send)
{
	const uint32_t parts = b->lane_part[b->opts.lane_count];

	WF_ASSERT((uintptr_t)send % WF_BATCH_ALIGN == 0);
	if (b->sorts_late) {
		for (uint32_t i = 0; i < parts; i++) {
			sort_part(b, &b->part[i], send);
		}
		list_by_rank(b);
	}
	for (uint32_t i = 0; i < parts; i++) {
		put_part(b, grads, &b->part[i], send);
	}
}
