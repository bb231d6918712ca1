/* SPDX-License-Identifier: Apache-2.0 */
/* table_find: the rows of keys, many at a time. Thread: the lane's.
 *
 * Work goes in stages over a chunk of keys: hash and fetch the bucket; look into the bucket and
 * fetch the row; see that the row is the key's. Each stage finds in cache what the one before sent
 * for, and waits for memory once per chunk and stage rather than once per key. */
#include <inttypes.h>

#include "base/assert.h"
#include "kernels/prefetch.h"
#include "sparse/table/table_internal.h"

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
	     struct wf_row_head **out)
{
	int missing = 0;

	for (size_t i = 0; i < count; i++) {
		if (!wf_table_owns(t, key[i])) {
			return WF_NOT_OURS;
		}
		struct wf_row_head *head = wf_row_at(&t->rows, wf_table_fixed_row(t, key[i]));
		wf_prefetch(head, lines);
		out[i] = head;
	}
	for (size_t i = 0; i < count; i++) {
		if (out[i]->born == 0) {
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
static inline struct wf_row_head *
find_closely(const struct wf_table *t, uint64_t key, const struct ring *ring, size_t slot)
{
	const uint64_t hash = ring->hash[slot];

	if (ring->head[slot] == NULL && ring->bucket[slot]->overflow == 0) {
		return NULL; /* the only bucket it could be in has been looked into */
	}
	uint32_t row = wf_index_find(&t->index, &t->rows, hash, key);
	return row == WF_ROW_NONE ? NULL : wf_row_at(&t->rows, row);
}

/* Leave out rows whose time is over. Returns how many. */
static int
leave_out_expired(const struct wf_table *t, size_t count, struct wf_row_head **row)
{
	int expired = 0;
	for (size_t i = 0; i < count; i++) {
		if (row[i] != NULL && wf_table_is_expired(t, row[i])) {
			row[i] = NULL;
			expired++;
		}
	}
	return expired;
}

/* A key of another lane never got a row here: only those without one need a look. */
static bool
owns_missing(const struct wf_table *t, const uint64_t *key, size_t count,
	     struct wf_row_head *const *row)
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
		struct wf_row_head **out)
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
			out[i] = head;
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
		if (__builtin_expect(head == NULL || head->key != key[at + i], 0)) {
			head = find_closely(t, key[at + i], ring, slot + i);
		}
		if (head == NULL) {
			return false;
		}
		row[i] = wf_row_values(head);
	}
	return true;
}

size_t
wf_table_gather_known(const struct wf_table *t, const struct wf_table_lookup *lookup, size_t first,
		      unsigned lines)
{
	const uint64_t *key = lookup->key + first;
	const size_t count = lookup->count - first;
	float *out = lookup->out + first * t->opts.dim;
	struct ring ring; /* filled step by step */
	const float *row[STEP_KEYS];
	void (*const gather)(const struct wf_rest *rest, float *to, const float *const *from,
			     size_t rows) = lookup->past ? wf_rest_gather_past : wf_rest_gather;

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
		gather(&t->rest, out + at * t->opts.dim, row, step);
	}
	return count;
}

uint32_t
wf_table_find(const struct wf_table *t, uint64_t key)
{
	if (wf_table_is_fixed(t)) {
		uint32_t row = wf_table_fixed_row(t, key);
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
