/* SPDX-License-Identifier: Apache-2.0 */
/* table_exchange: batches of rows between one trainer and one sparse lane, as the product does it,
 * and as a hand-written loop does with the same table and the same bytes. Thread: starting and
 * ending: the benchmark's. */
#pragma once

#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/product.h"

#define WF_EXCHANGE_DIM 64u
#define WF_EXCHANGE_BATCH 4096u
#define WF_EXCHANGE_AHEAD 2u /* pulls under way: as many as a table of the library has batches */

/* What an order's mode asks for. An operation is one batch of rows. */
enum wf_exchange_mode {
	WF_EXCHANGE_PULL, /* rows come, and nothing is done with them */
	WF_EXCHANGE_STEP, /* rows come, the batch after it is asked for, gradients go back; AdaGrad
			   */
};

struct wf_exchange_opts {
	struct wf_env *env;
	const char *transport; /* "tcp", "shm" */
	uint64_t rows;         /* of the table; at least two batches */
	bool quick;
	uint64_t spin_ns;
	int pserver_cpu, trainer_cpu;
	const char *congestion;
};

/* Both have tables with all rows when this returns. */
enum weft_status wf_exchange_product_start(const struct wf_exchange_opts *opts,
					   struct wf_product *out) WEFT_MUST_CHECK;
/* Ends with wf_limit_end. */
enum weft_status wf_exchange_limit_start(const struct wf_exchange_opts *opts,
					 struct wf_limit *out) WEFT_MUST_CHECK;

/* table_batches.c: what both ends of both work with. */

struct wf_exchange_batches {
	uint64_t *key; /* [count * WF_EXCHANGE_BATCH] distinct in a batch, ascending */
	float *grad;   /* [WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM] */
	size_t count;
	size_t next;
};

/* WEFT_NOMEM. The process's end gives it back. */
enum weft_status wf_exchange_batches(const struct wf_exchange_opts *opts, struct wf_env *env,
				     struct wf_exchange_batches *out) WEFT_MUST_CHECK;
/* Keys of a batch, each time another's. */
const uint64_t *wf_exchange_next(struct wf_exchange_batches *batches);
/* The table's nth key. */
uint64_t wf_exchange_key(uint64_t number);
