/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tables: rows of values found by 64-bit keys, on the pservers' sparse lanes.
 *
 * Tables belong to a session (weft/weft.h) as its tensors do. A session may have tensors, tables,
 * or both. A batch of keys is pulled, computed with, and its gradients are pushed:
 *
 *     opts.ports_num_for_sparse = 1;                // sparse lanes of each pserver
 *     weft_session_open(&opts, &s);
 *     weft_table_opts_init(&t);  t.name = "words";  t.dim = 32;
 *     weft_table_add(s, &t, &table);
 *     weft_session_seal(s);
 *     weft_session_start(s);
 *     weft_rows_pull(table, key, n, WEFT_ROWS_CREATE, &rows);
 *     for each batch:
 *             weft_rows_wait(rows);
 *             weft_step(s, samples, cost);
 *             weft_rows_pull(table, next_key, m, WEFT_ROWS_CREATE, &next);   // comes meanwhile
 *             // the row of key[i] begins at
 *             // weft_rows_values(rows) + (size_t)weft_rows_place(rows)[i] * dim
 *             compute grad from the rows;
 *             weft_rows_push(rows, grad, NULL, NULL);
 *             weft_wait_all(s);                     // applied on every lane; rows is gone
 *             rows = next;
 *     weft_session_close(s);
 *
 * A pull gives the rows as they are once the step begun last has been applied; before the first
 * step, as they were born. So what is pulled while step k computes comes when k is applied, and no
 * order of arrival changes a bit. A step is applied when every trainer has handed in its share: a
 * trainer that waits (weft_rows_wait) for rows of a step before it has pushed that step is told so
 * with WEFT_INVALID. With a sparse_mode other than WEFT_SPARSE_SYNC (weft_session_opts) a pull
 * gives the rows as they are when it comes to the lane, and a step is applied lane by lane as it
 * comes. Semantics: sparse/README.md.
 *
 * Thread: tables and rows belong to the session's owner, as everything else of it. No call waits
 * for ever; weft_last_error has the text of what is not WEFT_OK. */
#ifndef WEFT_SPARSE_H
#define WEFT_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"
#include "weft/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_table; /* belongs to the session, until it is closed */
struct weft_rows;  /* one batch of a table under way; a table has two of them */

enum weft_value_format {
	WEFT_VALUES_F32 = 0,
	WEFT_VALUES_BF16 = 1,
	WEFT_VALUES_F16 = 2,
};

/* The lanes' optimizer of a table's rows. Formulas: kernels/README.md. */
struct weft_row_optimizer_opts {
	/* "sgd", "momentum", "sparse_momentum", "adagrad", "adagrad_rowwise", "rmsprop", "adam",
	 * "adam_rowwise", "ftrl", "ftrl_group": "sgd" */
	const char *method;
	double learning_rate; /* > 0; of ftrl: alpha: 0.001 */
	double momentum;      /* momentum, sparse_momentum: [0, 1): 0 */
	double beta1, beta2;  /* adam, adam_rowwise: [0, 1): 0.9, 0.999 */
	double rho;           /* rmsprop: [0, 1): 0.95 */
	double epsilon;       /* adam outside the root, adagrad and rmsprop inside; > 0: 1e-6 */
	double decay;         /* L2 as part of the gradient; not of ftrl; >= 0: 0 */
	double clip;          /* gradients are clipped to [-clip, clip]; 0: off: 0 */
	double l1, l2;        /* after the step; of ftrl: inside; >= 0: 0 */
	double l21;           /* of ftrl_group; >= 0: 0 */
	double ftrl_beta;     /* of ftrl; >= 0: 1 */
	/* "constant", "linear", "warmup", "poly", "caffe_poly", "exp", "discexp": "constant".
	 * "manual" and "pass_manual", which tensors have, are WEFT_UNSUPPORTED in weft_table_add.
	 */
	const char *schedule;
	double schedule_a, schedule_b;
	/* 0: a step leaves the rows that it does not touch as they are; 1: they end where a dense
	 * run with a gradient of zero would have brought them, in closed form; WEFT_UNSUPPORTED
	 * where there is none, and where a job with a decay, l1 or l2 and a schedule that is not
	 * "constant" goes on from a save: 0 */
	int dense_equivalent;
};

/* All trainers of a job give the same, but for batch_keys_max and raw_keys. */
struct weft_table_opts {
	size_t struct_bytes; /* set by weft_table_opts_init */

