/* SPDX-License-Identifier: Apache-2.0 */
/* items_lanes: lanes: rows of two sparse lanes beside those of one.
 *
 * `CPU`: the rows that lanes answer by the CPU time of the busiest of them: the rate that they
 * could keep up if each had a CPU of its own and nothing else held it up. All sleep at once, on the
 * two CPUs, so the time that a lane waits is not counted. `clock`: rows by the clock, two trainers
 * and one lane or two, each spinning, none bound to a CPU. That needs four CPUs; with fewer it is
 * not measured, and a message says so. Thread: the benchmark's. */
#include <stdio.h>

#include "base/env.h"
#include "base/pin.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/cpu_use.h"
#include "tools/rdma_bench/turns.h"

#define ROWS_MAX 1000000u
#define QUICK_ROWS 20000u
#define SPIN_NS WF_NS_PER_MS
#define LANES 2u
#define CLOCK_TRAINERS 2u
#define CLOCK_CPUS (LANES + CLOCK_TRAINERS)
#define TARGET 0.8 /* of twice the rows of one lane: 1.6 times those */

/* A job with one lane or two, a pserver each. */
struct job {
	struct wf_product product;
	unsigned lanes, trainers;
	bool by_clock;
};

static const struct figure {
	const char *mode;
	uint32_t exchange; /* enum wf_exchange_mode */
	bool by_clock;
} figures[] = {
	{"CPU, pull", WF_EXCHANGE_PULL | WF_EXCHANGE_DRAWN, false},
	{"CPU, step", WF_EXCHANGE_STEP | WF_EXCHANGE_DRAWN, false},
	{"clock, pull", WF_EXCHANGE_PULL | WF_EXCHANGE_DRAWN, true},
};
#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static enum weft_status
start_job(struct wf_bench *bench, const char *transport, unsigned lanes, bool by_clock,
	  struct job *out)
{
	const uint64_t rows = bench->set.rows < ROWS_MAX ? bench->set.rows : ROWS_MAX;
	struct wf_product_opts opts = wf_bench_product_opts(bench, transport);

	*out = (struct job){
		.lanes = lanes, .trainers = by_clock ? CLOCK_TRAINERS : 1, .by_clock = by_clock};
	opts.rows = bench->set.quick ? QUICK_ROWS : rows;
	opts.quick = bench->set.quick;
	opts.pserver_count = lanes;
	opts.trainer_count = out->trainers;
	opts.pserver_cpu = by_clock ? WF_CPU_FREE : WF_CPU_ANY;
	opts.trainer_cpu = by_clock ? WF_CPU_FREE : WF_CPU_ANY;
	opts.spin_ns = by_clock ? SPIN_NS : 0;
	opts.progress = WEFT_PROGRESS_CALLER;
	return wf_product_start(&opts, &out->product);
}

/* Seconds of CPU time that each lane has used. */
static void
look_at_lanes(const struct job *job, double used_s[LANES])
{
	for (unsigned i = 0; i < job->lanes; i++) {
		used_s[i] = wf_cpu_use_process(job->product.pserver[i].pid);
	}
}

/* Million rows a second, for as many lanes: those of one lane count twice. */
static enum weft_status
run_job(struct wf_bench *bench, void *side, double *out)
{
	struct job *job = side;
	double before_s[LANES], after_s[LANES], longest_s = 0;
	struct wf_figures found;
	uint64_t left_ns;
	enum weft_status st = wf_bench_left(bench, &left_ns);

	look_at_lanes(job, before_s);
	if (st == WEFT_OK) {
		st = wf_side_run(&job->product.side, bench->set.seconds_ns, left_ns, &found);
	}
	if (st != WEFT_OK) {
		return st;
	}
	look_at_lanes(job, after_s);
	for (unsigned i = 0; i < job->lanes; i++) {
		const double used_s = after_s[i] - before_s[i];
		longest_s = used_s > longest_s ? used_s : longest_s;
	}
	if (job->by_clock) {
		longest_s = (double)found.elapsed_ns / 1e9;
	}
	if (longest_s <= 0) {
		return wf_fail(WEFT_INTERNAL, "no lane has used CPU time");
	}
	const double rows = (double)found.count * job->trainers * WF_EXCHANGE_BATCH;
	*out = rows / longest_s / 1e6 * LANES / job->lanes;
	return WEFT_OK;
}

static enum weft_status
compare(struct wf_bench *bench, const char *transport, const struct figure *figure,
	struct job job[LANES])
{
	struct wf_result *result = wf_bench_add(bench);
	const struct wf_turns turns = {.run = run_job, .product = &job[1], .limit = &job[0]};
	enum weft_status st = WEFT_OK;

	*result = (struct wf_result){.name = "lanes",
				     .transport = transport,
				     .mode = figure->mode,
				     .unit = "M/s",
				     .limited_by = "twice one lane",
				     .bytes = WF_EXCHANGE_DIM * sizeof(float),
				     .target = TARGET,
				     .placement = WF_PLACEMENT_ONE,
				     .foreign_cores = -1};
	for (unsigned i = 0; i < LANES && st == WEFT_OK; i++) {
		double dropped;
		job[i].product.side.mode = figure->exchange;
		job[i].product.side.count = 0;
		st = run_job(bench, &job[i], &dropped); /* finds out how many batches */
	}
	return st == WEFT_OK ? wf_turns_run(bench, &turns, result) : st;
}

/* All figures that are taken in the same way. */
static enum weft_status
measure(struct wf_bench *bench, const char *transport, bool by_clock)
{
	static struct job job[LANES]; /* large, and there is one at a time */
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < LANES && st == WEFT_OK; i++) {
		st = start_job(bench, transport, i + 1, by_clock, &job[i]);
	}
	for (size_t i = 0; i < FIGURES && st == WEFT_OK; i++) {
		if (figures[i].by_clock == by_clock) {
			st = compare(bench, transport, &figures[i], job);
		}
	}
	for (unsigned i = 0; i < LANES; i++) {
		wf_product_end(&job[i].product);
		job[i] = (struct job){0};
	}
	return st;
}

enum weft_status
wf_items_lanes(struct wf_bench *bench)
{
	static const char *const transports[] = {"tcp", "shm"};
	const unsigned cpus = wf_pin_cpu_count();
	enum weft_status st = WEFT_OK;

	if (cpus < CLOCK_CPUS) {
		fprintf(stderr,
			"rdma_bench: lanes by the clock are not measured: two trainers and two "
			"lanes need %u CPUs, and this process may use %u\n",
			CLOCK_CPUS, cpus);
	}
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		if (!wf_bench_wants_transport(bench, transports[i])) {
			continue;
		}
		if (st == WEFT_OK) {
			st = measure(bench, transports[i], false);
		}
		if (st == WEFT_OK && cpus >= CLOCK_CPUS) {
			st = measure(bench, transports[i], true);
		}
	}
	return st;
}
