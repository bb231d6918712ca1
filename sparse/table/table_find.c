/* SPDX-License-Identifier: Apache-2.0 */
/* table_find: the rows of keys, many at a time; and new ones. Thread: the lane's.
 *
 * Work goes in stages over a chunk of keys: hash and fetch the bucket; look into the bucket and
 * fetch the row; see that the row is the key's. Each stage finds in cache what the one before sent
 * for, and waits for memory once per chunk and stage rather than once per key. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/prefetch.h"
#include "sparse/table/table_internal.h"

/* Row numbers within a lane: the key's rank in its partition, then the partition. */
static uint32_t
fixed_row(const struct wf_table *t, uint64_t key)
{
	uint32_t partition = wf_partition_of_fixed(key) - t->opts.partition_first;
	return (uint32_t)((key >> WF_PARTITION_BITS) * t->opts.partition_count + partition);
}

bool
wf_table_owns(const struct wf_table *t, uint64_t key)
{
	uint32_t partition =
		wf_table_is_fixed(t) ? wf_partition_of_fixed(key) : wf_partition_of(key);
	bool known = !wf_table_is_fixed(t) || key < t->opts.vocabulary;
	return known && partition - t->opts.partition_first < t->opts.partition_count;
}

static int
locate_fixed(const struct wf_table *t, const uint64_t *key, size_t count, unsigned lines,
	     float **out)
{
	int missing = 0;

	for (size_t i = 0; i < count; i++) {
		if (!wf_table_owns(t, key[i])) {
			return WF_NOT_OURS;
		}
		struct wf_row_head *head = wf_row_at(&t->rows, fixed_row(t, key[i]));
		wf_prefetch(head, lines);
		out[i] = wf_row_values(head);
	}
	for (size_t i = 0; i < count; i++) {
		if (wf_row_of_values(out[i])->born == 0) {
			out[i] = NULL;
			missing++;
		}
	}
	return missing;
}

#define RING_KEYS 128u

WF_STATIC_ASSERT(WF_CHUNK_KEYS <= UINT8_MAX + 1, "late keys are numbered in bytes");
WF_STATIC_ASSERT(RING_KEYS % WF_CHUNK_KEYS == 0, "no chunk is cut in two by the ring's end");

/* Keys on their way to their rows; key `at` of a lookup is at % RING_KEYS. */
struct ring {
	const struct wf_bucket *bucket[RING_KEYS];
	struct wf_row_head *head[RING_KEYS]; /* the first found with the tag; NULL: none */
	uint64_t hash[RING_KEYS];
	/* Of those that rows were sent for last: whose first bucket had none. */
	uint8_t late[WF_CHUNK_KEYS];
	unsigned late_count;
	size_t late_at; /* where they begin */
};

/* In the stages below what they read of `t` is copied first: what they store might else alias it.
 * `key` is the first of the lookup's; a stage takes `count` of them from `at` on. */

/* Hash, and send for the buckets. */
static inline void
send_for_buckets(const struct wf_table *t, const uint64_t *key, size_t at, size_t count,
		 struct ring *ring)
{
	const struct wf_index index = t->index;
	const size_t slot = at % RING_KEYS;

	for (size_t i = 0; i < count; i++) {
		uint64_t hash = wf_index_hash(&index, key[at + i]);
		const struct wf_bucket *bucket = wf_index_bucket(&index, hash);
		__builtin_prefetch(bucket);
		ring->hash[slot + i] = hash;
		ring->bucket[slot + i] = bucket;
	}
}

/* Look into the buckets, and send for the rows; where a bucket has none, send for its buddy. */
static inline void
send_for_rows(const struct wf_table *t, size_t at, size_t count, unsigned lines, struct ring *ring)
{
	const struct wf_rows rows = t->rows;
	const size_t slot = at % RING_KEYS;
	unsigned late = 0;

	for (size_t i = 0; i < count; i++) {
		const struct wf_bucket *bucket = ring->bucket[slot + i];
		unsigned match = wf_bucket_match(bucket, wf_index_tag(ring->hash[slot + i]));
		if (__builtin_expect(match != 0, 1)) {
			struct wf_row_head *head =
				wf_row_at(&rows, bucket->row[__builtin_ctz(match)]);
			wf_prefetch(head, lines);
			ring->head[slot + i] = head;
		} else {
			__builtin_prefetch(wf_bucket_buddy(bucket));
			ring->late[late++] = (uint8_t)i;
		}
	}
	ring->late_count = late;
	ring->late_at = at;
}

