/* SPDX-License-Identifier: Apache-2.0 */
/* table_worker: a worker of the benchmark that has the product's table, the bare one, and abseil's
 * where there is one, all with the same keys, and runs batches against them. Thread: run is the
 * worker's. */
#pragma once

#include "tools/rdma_bench/worker.h"

#define WF_TABLE_BATCH 4096u

enum wf_table_side {
	WF_TABLE_PRODUCT,
	WF_TABLE_BARE,
	WF_TABLE_ABSL, /* not for insert */
};

enum wf_table_work {
	WF_TABLE_PULL,
	WF_TABLE_PUSH,
	/* Drops all rows, then inserts all keys; once, whatever the count of the command. Its
	 * figures: elapsed_ns of the thread's CPU time; p50_ns, p99_ns and p999_ns: median, 99th
	 * percentile and longest of calls with WF_TABLE_INSERT_KEYS keys; text: their histogram;
	 * number: bytes of memory. */
	WF_TABLE_INSERT,
};

#define WF_TABLE_INSERT_KEYS 4096u

struct wf_table_arg {
	uint64_t rows;
	uint32_t dim;
	bool quick;
};

/* How often which keys come. */
enum wf_table_law {
	WF_TABLE_UNIFORM,
	WF_TABLE_ZIPF,   /* exponent 1.05; as in the others, keys of a batch are distinct */
	WF_TABLE_REPEAT, /* the same, as they are drawn: repeated, and in any order */
	WF_TABLE_LAWS,
};

/* The mode of an order. */
static inline uint32_t
wf_table_mode(enum wf_table_work work, enum wf_table_side side, enum wf_table_law law)
{
	return (uint32_t)work | (uint32_t)side << 4 | (uint32_t)law << 8;
}

/* Whether there is WF_TABLE_ABSL. */
bool wf_table_has_absl(void);
/* Bytes that a worker needs, approximately. */
uint64_t wf_table_worker_bytes(const struct wf_table_arg *arg);
/* The worker's life; ready once all tables are full. `arg`: a wf_table_arg. */
enum weft_status wf_table_worker_run(struct wf_bench_seat *seat, const void *arg) WEFT_MUST_CHECK;
