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
 * A pull returns the rows as they are once the current step (the last weft_step) has been
 * applied; before the first step, as they were initialised. What is pulled while step k computes
 * therefore has arrived when k has been applied, and no order of arrival changes a bit: lanes may
 * send its rows before that, and send those that k changes once more (setting sparse_look_ahead).
 * A step is applied when every trainer has pushed its share. So a trainer that waits
 * (weft_rows_wait) for rows of a step that it has not pushed yet would wait for itself; it gets
 * WEFT_INVALID. With a sparse_mode other than WEFT_SPARSE_SYNC (weft_session_opts) a pull returns
 * the rows as they are when it reaches the lane, and each lane applies a step as it arrives.
 * Semantics: sparse/README.md.
 *
 * Thread: as for the session, one at a time. No call waits for ever; weft_last_error
 * has the text of every status other than WEFT_OK and WEFT_AGAIN. */
#ifndef WEFT_SPARSE_H
#define WEFT_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"
#include "weft/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_table; /* belongs to the session, until that is closed */
struct weft_rows;  /* one batch of a table under way; a table has at most two */

enum weft_value_format {
	WEFT_VALUES_F32 = 0,
	WEFT_VALUES_BF16 = 1,
	WEFT_VALUES_F16 = 2,
};

/* The optimizer of a table's rows, which lanes run. Formulas: kernels/formulas.md. */
struct weft_row_optimizer_opts {
	/* "sgd", "momentum", "sparse_momentum", "adagrad", "adagrad_rowwise", "rmsprop", "adam",
	 * "adam_rowwise", "ftrl", "ftrl_group". Default: "sgd". */
	const char *method;
	double learning_rate; /* at least 0; for ftrl alpha, above 0. Default: 0.001. */
	double momentum;      /* momentum, sparse_momentum: [0, 1). Default: 0. */
	double beta1, beta2;  /* adam, adam_rowwise: [0, 1). Defaults: 0.9, 0.999. */
	double rho;           /* rmsprop: [0, 1). Default: 0.95. */
	/* Above 0; outside the root in adam, inside in adagrad and rmsprop. Default: 1e-6. */
	double epsilon;
	double decay;     /* L2 as part of the gradient; not for ftrl; >= 0. Default: 0. */
	double clip;      /* gradients are clipped to [-clip, clip]; 0 turns it off. Default: 0. */
	double l1, l2;    /* applied after the step, in ftrl inside it; >= 0. Default: 0. */
	double l21;       /* ftrl_group; >= 0. Default: 0. */
	double ftrl_beta; /* ftrl; >= 0. Default: 1. */
	/* "constant", "linear", "warmup", "poly", "caffe_poly", "exp", "discexp". With "manual" and
	 * "pass_manual", which tensors have, weft_table_add returns WEFT_UNSUPPORTED. Default:
	 * "constant". */
	const char *schedule;
	double schedule_a, schedule_b; /* Default: 0. */
	/* 0: a step leaves the rows that it does not touch as they are. 1: they end where a dense
	 * run with a gradient of zero would have brought them, by a closed form. Where there is no
	 * closed form, and where a job with a decay, l1 or l2 and a schedule other than "constant"
	 * continues from a saved model, the result is WEFT_UNSUPPORTED. Default: 0. */
	int dense_equivalent;
};

/* The same on all trainers of a job, except batch_keys_max and raw_keys. */
struct weft_table_opts {
	size_t struct_bytes; /* set by weft_table_opts_init */

	const char *name;    /* unique in the job; 1..127 printable characters without spaces */
	uint32_t dim;        /* values of a row, 1..4,096 */
	uint64_t vocabulary; /* keys are 0 .. vocabulary - 1; 0 allows any 64 bits. Default: 0. */
	/* The most memory that one lane uses for the table; 0 means no cap. A cap that leaves no
	 * room for what a table needs before its first row ends the job with WEFT_INVALID at the
	 * start. Default: 0. */
	uint64_t memory_cap_bytes;
	/* The most keys in one batch, repeated ones counted, 1..4,194,304. Pulled and pushed data
	 * lies in memory of the library, about 4 (dim x 4 + 8) bytes a key: two batches in both
	 * directions. Default: 65,536. */
	uint32_t batch_keys_max;
	enum weft_value_format rest; /* how lanes store values of rows. Default: WEFT_VALUES_F32. */
	/* How values of rows and gradients travel; the caller sees f32 in any case. With 16 bits,
	 * rows are rounded once on their way to a trainer, and the sum of a trainer's gradients of
	 * a row is rounded on its way to the lane, both to nearest; lanes sum in f32.
	 * WEFT_VALUES_F16 ends at 65,504: larger values become infinite. Default:
	 * WEFT_VALUES_F32. */
	enum weft_value_format wire;
	/* 1: keys travel as 8 bytes each. 0: as differences where they lie close together.
	 * Default: 0. */
	int raw_keys;

