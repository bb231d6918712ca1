/* SPDX-License-Identifier: Apache-2.0 */
/* product: the measured product: pservers of one lane each and trainers, each a process, as users
 * have them. Trainers use only the public library. Thread: the benchmark's. */
#pragma once

#include "tools/rdma_bench/side.h"
#include "weft/weft.h"

#define WF_PRODUCT_PSERVERS_MAX 4u
#define WF_PRODUCT_TRAINERS_MAX 64u
#define WF_PRODUCT_HOSTS_BYTES 128u
#define WF_PRODUCT_NAME_BYTES 24u

struct wf_product_opts {
	const char *transport;
	uint64_t bytes; /* of the one tensor that each trainer pushes and gets back */
	uint64_t slice_bytes;
	/* Rows of a table on a sparse lane of each pserver instead of the tensor, at least two
	 * batches; several trainers may pull only. `quick`: few different batches. */
	uint64_t rows;
	bool quick;
	unsigned pserver_count, trainer_count;
	int pserver_cpu, trainer_cpu; /* WF_CPU_ANY: any of `either`; WF_CPU_FREE */
	int either[2];
	uint64_t spin_ns; /* of both; 0: they sleep at once */
	enum weft_progress progress;
	const char *congestion;
	uint32_t batch; /* steps of one sample */
	enum weft_dense_mode dense_mode;
};

struct wf_product {
	struct wf_worker pserver[WF_PRODUCT_PSERVERS_MAX], trainer[WF_PRODUCT_TRAINERS_MAX];
	char hosts[WF_PRODUCT_HOSTS_BYTES]; /* where the pservers are, for sessions */
	char name[WF_PRODUCT_TRAINERS_MAX][WF_PRODUCT_NAME_BYTES]; /* of trainers, for messages */
	struct wf_side side;
};

/* Starts the pservers. */
enum weft_status wf_product_open(const struct wf_product_opts *opts,
				 struct wf_product *out) WEFT_MUST_CHECK;
/* Starts the trainers of what was opened with the same opts, connected and initialised. */
enum weft_status wf_product_join(const struct wf_product_opts *opts,
				 struct wf_product *product) WEFT_MUST_CHECK;
/* Both. With no trainers: the pservers alone. */
enum weft_status wf_product_start(const struct wf_product_opts *opts,
				  struct wf_product *out) WEFT_MUST_CHECK;
/* The memory that a pserver has from its env, in bytes (base/env.h). */
enum weft_status wf_product_memory(struct wf_product *product, unsigned pserver,
				   uint64_t *out) WEFT_MUST_CHECK;
/* Sends GOODBYE and ends. Accepts a product that is half started. */
void wf_product_end(struct wf_product *product);
