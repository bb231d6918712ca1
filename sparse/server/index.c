/* SPDX-License-Identifier: Apache-2.0 */
/* index: see index.h. Thread: the lane's. */
#include "sparse/server/index.h"

#include <string.h>

#include "base/assert.h"

/* Segments are cut from chunks in units of 256 buckets. */
#define UNIT_BUCKETS 256u
#define UNIT_BYTES (UNIT_BUCKETS * sizeof(struct wf_bucket))
#define SMALL_UNITS 2u
#define LARGE_UNITS 3u
#define CHUNK_UNITS 128u /* 2 MiB: a huge page */
#define FIRST_CHUNK_UNITS 8u
#define FREE_WORDS (CHUNK_UNITS / 64u)
#define AT_FIRST 16u

/* Above this a segment is rebuilt; if there is no memory for that, up to the second it goes on. */
#define FULL_PERCENT 80u
#define CRAMMED_PERCENT 97u

/* Buckets whose rows' heads are on their way while others are placed. */
#define BUCKETS_AHEAD 4u

WF_STATIC_ASSERT(sizeof(struct wf_bucket) == 64, "a bucket is a cache line");

struct wf_segment {
	struct wf_bucket *bucket;
	uint32_t bucket_count;
	uint32_t key_count;
	uint32_t chunk; /* that bucket is cut from */
	uint32_t bits;  /* of the hash that all its keys share */
};

struct wf_index_chunk {
	char *base;
	uint32_t unit_count;
	uint64_t free[FREE_WORDS]; /* a bit a unit */
};

static uint32_t
percent_of(uint32_t bucket_count, uint32_t percent)
{
	return bucket_count * WF_BUCKET_SLOTS * percent / 100u;
}

/* Chunks. */

/* The first of `units` free units in a row, or -1. */
static int
find_run(const struct wf_index_chunk *chunk, unsigned units)
{
	for (unsigned word = 0; word < FREE_WORDS; word++) {
		uint64_t run = chunk->free[word] & chunk->free[word] >> 1;
		if (units == LARGE_UNITS) {
			run &= chunk->free[word] >> 2;
		}
		if (run != 0) {
			return (int)(64 * word) + __builtin_ctzll(run);
		}
	}
	return -1;
}

static bool
add_chunk(struct wf_index *index)
{
	if (index->chunk_count == index->chunk_capacity) {
		uint32_t capacity =
			index->chunk_capacity == 0 ? AT_FIRST : 2 * index->chunk_capacity;
		void *chunk = index->chunk;
		if (!wf_budget_grow(index->budget, &chunk,
				    index->chunk_capacity * sizeof(*index->chunk),
				    capacity * sizeof(*index->chunk))) {
			return false;
		}
		index->chunk = chunk;
		index->chunk_capacity = capacity;
	}
	struct wf_index_chunk chunk = {.unit_count = CHUNK_UNITS};
	if (index->chunk_count == 0) {
		chunk.unit_count = FIRST_CHUNK_UNITS;
	}
	chunk.base = wf_budget_take(index->budget, chunk.unit_count * UNIT_BYTES);
	if (chunk.base == NULL) {
		return false;
	}
	for (unsigned unit = 0; unit < chunk.unit_count; unit++) {
		chunk.free[unit / 64] |= (uint64_t)1 << unit % 64;
	}
	index->chunk[index->chunk_count++] = chunk;
	return true;
}

/* The youngest chunk first: the others are mostly full. */
static bool
find_units(const struct wf_index *index, unsigned units, uint32_t *chunk, int *unit)
{
	for (uint32_t n = index->chunk_count; n > 0; n--) {
		*unit = find_run(&index->chunk[n - 1], units);
		if (*unit >= 0) {
			*chunk = n - 1;
			return true;
		}
	}
	return false;
}

/* Zeroed buckets for `out`, which has its bits already. */
static bool
take_buckets(struct wf_index *index, unsigned units, struct wf_segment *out)
{
	int unit = -1;

	if (!find_units(index, units, &out->chunk, &unit) &&
	    (!add_chunk(index) || !find_units(index, units, &out->chunk, &unit))) {
		return false;
	}
	struct wf_index_chunk *chunk = &index->chunk[out->chunk];
	chunk->free[unit / 64] &= ~((((uint64_t)1 << units) - 1) << unit % 64);
	char *base = chunk->base + (size_t)unit * UNIT_BYTES;
	memset(base, 0, units * UNIT_BYTES);
	out->bucket = (struct wf_bucket *)(void *)base;
	out->bucket_count = units * UNIT_BUCKETS;
	out->key_count = 0;
	return true;
}

