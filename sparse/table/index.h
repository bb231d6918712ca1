/* SPDX-License-Identifier: Apache-2.0 */
/* index: which row a key has: open addressing in cache lines of ten, in segments that are split one
 * by one. Thread: the lane's.
 *
 * The hash of a key is a bijection of it (so two keys never share one), keyed by a seed that peers
 * do not know, so they cannot choose keys that fall together. Its 22 highest bits choose a segment
 * by the directory, bits 23 to 31 the bucket in it, and the lowest 16, all but one, are the tag.
 * Keys are not here: the row has its own. A key whose bucket is full goes to its buddy, the other
 * line of the pair, then to the pairs behind, and every bucket that it passed counts it, so a
 * search ends where the count is 0, and removing leaves no tombstone.
 *
 * A segment has 512 buckets; when it is 80 % full, half of its keys go to a new one, into the
 * buckets of the same numbers, and the others stay where they are. That is the longest thing that
 * happens at once: the heads of 4,096 rows are read again. There is no second table that is
 * searched meanwhile, and a key is in one place. As keys are spread evenly, all segments are due to
 * be split at about the same time. So that no single call has to split them all, each split needs
 * WF_SPLIT_KEYS new keys, and segments wait for it until they are 92 % full. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "sparse/table/chunks.h"
#include "sparse/table/rows.h"
#include "wire/partition.h"

#define WF_BUCKET_SLOTS 10u
#define WF_SEGMENT_BITS_MAX 22u
#define WF_SEGMENT_BUCKETS_SHIFT 9u
/* n keys inserted split at most n / WF_SPLIT_KEYS + WF_SPLITS_SAVED + 1 segments (more only if keys
 * fall together although their hash is keyed). */
#define WF_SPLIT_KEYS 384u
#define WF_SPLITS_SAVED 4u

struct wf_bucket {
	uint16_t tag[WF_BUCKET_SLOTS]; /* 0: free */
	uint16_t overflow;             /* keys that passed this bucket because it was full */
	uint16_t spare;
	uint32_t row[WF_BUCKET_SLOTS];
};

struct wf_segment;

struct wf_index {
	struct wf_budget *budget;
	uint64_t seed;

	struct wf_bucket **place; /* [1 << bits] first bucket of the segment */
	uint32_t *segment_of;     /* [1 << bits] number of the segment */
	unsigned bits;            /* at least 1 */
	unsigned shift;           /* 64 - bits */

	struct wf_segment *segment; /* [segment_capacity] */
	uint32_t segment_count;
	uint32_t segment_capacity;
	struct wf_chunks chunks; /* a piece is the buckets of a segment */
	uint32_t earned;         /* keys inserted since the last split, up to a few splits' worth */
	uint64_t rebuild_count;  /* segments split */
	uint64_t key_count;
};

/* false: no memory. `env` and `node`: as of wf_chunks_init. */
bool wf_index_init(struct wf_index *index, struct wf_budget *budget, uint64_t seed,
		   struct wf_env *env, unsigned node);
void wf_index_fini(struct wf_index *index); /* accepts a zeroed struct */

static inline uint64_t
wf_index_hash(const struct wf_index *index, uint64_t key)
{
	return wf_key_mix(key ^ index->seed);
}

/* The bucket of a key in its segment. */
static inline uint32_t
wf_index_home(uint64_t hash)
{
	return (uint32_t)hash >> (32u - WF_SEGMENT_BUCKETS_SHIFT);
}

static inline struct wf_bucket *
wf_index_bucket(const struct wf_index *index, uint64_t hash)
{
	return index->place[hash >> index->shift] + wf_index_home(hash);
}

/* The other line of its pair, to which keys go first if the bucket is full. */
static inline const struct wf_bucket *
wf_bucket_buddy(const struct wf_bucket *bucket)
{
	return (const struct wf_bucket *)((uintptr_t)bucket ^ sizeof(*bucket));
}

/* Never 0. */
static inline uint16_t
wf_index_tag(uint64_t hash)
{
	return (uint16_t)(hash | 1);
}

/* The slots of a bucket that have the tag, as bits. */
static inline unsigned
wf_bucket_match(const struct wf_bucket *bucket, uint16_t tag)
{
#if defined(__SSE2__)
	__m128i want = _mm_set1_epi16((short)tag);
	__m128i low = _mm_load_si128((const __m128i *)(const void *)bucket->tag);
	/* Two tags, overflow, spare. */
	__m128i high = _mm_loadl_epi64((const __m128i *)(const void *)(bucket->tag + 8));
	__m128i same = _mm_packs_epi16(_mm_cmpeq_epi16(low, want), _mm_cmpeq_epi16(high, want));
	return (unsigned)_mm_movemask_epi8(same) & ((1u << WF_BUCKET_SLOTS) - 1);
#else
	unsigned found = 0;
	for (unsigned slot = 0; slot < WF_BUCKET_SLOTS; slot++) {
		found |= (unsigned)(bucket->tag[slot] == tag) << slot;
	}
	return found;
#endif
}

/* The row of a key, or WF_ROW_NONE. */
uint32_t wf_index_find(const struct wf_index *index, const struct wf_rows *rows, uint64_t hash,
		       uint64_t key);
/* Inserts `row`, which has its key already; the index has no other row of it. false: no memory;
 * nothing has changed. */
bool wf_index_insert(struct wf_index *index, const struct wf_rows *rows, uint64_t hash,
		     uint32_t row);
/* Rows of keys where a key with this hash would be: one of them has to be evicted if its segment is
 * full. Returns their number, at most `most`. */
uint32_t wf_index_near(const struct wf_index *index, uint64_t hash, uint32_t *row, uint32_t most);
/* Removes `row`, which is in the index under `hash`. */
void wf_index_remove(struct wf_index *index, uint64_t hash, uint32_t row);
