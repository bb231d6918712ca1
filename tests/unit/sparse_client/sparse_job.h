/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_job: a small job with tables whose every value can be computed: trainers pull, compute and
 * push batches of keys that follow from a seed, and the values that they received must be, to the
 * bit, those of a run with plain tables, one trainer after the other. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "weft/sparse.h"

#define SPARSE_TABLES_MAX 4u
#define SPARSE_TRAINERS_MAX 4u

struct sparse_table_kind {
	uint32_t dim;
	uint64_t vocabulary; /* 0: any */
	const char *method, *init;
	bool scores, dense_equivalent;
	enum weft_value_format wire;
};

/* What trainer 0 keeps between two jobs. */
#define SPARSE_RECORDS_MAX 256u
#define SPARSE_FLOATS_MAX 64u

struct sparse_kept {
	uint64_t step, samples;
	float param[2][72];
	struct sparse_kept_table {
		uint64_t step;
		uint32_t count[WEFT_TABLE_PARTITIONS];
		uint32_t all;
		struct weft_table_record record[SPARSE_RECORDS_MAX];
		float floats[SPARSE_RECORDS_MAX][SPARSE_FLOATS_MAX];
	} table[SPARSE_TABLES_MAX];
};

struct sparse_job {
	uint64_t seed;
	uint32_t trainers, passes;
	uint32_t first_pass;                 /* continues with it, from `from` */
	uint32_t digest_pass;                /* digests are of this pass and what comes after */
	struct sparse_kept *from;            /* NULL: from the beginning */
	struct sparse_kept *to;              /* NULL: nothing is kept; else after the last pass */
	uint32_t steps[SPARSE_TRAINERS_MAX]; /* of each pass; they may differ */
	uint32_t table_count;
	struct sparse_table_kind table[SPARSE_TABLES_MAX];
	uint32_t keys_most;  /* of a batch */
	uint32_t idle_every; /* a table is not pushed at all once in this many steps; 0: never */
	bool mean;
	enum weft_sparse_mode mode; /* the sequential run is of WEFT_SPARSE_SYNC */
	uint32_t staleness;
	double discard_ratio;

	/* What must change nothing. */
	bool prefetch, raw_keys, in_order, tensors, threaded;
	const char *transport, *pservers;
	uint16_t port;
	uint32_t ports_num, ports_num_for_sparse;
	uint64_t reconnect_timeout_ns, connect_timeout_ns; /* 0: the default */
};

/* What a trainer saw. */
struct sparse_seen {
	enum weft_status status;
	char why[256];
	uint64_t digest; /* of all rows in the order in which they arrived, and of all at the end */
	uint64_t dense_digest; /* of the tensors, if there are any */
	uint64_t pulls_repeated, pushes_repeated, pushes_lost;
	uint64_t parts_ahead; /* of pulls, that were sent ahead, and corrected */
};

/* A job that follows from the seed, without what must change nothing. */
void sparse_job_draw(uint64_t seed, struct sparse_job *out);
/* Some of its tables travel in 16 bits, as follows from the seed. */
void sparse_job_draw_wire(struct sparse_job *job);
/* Be one of its trainers. */
void sparse_job_train(const struct sparse_job *job, struct wf_env *env, uint32_t trainer,
		      struct sparse_seen *out);
/* Asserts that rows of each lane lie in the order in which their keys come first, if the job has
 * in_order. */
void sparse_job_check_order(const struct sparse_job *job, const struct weft_table *table,
			    const struct weft_rows *rows, const uint64_t *key, uint32_t count);
/* digest[trainer], from plain tables alone. */
enum weft_status sparse_job_sequential(const struct sparse_job *job, struct wf_env *env,
				       uint64_t *digest) WEFT_MUST_CHECK;
