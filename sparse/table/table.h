/* SPDX-License-Identifier: Apache-2.0 */
/* table: what one lane keeps of one sparse table: find the rows of a batch of keys, and apply the
 * gradients of a step to them. No network: the sparse service will stand between this and a
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

#define WF_TABLE_ENTRIES_MAX (1u << 24)
#define WF_TABLE_ROWS_MAX ((uint64_t)UINT32_MAX - 1)

/* When a key gets a row. Both conditions hold; by default the first one asked for does. */
struct wf_admit_opts {
	uint32_t count;      /* occurrences in pushes, this one included; 0 and 1: at once */
	double probability;  /* at each push of it; 1: at once */
	uint32_t slot_count; /* counters of a partition, a power of 2 (for count; 0: 4,096) */
};

/* When a row goes. */
struct wf_evict_opts {
	uint64_t age_steps; /* since the last update, or birth; 0: never */
	/* Below this its score lets it go: show_weight (show - click) + click_weight click, with
	 * both multiplied by `fade` every fade_steps; 0: never. */
	double score_least;
	double show_weight, click_weight;
	double fade;
	uint64_t fade_steps;
	/* At the cap a new row takes the place of an old one (lowest score, else longest without
	 * an update, among some looked at). false: it is refused. */
	bool at_cap;
};

struct wf_table_opts {
	uint32_t dim;              /* values of a row, 1 .. WF_ROW_DIM_MAX */
	uint64_t vocabulary;       /* keys 0 .. vocabulary - 1; 0: any u64 */
	uint32_t partition_first;  /* this lane's partitions: wire/partition.h */
	uint32_t partition_count;  /* at least 1 */
	uint32_t entries_max;      /* (key, gradient) pairs of one push, over all trainers */
	uint64_t memory_cap_bytes; /* of all this table takes; 0: none */
	/* Values in 16 bits are widened for each update, and rounded once after it; state is f32.
	 */
	enum weft_value_format value_rest;
	uint64_t index_seed; /* nobody outside should know it; no result depends on it */
	/* Memory of new rows is taken, and got ready by the env's helper, up to so many bytes
	 * before it is used, and up to an eighth of what is used; 0: 32 MiB; 1: never. */
	uint64_t ahead_bytes_max;
	unsigned node;                    /* 1 + NUMA node of the lane; 0: anywhere */
	const struct wf_kernels *kernels; /* NULL: the best there is */
	struct wf_row_opts row;
	struct wf_init init;
	struct wf_admit_opts admit;
	struct wf_evict_opts evict;
};

/* Counters; gauges where it says so. */
enum wf_table_stat {
	WF_TABLE_KEYS_LOOKED_UP, /* keys of lookups */
	WF_TABLE_KEYS_MISSED,    /* of these, without a row when asked */
	WF_TABLE_KEYS_PUSHED,    /* (key, gradient) pairs */
	WF_TABLE_ROWS_UPDATED,
	WF_TABLE_ROWS_BORN,
	WF_TABLE_ROWS_REFUSED,      /* not born for want of memory */
	WF_TABLE_PUSHES_UNADMITTED, /* pairs dropped: their key is not admitted yet */
	WF_TABLE_PUSHES_LOST,       /* pairs dropped for want of memory */
	WF_TABLE_GRADS_NONFINITE,   /* elements */
	WF_TABLE_EVICTED_BY_AGE,
	WF_TABLE_EVICTED_BY_SCORE,
	WF_TABLE_EVICTED_AT_CAP,
	WF_TABLE_INDEX_REBUILDS, /* gauge: segments of the index */
	WF_TABLE_ROWS_LIVE,      /* gauge */
	WF_TABLE_MEMORY_BYTES,   /* gauge: taken from the env */
	WF_TABLE_ROW_BYTES,      /* gauge: one row, all in */
	WF_TABLE_READIED_BYTES,  /* gauge: made present by the env's helper */
	/* Gauge: of rows and pieces of the index that were not ready when they were first used: the
	 * lane waits while the system finds and clears their pages. */
	WF_TABLE_CLEARED_BYTES,
	WF_TABLE_STAT_COUNT,
};

struct wf_table;