/* The same for the few that went to their buddies. */
static void
send_for_late_rows(const struct wf_table *t, unsigned lines, struct ring *ring)
{
	for (unsigned n = 0; n < ring->late_count; n++) {
		size_t slot = ring->late_at % RING_KEYS + ring->late[n];
		const struct wf_bucket *bucket = ring->bucket[slot];
		ring->head[slot] = NULL;
		if (bucket->overflow == 0) {
			continue;
		}
		bucket = wf_bucket_buddy(bucket);
		unsigned match = wf_bucket_match(bucket, wf_index_tag(ring->hash[slot]));
		if (match != 0) {
			ring->head[slot] = wf_row_at(&t->rows, bucket->row[__builtin_ctz(match)]);
			wf_prefetch(ring->head[slot], lines);
		}
	}
	ring->late_count = 0;
}

/* The row of a key that is not the first with its tag. `slot`: of the ring. */
static inline float *
find_closely(const struct wf_table *t, uint64_t key, const struct ring *ring, size_t slot)
{
	const uint64_t hash = ring->hash[slot];

	if (ring->head[slot] == NULL && ring->bucket[slot]->overflow == 0) {
		return NULL; /* the only bucket it could be in has been looked into */
	}
	uint32_t row = wf_index_find(&t->index, &t->rows, hash, key);
	return row == WF_ROW_NONE ? NULL : wf_row_values(wf_row_at(&t->rows, row));
}

/* Leave out rows whose time is over. Returns how many. */
static int
leave_out_expired(const struct wf_table *t, size_t count, float **row)
{
	int expired = 0;
	for (size_t i = 0; i < count; i++) {
		if (row[i] != NULL && wf_table_is_expired(t, wf_row_of_values(row[i]))) {
			row[i] = NULL;
			expired++;
		}
	}
	return expired;
}

/* A key of another lane never got a row here: only those without one need a look. */
static bool
owns_missing(const struct wf_table *t, const uint64_t *key, size_t count, float *const *row)
{
	if (t->opts.partition_count == WF_PARTITION_COUNT) {
		return true; /* of unlimited keys */
	}
	for (size_t i = 0; i < count; i++) {
		if (row[i] == NULL && !wf_table_owns(t, key[i])) {
			return false;
		}
	}
	return true;
}

int
wf_table_locate(const struct wf_table *t, const uint64_t *key, size_t count, unsigned lines,
		float **out)
{
	struct ring ring; /* filled stage by stage */
	int missing = 0;

	WF_ASSERT(count <= WF_CHUNK_KEYS);
	if (wf_table_is_fixed(t)) {
		return locate_fixed(t, key, count, lines, out);
	}
	send_for_buckets(t, key, 0, count, &ring);
	send_for_rows(t, 0, count, lines, &ring);
	send_for_late_rows(t, lines, &ring);
	for (size_t i = 0; i < count; i++) {
		struct wf_row_head *head = ring.head[i];
		if (__builtin_expect(head != NULL && head->key == key[i], 1)) {
			out[i] = wf_row_values(head);
		} else {
			out[i] = find_closely(t, key[i], &ring, i);
			missing += out[i] == NULL;
		}
	}
	if (t->evict.can_expire) {
		missing += leave_out_expired(t, count, out);
	}
	return missing == 0 || owns_missing(t, key, count, out) ? missing : WF_NOT_OURS;
}

/* A long look-up works in three places at once: rows are copied, those of keys further on are being
 * fetched, and so are the buckets of keys after these. So memory is always busy, and what has
 * arrived is used before it has left the nearest cache. */
#define STEP_KEYS 16u
#define AHEAD_KEYS 32u /* from copying to sending for rows, and from there to buckets */

WF_STATIC_ASSERT(AHEAD_KEYS % STEP_KEYS == 0 && RING_KEYS >= 2 * AHEAD_KEYS + STEP_KEYS,
		 "no step is cut in two by the ring's end, or overtakes another");

static inline size_t
step_of(size_t at, size_t count)
{
	size_t left = at < count ? count - at : 0;
	return left < STEP_KEYS ? left : STEP_KEYS;
}

/* The rows of a step. false: a key has none. */
static inline bool
find_step(const struct wf_table *t, const uint64_t *key, size_t at, size_t count,
	  const struct ring *ring, const float *row[STEP_KEYS])
{
	const size_t slot = at % RING_KEYS;

	for (size_t i = 0; i < count; i++) {
		struct wf_row_head *head = ring->head[slot + i];
		if (__builtin_expect(head != NULL && head->key == key[at + i], 1)) {
			row[i] = wf_row_values(head);
			continue;
		}
		row[i] = find_closely(t, key[at + i], ring, slot + i);
		if (row[i] == NULL) {
			return false;
		}
	}
	return true;
}

