/* SPDX-License-Identifier: Apache-2.0 */
/* items_rows: rows_pull, rows_step: batches of rows between one trainer and one sparse lane,
 * against a hand-written loop of the same bytes with a table of its own. Thread: the benchmark's.
 */
#include <string.h>

#include "base/env.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/pairs.h"

#define ROWS_MAX 1000000u
#define QUICK_ROWS 20000u
#define SPIN_NS WF_NS_PER_MS

/* The figures, over each transport. */
static const struct figure {
	const char *name, *mode;
	uint32_t exchange; /* enum wf_exchange_mode */
	double target;
} figures[] = {
	{"rows_pull", "spin", WF_EXCHANGE_PULL, 0.8},
	{"rows_step", "spin", WF_EXCHANGE_STEP, 0.85},
	{"rows_pull", "spin, as drawn", WF_EXCHANGE_PULL | WF_EXCHANGE_DRAWN, 0.75},
	{"rows_step", "spin, as drawn", WF_EXCHANGE_STEP | WF_EXCHANGE_DRAWN, 0.75},
};
#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static enum weft_status
compare(struct wf_bench *bench, struct wf_product *product, struct wf_limit *limit,
	const char *transport, const struct figure *figure)
{
	struct wf_result *result = wf_bench_add(bench);
	const struct wf_pairs pairs = {
		.product = &product->side, .limit = &limit->side, .measure = WF_MEASURE_ROWS};

	*result = (struct wf_result){
		.name = figure->name,
		.transport = transport,
		.mode = figure->mode,
		.limited_by = "hand-written loop",
		.bytes = WF_EXCHANGE_DIM * sizeof(float),
		.target = figure->target,
	};
	product->side.mode = figure->exchange;
	product->side.count = 0; /* each run determines its number of operations again */
	limit->side.mode = figure->exchange;
	limit->side.count = 0;
	return wf_pairs_run(bench, &pairs, result);
}

static enum weft_status
measure(struct wf_bench *bench, const char *transport)
{
	struct wf_product product = {0};
	struct wf_limit limit = {0};
	const uint64_t rows = bench->set.rows < ROWS_MAX ? bench->set.rows : ROWS_MAX;
	struct wf_product_opts opts = wf_bench_product_opts(bench, transport);
	struct wf_limit_opts bare = wf_bench_limit_opts(bench);
	opts.rows = bench->set.quick ? QUICK_ROWS : rows;
	opts.quick = bench->set.quick;
	opts.spin_ns = SPIN_NS;
	opts.progress = WEFT_PROGRESS_CALLER;
	bare.over_tcp = strcmp(transport, "tcp") == 0;
	bare.rows = opts.rows;
	bare.quick = opts.quick;

	enum weft_status st = wf_product_start(&opts, &product);
	if (st == WEFT_OK) {
		st = wf_limit_rows_start(&bare, &limit);
	}
	for (size_t i = 0; i < FIGURES && st == WEFT_OK; i++) {
		st = compare(bench, &product, &limit, transport, &figures[i]);
	}
	wf_limit_end(&limit);
	wf_product_end(&product);
	return st;
}

enum weft_status
wf_items_rows(struct wf_bench *bench)
{
	enum weft_status st = WEFT_OK;

	if (wf_bench_wants_transport(bench, "tcp")) {
		st = measure(bench, "tcp");
	}
	if (st == WEFT_OK && wf_bench_wants_transport(bench, "shm")) {
		st = measure(bench, "shm");
	}
	return st;
}
