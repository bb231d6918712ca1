/* SPDX-License-Identifier: Apache-2.0 */
/* items_crowd: crowd: what a lane's pserver uses for each trainer of a small job and of a large
 * one: CPU time, and memory beside what it has asked for. All sleep at once, on the two CPUs.
 * Thread: the benchmark's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env.h"
#include "tools/rdma_bench/cpu_use.h"
#include "tools/rdma_bench/turns.h"

#define SMALL_BYTES 64u           /* of the tensor, where CPU time is that of messages */
#define WINDOW_BYTES (2ull << 20) /* of the tensor, where a trainer's whole window is used */
#define CPU_TARGET (1 / 1.2)
#define MEMORY_TARGET 0.98
#define MIB (1024.0 * 1024.0)
#define LEAST_BYTES 4096.0

/* A pserver with its trainers. */
struct crowd {
	struct wf_product product;
	unsigned trainers;
	uint64_t bytes;                /* of the tensor */
	uint64_t idle_rss, idle_bytes; /* before the first trainer */
};

/* Of the process; 0: it is gone. */
static uint64_t
resident_bytes(pid_t pid)
{
	char path[64];
	uint64_t pages = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		return 0;
	}
	if (fscanf(file, "%*u %" SCNu64, &pages) != 1) {
		pages = 0;
	}
	(void)fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static enum weft_status
start_crowd(struct wf_bench *bench, unsigned trainers, uint64_t bytes, struct crowd *out)
{
	*out = (struct crowd){.trainers = trainers, .bytes = bytes};
	struct wf_product_opts opts = wf_bench_product_opts(bench, "tcp");
	opts.bytes = bytes;
	opts.trainer_count = trainers;
	opts.pserver_cpu = WF_CPU_ANY;
	opts.trainer_cpu = WF_CPU_ANY;
	opts.progress = WEFT_PROGRESS_CALLER;
	enum weft_status st = wf_product_open(&opts, &out->product);
	if (st == WEFT_OK) {
		st = wf_product_memory(&out->product, 0, &out->idle_bytes);
		out->idle_rss = resident_bytes(out->product.pserver[0].pid);
	}
	return st == WEFT_OK ? wf_product_join(&opts, &out->product) : st;
}

/* Microseconds of CPU time that the pserver uses per trainer and step. */
static enum weft_status
run_crowd(struct wf_bench *bench, void *side, double *out)
{
	struct crowd *crowd = side;
	const pid_t pid = crowd->product.pserver[0].pid;
	struct wf_figures figures;
	uint64_t left_ns;
	enum weft_status st = wf_bench_left(bench, &left_ns);
	const double before_s = wf_cpu_use_process(pid);
	if (st == WEFT_OK) {
		st = wf_side_run(&crowd->product.side, bench->set.seconds_ns, left_ns, &figures);
	}
	if (st == WEFT_OK) {
		const double used_s = wf_cpu_use_process(pid) - before_s;
		*out = used_s * 1e6 / ((double)figures.count * crowd->trainers);
	}
	return st;
}

static struct wf_result *
add_result(struct wf_bench *bench, const struct crowd *crowd)
{
	char mode[32];
	struct wf_result *result = wf_bench_add(bench);
	(void)snprintf(mode, sizeof(mode), "1 + %u", crowd->trainers);
	*result = (struct wf_result){.name = "crowd",
				     .transport = "tcp",
				     .mode = wf_bench_keep_text(bench, mode),
				     .bytes = crowd->bytes,
				     .lower_is_better = true,
				     .placement = WF_PLACEMENT_ONE,
				     .foreign_cores = -1};
	return result;
}

/* The crowd beside one trainer, in turn. */
static enum weft_status
compare_cpu(struct wf_bench *bench, struct crowd *crowd, struct crowd *one)
{
	struct wf_result *result = add_result(bench, crowd);
	double dropped;
	result->unit = "us";
	result->limited_by = "CPU for one trainer";
	result->target = CPU_TARGET;
	enum weft_status st = run_crowd(bench, crowd, &dropped); /* memory is touched */
	const struct wf_turns turns = {.run = run_crowd, .product = crowd, .limit = one};
	return st == WEFT_OK ? wf_turns_run(bench, &turns, result) : st;
}

/* What has come since; a figure is above 0. */
static double
to_mib(uint64_t now, uint64_t before)
{
	const double more = (double)now - (double)before;
	return (more > LEAST_BYTES ? more : LEAST_BYTES) / MIB;
}

/* What has come since there was no trainer: how much the process has, and how much it has asked
 * for, of which it may not have touched all. */
static enum weft_status
compare_memory(struct wf_bench *bench, struct crowd *crowd)
{
	uint64_t bytes;
	double used;
	enum weft_status st = run_crowd(bench, crowd, &used); /* memory is touched */
	if (st == WEFT_OK) {
		st = wf_product_memory(&crowd->product, 0, &bytes);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_result *result = add_result(bench, crowd);
	const uint64_t resident = resident_bytes(crowd->product.pserver[0].pid);
	result->unit = "MiB";
	result->limited_by = "memory accounted for";
	result->target = MEMORY_TARGET;
	result->value = to_mib(resident, crowd->idle_rss);
	result->limit = to_mib(bytes, crowd->idle_bytes);
	result->fraction = result->value > result->limit ? result->limit / result->value : 1;
	result->pairs[WF_PLACEMENT_ONE] = 1;
	return WEFT_OK;
}

/* CPU time of as many trainers beside that of `one`, and memory. */
static enum weft_status
measure_crowd(struct wf_bench *bench, unsigned trainers, struct crowd *one)
{
	static struct crowd crowd;
	enum weft_status st = WEFT_OK;
	if (trainers > 1) {
		st = start_crowd(bench, trainers, SMALL_BYTES, &crowd);
		if (st == WEFT_OK) {
			st = compare_cpu(bench, &crowd, one);
		}
		wf_product_end(&crowd.product);
	}
	if (st == WEFT_OK) {
		st = start_crowd(bench, trainers, WINDOW_BYTES, &crowd);
		if (st == WEFT_OK) {
			st = compare_memory(bench, &crowd);
		}
		wf_product_end(&crowd.product);
	}
	return st;
}

enum weft_status
wf_items_crowd(struct wf_bench *bench)
{
	static struct crowd one;
	const unsigned most = bench->set.quick ? 4 : WF_PRODUCT_TRAINERS_MAX;
	if (!wf_bench_wants_transport(bench, "tcp")) {
		return WEFT_OK;
	}
	enum weft_status st = start_crowd(bench, 1, SMALL_BYTES, &one);
	for (unsigned trainers = 1; trainers <= most && st == WEFT_OK; trainers *= 2) {
		st = measure_crowd(bench, trainers, &one);
	}
	wf_product_end(&one.product);
	return st;
}