	struct weft_row_optimizer_opts optimizer;

	/* Initial values, a function of (seed, table, key, column) alone: "zero"; "uniform" from
	 * init_a to init_b; "normal" with mean init_a and standard deviation init_b. Default:
	 * "zero". */
	const char *init;
	double init_a, init_b;
	uint64_t init_seed;

	/* Admission: when a key gets a row. Both conditions must hold. Until then a pull returns
	 * zeros, and pushes are dropped and counted. */

	/* The number of times it must have been pushed; 0 and 1 admit it at once. Default: 0. */
	uint32_t admit_count;
	/* Counters in a partition, a power of 2; 0 stands for 4,096. Default: 0. */
	uint32_t admit_slots;
	/* The chance of being admitted at each push, (0, 1]. Default: 1. */
	double admit_probability;

	/* Eviction: when a row is removed. */

	/* The number of steps since its last update or its birth; 0: never. Default: 0. */
	uint64_t evict_age_steps;
	/* A row is evicted when its score, show_weight (show - click) + click_weight click, falls
	 * below this. show and click are multiplied by evict_fade every evict_fade_steps. 0: never,
	 * and nothing is counted. Default: 0. */
	double evict_score_least;
	double evict_show_weight, evict_click_weight; /* Defaults: 0.25, 1. */
	double evict_fade;                            /* (0, 1]. Default: 1. */
	uint64_t evict_fade_steps;                    /* at least 1. Default: 1. */
	/* What happens to a new row at the memory cap. 1: it replaces an old one. 0: it is refused,
	 * and what is pushed to it is dropped and counted. Default: 0. */
	int evict_at_cap;

