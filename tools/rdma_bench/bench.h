/* SPDX-License-Identifier: Apache-2.0 */
/* bench: one run of `rdma_bench self`: its settings and its results.
 *
 * bench.c sets it up; items_*.c have one family of figures each, and add results; report.c prints
 * them. Thread: that of the benchmark, which must be the only one, because it forks. */
#pragma once

#include "tools/rdma_bench/congestion.h"
#include "tools/rdma_bench/options.h"
#include "tools/rdma_bench/placement.h"
#include "tools/rdma_bench/product.h"
#include "tools/rdma_bench/result.h"

#define WF_RESULTS_MAX 64u
#define WF_TEXTS_MAX 24u
#define WF_TEXT_BYTES 32u
#define WF_BENCH_SLICE_BYTES (256ull << 10) /* the default of job and library */

struct wf_bench {
	struct wf_env *env;
	struct wf_self_settings set;
	int cpu[2]; /* pserver's, trainer's */
	char congestion[WF_BENCH_CONGESTION_BYTES];
	uint64_t deadline_ns;
	bool probing; /* the workers of the probe run */
	struct wf_probe probe;
	struct wf_result result[WF_RESULTS_MAX];
	unsigned result_count;
	char text[WF_TEXTS_MAX][WF_TEXT_BYTES]; /* texts that results refer to and that are not
						 * literals */
	unsigned text_count;
};

/* Finds CPUs and congestion control and sets the time limit. WEFT_INVALID, WEFT_UNSUPPORTED: the
 * obstacle. */
enum weft_status wf_bench_open(struct wf_bench *bench,
			       const struct wf_self_settings *set) WEFT_MUST_CHECK;
void wf_bench_close(struct wf_bench *bench);
/* Measures the requested figures, all of them or up to the first failure. */
enum weft_status wf_bench_run(struct wf_bench *bench) WEFT_MUST_CHECK;
/* Whether the transport is to be measured. */
bool wf_bench_wants_transport(const struct wf_bench *bench, const char *name);
/* Nanoseconds until the run must end; WEFT_TIMEOUT when none are left. */
enum weft_status wf_bench_left(const struct wf_bench *bench, uint64_t *out) WEFT_MUST_CHECK;
/* The next result, to be filled in. */
struct wf_result *wf_bench_add(struct wf_bench *bench);
/* A copy of a text of less than WF_TEXT_BYTES, which lives as long as the results. */
const char *wf_bench_keep_text(struct wf_bench *bench, const char *text);
/* Defaults for a limit with its client on the trainer's CPU and its server on the pserver's. */
struct wf_limit_opts wf_bench_limit_opts(const struct wf_bench *bench);
/* The same for one pserver and one trainer. */
struct wf_product_opts wf_bench_product_opts(const struct wf_bench *bench, const char *transport);

/* items_*.c: each adds its results. */
enum weft_status wf_items_kernel(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_bandwidth(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_latency(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_scaling(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_async(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_crowd(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_idle(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_table(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_lanes(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_rows(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_merge(struct wf_bench *bench) WEFT_MUST_CHECK;
