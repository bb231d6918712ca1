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
#include "sparse/server/table_internal.h"

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

WF_STATIC_ASSERT(WF_CHUNK_KEYS <= UINT8_MAX + 1, "late keys are numbered in bytes");

/* Keys on their way to their rows. */
struct chunk {
	uint64_t hash[WF_CHUNK_KEYS];
	const struct wf_bucket *bucket[WF_CHUNK_KEYS];
	struct wf_row_head *head[WF_CHUNK_KEYS]; /* the first found with the tag; NULL: none */
	uint8_t late[WF_CHUNK_KEYS];             /* keys whose first bucket had none */
	unsigned late_count;
};

/* In the stages below what they read of `t` is copied first: what they store might else alias it.
 */

/* Hash, and send for the buckets. */
static inline void
send_for_buckets(const struct wf_table *t, const uint64_t *key, size_t count, struct chunk *chunk)
{
	const struct wf_index index = t->index;

	for (size_t i = 0; i < count; i++) {
		uint64_t hash = wf_index_hash(&index, key[i]);
		const struct wf_bucket *bucket = wf_index_bucket(&index, hash);
		__builtin_prefetch(bucket);
		chunk->hash[i] = hash;
		chunk->bucket[i] = bucket;
	}
}

/* Look into the buckets, and send for the rows; where a bucket has none, send for its buddy. */
static inline void
send_for_rows(const struct wf_table *t, size_t count, unsigned lines, struct chunk *chunk)
{
	const struct wf_rows rows = t->rows;

	chunk->late_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct wf_bucket *bucket = chunk->bucket[i];
		unsigned match = wf_bucket_match(bucket, wf_index_tag(chunk->hash[i]));
		if (__builtin_expect(match != 0, 1)) {
			struct wf_row_head *head =
				wf_row_at(&rows, bucket->row[__builtin_ctz(match)]);
			wf_prefetch(head, lines);
			chunk->head[i] = head;
		} else {
			__builtin_prefetch(wf_bucket_buddy(bucket));
			chunk->late[chunk->late_count++] = (uint8_t)i;
		}
	}
}

/* The same for the few that went to their buddies. */
static void
send_for_late_rows(const struct wf_table *t, unsigned lines, struct chunk *chunk)
{
	for (unsigned n = 0; n < chunk->late_count; n++) {
		unsigned i = chunk->late[n];
		const struct wf_bucket *bucket = chunk->bucket[i];
		chunk->head[i] = NULL;
		if (bucket->overflow == 0) {
			continue;
		}
		bucket = wf_bucket_buddy(bucket);
		unsigned match = wf_bucket_match(bucket, wf_index_tag(chunk->hash[i]));
		if (match != 0) {
			chunk->head[i] = wf_row_at(&t->rows, bucket->row[__builtin_ctz(match)]);
			wf_prefetch(chunk->head[i], lines);
		}
	}
}

/* The row of a key that stands further on, or nowhere. */
static float *
find_closely(const struct wf_table *t, uint64_t key, uint64_t hash)
{
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
	struct chunk chunk;
	int missing = 0;

	WF_ASSERT(count <= WF_CHUNK_KEYS);
	if (wf_table_is_fixed(t)) {
		return locate_fixed(t, key, count, lines, out);
	}
	send_for_buckets(t, key, count, &chunk);
	send_for_rows(t, count, lines, &chunk);
	send_for_late_rows(t, lines, &chunk);
	for (size_t i = 0; i < count; i++) {
		struct wf_row_head *head = chunk.head[i];
		if (__builtin_expect(head != NULL && head->key == key[i], 1)) {
			out[i] = wf_row_values(head);
		} else {
			out[i] = find_closely(t, key[i], chunk.hash[i]);
			missing += out[i] == NULL;
		}
	}
	if (t->can_expire) {
		missing += leave_out_expired(t, count, out);
	}
	return missing == 0 || owns_missing(t, key, count, out) ? missing : WF_NOT_OURS;
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
		t->kernels->uniform(&t->uniform, key, out, t->opts.dim);
	} else {
		wf_init_values(&t->opts.init, key, out, t->opts.dim);
	}
}

static void
fill_row(const struct wf_table *t, struct wf_row_head *head, uint64_t key)
{
	head->key = key;
	head->born = t->step + 1;
	if (wf_table_is_half(t)) { /* state is 0 in both */
		wf_table_first_values(t, key, t->fresh);
		wf_table_narrow(t, wf_row_values(head), t->fresh);
	} else {
		wf_table_first_values(t, key, wf_row_values(head));
	}
}

/* A row that is in the index; where memory has ended, another goes for it if the table may. */
static struct wf_row_head *
bear_hashed(struct wf_table *t, uint64_t key)
{
	uint64_t hash = wf_index_hash(&t->index, key);
	uint32_t row = wf_rows_take(&t->rows);

	if (row == WF_ROW_NONE && wf_table_reclaim(t)) {
		row = wf_rows_take(&t->rows);
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
		head = wf_row_at(&t->rows, fixed_row(t, key));
		fill_row(t, head, key);
		t->rows.live_count++;
	} else {
		head = bear_hashed(t, key);
	}
	wf_stats_add(&t->stats, head != NULL ? WF_TABLE_ROWS_BORN : WF_TABLE_ROWS_REFUSED, 1);
	return head;
}
