/* SPDX-License-Identifier: Apache-2.0 */
/* items_merge: rows_merge: what a client does with the order and the repetitions of a batch, alone:
 * each key once, and the sum of the gradients of each, against a small hash table and a plain loop.
 * One worker does both, with the keys and gradients of rows_step, and nothing is sent. Thread: the
 * benchmark's; run_batches: the worker's. */
#include "base/env.h"
#include "sparse/client/batch.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/merge.h"
#include "tools/rdma_bench/pairs.h"

#define ROWS_MAX 1000000u
#define QUICK_ROWS 20000u
#define PART_BYTES (256ull << 10) /* the default slot of a sparse lane */
#define READY_TIMEOUT_NS (60 * WF_NS_PER_S)
#define SUM_BYTES ((size_t)WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM * sizeof(float))

/* What an order's mode selects. */
enum merge_mode {
	MERGE_LIMIT = 1, /* the loop, else the product */
	MERGE_GRADS = 2, /* gradients are summed as well */
};

_Static_assert(WF_EXCHANGE_BATCH <= WF_LIMIT_MERGE_MAX, "a batch can be merged");

static const struct figure {
	const char *mode;
	uint32_t work;
	double target;
} figures[] = {
	{"keys", 0, 0.5},
	{"keys, gradients", MERGE_GRADS, 0.75},
};
#define FIGURES (sizeof(figures) / sizeof(figures[0]))

struct merge_arg {
	uint64_t rows;
	bool quick;
};

struct both {
	struct wf_exchange_batches batches;
	struct wf_batch *batch; /* the product's */
	uint8_t *send;
	struct wf_limit_merge *merge; /* the limit's */
	const struct wf_limit_form *form;
	float *sum;
};

static enum weft_status
merge_by_product(const struct both *both, const uint64_t *key, bool with_grads)
{
	const struct wf_batch_grads grads = {.grad = both->batches.grad};
	enum weft_status st = wf_batch_fill(both->batch, key, WF_EXCHANGE_BATCH);
	if (st != WEFT_OK) {
		return st;
	}
	wf_batch_put_keys(both->batch, both->send);
	if (with_grads) {
		wf_batch_put_grads(both->batch, &grads, both->send);
	}
	return WEFT_OK;
}

/* Its keys are where they are sent from already. */
static void
merge_by_loop(const struct both *both, const uint64_t *key, bool with_grads)
{
	wf_limit_merge(both->merge, key, WF_EXCHANGE_BATCH);
	if (with_grads) {
		both->form->sum_rows(both->sum, both->batches.grad, both->merge->place,
				     WF_EXCHANGE_BATCH, WF_EXCHANGE_DIM);
	}
}

static enum weft_status
run_batches(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	struct both *both = work;
	const bool with_grads = (order->mode & MERGE_GRADS) != 0;
	enum weft_status st = WEFT_OK;
	for (uint64_t i = 0; i < order->count && st == WEFT_OK; i++) {
		const uint64_t *key = wf_exchange_next(&both->batches, WF_EXCHANGE_DRAWN);
		if ((order->mode & MERGE_LIMIT) != 0) {
			merge_by_loop(both, key, with_grads);
		} else {
			st = merge_by_product(both, key, with_grads);
		}
		wf_meter_mark(meter);
	}
	return st;
}

/* Both sides have memory of the same kind. The process's end gives all of it back. */
static enum weft_status
make_both(struct wf_env *env, const struct merge_arg *arg, struct both *out)
{
	const struct wf_batch_opts opts = {
		.dim = WF_EXCHANGE_DIM,
		.format = WEFT_VALUES_F32,
		.lane_count = 1,
		.keys_max = WF_EXCHANGE_BATCH,
		.part_bytes_max = PART_BYTES,
		.may_delta = true,
	};
	enum weft_status st = wf_exchange_batches(env, arg->rows, arg->quick, &out->batches);
	if (st == WEFT_OK) {
		st = wf_batch_create(env, &opts, &out->batch);
	}
	if (st != WEFT_OK) {
		return st;
	}
	out->form = wf_limit_form_best();
	out->send = wf_limit_map(wf_batch_send_bytes(out->batch), false, -1);
	out->merge = wf_limit_map(sizeof(*out->merge), false, -1);
	out->sum = wf_limit_map(SUM_BYTES, false, -1);
	return out->send != NULL && out->merge != NULL && out->sum != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "memory of merged batches");
}

static enum weft_status
run_worker(struct wf_bench_seat *seat, const void *arg)
{
	struct both both = {0};
	const struct wf_duty duty = {.run = run_batches, .work = &both, .batch = 1};
	enum weft_status st = make_both(seat->env, arg, &both);
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

static struct wf_side
side_of(struct wf_worker *worker, uint32_t mode)
{
	return (struct wf_side){
		.worker = {worker}, .worker_count = 1, .mode = mode, .bytes = WF_EXCHANGE_BATCH};
}

static enum weft_status
compare(struct wf_bench *bench, struct wf_worker *worker, const struct figure *figure)
{
	struct wf_result *result = wf_bench_add(bench);
	struct wf_side product = side_of(worker, figure->work);
	struct wf_side limit = side_of(worker, figure->work | MERGE_LIMIT);
	const struct wf_pairs pairs = {
		.product = &product, .limit = &limit, .measure = WF_MEASURE_ROWS, .one_core = true};
	*result = (struct wf_result){
		.name = "rows_merge",
		.transport = "memory",
		.mode = figure->mode,
		.limited_by = "hash table, no sort",
		.bytes = WF_EXCHANGE_DIM * sizeof(float),
		.target = figure->target,
	};
	return wf_pairs_run(bench, &pairs, result);
}

enum weft_status
wf_items_merge(struct wf_bench *bench)
{
	const struct merge_arg arg = {
		.rows = bench->set.quick             ? QUICK_ROWS
			: bench->set.rows < ROWS_MAX ? bench->set.rows
						     : ROWS_MAX,
		.quick = bench->set.quick,
	};
	const struct wf_worker_opts opts = {
		.name = "the merging worker",
		.cpu = bench->cpu[0],
		.run = run_worker,
		.arg = &arg,
	};
	struct wf_worker worker = {0};
	struct wf_figures ready;
	enum weft_status st = wf_worker_start(&opts, &worker);
	if (st == WEFT_OK) {
		st = wf_worker_await(&worker, READY_TIMEOUT_NS, &ready);
	}
	for (size_t i = 0; i < FIGURES && st == WEFT_OK; i++) {
		st = compare(bench, &worker, &figures[i]);
	}
	wf_worker_end(&worker, WF_NS_PER_S);
	return st;
}
