/* SPDX-License-Identifier: Apache-2.0 */
/* index: see index.h. Thread: the lane's. */
#include "sparse/table/index.h"

#include <string.h>

#include "base/assert.h"

#define SEGMENT_BUCKETS (1u << WF_SEGMENT_BUCKETS_SHIFT)
#define SEGMENT_SLOTS (SEGMENT_BUCKETS * WF_BUCKET_SLOTS)
#define AT_FIRST 16u

/* Above the first a segment is split as soon as that is earned, above the second in any case; if
 * there is no memory for it, it goes on up to the third. */
#define FULL_KEYS (SEGMENT_SLOTS * 80u / 100u)
#define PRESSING_KEYS (SEGMENT_SLOTS * 92u / 100u)
#define CRAMMED_KEYS (SEGMENT_SLOTS * 97u / 100u)
#define EARNED_MOST (WF_SPLITS_SAVED * WF_SPLIT_KEYS)

/* Buckets whose rows' heads are on their way while others are dealt. */
#define BUCKETS_AHEAD 4u

WF_STATIC_ASSERT(SEGMENT_BUCKETS * sizeof(struct wf_bucket) == WF_PIECE_BYTES, "a segment is one");
WF_STATIC_ASSERT(sizeof(struct wf_bucket) == 64, "a bucket is a cache line");

struct wf_segment {
	struct wf_bucket *bucket; /* [SEGMENT_BUCKETS] */
	uint32_t key_count;
	uint32_t bits; /* of the hash that all its keys share */
};

/* Where a key with that home goes at its nth try: home, its buddy, then the same two of each pair
 * behind. */
static inline struct wf_bucket *
nth_bucket(const struct wf_segment *segment, uint32_t home, uint32_t nth)
{
	uint32_t pair = (home / 2 + nth / 2) % (SEGMENT_BUCKETS / 2);
	return &segment->bucket[2 * pair + ((home ^ nth) & 1)];
}

/* There is room. */
static inline void
place_key(struct wf_segment *segment, uint64_t hash, uint32_t row)
{
	const uint32_t home = wf_index_home(hash);
	struct wf_bucket *bucket = &segment->bucket[home];
	unsigned room = wf_bucket_match(bucket, 0);

	WF_ASSERT(segment->key_count < SEGMENT_SLOTS);
	for (uint32_t nth = 1; room == 0; nth++) {
		bucket->overflow++;
		bucket = nth_bucket(segment, home, nth);
		room = wf_bucket_match(bucket, 0);
	}
	unsigned slot = (unsigned)__builtin_ctz(room);
	bucket->tag[slot] = wf_index_tag(hash);
	bucket->row[slot] = row;
	segment->key_count++;
}

/* The slot is a key's whose home that is. */
static inline void
free_slot(struct wf_segment *segment, uint32_t home, struct wf_bucket *bucket, unsigned slot)
{
	bucket->tag[slot] = 0;
	segment->key_count--;
	for (uint32_t nth = 0; nth_bucket(segment, home, nth) != bucket; nth++) {
		nth_bucket(segment, home, nth)->overflow--;
	}
}

static uint64_t
hash_of_row(const struct wf_index *index, const struct wf_rows *rows, uint32_t row)
{
	return wf_index_hash(index, wf_row_at(rows, row)->key);
}

/* The rows of a bucket. Returns how many. */
static unsigned
rows_of(const struct wf_bucket *bucket, uint32_t row[WF_BUCKET_SLOTS])
{
	unsigned count = 0;
	for (unsigned slot = 0; slot < WF_BUCKET_SLOTS; slot++) {
		if (bucket->tag[slot] != 0) {
			row[count++] = bucket->row[slot];
		}
	}
	return count;
}

/* always_inline as in kernels/prefetch.h: or gcc drops the call. */
static inline __attribute__((always_inline)) void
send_for_heads(const struct wf_rows *rows, const struct wf_bucket *bucket)
{
	for (unsigned slot = 0; slot < WF_BUCKET_SLOTS; slot++) {
		if (bucket->tag[slot] != 0) {
			__builtin_prefetch(wf_row_at(rows, bucket->row[slot]));
		}
	}
}

/* Deal the keys of a bucket of `old`: those with the bit go to `half`; the others stay, but for
 * those that were displaced and may find room at home by now. */
static void
deal_bucket(const struct wf_index *index, const struct wf_rows *rows, uint32_t at,
	    struct wf_segment *old, struct wf_segment *half)
{
	struct wf_bucket *bucket = &old->bucket[at];
	unsigned taken = ~wf_bucket_match(bucket, 0) & ((1u << WF_BUCKET_SLOTS) - 1);

