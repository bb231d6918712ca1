/* SPDX-License-Identifier: Apache-2.0 */
/* items_kernel: fused_sum_sgd: the pass in which a lane sums four trainers' slices and applies SGD,
 * against a bare loop of the same memory traffic. One worker does both, over the same arrays.
 * Thread: the benchmark's; run_kernel: the worker's. */
#include "base/assert.h"
#include "base/env.h"
#include "kernels/kernels.h"
#include "tools/rdma_bench/harness.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/pairs.h"

#define MODE_PRODUCT 0u
#define MODE_LIMIT 1u
#define STREAMS (WF_LIMIT_SUM_GRADS + 2u) /* gradients are read, parameters read and written */
#define RATE 1e-9f
#define TARGET_MEMORY 0.95
#define TARGET_CACHE 0.85
#define READY_TIMEOUT_NS (60 * WF_NS_PER_S)

/* Arrays of one size, and what holds the pass up there. */
struct kernel_item {
	uint64_t bytes; /* of each array */
	const char *limited_by;
	double target;
};

struct arrays {
	float *param;
	const float *grad[WF_LIMIT_SUM_GRADS];
	size_t count;
	const struct wf_kernels *kernels;
	const struct wf_limit_form *limit;
};

static enum weft_status
make_arrays(struct wf_env *env, uint64_t bytes, struct arrays *out)
{
	/* Once: in a virtual machine the query takes microseconds. */
	out->kernels = wf_kernels_best();
	out->limit = wf_limit_form_best();
	struct wf_slab slab[WF_LIMIT_SUM_GRADS + 1];
	for (unsigned i = 0; i <= WF_LIMIT_SUM_GRADS; i++) {
		enum weft_status st = env->ops->slab_open(env, bytes, -1, &slab[i]);
		if (st != WEFT_OK) {
			return st;
		}
		wf_limit_fill(slab[i].base, bytes, 0.5f);
		if (i < WF_LIMIT_SUM_GRADS) {
			out->grad[i] = slab[i].base;
		}
	}
	out->param = slab[WF_LIMIT_SUM_GRADS].base;
	out->count = bytes / sizeof(float);
	return WEFT_OK;
}

static enum weft_status
run_passes(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	const struct arrays *arrays = work;
	const struct wf_apply apply = {
		.param = arrays->param,
		.grad = arrays->grad,
		.grad_count = WF_LIMIT_SUM_GRADS,
		.count = arrays->count,
		.is_far = wf_apply_is_far(arrays->count * sizeof(float) * (WF_LIMIT_SUM_GRADS + 1)),
		.divisor = 1,
		.rate = RATE,
		.plain_rate = RATE,
	};
	for (uint64_t i = 0; i < order->count; i++) {
		if (order->mode == MODE_LIMIT) {
			arrays->limit->sum_sgd(arrays->param, arrays->grad, arrays->count, RATE);
		} else {
			(void)arrays->kernels->apply[WF_SGD](&apply);
		}
		wf_meter_mark(meter);
	}
	return WEFT_OK;
}

static enum weft_status
run_kernel(struct wf_bench_seat *seat, const void *arg)
{
	const struct kernel_item *item = arg;
	struct arrays arrays;
	const struct wf_duty duty = {.run = run_passes, .work = &arrays, .batch = 1};
	enum weft_status st = make_arrays(seat->env, item->bytes, &arrays);
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

static struct wf_side
side_of(struct wf_worker *worker, uint64_t bytes, uint32_t mode)
{
	return (struct wf_side){
		.worker = {worker}, .worker_count = 1, .mode = mode, .bytes = bytes * STREAMS};
}

static enum weft_status
measure(struct wf_bench *bench, const struct kernel_item *item)
{
	const struct wf_worker_opts opts = {
		.name = "the kernels' worker",
		.cpu = bench->cpu[0],
		.run = run_kernel,
		.arg = item,
	};
	struct wf_worker worker = {0};
	struct wf_figures ready;
	enum weft_status st = wf_worker_start(&opts, &worker);
	if (st == WEFT_OK) {
		st = wf_worker_await(&worker, READY_TIMEOUT_NS, &ready);
	}
	if (st == WEFT_OK) {
		struct wf_result *result = wf_bench_add(bench);
		*result = (struct wf_result){.name = "fused_sum_sgd",
					     .transport = "memory",
					     .mode = wf_kernels_best()->name,
					     .limited_by = item->limited_by,
					     .bytes = item->bytes,
					     .target = item->target};
		struct wf_side product = side_of(&worker, item->bytes, MODE_PRODUCT);
		struct wf_side limit = side_of(&worker, item->bytes, MODE_LIMIT);
		const struct wf_pairs pairs = {.product = &product,
					       .limit = &limit,
					       .measure = WF_MEASURE_RATE,
					       .one_core = true};
		st = wf_pairs_run(bench, &pairs, result);
	}
	wf_worker_end(&worker, WF_NS_PER_S);
	return st;
}

enum weft_status
wf_items_kernel(struct wf_bench *bench)
{
	static const struct kernel_item items[] = {
		{64ull << 20, "memory bandwidth", TARGET_MEMORY},
		{1ull << 20, "cache bandwidth", TARGET_CACHE},
	};
	enum weft_status st = WEFT_OK;
	for (size_t i = 0; st == WEFT_OK && i < WF_ARRAY_COUNT(items); i++) {
		st = measure(bench, &items[i]);
	}
	return st;
}