/* WEFT_INVALID, WEFT_UNSUPPORTED: settings, names field, value and limit; INVALID also for a cap
 * without room for what a table takes before its first row. WEFT_NOMEM: the env. */
enum weft_status wf_table_create(struct wf_env *env, const struct wf_table_opts *opts,
				 struct wf_table **out) WEFT_MUST_CHECK;
void wf_table_destroy(struct wf_table *table); /* accepts NULL */

struct wf_table_lookup {
	const uint64_t *key; /* [count], repetitions allowed */
	size_t count;        /* 0: nothing happens */
	float *out;          /* [count * dim] */
	bool create;         /* keys without a row get one, where no admission is set */
};

/**
 * The values of a batch of keys as they are after the last step applied.
 *
 * A key without a row gives its first values, where it may have a row as soon as it asks for one,
 * or zeros, while it is not admitted. Rows are not changed by it: with dense_equivalent the values
 * are caught up in `out` only, so that nobody's reading alters a bit.
 * @return WEFT_OK; WEFT_INVALID: a key is outside the vocabulary, or belongs to another lane: then
 *         `out` holds nothing, and keys before that one may have been given rows
 */
enum weft_status wf_table_lookup(struct wf_table *table,
				 const struct wf_table_lookup *lookup) WEFT_MUST_CHECK;

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
 * Sum the gradients of each key in trainer order, then apply them once.
 *
 * The bits of every row depend on the step's batches only, not on the lanes, on the order in which
 * keys stand in a batch (but for repetitions), nor on what was looked up in between.
 * @return WEFT_OK; WEFT_INVALID: keys as in wf_table_lookup, too many entries, a step out of order
 *         or a rate that is no number, below 0 (ftrl: or 0), or not that of the closed form;
 *         WEFT_NOMEM: to keep the step for rows that miss it: nothing has changed
 */
enum weft_status wf_table_push(struct wf_table *table,
			       const struct wf_table_push *push) WEFT_MUST_CHECK;

/* Look at the next `rows` rows and evict those whose time has come (by age or score). They are gone
 * for lookups and pushes in any case: this only frees their memory. Call it between batches. */
void wf_table_tend(struct wf_table *table, uint32_t rows);

/* A row as it is kept. */
struct wf_table_row {
	uint64_t key;
	uint32_t stamp;    /* step of its last update, 0: none */
	uint32_t born;     /* step after which it was born */
	float show, click; /* 0 where not counted */
	/* [wf_table_row_floats]: values and state, f32 whatever they are at rest; lent until the
	 * next call. Put: values are rounded to what the table holds. */
	const float *floats;
};

/* f32 of values and state. */
size_t wf_table_row_floats(const struct wf_table *table);
/* The live row at or after *cursor (0 at first), which moves behind it. false: there is none. */
bool wf_table_next(const struct wf_table *table, uint64_t *cursor, struct wf_table_row *out);
/* Put a saved row back; its key has none. Admission is not asked. WEFT_INVALID: the key, or a stamp
 * above the last step; WEFT_NOMEM: the cap, or the env. */
enum weft_status wf_table_put(struct wf_table *table,
			      const struct wf_table_row *row) WEFT_MUST_CHECK;
/* What admission has counted in a partition of this lane, for a save: [*count]. NULL, and 0 of
 * them: it counts nothing. */
const uint16_t *wf_table_counters(const struct wf_table *table, uint32_t partition,
				  uint32_t *count);
/* Put them back. WEFT_INVALID: not as many as the table has. */
enum weft_status wf_table_set_counters(struct wf_table *table, uint32_t partition,
				       const uint16_t *counter, uint32_t count) WEFT_MUST_CHECK;
/* The last step applied. Set: to go on from a saved table, before anything else is done.
 * WEFT_UNSUPPORTED: where earlier steps' rates would have to be known. */
uint64_t wf_table_step(const struct wf_table *table);
enum weft_status wf_table_set_step(struct wf_table *table, uint64_t step) WEFT_MUST_CHECK;

/* Counters: for any thread. */
const struct wf_stats *wf_table_stats(const struct wf_table *table);
const struct wf_hot *wf_table_hot(const struct wf_table *table);