	/* Settings that were set by name (WEFT_SETTINGS_TABLE), as in weft_session_opts. This
	 * struct does not grow any more. NULL: none. Default: NULL. */
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
 * @return WEFT_OK; WEFT_INVALID: the text names option, value and remedy; also for a bad or
 *         repeated name, without sparse ports, and once the session is sealed; WEFT_UNSUPPORTED: a
 *         setting that this version does not have; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_table_add(struct weft_session *session,
					 const struct weft_table_opts *opts,
					 struct weft_table **out) WEFT_MUST_CHECK;

WEFT_API const char *weft_table_name(const struct weft_table *table);
WEFT_API uint32_t weft_table_dim(const struct weft_table *table);

enum weft_rows_flag {
	/* For training: keys without a row get one, if the table admits them. Without this flag no
	 * rows are created, and such keys return their initial values. */
	WEFT_ROWS_CREATE = 1,
	/* Rows lie in the order in which their keys first occur, and not in the order of the keys:
	 * first those of the first lane, then lane by lane. Lanes then write them straight into an
	 * array in the caller's order, without a copy, if the keys are distinct and the job has one
	 * sparse lane, or the keys are grouped by weft_table_key_lane, lowest first: see
	 * weft_rows_in_order. Repeated keys share a row in any case: see weft_rows_place. Keys that
	 * do not ascend are then pulled as 8 bytes each, and sorted when the batch is pushed. No
	 * bit of any row depends on this flag; which rows are refused or evicted at a memory cap
	 * may. */
	WEFT_ROWS_IN_ORDER = 2,
};

/**
 * Begin to fetch the rows of a batch of keys, as they are once the current step has been applied.
 * Never blocks. At most two batches of a table exist at a time; a pushed batch counts until its
 * step has been waited for.
 * @param table of a started session
 * @param key   [count], in any order, with any repetitions; copied
 * @param count at most batch_keys_max; for 0, a batch without rows, weft_rows_wait returns at once
 * @param flags enum weft_rows_flag, or 0
 * @param out   written on WEFT_OK; ends with weft_rows_free or, once pushed, with the wait for its
 *              step
 * @return WEFT_OK; WEFT_AGAIN: the table has two batches: push and wait, or free one;
 *         WEFT_INVALID: too many keys, a key outside the vocabulary (the text names it and its
 *         index), an unknown flag, or more than a lane holds for one trainer (its held_bytes; the
 *         text has the remedy); nothing has begun; WEFT_ABORTED and the other statuses of
 *         weft_wait: the job is over
 */
WEFT_API enum weft_status weft_rows_pull(struct weft_table *table, const uint64_t *key,
					 uint32_t count, unsigned flags,
					 struct weft_rows **out) WEFT_MUST_CHECK;

/**
 * Wait until the rows have arrived. Returns at once if they have. Blocks.
 * @return WEFT_OK; WEFT_INVALID: they belong to a step that this trainer has begun but not pushed
 *         (weft_rows_push of every table, or weft_wait_all), so they cannot arrive;
 *         WEFT_TIMEOUT: step_timeout_ns has passed; WEFT_AGAIN: interrupted (weft_session_opts),
 *         call it again; the status of a lane that refused the pull: this batch has failed, as have
 *         those that were asked for in the same message, and weft_rows_free frees it; WEFT_LOST,
 *         WEFT_ABORTED, WEFT_DATA: the job is over
 */
WEFT_API enum weft_status weft_rows_wait(struct weft_rows *rows) WEFT_MUST_CHECK;

/* The following are valid from weft_rows_pull until the batch ends. */
/* The number of distinct keys. */
WEFT_API uint32_t weft_rows_count(const struct weft_rows *rows);
/* [weft_rows_count] the key of each row. */
WEFT_API const uint64_t *weft_rows_keys(const struct weft_rows *rows);
/* [count of the pull] the row of each of the caller's keys. */
WEFT_API const uint32_t *weft_rows_place(const struct weft_rows *rows);
/* [weft_rows_count * dim] f32, row-major, 64-byte aligned; lanes write there until weft_rows_wait
 * has returned WEFT_OK. It is registered memory of the session into which the lanes' answers are
 * written: over verbs by the network card, over TCP by the kernel, over shared memory by the one
 * copy that takes the place of the network. Nothing else is copied, unless the wire format has 16
 * bits: then weft_rows_wait widens the values, which copied_bytes of weft_table_stats counts. A
 * batch's array keeps its address from weft_session_seal to weft_session_close, whatever batch it
 * is used for. */
WEFT_API const float *weft_rows_values(const struct weft_rows *rows);
/* 1: weft_rows_values is in the caller's order of keys, row i for key i, each once, and may be used
 * as the [count * dim] array of the batch. That is always so if the keys of a pull ascend strictly
 * and all belong to one lane; otherwise see WEFT_ROWS_IN_ORDER. */
WEFT_API int weft_rows_in_order(const struct weft_rows *rows);
/**
 * Copy the rows, after weft_rows_wait, to the caller's memory: one for each of the caller's keys,
 * repeated as they are. Counted in copied_bytes of weft_table_stats.
 * @param out [count of the pull * dim] f32
 * @return WEFT_OK; WEFT_INVALID: before weft_rows_wait; the status that weft_rows_wait returned
 */
WEFT_API enum weft_status weft_rows_gather(const struct weft_rows *rows,
					   float *out) WEFT_MUST_CHECK;
/* The sparse lane that owns a key, counted over all pservers from 0, for callers that group keys by
 * lane. It is a function of the key, the table's vocabulary and the number of lanes. */
WEFT_API uint32_t weft_table_key_lane(const struct weft_table *table, uint64_t key);

/**
 * Push the gradients of a batch for the current step. Never blocks. Gradients of repeated keys are
 * summed in the caller's order, in f32. Each table is pushed at most once in a step, after
 * weft_rows_wait. The gradients leave for the lanes when every table has been pushed; a table that
 * has not been when weft_wait_all, weft_exchange, weft_pass_end or the next weft_step is called
 * counts as pushed without rows.
 * @param grad  [count of the pull * dim] f32, row-major, in the caller's order of keys; borrowed
 *              for the call; may be NULL if the batch has no keys
 * @param show  [count of the pull], or NULL for 1 each; used by tables with evict_score_least
 * @param click likewise, or NULL for 0 each
 * @return WEFT_OK: the wait for the step ends the batch; do not use it after that;
 *         WEFT_INVALID: no step has begun, the table or the step has been pushed, the batch has not
 *         been waited for or has failed, or the step's gradients are more than a lane holds for one
 *         trainer (its held_bytes); nothing has changed; WEFT_ABORTED and others: the job is over
 */
WEFT_API enum weft_status weft_rows_push(struct weft_rows *rows, const float *grad,
					 const float *show, const float *click) WEFT_MUST_CHECK;

/* Free a batch that is not pushed: after an evaluation, or after a failed wait. If it is still
 * under way, its memory is free once the answers have arrived. Accepts NULL; has no effect on a
 * pushed batch. */
WEFT_API void weft_rows_free(struct weft_rows *rows);

/* A row with all of its state, for saving and restoring a job. */
struct weft_table_record {
	uint64_t key;
	uint32_t stamp;      /* the step of its last update; 0: none */
	uint32_t born;       /* the step after which it was created */
	float show, click;   /* 0 without scores */
	const float *floats; /* [weft_table_record_floats]: values, then the optimizer's state */
};

/* The number of partitions of a table, whatever the number of lanes. */
#define WEFT_TABLE_PARTITIONS 1024

struct weft_table_partition {
	uint32_t partition;
	uint64_t record_count;
	const uint16_t *counter; /* [counter_count] of admission; NULL: all are 0 */
	uint32_t counter_count;
};

/* The number of f32 in a record; the number of admission counters in a partition, 0 if admit_count
 * is at most 1. */
WEFT_API uint32_t weft_table_record_floats(const struct weft_table *table);
WEFT_API uint32_t weft_table_counter_count(const struct weft_table *table);

/* Called by weft_table_read in the caller's thread: for each partition from 0 on, and then for its
 * records in ascending order of keys. The arguments are lent for the call. If a callback returns
 * anything but WEFT_OK, the reading ends and returns that status. */
struct weft_table_reader {
	enum weft_status (*partition)(void *arg, const struct weft_table_partition *partition);
	enum weft_status (*record)(void *arg, const struct weft_table_record *record);
	void *arg;
};

/* Called by weft_table_write in the same order: fill in `out`. What it points to has to last until
 * the next call. */
struct weft_table_writer {
	enum weft_status (*partition)(void *arg, uint32_t partition,
				      struct weft_table_partition *out);
	enum weft_status (*record)(void *arg, struct weft_table_record *out);
	void *arg;
	uint64_t step; /* weft_table_step of what is restored; 0: weft_steps */
};

/**
 * Trainer 0, when weft_table_read is allowed: get the step to which the stamps and births of a
 * table's records refer. In a synchronous job that is weft_steps, in others the number of pushes of
 * all trainers. May block.
 * @param out written on WEFT_OK
 * @return as weft_table_read
 */
WEFT_API enum weft_status weft_table_step(struct weft_table *table, uint64_t *out) WEFT_MUST_CHECK;

/**
 * Trainer 0: fetch every row of a table with all of its state, as it is after the last step of the
 * last pass. Call it between weft_pass_end and the next weft_step. What the other trainers ask for
 * meanwhile is answered. With a sparse_mode other than WEFT_SPARSE_SYNC all trainers have to be
 * connected, between two passes, and wait (weft_barrier) until it is done. Blocks.
 * @return WEFT_OK; a status of the callbacks; WEFT_INVALID: this is not trainer 0, a step is under
 *         way, or in a job that is not synchronous another trainer has begun the next pass;
 *         WEFT_UNSUPPORTED: the rows do not fit into the lanes' slots; WEFT_NOMEM: here or on a
 *         lane; WEFT_DATA: a lane sent something that is not a table; WEFT_AGAIN: interrupted
 *         (weft_session_opts): end the session, because its request is unanswered and
 *         weft_table_step, _read and _write return WEFT_INVALID; otherwise as weft_wait
 */
WEFT_API enum weft_status weft_table_read(struct weft_table *table,
					  const struct weft_table_reader *to) WEFT_MUST_CHECK;

/**
 * Trainer 0, between weft_session_start and the first weft_step: restore all rows of a table, in a
 * session that was restored at their step (weft_session_restore); or, at step 0, set the rows with
 * which it begins, with stamp and born 0. Every table of a job that continues is written. No
 * trainer may pull before that: let all of them meet in weft_barrier afterwards. The records may
 * come from a job with any number of lanes. Blocks.
 * @return as weft_table_read; WEFT_INVALID also if a step has begun, a pull of any trainer has made
 *         rows (WEFT_ROWS_CREATE; other pulls are not noticed), or a record is impossible, in which
 *         case the job cannot continue
 */
WEFT_API enum weft_status weft_table_write(struct weft_table *table,
					   const struct weft_table_writer *from) WEFT_MUST_CHECK;

#define WEFT_TABLE_HOT_KEYS 8

/* What this trainer has sent and received of a table since weft_session_start. */
struct weft_table_stats {
	size_t struct_bytes; /* set by the caller: sizeof(struct weft_table_stats) */