	const char *name;    /* unique in the job; 1..127 printable characters without spaces */
	uint32_t dim;        /* values of a row, 1..4,096 */
	uint64_t vocabulary; /* keys 0 .. vocabulary - 1; 0: any 64 bits: 0 */
	/* Of all that one lane takes for the table; 0: none. One that leaves no room for what a
	 * table takes before its first row ends the job with WEFT_INVALID as it starts: 0 */
	uint64_t memory_cap_bytes;
	/* Of one batch, repetitions counted, 1..4,194,304: 65,536. What is pulled and pushed lies
	 * in memory of weft's, about 4 (dim x 4 + 8) bytes a key: two batches, both ways. */
	uint32_t batch_keys_max;
	enum weft_value_format rest; /* how lanes keep the values of rows: WEFT_VALUES_F32 */
	/* How values of rows and gradients travel; what the caller sees is f32 in any case. With 16
	 * bits rows are rounded once on their way to a trainer, and the sum of a trainer's
	 * gradients of a row on its way to the lane: to nearest, ties to even. Lanes sum in f32.
	 * WEFT_VALUES_F16 ends at 65,504: more is infinite: WEFT_VALUES_F32 */
	enum weft_value_format wire;
	/* 1: keys travel as 8 bytes each; 0: as differences where they lie close together: 0 */
	int raw_keys;

	struct weft_row_optimizer_opts optimizer;

	/* First values, a function of (seed, table, key, column) alone: "zero"; "uniform" from
	 * init_a to init_b; "normal" with mean init_a, standard deviation init_b: "zero" */
	const char *init;
	double init_a, init_b;
	uint64_t init_seed;

	/* When a key gets a row: both hold. Until then a pull gives zeros and pushes are dropped,
	 * and counted. */
	uint32_t admit_count;     /* occurrences in pushes; 0 and 1: at once: 0 */
	uint32_t admit_slots;     /* counters of a partition, a power of 2; 0: 4,096: 0 */
	double admit_probability; /* at each push of it, (0, 1]; 1: at once: 1 */

	/* When a row goes. */
	uint64_t evict_age_steps; /* since its last update, or birth; 0: never: 0 */
	/* Below this its score lets it go: show_weight (show - click) + click_weight click, with
	 * both multiplied by `fade` every fade_steps; 0: never, and nothing is counted: 0 */
	double evict_score_least;
	double evict_show_weight, evict_click_weight; /* 0.25, 1 */
	double evict_fade;                            /* (0, 1]: 1 */
	uint64_t evict_fade_steps;                    /* at least 1: 1 */
	/* At the cap a new row: 1: takes the place of an old one; 0: is refused, and what is pushed
	 * to it is dropped, and counted: 0 */
	int evict_at_cap;

	/* What was set by name (WEFT_SETTINGS_TABLE), as in weft_session_opts; the struct does not
	 * grow any more. NULL: nothing: NULL */
	const struct weft_settings *settings;
};

/* Fill in every default named above; name and dim are left to the caller. A macro in C and C++, as
 * weft_session_opts_init is. */
WEFT_API void weft_table_opts_init(struct weft_table_opts *opts);
WEFT_API void weft_table_opts_init_sized(struct weft_table_opts *opts, size_t struct_bytes);
#define weft_table_opts_init(opts) weft_table_opts_init_sized((opts), sizeof(*(opts)))

/**
 * Declare a table. All trainers declare the same ones in the same order, before weft_session_seal.
 * The session's options need ports_num_for_sparse of at least 1.
 * @param opts borrowed for the call; strings are copied
 * @param out  written on WEFT_OK; belongs to the session
 * @return WEFT_OK; WEFT_INVALID: option, value and remedy, also a bad or repeated name, no sparse
 *         ports, or sealed already; WEFT_UNSUPPORTED: a setting that this version has not;
 *         WEFT_NOMEM
 */
WEFT_API enum weft_status weft_table_add(struct weft_session *session,
					 const struct weft_table_opts *opts,
					 struct weft_table **out) WEFT_MUST_CHECK;

WEFT_API const char *weft_table_name(const struct weft_table *table);
WEFT_API uint32_t weft_table_dim(const struct weft_table *table);

