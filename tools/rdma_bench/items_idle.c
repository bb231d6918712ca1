/* SPDX-License-Identifier: Apache-2.0 */
/* items_idle: idle_cpu: what processes use that have nothing to do: a pserver that waits for a job,
 * and a pserver and a trainer of a job in which nothing happens. Thread: the benchmark's. */
#include "base/assert.h"
#include "base/env.h"
#include "tools/rdma_bench/cpu_use.h"
#include "tools/rdma_bench/pairs.h"

#define SMALL_BYTES 64u
#define LIMIT_PERCENT 1.0
/* A process that used nothing measurable; a figure is above 0. */
#define LEAST_PERCENT 1e-4

struct idler {
	const char *mode;
	const struct wf_worker *worker;
	double before_s;
};

static void
add_result(struct wf_bench *bench, const struct idler *idler, const char *transport, double percent)
{
	percent = percent > LEAST_PERCENT ? percent : LEAST_PERCENT;
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){
		.name = "idle_cpu",
		.transport = transport,
		.mode = idler->mode,
		.unit = "%",
		.limited_by = "1 % of a core",
		.bytes = SMALL_BYTES,
		.lower_is_better = true,
		.value = percent,
		.limit = LIMIT_PERCENT,
		.fraction = percent > LIMIT_PERCENT ? LIMIT_PERCENT / percent : 1,
		.target = 1,
		.placement = WF_PLACEMENT_ONE,
		.pairs = {[WF_PLACEMENT_ONE] = 1},
		.foreign_cores = -1,
	};
}

/* Nothing happens for a while. */
static enum weft_status
let_pass(struct wf_bench *bench, uint64_t span_ns)
{
	uint64_t left_ns;
	enum weft_status st = wf_bench_left(bench, &left_ns);
	uint64_t until_ns = wf_now_ns(bench->env) + (span_ns < left_ns ? span_ns : left_ns);
	while (st == WEFT_OK && wf_now_ns(bench->env) < until_ns) {
		wf_wait(bench->env, -1, until_ns);
	}
	return st;
}

static enum weft_status
watch(struct wf_bench *bench, struct idler *idler, unsigned count, const char *transport)
{
	uint64_t settle_ns = bench->set.quick ? WF_NS_PER_S / 20 : WF_NS_PER_S / 2;
	uint64_t span_ns = bench->set.quick ? WF_NS_PER_S / 4 : 4 * WF_NS_PER_S;
	enum weft_status st = let_pass(bench, settle_ns);
	uint64_t begin_ns = wf_now_ns(bench->env);
	for (unsigned i = 0; i < count; i++) {
		idler[i].before_s = wf_cpu_use_process(idler[i].worker->pid);
	}
	if (st == WEFT_OK) {
		st = let_pass(bench, span_ns);
	}
	double seconds = (double)(wf_now_ns(bench->env) - begin_ns) / 1e9;
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		double used_s = wf_cpu_use_process(idler[i].worker->pid) - idler[i].before_s;
		add_result(bench, &idler[i], transport, used_s / seconds * 100);
	}
	return st;
}

static enum weft_status
idle(struct wf_bench *bench, const char *transport)
{
	struct wf_product alone = {0}, job = {0};
	struct wf_product_opts opts = wf_bench_product_opts(bench, transport);
	opts.bytes = SMALL_BYTES;
	enum weft_status st = wf_product_start(&opts, &job);
	if (st == WEFT_OK) {
		opts.trainer_count = 0;
		st = wf_product_start(&opts, &alone);
	}
	if (st == WEFT_OK) {
		struct idler idler[] = {
			{.mode = "pserver, no job", .worker = &alone.pserver[0]},
			{.mode = "pserver, idle job", .worker = &job.pserver[0]},
			{.mode = "trainer, idle job", .worker = &job.trainer[0]},
		};
		st = watch(bench, idler, (unsigned)WF_ARRAY_COUNT(idler), transport);
	}
	wf_product_end(&alone);
	wf_product_end(&job);
	return st;
}

enum weft_status
wf_items_idle(struct wf_bench *bench)
{
	enum weft_status st = WEFT_OK;
	if (wf_bench_wants_transport(bench, "tcp")) {
		st = idle(bench, "tcp");
	}
	if (st == WEFT_OK && wf_bench_wants_transport(bench, "shm")) {
		st = idle(bench, "shm");
	}
	return st;
}
