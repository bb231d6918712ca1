/* SPDX-License-Identifier: Apache-2.0 */
/* table_product: batches of rows between one trainer and one sparse lane, as the product does it.
 * Thread: starting and ending: the benchmark's. */
#pragma once

#include "tools/rdma_bench/product.h"

struct wf_exchange_opts {
	const char *transport; /* "tcp", "shm" */
	uint64_t rows;         /* of the table; at least two batches */
	bool quick;
	uint64_t spin_ns;
	int pserver_cpu, trainer_cpu;
	const char *congestion;
};

/* The table has all rows when this returns. Orders' modes are those of batches.h. */
enum weft_status wf_exchange_product_start(const struct wf_exchange_opts *opts,
					   struct wf_product *out) WEFT_MUST_CHECK;