enum weft_rows_flag {
	/* Training: keys without a row get one, where the table lets them. Without it nothing is
	 * born: such keys give their first values. */
	WEFT_ROWS_CREATE = 1,
	/* Rows lie in the order in which their keys come first, not by key: of the keys of one
	 * lane, and lane by lane. So lanes write them straight into an array in the caller's order,
	 * and nobody copies, where keys are distinct and a job has one sparse lane, or keys are
	 * grouped by weft_table_key_lane, lowest first: weft_rows_in_order. With repeated keys,
	 * those share a row by weft_rows_place, in any case. Keys that do not ascend are then
	 * pulled as 8 bytes each, and sorted as the batch is pushed instead. No bit of any row
	 * depends on this, but which rows are refused or evicted at a memory cap. */
	WEFT_ROWS_IN_ORDER = 2,
};

/**
 * Begin to fetch the rows of a batch of keys, as they are once the step begun last is applied.
 * Never blocks. At most two batches of a table exist at a time; a pushed one counts until its step
 * was waited for.
 * @param table of a started session
 * @param key   [count], in any order, repeated at will; copied
 * @param count 0 (a batch without rows: weft_rows_wait returns at once) to batch_keys_max
 * @param flags enum weft_rows_flag, or 0
 * @param out   written on WEFT_OK; ends with weft_rows_free or, once pushed, with the wait of its
 *              step
 * @return WEFT_OK; WEFT_AGAIN: the table has two batches: push and wait, or free one;
 *         WEFT_INVALID: too many keys, a key outside the vocabulary (named, with its place), an
 *         unknown flag, or more than a lane keeps for a trainer (its held_bytes, with the remedy):
 *         nothing was begun; WEFT_ABORTED and others of weft_wait: the job is over
 */
WEFT_API enum weft_status weft_rows_pull(struct weft_table *table, const uint64_t *key,
					 uint32_t count, unsigned flags,
					 struct weft_rows **out) WEFT_MUST_CHECK;

/**
 * Wait until the rows are there. Returns at once if they are. Blocks.
 * @return WEFT_OK; WEFT_INVALID: they are those of a step that this trainer has begun and not
 *         handed in (weft_rows_push of every table, or weft_wait_all), so they could not come;
 *         WEFT_TIMEOUT: step_timeout_ns passed; WEFT_AGAIN: interrupted (weft_session_opts), call
 *         it again; a status of a lane that refused the pull: this batch has failed, as have those
 *         that were asked for in the same message, and weft_rows_free gives it back; WEFT_LOST,
 *         WEFT_ABORTED, WEFT_DATA: the job is over
 */
WEFT_API enum weft_status weft_rows_wait(struct weft_rows *rows) WEFT_MUST_CHECK;

/* Known from weft_rows_pull on, until the batch is given back: */
/* Distinct keys. */
WEFT_API uint32_t weft_rows_count(const struct weft_rows *rows);
/* [weft_rows_count] the key of each row. */
WEFT_API const uint64_t *weft_rows_keys(const struct weft_rows *rows);
/* [count of the pull] the row of each of the caller's keys. */
WEFT_API const uint32_t *weft_rows_place(const struct weft_rows *rows);
/* [weft_rows_count * dim] f32, row-major, 64-byte aligned; lanes write there until weft_rows_wait
 * gave WEFT_OK. Registered memory of the session, where the lanes' answers land: by the network
 * card over verbs, by the kernel over TCP, over shared memory by the one copy that stands for the
 * network; then nothing is copied. With a wire format of 16 bits weft_rows_wait widens them, which
 * copied_bytes of weft_table_stats counts. A batch's array stays where it is from weft_session_seal
 * to weft_session_close, for every batch that it is used for again. */
WEFT_API const float *weft_rows_values(const struct weft_rows *rows);
/* 1: weft_rows_values is in the caller's order of keys, row i of key i, each once: it may be read
 * as the [count * dim] array of the batch. Always so where the keys of a pull ascend strictly and
 * all go to one lane; else see WEFT_ROWS_IN_ORDER. */
WEFT_API int weft_rows_in_order(const struct weft_rows *rows);
/**
 * Copy the rows, after weft_rows_wait, to memory of the caller's, one for each of its keys,
 * repeated as they are. Counted in copied_bytes of weft_table_stats.
 * @param out [count of the pull * dim] f32
 * @return WEFT_OK; WEFT_INVALID: before weft_rows_wait; a status of weft_rows_wait that it gave
 */
WEFT_API enum weft_status weft_rows_gather(const struct weft_rows *rows,
					   float *out) WEFT_MUST_CHECK;
