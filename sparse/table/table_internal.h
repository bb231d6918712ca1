/* SPDX-License-Identifier: Apache-2.0 */
/* table_internal: what the files of a table share. Private to this folder. Thread: the lane's. */
#pragma once

#include "sparse/table/admit.h"
#include "sparse/table/budget.h"
#include "sparse/table/capture.h"
#include "sparse/table/evict.h"
#include "sparse/table/gone.h"
#include "sparse/table/groups.h"
#include "sparse/table/index.h"
#include "sparse/table/motions.h"
#include "sparse/table/rest.h"
#include "sparse/table/rows.h"
#include "sparse/table/table.h"
#include "wire/partition.h"

struct wf_table {
	struct wf_env *env;
	struct wf_table_opts opts;
	struct wf_budget budget;
	struct wf_rows rows;
	struct wf_index index; /* of unlimited keys only */
	struct wf_admit admit;
	struct wf_evict evict;
	struct wf_hot hot;
	struct wf_stats stats;
	struct wf_row_uniform uniform; /* of first values of that kind */

	uint32_t step;       /* last one applied */
	uint32_t push_step;  /* of the push in work; 0: none */
	uint32_t tend_at;    /* nth row that tend looks at next */
	uint32_t reclaim_at; /* nth row that reclaiming looks at next */

	struct wf_motions motions;
	float *moved; /* [wide_floats] a row as of the last step, for saving */

	struct wf_rest rest;

	struct wf_capture *capture; /* under way (capture.h); NULL: none */
	struct wf_gone *gone;       /* a capture's, which lists what goes; NULL: nobody does */

	/* Scratch of a lookup. */
	float *zero;             /* [dim] */
	float *fresh;            /* [wide_floats] a row being made; its state stays 0 */
	struct wf_groups groups; /* of the push in work */
};

/* table_find.c */

#define WF_NOT_OURS (-1)

/* Rows of up to WF_CHUNK_KEYS keys; NULL: no row, or one whose time is over. The first `lines`
 * cache lines of each row are sent for, at least the one with its head. Returns how many have no
 * row, or WF_NOT_OURS: a key is not this lane's. */
int wf_table_locate(const struct wf_table *t, const uint64_t *key, size_t count, unsigned lines,
		    struct wf_row_head **out);
/* Copy the values of a lookup's keys to its `out`, from key number `first` up to one that has no
 * row, or is not this lane's. Returns how many; it may stop a few keys early. Only where rows
 * neither expire nor move, and not of a fixed vocabulary. */
size_t wf_table_gather_known(const struct wf_table *t, const struct wf_table_lookup *lookup,
			     size_t first, unsigned lines);
/* The row of one key, expired or not. WF_ROW_NONE: none. The key is this lane's. */
uint32_t wf_table_find(const struct wf_table *t, uint64_t key);
/* Which key is not this lane's: one is not. Records and returns WEFT_INVALID. */
enum weft_status wf_table_refuse(const struct wf_table *t, const uint64_t *key, size_t count);
/* Whether the key is this lane's. */
bool wf_table_owns(const struct wf_table *t, uint64_t key);

/* table_bear.c */

/* Rows for the keys of a chunk that have none; it stays NULL where there is no memory. Only of
 * unlimited keys, while no row goes for another's sake. Returns how many are without. */
size_t wf_table_bear_chunk(struct wf_table *t, const uint64_t *key, size_t count,
			   struct wf_row_head **row);
/* Whether wf_table_bear_chunk may be used. */
bool wf_table_bears_chunks(const struct wf_table *t);
/* First values, by the table's form of the kernels. */
void wf_table_first_values(const struct wf_table *t, uint64_t key, float *out);
/* A new row with its first values for a key that has none; where need be and allowed, another goes
 * for it. NULL: no memory, counted. */
struct wf_row_head *wf_table_bear(struct wf_table *t, uint64_t key);

/* table_evict.c */

/* Evict an expired row, counted by cause. */
void wf_table_expire(struct wf_table *t, uint32_t row);
/* Evict one row to make room, where the table may; rows of the push in work are spared. false: none
 * to spare. */
bool wf_table_reclaim(struct wf_table *t);
/* The same, in the segment of the index where a key with this hash belongs. */
bool wf_table_reclaim_near(struct wf_table *t, uint64_t hash);

/* table_read.c */

/* An existing row, as it is stored; lent until the table's next call. */
void wf_table_read(const struct wf_table *t, struct wf_row_head *head, struct wf_table_row *out);

/* Keep the gauges true. */
void wf_table_update_stats(struct wf_table *t);

static inline bool
wf_table_is_expired(const struct wf_table *t, struct wf_row_head *head)
{
	return wf_evict_is_expired(&t->evict, head, t->step);
}

static inline bool
wf_table_is_fixed(const struct wf_table *t)
{
	return t->opts.vocabulary > 0;
}

/* Of a fixed vocabulary, the number of a key's row: its rank in its partition, then the partition.
 */
static inline uint32_t
wf_table_fixed_row(const struct wf_table *t, uint64_t key)
{
	uint32_t partition = wf_partition_of_fixed(key) - t->opts.partition_first;
	return (uint32_t)((key >> WF_PARTITION_BITS) * t->opts.partition_count + partition);
}