static void
give_buckets(struct wf_index *index, const struct wf_segment *segment)
{
	struct wf_index_chunk *chunk = &index->chunk[segment->chunk];
	size_t unit = (size_t)((char *)segment->bucket - chunk->base) / UNIT_BYTES;
	uint64_t units = segment->bucket_count / UNIT_BUCKETS;
	chunk->free[unit / 64] |= (((uint64_t)1 << units) - 1) << unit % 64;
}

/* Segments. */

static uint32_t
home_of(const struct wf_segment *segment, uint64_t hash)
{
	return (uint32_t)((hash & UINT32_MAX) * segment->bucket_count >> 32);
}

/* Where a key with that home goes at its nth try: home, its buddy, then the same two of each pair
 * behind. */
static struct wf_bucket *
nth_bucket(const struct wf_segment *segment, uint32_t home, uint32_t nth)
{
	uint32_t pair = (home / 2 + nth / 2) % (segment->bucket_count / 2);
	return &segment->bucket[2 * pair + ((home ^ nth) & 1)];
}

/* false: the segment is full. */
static bool
place_key(struct wf_segment *segment, uint64_t hash, uint32_t row)
{
	uint32_t home = home_of(segment, hash);
	struct wf_bucket *bucket = &segment->bucket[home];
	unsigned room = wf_bucket_match(bucket, 0);

	if (segment->key_count == segment->bucket_count * WF_BUCKET_SLOTS) {
		return false;
	}
	for (uint32_t nth = 1; room == 0; nth++) {
		bucket->overflow++;
		bucket = nth_bucket(segment, home, nth);
		room = wf_bucket_match(bucket, 0);
	}
	unsigned slot = (unsigned)__builtin_ctz(room);
	bucket->tag[slot] = wf_index_tag(hash);
	bucket->row[slot] = row;
	segment->key_count++;
	return true;
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

/* Place all keys of `from` in `to`: one segment, or two that differ in the bit below from->bits.
 * false: one of them is too small. */
static bool
move_keys(const struct wf_index *index, const struct wf_rows *rows, const struct wf_segment *from,
	  struct wf_segment *const to[2])
{
	for (uint32_t b = 0; b < from->bucket_count + BUCKETS_AHEAD; b++) {
		if (b < from->bucket_count) {
			send_for_heads(rows, &from->bucket[b]);
		}
		if (b < BUCKETS_AHEAD) {
			continue;
		}
		const struct wf_bucket *bucket = &from->bucket[b - BUCKETS_AHEAD];
		for (unsigned slot = 0; slot < WF_BUCKET_SLOTS; slot++) {
			if (bucket->tag[slot] == 0) {
				continue;
			}
			uint32_t row = bucket->row[slot];
			uint64_t hash = hash_of_row(index, rows, row);
			if (!place_key(to[hash << from->bits >> 63], hash, row)) {
				return false;
			}
		}
	}
	return true;
}

/* Let the directory know where segment `number` lies now. */
static void
point_at(struct wf_index *index, uint32_t number, uint64_t prefix)
{
	const struct wf_segment *segment = &index->segment[number];
	unsigned below = index->bits - segment->bits;
	uintptr_t place = (uintptr_t)segment->bucket | segment->bucket_count / UNIT_BUCKETS;

	for (size_t i = prefix << below; i < (prefix + 1) << below; i++) {
		index->place[i] = place;
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
	uintptr_t *place = NULL;
	uint32_t *segment_of = NULL;

	if (index->bits == WF_SEGMENT_BITS_MAX) {
		return false;
	}
	place = wf_budget_take(index->budget, 2 * count * sizeof(*place));
	segment_of = wf_budget_take(index->budget, 2 * count * sizeof(*segment_of));
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

/* 512 buckets become 768. */
static bool
widen(struct wf_index *index, const struct wf_rows *rows, uint32_t number, uint64_t hash)
{
	struct wf_segment old = index->segment[number];
	struct wf_segment wide = {.bits = old.bits};

	if (!take_buckets(index, LARGE_UNITS, &wide)) {
		return false;
	}
	bool moved = move_keys(index, rows, &old, (struct wf_segment *const[2]){&wide, &wide});
	WF_ASSERT(moved); /* more buckets than before */
	index->segment[number] = wide;
	point_at(index, number, prefix_of(&wide, hash));
	give_buckets(index, &old);
	return true;
}

/* Both halves of `old`, with its keys, in segments of `units` each. */
static bool
make_halves(struct wf_index *index, const struct wf_rows *rows, const struct wf_segment *old,
	    unsigned units, struct wf_segment half[2])
{
	if (!take_buckets(index, units, &half[0])) {
		return false;
	}
	if (!take_buckets(index, units, &half[1])) {
		give_buckets(index, &half[0]);
		return false;
	}
	if (!move_keys(index, rows, old, (struct wf_segment *const[2]){&half[0], &half[1]})) {
		give_buckets(index, &half[0]);
		give_buckets(index, &half[1]);
		return false;
	}
	return true;
}

/* One of 768 becomes two, told apart by one more bit of the hash. */
static bool
split(struct wf_index *index, const struct wf_rows *rows, uint32_t number, uint64_t hash)
{
	struct wf_segment old = index->segment[number];
	struct wf_segment half[2] = {{.bits = old.bits + 1}, {.bits = old.bits + 1}};

	if (!room_for_segment(index) || (old.bits == index->bits && !double_directory(index))) {
		return false;
	}
	/* A seeded hash halves keys well; were it otherwise, 768 buckets hold them all. */
	if (!make_halves(index, rows, &old, SMALL_UNITS, half) &&
	    !make_halves(index, rows, &old, LARGE_UNITS, half)) {
		return false;
	}
	uint64_t prefix = prefix_of(&half[0], hash) & ~(uint64_t)1;
	uint32_t other = index->segment_count++;
	index->segment[number] = half[0];
	index->segment[other] = half[1];
	point_at(index, number, prefix);
	point_at(index, other, prefix + 1);
	give_buckets(index, &old);
	return true;
}

bool
wf_index_init(struct wf_index *index, struct wf_budget *budget, uint64_t seed)
{
	*index = (struct wf_index){.budget = budget, .seed = seed, .bits = 1, .shift = 63};
	index->place = wf_budget_take(budget, 2 * sizeof(*index->place));
	index->segment_of = wf_budget_take(budget, 2 * sizeof(*index->segment_of));
	index->segment = wf_budget_take(budget, AT_FIRST * sizeof(*index->segment));
	if (index->place == NULL || index->segment_of == NULL || index->segment == NULL) {
		return false;
	}
	index->segment_capacity = AT_FIRST;
	if (!take_buckets(index, SMALL_UNITS, &index->segment[0])) {
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

	for (uint32_t i = 0; i < index->chunk_count; i++) {
		wf_budget_give(index->budget, index->chunk[i].base,
			       index->chunk[i].unit_count * UNIT_BYTES);
	}
	if (index->budget != NULL) {
		wf_budget_give(index->budget, index->chunk,
			       index->chunk_capacity * sizeof(*index->chunk));
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
	uint32_t home = home_of(segment, hash);
	uint16_t tag = wf_index_tag(hash);

	for (uint32_t nth = 0; nth < segment->bucket_count; nth++) {
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

bool
wf_index_insert(struct wf_index *index, const struct wf_rows *rows, uint64_t hash, uint32_t row)
{
	uint32_t number = index->segment_of[hash >> index->shift];
	struct wf_segment *segment = &index->segment[number];
	uint32_t buckets = segment->bucket_count;

	WF_SLOW_ASSERT(wf_index_find(index, rows, hash, wf_row_at(rows, row)->key) == WF_ROW_NONE);
	if (segment->key_count >= percent_of(buckets, FULL_PERCENT)) {
		bool small = buckets == SMALL_UNITS * UNIT_BUCKETS;
		bool rebuilt =
			small ? widen(index, rows, number, hash) : split(index, rows, number, hash);
		index->rebuild_count += rebuilt;
		number = index->segment_of[hash >> index->shift];
		segment = &index->segment[number];
	}
	if (segment->key_count >= percent_of(segment->bucket_count, CRAMMED_PERCENT)) {
		return false;
	}
	bool placed = place_key(segment, hash, row);
	WF_ASSERT(placed);
	index->key_count++;
	return true;
}

uint32_t
wf_index_near(const struct wf_index *index, uint64_t hash, uint32_t *row, uint32_t most)
{
	const struct wf_segment *segment = &index->segment[index->segment_of[hash >> index->shift]];
	uint32_t home = home_of(segment, hash);
	uint32_t count = 0;

	for (uint32_t nth = 0; nth < segment->bucket_count; nth++) {
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
	uint32_t home = home_of(segment, hash);
	uint16_t tag = wf_index_tag(hash);

	for (uint32_t nth = 0; nth < segment->bucket_count; nth++) {
		struct wf_bucket *bucket = nth_bucket(segment, home, nth);
		unsigned match = wf_bucket_match(bucket, tag);
		for (; match != 0; match &= match - 1) {
			unsigned slot = (unsigned)__builtin_ctz(match);
			if (bucket->row[slot] == row) {
				bucket->tag[slot] = 0;
				segment->key_count--;
				index->key_count--;
				return;
			}
		}
		WF_ASSERT(bucket->overflow > 0);
		bucket->overflow--;
	}
	WF_ASSERT(false && "the row is not in the index");
}
