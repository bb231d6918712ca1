/* SPDX-License-Identifier: Apache-2.0 */
/* table: one lane's part of one sparse table: finds the rows of a batch of keys, and applies the
 * gradients of a step to them. It does no network I/O: the sparse service stands between this and a
 * connection. Semantics: sparse/README.md. Thread: the lane's; nothing here blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/limits.h"
#include "base/stats.h"
#include "kernels/kernels.h"
#include "sparse/table/hot.h"
#include "sparse/table/init.h"
#include "wire/row_record.h"

#define WF_TABLE_ENTRIES_MAX (1u << 24)
#define WF_TABLE_ROWS_MAX ((uint64_t)UINT32_MAX - 1)

/* When a key gets a row. Both conditions must hold; by default the first request suffices. */
struct wf_admit_opts {
	uint32_t count;      /* occurrences in pushes, this one included; 0 and 1: at once */
	double probability;  /* at each push of it; 1: at once */
	uint32_t slot_count; /* counters of a partition, a power of 2 (for count; 0: 4,096) */
};

/* When a row is evicted. */
struct wf_evict_opts {
	uint64_t age_steps; /* since the last update, or birth; 0: never */
	/* A row whose score falls below this is evicted: show_weight (show - click) + click_weight
	 * click, with both multiplied by `fade` every fade_steps; 0: never. */
	double score_least;
	double show_weight, click_weight;
	double fade;
	uint64_t fade_steps;
	/* At the cap a new row replaces an old one (lowest score, otherwise longest without an
	 * update, among some candidates). false: it is refused. */
	bool at_cap;
};

struct wf_table_opts {
	uint32_t dim;              /* values of a row, 1 .. WF_ROW_DIM_MAX */
	uint64_t vocabulary;       /* keys 0 .. vocabulary - 1; 0: any u64 */
	uint32_t partition_first;  /* this lane's partitions: wire/partition.h */
	uint32_t partition_count;  /* at least 1 */
	uint32_t entries_max;      /* (key, gradient) pairs of one push, over all trainers */
	uint64_t memory_cap_bytes; /* of all memory of this table; 0: none */
	/* Values in 16 bits are widened for each update, and rounded once after it; state is f32.
	 */
	enum weft_value_format value_rest;
	uint64_t index_seed; /* to be kept secret; no result depends on it */
	/* Memory of new rows is allocated, and made ready by the env's helper, up to this many
	 * bytes ahead of its use, and up to an eighth of what is used; 0: 32 MiB; 1: never. */
	uint64_t ahead_bytes_max;
	unsigned node;                    /* 1 + NUMA node of the lane; 0: anywhere */
	const struct wf_kernels *kernels; /* NULL: the best there is */
	struct wf_row_opts row;
	struct wf_init init;
	struct wf_admit_opts admit;
	struct wf_evict_opts evict;
};

/* Counters, and gauges where noted. */
enum wf_table_stat {
	WF_TABLE_KEYS_LOOKED_UP, /* keys of lookups */
	WF_TABLE_KEYS_MISSED,    /* of these, without a row at the time */
	WF_TABLE_KEYS_PUSHED,    /* (key, gradient) pairs */
	WF_TABLE_ROWS_UPDATED,
	WF_TABLE_ROWS_BORN,
	WF_TABLE_ROWS_REFUSED,      /* not created, for lack of memory */
	WF_TABLE_PUSHES_UNADMITTED, /* pairs dropped: their key is not admitted yet */
	WF_TABLE_PUSHES_LOST,       /* pairs dropped for lack of memory */
	WF_TABLE_GRADS_NONFINITE,   /* elements */
	WF_TABLE_EVICTED_BY_AGE,
	WF_TABLE_EVICTED_BY_SCORE,
	WF_TABLE_EVICTED_AT_CAP,
	WF_TABLE_INDEX_REBUILDS, /* gauge: segments of the index */
	WF_TABLE_ROWS_LIVE,      /* gauge */
	WF_TABLE_MEMORY_BYTES,   /* gauge: allocated from the env */
	WF_TABLE_ROW_BYTES,      /* gauge: one row with its overhead */
	WF_TABLE_READIED_BYTES,  /* gauge: made present by the env's helper */
	/* Gauge: rows and pieces of the index that were not ready when they were first used: the
	 * lane waited while the system found and cleared their pages. */
	WF_TABLE_CLEARED_BYTES,
	WF_TABLE_STAT_COUNT,
};

struct wf_table;

/* WEFT_INVALID, WEFT_UNSUPPORTED: settings, with field, value and limit; INVALID also for a cap
 * without room for what a table needs before its first row. WEFT_NOMEM: the env. */
enum weft_status wf_table_create(struct wf_env *env, const struct wf_table_opts *opts,
				 struct wf_table **out) WEFT_MUST_CHECK;
void wf_table_destroy(struct wf_table *table); /* accepts NULL */

struct wf_table_lookup {
	const uint64_t *key; /* [count], repetitions allowed */
	size_t count;        /* 0: nothing happens */
	float *out;          /* [count * dim] */
	bool create;         /* keys without a row get one, where no admission is set */
	bool again;          /* keys that were counted when they were read ahead */
	/* A hint, without effect on any bit: this core does not read `out` soon, so what can be is
	 * written past the caches. */
	bool past;
};

