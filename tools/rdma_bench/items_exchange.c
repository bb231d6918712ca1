/* SPDX-License-Identifier: Apache-2.0 */
/* items_exchange: exchange_bandwidth, exchange_latency and scaling: whole pservers and trainers
 * against hand-written loops, and against fewer of them. Thread: the benchmark's. */
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "tools/rdma_bench/pairs.h"

#define BULK_BYTES (64ull << 20)
#define SMALL_BYTES 64u
/* Longer than any gap within a run, and over before the other side's begins. */
#define SPIN_NS WF_NS_PER_MS
#define BANDWIDTH_TARGET 0.95
#define DEFAULT_SHARE                                                                              \
	0.8 /* of the target for polling ends: the default may take 1.25 times as long */
#define LATENCY_TARGET (1 / 1.25)
#define LINE_TARGET (1 / 3.0)
#define SCALING_TARGET 0.8
#define SHM_BATCH 32u /* steps in one sample, so that the clock does not count */

/* The product against one hand-written loop. */
struct contest {
	struct wf_product_opts product;
	struct wf_limit_opts limit;
	enum weft_status (*start)(const struct wf_limit_opts *opts, struct wf_limit *out);
	enum wf_measure measure;
};

/* Starts both sides, runs the pairs, ends both. */
static enum weft_status
compare(struct wf_bench *bench, const struct contest *contest, struct wf_result *result)
{
	struct wf_product product = {0};
	struct wf_limit limit = {0};
	enum weft_status st = wf_product_start(&contest->product, &product);
	if (st == WEFT_OK) {
		st = contest->start(&contest->limit, &limit);
	}
	if (st == WEFT_OK) {
		const struct wf_pairs pairs = {
			.product = &product.side,
			.limit = &limit.side,
			.measure = contest->measure,
			.one_core = contest->product.pserver_cpu == contest->product.trainer_cpu,
		};
		st = wf_pairs_run(bench, &pairs, result);
	}
	wf_product_end(&product);
	wf_limit_end(&limit);
	return st;
}

/* One tensor at a time, with nothing else under way. */
static const uint64_t tensor_bytes[] = {64u << 10, 1u << 20, 4u << 20, BULK_BYTES};

/* The limit of a tensor of `bytes`, in slices of the usual size or in one that is smaller. */
static struct contest
tensor_exchange(const struct wf_bench *bench, const char *transport, uint64_t bytes, bool spin)
{
	struct contest contest = {
		.product = wf_bench_product_opts(bench, transport),
		.limit = wf_bench_limit_opts(bench),
		.measure = WF_MEASURE_RATE,
	};
	contest.product.bytes = bytes;
	contest.product.spin_ns = spin ? SPIN_NS : 0;
	contest.limit.bytes = bytes;
	contest.limit.slice_bytes = bytes < WF_BENCH_SLICE_BYTES ? bytes : WF_BENCH_SLICE_BYTES;
	contest.limit.spin = spin;
	return contest;
}

static enum weft_status
bandwidth_tcp(struct wf_bench *bench, uint64_t bytes, bool spin)
{
	struct contest contest = tensor_exchange(bench, "tcp", bytes, spin);
	contest.start = wf_limit_tcp_start;
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){.name = "exchange_bandwidth",
				     .transport = "tcp",
				     .mode = spin ? "spin" : "sleep",
				     .limited_by = "raw socket loop",
				     .bytes = bytes,
				     .target = BANDWIDTH_TARGET};
	return compare(bench, &contest, result);
}

/* Two loops, for either may be the better one: it depends on what the memory can take at a time. A
 * client that copies nothing is no limit where all fits into the server's cache: it never reads
 * what it is given, so nothing travels between the two. */
static enum weft_status
bandwidth_shm(struct wf_bench *bench, uint64_t bytes, bool client_copies)
{
	struct contest contest = tensor_exchange(bench, "shm", bytes, true);
	contest.start = wf_limit_shm_start;
	contest.limit.client_copies = client_copies;
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){.name = "exchange_bandwidth",
				     .transport = "shm",
				     .mode = "spin",
				     .limited_by = client_copies ? "loop, client copies"
								 : "loop, server copies",
				     .bytes = bytes,
				     .target = BANDWIDTH_TARGET};
	return compare(bench, &contest, result);
}

enum weft_status
wf_items_bandwidth(struct wf_bench *bench)
{
	enum weft_status st = WEFT_OK;
	const bool tcp = wf_bench_wants_transport(bench, "tcp");
	const bool shm = wf_bench_wants_transport(bench, "shm");
	for (size_t i = 0; tcp && i < WF_ARRAY_COUNT(tensor_bytes) && st == WEFT_OK; i++) {
		st = bandwidth_tcp(bench, tensor_bytes[i], true);
	}
	if (tcp && st == WEFT_OK) {
		st = bandwidth_tcp(bench, BULK_BYTES, false);
	}
	for (size_t i = 0; shm && i < WF_ARRAY_COUNT(tensor_bytes) && st == WEFT_OK; i++) {
		st = bandwidth_shm(bench, tensor_bytes[i], true);
	}
	if (shm && st == WEFT_OK) {
		st = bandwidth_shm(bench, BULK_BYTES, false);
	}
	return st;
}