/* The sparse lane that has a key, over all pservers, from 0: for who groups keys by lane. A
 * function of the key, the table's vocabulary and the number of lanes. */
WEFT_API uint32_t weft_table_key_lane(const struct weft_table *table, uint64_t key);

/**
 * Hand in the gradients of a batch for the step begun last (weft_step). Never blocks. Gradients of
 * repeated keys are summed in the caller's order, in f32. Each table is pushed at most once a step,
 * after weft_rows_wait; what leaves for the lanes leaves when every table was pushed. A table that
 * was not, when weft_wait_all, weft_exchange, weft_pass_end or the next weft_step is called,
 * counts as pushed empty.
 * @param grad  [count of the pull * dim] f32, row-major, in the caller's order of keys; borrowed
 *              for the call; may be NULL if the batch has no keys
 * @param show  [count of the pull], or NULL: 1 each; looked at by tables with evict_score_least
 * @param click likewise, or NULL: 0 each
 * @return WEFT_OK: the batch is given back by the wait of the step: do not touch it after that;
 *         WEFT_INVALID: no step begun, its table was pushed already in this step, the step is
 *         handed in already, the batch was not waited for or has failed, or the step's gradients
 *         are more than a lane keeps for a trainer (its held_bytes): nothing has changed;
 *         WEFT_ABORTED and others: the job is over
 */
WEFT_API enum weft_status weft_rows_push(struct weft_rows *rows, const float *grad,
					 const float *show, const float *click) WEFT_MUST_CHECK;

/* Give a batch back that is not pushed: after an evaluation, or a failed wait. It may be under way:
 * then its memory is free when the answers are there. Accepts NULL; a pushed batch is not touched.
 */
WEFT_API void weft_rows_free(struct weft_rows *rows);

/* A row with all that it is, for saving and restoring a job. */
struct weft_table_record {
	uint64_t key;
	uint32_t stamp;      /* step of its last update, 0: none */
	uint32_t born;       /* step after which it was born */
	float show, click;   /* 0 without scores */
	const float *floats; /* [weft_table_record_floats]: values, then the optimizer's state */
};

/* A table has so many partitions, however many lanes there are. */
#define WEFT_TABLE_PARTITIONS 1024

struct weft_table_partition {
	uint32_t partition;
	uint64_t record_count;
	const uint16_t *counter; /* [counter_count] of admission; NULL: all 0, or none */
	uint32_t counter_count;
};

/* f32 of a record; admission's counters in each partition, 0 with admit_count up to 1. */
WEFT_API uint32_t weft_table_record_floats(const struct weft_table *table);
WEFT_API uint32_t weft_table_counter_count(const struct weft_table *table);

/* Called by weft_table_read, in the caller's thread: each partition from 0 on, then its records by
 * ascending key; what they are given is lent for the call. Another status than WEFT_OK ends the
 * reading, which returns it. */
struct weft_table_reader {
	enum weft_status (*partition)(void *arg, const struct weft_table_partition *partition);
	enum weft_status (*record)(void *arg, const struct weft_table_record *record);
	void *arg;
};

/* Called by weft_table_write in the same order: fill in `out`; what it points to has to last until
 * the next call. */
struct weft_table_writer {
	enum weft_status (*partition)(void *arg, uint32_t partition,
				      struct weft_table_partition *out);
	enum weft_status (*record)(void *arg, struct weft_table_record *out);
	void *arg;
	uint64_t step; /* weft_table_step of what is put back; 0: weft_steps */
};

/**
 * Trainer 0, where it may read: the step that stamps and births of a table's records go by. In a
 * synchronous job weft_steps; in others the pushes of all trainers. May block.
 * @param out written on WEFT_OK
 * @return as weft_table_read
 */
WEFT_API enum weft_status weft_table_step(struct weft_table *table, uint64_t *out) WEFT_MUST_CHECK;

/**
 * Trainer 0: fetch every row of a table with all that it is, as it is after the last step of the
 * last pass: between weft_pass_end and the next weft_step. What the other trainers ask for
 * meanwhile goes on. With a sparse_mode other than WEFT_SPARSE_SYNC all trainers have to be there,
 * between two passes, and wait (weft_barrier) until it is done. Blocks.
 * @return WEFT_OK; a status of the callbacks; WEFT_INVALID: not trainer 0, within a step, or not
 *         synchronous and another trainer has begun the next pass; WEFT_UNSUPPORTED: rows that do
 *         not fit the lanes' slots; WEFT_NOMEM: here or on a lane; WEFT_DATA: a lane sent what is
 *         no table; WEFT_AGAIN: interrupted (weft_session_opts), end the session: what it asked
 *         for is unanswered, and weft_table_step, _read and _write are WEFT_INVALID; else as
 *         weft_wait
 */