size_t
wf_table_gather_known(const struct wf_table *t, const uint64_t *key, size_t count, unsigned lines,
		      float *out)
{
	struct ring ring; /* filled step by step */
	const float *row[STEP_KEYS];

	WF_ASSERT(!wf_table_is_fixed(t) && !t->evict.can_expire &&
		  wf_motions_are_still(&t->motions));
	ring.late_count = 0;
	for (size_t at = 0; at < 2 * AHEAD_KEYS; at += STEP_KEYS) {
		send_for_buckets(t, key, at, step_of(at, count), &ring);
	}
	for (size_t at = 0; at < AHEAD_KEYS; at += STEP_KEYS) {
		send_for_late_rows(t, lines, &ring);
		send_for_rows(t, at, step_of(at, count), lines, &ring);
	}
	for (size_t at = 0; at < count; at += STEP_KEYS) {
		const size_t rows_at = at + AHEAD_KEYS;
		const size_t buckets_at = rows_at + AHEAD_KEYS;
		const size_t step = step_of(at, count);
		send_for_buckets(t, key, buckets_at, step_of(buckets_at, count), &ring);
		send_for_late_rows(t, lines, &ring);
		send_for_rows(t, rows_at, step_of(rows_at, count), lines, &ring);
		if (!find_step(t, key, at, step, &ring, row)) {
			return at;
		}
		wf_rest_gather(&t->rest, out + at * t->opts.dim, row, step);
	}
	return count;
}

uint32_t
wf_table_find(const struct wf_table *t, uint64_t key)
{
	if (wf_table_is_fixed(t)) {
		uint32_t row = fixed_row(t, key);
		return wf_row_at(&t->rows, row)->born == 0 ? WF_ROW_NONE : row;
	}
	uint64_t hash = wf_index_hash(&t->index, key);
	return wf_index_find(&t->index, &t->rows, hash, key);
}

enum weft_status
wf_table_refuse(const struct wf_table *t, const uint64_t *key, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (wf_table_is_fixed(t) && key[i] >= t->opts.vocabulary) {
			return wf_fail(WEFT_INVALID,
				       "table %" PRIu32 ": key %" PRIu64
				       " is outside its vocabulary of %" PRIu64
				       ": give keys below that, or a larger vocabulary",
				       t->opts.init.table, key[i], t->opts.vocabulary);
		}
		if (!wf_table_owns(t, key[i])) {
			return wf_fail(WEFT_INVALID,
				       "table %" PRIu32 ": key %" PRIu64
				       " belongs to another lane, this one has partitions %" PRIu32
				       " to %" PRIu32 ": send it where placement says",
				       t->opts.init.table, key[i], t->opts.partition_first,
				       t->opts.partition_first + t->opts.partition_count - 1);
		}
	}
	WF_ASSERT(false && "all keys are this lane's");
	return WEFT_INTERNAL;
}

void
wf_table_first_values(const struct wf_table *t, uint64_t key, float *out)
{
	if (t->opts.init.kind == WF_INIT_UNIFORM) {
		t->rest.kernels->uniform(&t->uniform, &key, &out, 1, t->opts.dim);
	} else {
		wf_init_values(&t->opts.init, key, out, t->opts.dim);
	}
}

static void
fill_row(const struct wf_table *t, struct wf_row_head *head, uint64_t key)
{
	head->key = key;
	head->born = t->step + 1;
	if (t->opts.init.kind == WF_INIT_ZERO) {
		return; /* as all of a new row is */
	}
	if (wf_rest_is_half(&t->rest)) { /* state is 0 in both */
		wf_table_first_values(t, key, t->fresh);
		wf_rest_narrow(&t->rest, wf_row_values(head), t->fresh);
	} else {
		wf_table_first_values(t, key, wf_row_values(head));
	}
}

bool
wf_table_bears_chunks(const struct wf_table *t)
{
	return !wf_table_is_fixed(t) && !t->evict.can_expire && !t->evict.opts.at_cap;
}

#define ROWS_SOON 8u