/* How both ends wait for 64 bytes. */
enum waiting {
	WAITING_SPIN,    /* each polls, on its own core */
	WAITING_SLEEP,   /* both sleep at once, on one core */
	WAITING_DEFAULT, /* as they do where nothing is set, on a core each */
	WAITING_COUNT,
};

static const char *const waiting_name[WAITING_COUNT] = {
	[WAITING_SPIN] = "spin",
	[WAITING_SLEEP] = "sleep, one core",
	[WAITING_DEFAULT] = "default",
};

/* Up and down. The limit polls where the product may. */
static struct contest
small_exchange(const struct wf_bench *bench, const char *transport, enum waiting waiting)
{
	struct contest contest = {
		.product = wf_bench_product_opts(bench, transport),
		.limit = wf_bench_limit_opts(bench),
		.start = wf_limit_ping_start,
		.measure = WF_MEASURE_LATENCY,
	};
	contest.product.bytes = SMALL_BYTES;
	contest.product.progress = WEFT_PROGRESS_CALLER;
	contest.product.spin_ns = waiting == WAITING_SPIN ? SPIN_NS : 0;
	contest.limit.spin = waiting != WAITING_SLEEP;
	if (waiting == WAITING_SLEEP) {
		contest.product.trainer_cpu = contest.product.pserver_cpu;
		contest.limit.client_cpu = contest.limit.server_cpu;
	} else if (waiting == WAITING_DEFAULT) {
		contest.product.progress = WEFT_PROGRESS_THREAD;
		contest.product.spin_ns = WEFT_SPIN_AUTO;
	}
	return contest;
}

static enum weft_status
latency_tcp(struct wf_bench *bench, enum waiting waiting)
{
	const struct contest contest = small_exchange(bench, "tcp", waiting);
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){.name = "exchange_latency",
				     .transport = "tcp",
				     .mode = waiting_name[waiting],
				     .limited_by = "raw socket",
				     .bytes = SMALL_BYTES,
				     .target = LATENCY_TARGET};
	result->target *= waiting == WAITING_DEFAULT ? DEFAULT_SHARE : 1;
	return compare(bench, &contest, result);
}

static enum weft_status
latency_shm(struct wf_bench *bench, enum waiting waiting)
{
	struct contest contest = small_exchange(bench, "shm", waiting);
	contest.start = wf_limit_line_start;
	contest.product.batch = SHM_BATCH;
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){.name = "exchange_latency",
				     .transport = "shm",
				     .mode = waiting_name[waiting],
				     .limited_by = "cache line",
				     .bytes = SMALL_BYTES,
				     .target = LINE_TARGET};
	result->target *= waiting == WAITING_DEFAULT ? DEFAULT_SHARE : 1;
	return compare(bench, &contest, result);
}

enum weft_status
wf_items_latency(struct wf_bench *bench)
{
	enum weft_status st = WEFT_OK;
	bool tcp = wf_bench_wants_transport(bench, "tcp");
	bool shm = wf_bench_wants_transport(bench, "shm");
	for (enum waiting w = 0; tcp && w < WAITING_COUNT && st == WEFT_OK; w++) {
		st = latency_tcp(bench, w);
	}
	if (st == WEFT_OK && shm) {
		st = latency_shm(bench, WAITING_SPIN);
	}
	return st == WEFT_OK && shm ? latency_shm(bench, WAITING_DEFAULT) : st;
}

/* Two of each on the same two cores against one of each; all sleep at once. */
static enum weft_status
scaling(struct wf_bench *bench, const char *transport)
{
	struct wf_product one = {0}, two = {0};
	struct wf_product_opts opts = wf_bench_product_opts(bench, transport);
	struct wf_result *result = wf_bench_add(bench);
	*result = (struct wf_result){.name = "scaling",
				     .transport = transport,
				     .mode = "2 + 2, sleep",
				     .limited_by = "1 + 1",
				     .bytes = BULK_BYTES,
				     .target = SCALING_TARGET};
	opts.bytes = BULK_BYTES;
	opts.pserver_cpu = WF_CPU_ANY;
	opts.trainer_cpu = WF_CPU_ANY;
	enum weft_status st = wf_product_start(&opts, &one);
	if (st == WEFT_OK) {
		opts.pserver_count = 2;
		opts.trainer_count = 2;
		st = wf_product_start(&opts, &two);
	}
	if (st == WEFT_OK) {
		const struct wf_pairs pairs = {
			.product = &two.side, .limit = &one.side, .measure = WF_MEASURE_RATE};
		st = wf_pairs_run(bench, &pairs, result);
	}
	wf_product_end(&two);
	wf_product_end(&one);
	return st;
}

enum weft_status
wf_items_scaling(struct wf_bench *bench)
{
	enum weft_status st = WEFT_OK;
	if (wf_bench_wants_transport(bench, "tcp")) {
		st = scaling(bench, "tcp");
	}
	if (st == WEFT_OK && wf_bench_wants_transport(bench, "shm")) {
		st = scaling(bench, "shm");
	}
	return st;
}