	for (; taken != 0; taken &= taken - 1) {
		const unsigned slot = (unsigned)__builtin_ctz(taken);
		const uint32_t row = bucket->row[slot];
		const uint64_t hash = hash_of_row(index, rows, row);
		const bool goes = (hash << (half->bits - 1) >> 63) != 0;
		if (goes || wf_index_home(hash) != at) {
			free_slot(old, wf_index_home(hash), bucket, slot);
			place_key(goes ? half : old, hash, row);
		}
	}
}

static void
deal_keys(const struct wf_index *index, const struct wf_rows *rows, struct wf_segment *old,
	  struct wf_segment *half)
{
	for (uint32_t b = 0; b < SEGMENT_BUCKETS + BUCKETS_AHEAD; b++) {
		if (b < SEGMENT_BUCKETS) {
			send_for_heads(rows, &old->bucket[b]);
		}
		if (b >= BUCKETS_AHEAD) {
			deal_bucket(index, rows, b - BUCKETS_AHEAD, old, half);
		}
	}
}

/* Updates the directory with the place of segment `number`. */
static void
point_at(struct wf_index *index, uint32_t number, uint64_t prefix)
{
	const struct wf_segment *segment = &index->segment[number];
	unsigned below = index->bits - segment->bits;

	for (size_t i = prefix << below; i < (prefix + 1) << below; i++) {
		index->place[i] = segment->bucket;
		index->segment_of[i] = number;
	}
}

static uint64_t
prefix_of(const struct wf_segment *segment, uint64_t hash)
{
	return hash >> 1 >> (63 - segment->bits);
}

static bool
double_directory(struct wf_index *index)
{
	size_t count = (size_t)1 << index->bits;
	struct wf_bucket **place = NULL;
	uint32_t *segment_of = NULL;

	if (index->bits == WF_SEGMENT_BITS_MAX) {
		return false;
	}
	place = wf_budget_alloc(index->budget, 2 * count * sizeof(*place));
	segment_of = wf_budget_alloc(index->budget, 2 * count * sizeof(*segment_of));
	if (place == NULL || segment_of == NULL) {
		wf_budget_give(index->budget, place, 2 * count * sizeof(*place));
		wf_budget_give(index->budget, segment_of, 2 * count * sizeof(*segment_of));
		return false;
	}
	for (size_t i = 0; i < 2 * count; i++) {
		place[i] = index->place[i / 2];
		segment_of[i] = index->segment_of[i / 2];
	}
	wf_budget_give(index->budget, index->place, count * sizeof(*place));
	wf_budget_give(index->budget, index->segment_of, count * sizeof(*segment_of));
	index->place = place;
	index->segment_of = segment_of;
	index->bits++;
	index->shift--;
	return true;
}

static bool
room_for_segment(struct wf_index *index)
{
	if (index->segment_count < index->segment_capacity) {
		return true;
	}
	uint32_t capacity = 2 * index->segment_capacity;
	void *segment = index->segment;
	if (!wf_budget_grow(index->budget, &segment,
			    index->segment_capacity * sizeof(*index->segment),
			    capacity * sizeof(*index->segment))) {
		return false;
	}
	index->segment = segment;
	index->segment_capacity = capacity;
	return true;
}

/* Splits one segment into two by one more bit of the hash. */
static bool
split(struct wf_index *index, const struct wf_rows *rows, uint32_t number, uint64_t hash)
{
	if (!room_for_segment(index) ||
	    (index->segment[number].bits == index->bits && !double_directory(index))) {
		return false;
	}
	struct wf_segment *old = &index->segment[number];
	struct wf_segment half = {.bucket = wf_chunks_alloc(&index->chunks), .bits = old->bits + 1};
	if (half.bucket == NULL) {
		return false;
	}
	old->bits++;
	deal_keys(index, rows, old, &half);
	uint64_t prefix = prefix_of(&half, hash) & ~(uint64_t)1;
	uint32_t other = index->segment_count++;
	index->segment[other] = half;
	point_at(index, number, prefix);
	point_at(index, other, prefix + 1);
	index->rebuild_count++;
	return true;
}

bool
wf_index_init(struct wf_index *index, struct wf_budget *budget, uint64_t seed, struct wf_env *env,
	      unsigned node)
{
	*index = (struct wf_index){.budget = budget, .seed = seed, .bits = 1, .shift = 63};
	wf_chunks_init(&index->chunks, budget, env, node);
	index->place = wf_budget_alloc(budget, 2 * sizeof(*index->place));
	index->segment_of = wf_budget_alloc(budget, 2 * sizeof(*index->segment_of));
	index->segment = wf_budget_alloc(budget, AT_FIRST * sizeof(*index->segment));
	if (index->place == NULL || index->segment_of == NULL || index->segment == NULL) {
		return false;
	}
	index->segment_capacity = AT_FIRST;
	index->earned = EARNED_MOST;
	index->segment[0].bucket = wf_chunks_alloc(&index->chunks);
	if (index->segment[0].bucket == NULL) {
		return false;
	}
	index->segment_count = 1; /* of no bits: both halves of the directory */
	point_at(index, 0, 0);
	return true;
}