WEFT_API enum weft_status weft_table_read(struct weft_table *table,
					  const struct weft_table_reader *to) WEFT_MUST_CHECK;

/**
 * Trainer 0, between weft_session_start and the first weft_step: put all rows of a table back, in a
 * session restored at their step (weft_session_restore); or, at step 0, those that it is to begin
 * with, with stamp and born 0. Each table of a job that goes on is written. No trainer may pull
 * before that: let all of them meet in weft_barrier after it. Records may come from any number of
 * lanes. Blocks.
 * @return as weft_table_read; WEFT_INVALID also: a step has begun, rows were pulled already, or a
 *         record that cannot be: the job cannot go on
 */
WEFT_API enum weft_status weft_table_write(struct weft_table *table,
					   const struct weft_table_writer *from) WEFT_MUST_CHECK;

#define WEFT_TABLE_HOT_KEYS 8

/* What this trainer has sent and got of a table since weft_session_start. */
struct weft_table_stats {
	size_t struct_bytes; /* set by the caller: sizeof(struct weft_table_stats) */

	uint64_t batches_pulled, batches_pushed;
	uint64_t keys_pulled, keys_pushed;         /* the caller's, repetitions counted */
	uint64_t rows_pulled, rows_pushed;         /* each key of a batch once */
	uint64_t key_bytes, row_bytes, grad_bytes; /* of keys both ways; of values; of gradients */

	/* Rows pulled and pushed of the busiest sparse lane by the mean over lanes: 1 where all
	 * have the same, 0 before the first. */
	double imbalance;
	uint32_t lane_count; /* sparse lanes of all pservers */

	/* The keys that were pulled most, most first, by a sample of one in 64. */
	uint32_t hot_count;
	uint64_t hot_key[WEFT_TABLE_HOT_KEYS];
	uint64_t hot_times[WEFT_TABLE_HOT_KEYS]; /* about */
	/* s of the law count ~ rank^-s that fits best: 0 where all keys are alike, about 1 of
	 * words; -1: too few stand out to tell. */
	double zipf;
	/* Of values that had landed: widened from 16 bits, or by weft_rows_gather. 0: lanes have
	 * written all straight to where the caller reads them. */
	uint64_t copied_bytes;
};

/* Of them, one sparse lane's share. */
struct weft_table_lane_stats {
	size_t struct_bytes; /* set by the caller */
	uint64_t rows_pulled, rows_pushed;
	uint64_t key_bytes, row_bytes, grad_bytes;
};

/* What the sparse lanes said of the steps that they applied, over all tables and trainers. */
struct weft_sparse_stats {
	size_t struct_bytes;    /* set by the caller */
	uint64_t steps_applied; /* on every lane, as far as this trainer has heard */
	uint64_t rows_updated;
	/* (key, gradient) pairs dropped at a table's memory_cap_bytes or, asynchronous, for their
	 * lag. Without a cap none is dropped for want of memory: the job ends with WEFT_NOMEM. */
	uint64_t pushes_lost;
	uint64_t grads_nonfinite; /* elements that were not applied */
	uint64_t waits_slot;      /* a lane's window ran out and more was to be sent */
	uint64_t pulls_repeated;  /* asked again after a connection was lost */
	uint64_t pushes_repeated;
};

/**
 * Never block; of use at any time before close, also after a failure.
 * @param lane below lane_count; lane i of pserver p is p x ports_num_for_sparse + i
 * @return WEFT_OK; WEFT_INVALID: struct_bytes is not what this version of the library has, or no
 *         such lane
 */
WEFT_API enum weft_status weft_table_stats(struct weft_table *table,
					   struct weft_table_stats *out) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_table_lane_stats(struct weft_table *table, uint32_t lane,
						struct weft_table_lane_stats *out) WEFT_MUST_CHECK;
/* All 0 of a session without tables. */
WEFT_API enum weft_status weft_sparse_stats(struct weft_session *session,
					    struct weft_sparse_stats *out) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
