/* SPDX-License-Identifier: Apache-2.0 */
/* items_async: async: four trainers and a pserver on the two CPUs, pushing asynchronously over
 * shared memory, all sleeping at once, against the bare loops that this needs. Thread: the
 * benchmark's. */
#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/pairs.h"

#define ASYNC_BYTES (16ull << 20) /* of the tensor of each trainer */
#define ASYNC_TARGET 0.9

enum weft_status
wf_items_async(struct wf_bench *bench)
{
	struct wf_product product = {0};
	struct wf_limit crowd = {0};
	if (!wf_bench_wants_transport(bench, "shm")) {
		return WEFT_OK;
	}
	struct wf_product_opts opts = wf_bench_product_opts(bench, "shm");
	opts.bytes = ASYNC_BYTES;
	opts.trainer_count = WF_LIMIT_TRAINERS;
	opts.pserver_cpu = WF_CPU_ANY;
	opts.trainer_cpu = WF_CPU_ANY;
	opts.dense_mode = WEFT_DENSE_ASYNC;
	struct wf_limit_opts bare = wf_bench_limit_opts(bench);
	bare.bytes = ASYNC_BYTES;
	bare.slice_bytes = WF_BENCH_SLICE_BYTES;
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){.name = "async",
				     .transport = "shm",
				     .mode = "1 + 4, sleep",
				     .limited_by = "bare loops",
				     .bytes = ASYNC_BYTES,
				     .target = ASYNC_TARGET};
	enum weft_status st = wf_product_start(&opts, &product);
	if (st == WEFT_OK) {
		st = wf_limit_crowd_start(&bare, &crowd);
	}
	if (st == WEFT_OK) {
		const struct wf_pairs pairs = {
			.product = &product.side, .limit = &crowd.side, .measure = WF_MEASURE_RATE};
		st = wf_pairs_run(bench, &pairs, result);
	}
	wf_product_end(&product);
	wf_limit_end(&crowd);
	return st;
}