	uint64_t batches_pulled, batches_pushed;
	uint64_t keys_pulled, keys_pushed;         /* the caller's, repeated ones counted */
	uint64_t rows_pulled, rows_pushed;         /* each key of a batch once */
	uint64_t key_bytes, row_bytes, grad_bytes; /* of keys both ways; of values; of gradients */

	/* Rows pulled and pushed of the busiest sparse lane, divided by the mean over lanes: 1 if
	 * all lanes have the same number, 0 before the first row. */
	double imbalance;
	uint32_t lane_count; /* sparse lanes of all pservers */

	/* The keys that were pulled most often, in descending order, by a sample of one in 64. */
	uint32_t hot_count;
	uint64_t hot_key[WEFT_TABLE_HOT_KEYS];
	uint64_t hot_times[WEFT_TABLE_HOT_KEYS]; /* estimates */
	/* The exponent s of the law count ~ rank^-s that fits best: 0 if all keys are equally
	 * frequent, about 1 for words; -1 if too few keys stand out. */
	double zipf;
	/* Bytes of received values that were copied: widened from 16 bits, or by weft_rows_gather.
	 * 0: lanes have written everything straight to where the caller reads it. */
	uint64_t copied_bytes;
};

/* One sparse lane's share of these. */
struct weft_table_lane_stats {
	size_t struct_bytes; /* set by the caller */
	uint64_t rows_pulled, rows_pushed;
	uint64_t key_bytes, row_bytes, grad_bytes;
};

/* What the sparse lanes reported about the steps that they applied, for all tables and trainers. */
struct weft_sparse_stats {
	size_t struct_bytes;    /* set by the caller */
	uint64_t steps_applied; /* on every lane, as far as this trainer knows */
	uint64_t rows_updated;
	/* (key, gradient) pairs that were dropped at a table's memory_cap_bytes or, in asynchronous
	 * modes, for their lag. Without a cap none is dropped for lack of memory: the job ends with
	 * WEFT_NOMEM. */
	uint64_t pushes_lost;
	uint64_t grads_nonfinite; /* elements that were not applied */
	uint64_t waits_slot;      /* a lane's window was full and more was to be sent */
	uint64_t pulls_repeated;  /* sent again after a connection was lost */
	uint64_t pushes_repeated;
};

/**
 * Statistics. They never block, and may be called at any time before close, also after a failure.
 * @param lane below lane_count; lane i of pserver p is p x ports_num_for_sparse + i
 * @return WEFT_OK; WEFT_INVALID: struct_bytes is not what this version of the library has, or there
 *         is no such lane
 */
WEFT_API enum weft_status weft_table_stats(struct weft_table *table,
					   struct weft_table_stats *out) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_table_lane_stats(struct weft_table *table, uint32_t lane,
						struct weft_table_lane_stats *out) WEFT_MUST_CHECK;
/* For a session without tables all are 0. */
WEFT_API enum weft_status weft_sparse_stats(struct weft_session *session,
					    struct weft_sparse_stats *out) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
