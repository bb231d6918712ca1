/* SPDX-License-Identifier: Apache-2.0 */
/* bench: one run of `rdma_bench self`: what it was asked for, and what it has found out.
 *
 * bench.c  how it is set up; items_*.c  one family of figures each, which add results; report.c
 * what is printed. Thread: the one of the benchmark; there may be no other, for it forks. */
#pragma once

#include "tools/rdma_bench/congestion.h"
#include "tools/rdma_bench/options.h"
#include "tools/rdma_bench/placement.h"
#include "tools/rdma_bench/product.h"
#include "tools/rdma_bench/result.h"

#define WF_RESULTS_MAX 64u
#define WF_TEXTS_MAX 8u
#define WF_TEXT_BYTES 32u
#define WF_BENCH_SLICE_BYTES (256ull << 10) /* the default of job and library */

struct wf_bench {
	struct wf_env *env;
	struct wf_self_settings set;
	int cpu[2]; /* pserver's, trainer's */
	char congestion[WF_CONGESTION_BYTES];
	uint64_t deadline_ns;
	bool probing; /* the probe's workers are there */
	struct wf_probe probe;
	struct wf_result result[WF_RESULTS_MAX];
	unsigned result_count;
	char text[WF_TEXTS_MAX][WF_TEXT_BYTES]; /* what results refer to and no literal says */
	unsigned text_count;
};

/* CPUs, congestion control, limits in time. WEFT_INVALID, WEFT_UNSUPPORTED: what is in the way. */
enum weft_status wf_bench_open(struct wf_bench *bench,
			       const struct wf_self_settings *set) WEFT_MUST_CHECK;
void wf_bench_close(struct wf_bench *bench);
/* Run what was asked for, all of it or up to the first failure. */
enum weft_status wf_bench_run(struct wf_bench *bench) WEFT_MUST_CHECK;
/* Whether the transport was asked for. */
bool wf_bench_wants_transport(const struct wf_bench *bench, const char *name);
/* Nanoseconds until the run has to end; WEFT_TIMEOUT when there are none. */
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
enum weft_status wf_items_idle(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_table(struct wf_bench *bench) WEFT_MUST_CHECK;
enum weft_status wf_items_rows(struct wf_bench *bench) WEFT_MUST_CHECK;