/**
 * Reads the values of a batch of keys as they are after the last step applied.
 *
 * A key without a row has its initial values if the first request admits it, and zeros while it is
 * not admitted. No row changes: with dense_equivalent the values are brought up to date in `out`
 * only, so that reading alters no bit.
 * @return WEFT_OK; WEFT_INVALID: a key is outside the vocabulary, or belongs to another lane: then
 *         `out` holds nothing, and keys before that one may have been given rows
 */
enum weft_status wf_table_lookup(struct wf_table *table,
				 const struct wf_table_lookup *lookup) WEFT_MUST_CHECK;

/**
 * The same for keys that all have rows, in a table whose rows nothing but a push changes or
 * removes: what is read stays right until the next push, and of keys that are not in it, after
 * it. `lookup->create` does not count.
 * Nothing is counted.
 * @return false: a key has no row, or rows expire, move, or are evicted at the cap: `out` holds
 *         nothing
 */
bool wf_table_look_ahead(const struct wf_table *table, const struct wf_table_lookup *lookup);
/* Counts keys that were looked up ahead, and are not looked up once more. */
void wf_table_count_lookup(struct wf_table *table, const uint64_t *key, size_t count);

/* What one trainer pushed. */
struct wf_table_batch {
	const uint64_t *key; /* [count], repetitions are summed in order */
	const float *grad;   /* [count * dim] */
	size_t count;
	const float *show;  /* [count], or NULL: 1 each */
	const float *click; /* [count], or NULL: 0 each; both count only for a score */
};

struct wf_table_push {
	uint64_t step; /* above the last one, up to WF_TABLE_STEP_MAX; also Adam's t */
	/* wf_row_rate of the step; where steps missed are made up for at a constant rate, that one,
	 * and where they are under a schedule, every step is pushed */
	double rate;
	float divisor;                      /* 1 for sum; samples of the step for mean */
	const struct wf_table_batch *batch; /* [batch_count], in trainer order */
	size_t batch_count;
};

/**
 * Sums the gradients of each key in trainer order, then applies them once.
 *
 * The bits of every row depend on the step's batches only, not on the lanes, on the order of keys
 * in a batch (except for repetitions), nor on look-ups in between.
 * @return WEFT_OK; WEFT_INVALID: keys as in wf_table_lookup, too many entries, a step out of order
 *         or a rate that is not a number, below 0 (ftrl: or 0), or not that of the closed form;
 *         WEFT_NOMEM: to keep the step for rows that miss it: nothing has changed
 */
enum weft_status wf_table_push(struct wf_table *table,
			       const struct wf_table_push *push) WEFT_MUST_CHECK;

/* Visits the next `rows` rows and evicts those whose time is over (by age or score). They are gone
 * for lookups and pushes in any case: this only frees their memory. Call it between batches. */
void wf_table_tend(struct wf_table *table, uint32_t rows);

/* A row as it is kept. */
struct wf_table_row {
	uint64_t key;
	uint32_t stamp;    /* step of its last update, 0: none */
	uint32_t born;     /* step after which it was created */
	float show, click; /* 0 where not counted */
	/* [wf_table_row_floats]: values and state, f32 whatever they are at rest; lent until the
	 * next call. Put: values are rounded to what the table holds. */
	const float *floats;
};

/* What the rows of the table have in common. */
struct wf_row_shape wf_table_shape(const struct wf_table *table);
/* f32 of values and state. */
size_t wf_table_row_floats(const struct wf_table *table);
/* The live row at or after *cursor (0 at first), which advances past it. false: there is none. */
bool wf_table_next(const struct wf_table *table, uint64_t *cursor, struct wf_table_row *out);
/* Restores a saved row, whose key has none. Admission is not checked. WEFT_INVALID: the key, or a
 * stamp above the last step; WEFT_NOMEM: the cap, or the env. */
enum weft_status wf_table_put(struct wf_table *table,
			      const struct wf_table_row *row) WEFT_MUST_CHECK;
/* The same of a row that was born or updated after step `border`, for a table that has the rows of
 * that step: the row of its key, if there is one, is replaced. WEFT_INVALID: also if the row, or
 * the one in its place, is of another time. */
enum weft_status wf_table_put_later(struct wf_table *table, const struct wf_table_row *row,
				    uint32_t border) WEFT_MUST_CHECK;
/* Removes the row of a key, if there is one. WEFT_INVALID: the key, or no row of the table goes. */
enum weft_status wf_table_drop(struct wf_table *table, uint64_t key) WEFT_MUST_CHECK;
/* What admission has counted in a partition of this lane, for a save: [*count]. NULL, and 0 of
 * them: it counts nothing. */
const uint16_t *wf_table_counters(const struct wf_table *table, uint32_t partition,
				  uint32_t *count);
/* Put them back. WEFT_INVALID: not as many as the table has. */
enum weft_status wf_table_set_counters(struct wf_table *table, uint32_t partition,
				       const uint16_t *counter, uint32_t count) WEFT_MUST_CHECK;
/* The last step applied. Set: to continue from a saved table, before anything else is done.
 * WEFT_UNSUPPORTED: if the rates of earlier steps would be needed. */
uint64_t wf_table_step(const struct wf_table *table);
enum weft_status wf_table_set_step(struct wf_table *table, uint64_t step) WEFT_MUST_CHECK;

/* Counters: for any thread. */
const struct wf_stats *wf_table_stats(const struct wf_table *table);
const struct wf_hot *wf_table_hot(const struct wf_table *table);