void
wf_index_fini(struct wf_index *index)
{
	size_t count = (size_t)1 << index->bits;

	if (index->budget != NULL) {
		wf_chunks_fini(&index->chunks);
		/* Taken before its capacity is known. */
		wf_budget_give(index->budget, index->segment,
			       (index->segment_capacity == 0 ? AT_FIRST : index->segment_capacity) *
				       sizeof(*index->segment));
		wf_budget_give(index->budget, index->segment_of,
			       count * sizeof(*index->segment_of));
		wf_budget_give(index->budget, index->place, count * sizeof(*index->place));
	}
	*index = (struct wf_index){0};
}

uint32_t
wf_index_find(const struct wf_index *index, const struct wf_rows *rows, uint64_t hash, uint64_t key)
{
	const struct wf_segment *segment = &index->segment[index->segment_of[hash >> index->shift]];
	uint32_t home = wf_index_home(hash);
	uint16_t tag = wf_index_tag(hash);

	for (uint32_t nth = 0; nth < SEGMENT_BUCKETS; nth++) {
		struct wf_bucket *bucket = nth_bucket(segment, home, nth);
		unsigned match = wf_bucket_match(bucket, tag);
		for (; match != 0; match &= match - 1) {
			uint32_t row = bucket->row[__builtin_ctz(match)];
			if (wf_row_at(rows, row)->key == key) {
				return row;
			}
		}
		if (bucket->overflow == 0) {
			break;
		}
	}
	return WF_ROW_NONE;
}

static bool
may_split(const struct wf_index *index, const struct wf_segment *segment)
{
	return segment->key_count >= PRESSING_KEYS ||
	       (segment->key_count >= FULL_KEYS && index->earned >= WF_SPLIT_KEYS);
}

bool
wf_index_insert(struct wf_index *index, const struct wf_rows *rows, uint64_t hash, uint32_t row)
{
	uint32_t number = index->segment_of[hash >> index->shift];
	struct wf_segment *segment = &index->segment[number];

	WF_SLOW_ASSERT(wf_index_find(index, rows, hash, wf_row_at(rows, row)->key) == WF_ROW_NONE);
	if (__builtin_expect(may_split(index, segment), 0) && split(index, rows, number, hash)) {
		uint32_t cost = index->earned < WF_SPLIT_KEYS ? index->earned : WF_SPLIT_KEYS;
		index->earned -= cost;
	}
	segment = &index->segment[index->segment_of[hash >> index->shift]];
	if (segment->key_count >= CRAMMED_KEYS) {
		return false;
	}
	place_key(segment, hash, row);
	index->earned += index->earned < EARNED_MOST;
	index->key_count++;
	return true;
}

uint32_t
wf_index_near(const struct wf_index *index, uint64_t hash, uint32_t *row, uint32_t most)
{
	const struct wf_segment *segment = &index->segment[index->segment_of[hash >> index->shift]];
	uint32_t home = wf_index_home(hash);
	uint32_t count = 0;

	for (uint32_t nth = 0; nth < SEGMENT_BUCKETS; nth++) {
		uint32_t found[WF_BUCKET_SLOTS];
		unsigned in_bucket = rows_of(nth_bucket(segment, home, nth), found);
		for (unsigned i = 0; i < in_bucket; i++) {
			if (count == most) {
				return count;
			}
			row[count++] = found[i];
		}
	}
	return count;
}

void
wf_index_remove(struct wf_index *index, uint64_t hash, uint32_t row)
{
	uint32_t number = index->segment_of[hash >> index->shift];
	struct wf_segment *segment = &index->segment[number];
	uint32_t home = wf_index_home(hash);
	uint16_t tag = wf_index_tag(hash);

	for (uint32_t nth = 0; nth < SEGMENT_BUCKETS; nth++) {
		struct wf_bucket *bucket = nth_bucket(segment, home, nth);
		unsigned match = wf_bucket_match(bucket, tag);
		for (; match != 0; match &= match - 1) {
			unsigned slot = (unsigned)__builtin_ctz(match);
			if (bucket->row[slot] == row) {
				free_slot(segment, home, bucket, slot);
				index->key_count--;
				return;
			}
		}
		WF_ASSERT(bucket->overflow > 0);
	}
	WF_ASSERT(false && "the row is not in the index");
}