/* A row that is in the index and has no first values yet. */
static struct wf_row_head *
bear_bare(struct wf_table *t, uint64_t key)
{
	uint32_t row = wf_rows_alloc(&t->rows);

	if (row == WF_ROW_NONE) {
		return NULL;
	}
	struct wf_row_head *head = wf_row_at(&t->rows, row);
	/* New rows lie behind each other: one that will be born soon. */
	__builtin_prefetch((const void *)((uintptr_t)head + ROWS_SOON * t->rows.slabs.row_bytes),
			   1);
	head->key = key;
	if (!wf_index_insert(&t->index, &t->rows, wf_index_hash(&t->index, key), row)) {
		wf_rows_give(&t->rows, row);
		return NULL;
	}
	head->born = t->step + 1;
	return head;
}

/* First values of rows just born, which are all 0 so far. */
static void
fill_rows(const struct wf_table *t, const uint64_t *key, float *const *row, size_t count)
{
	if (t->opts.init.kind == WF_INIT_ZERO) {
		return;
	}
	if (t->opts.init.kind == WF_INIT_UNIFORM && !wf_rest_is_half(&t->rest)) {
		t->rest.kernels->uniform(&t->uniform, key, row, count, t->opts.dim);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		fill_row(t, wf_row_of_values(row[i]), key[i]);
	}
}

/* Missing keys of a chunk, one bit each: one without a bit occurs for the first time. */
#define SEEN_WORDS 16u

static bool
was_seen(uint64_t seen[SEEN_WORDS], uint64_t key)
{
	const uint64_t at = wf_key_mix(key) % (64u * SEEN_WORDS);
	const uint64_t bit = (uint64_t)1 << at % 64u;
	const bool was = (seen[at / 64u] & bit) != 0;

	seen[at / 64u] |= bit;
	return was;
}

size_t
wf_table_bear_chunk(struct wf_table *t, const uint64_t *key, size_t count, float **row)
{
	uint64_t seen[SEEN_WORDS] = {0};
	uint64_t fresh_key[WF_CHUNK_KEYS];
	float *fresh[WF_CHUNK_KEYS];
	size_t born = 0;
	size_t refused = 0;

	WF_ASSERT(count <= WF_CHUNK_KEYS && wf_table_bears_chunks(t));
	for (size_t i = 0; i < count; i++) {
		if (row[i] != NULL) {
			continue;
		}
		uint32_t number = was_seen(seen, key[i]) ? wf_table_find(t, key[i]) : WF_ROW_NONE;
		if (number != WF_ROW_NONE) { /* created just now: the key occurs twice */
			row[i] = wf_row_values(wf_row_at(&t->rows, number));
			continue;
		}
		struct wf_row_head *head = bear_bare(t, key[i]);
		refused += head == NULL;
		if (head != NULL) {
			row[i] = wf_row_values(head);
			fresh_key[born] = key[i];
			fresh[born++] = row[i];
		}
	}
	fill_rows(t, fresh_key, fresh, born);
	wf_stats_add(&t->stats, WF_TABLE_ROWS_BORN, born);
	wf_stats_add(&t->stats, WF_TABLE_ROWS_REFUSED, refused);
	return refused;
}

/* A row that is in the index; where memory has ended, another goes for it if the table may. */
static struct wf_row_head *
bear_hashed(struct wf_table *t, uint64_t key)
{
	uint64_t hash = wf_index_hash(&t->index, key);
	uint32_t row = wf_rows_alloc(&t->rows);

	if (row == WF_ROW_NONE && wf_table_reclaim(t)) {
		row = wf_rows_alloc(&t->rows);
	}
	if (row == WF_ROW_NONE) {
		return NULL;
	}
	struct wf_row_head *head = wf_row_at(&t->rows, row);
	head->key = key;
	bool placed = wf_index_insert(&t->index, &t->rows, hash, row);
	/* `row` is not born yet: it cannot be the one that goes. */
	if (!placed && wf_table_reclaim_near(t, hash)) {
		placed = wf_index_insert(&t->index, &t->rows, hash, row);
	}
	if (!placed) {
		wf_rows_give(&t->rows, row);
		return NULL;
	}
	fill_row(t, head, key);
	return head;
}

struct wf_row_head *
wf_table_bear(struct wf_table *t, uint64_t key)
{
	struct wf_row_head *head = NULL;

	if (wf_table_is_fixed(t)) {
		uint32_t row = fixed_row(t, key);
		head = wf_row_at(&t->rows, row);
		wf_rows_first_use(&t->rows, row);
		fill_row(t, head, key);
	} else {
		head = bear_hashed(t, key);
	}
	wf_stats_add(&t->stats, head != NULL ? WF_TABLE_ROWS_BORN : WF_TABLE_ROWS_REFUSED, 1);
	return head;
}
