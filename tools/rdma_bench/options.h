/* SPDX-License-Identifier: Apache-2.0 */
/* options: of `rdma_bench self`. Thread: main. */
#pragma once

#include "base/options.h"

/* What --only may name: the figures of bench.c's table, in that order. */
#define WF_BENCH_FIGURES                                                                           \
	"fused_sum_sgd, exchange_bandwidth, exchange_latency, scaling, async, crowd, "             \
	"idle_cpu, table, rows, merge, lanes"

#define WF_SELF_OPTION_MAX 16
#define WF_HEADING_MEASURED "How it is measured"

struct wf_self_settings {
	bool json;
	bool quick;
	const char *only; /* comma list of names; NULL or "": all */
	const char *transport;
	const char *slow; /* which side takes twice its time: "none", "product", "limit" */
	uint64_t pairs;
	uint64_t rows; /* of sparse tables */
	const char *cpus;
	const char *congestion; /* NULL: cubic, if it is to be had */
	uint64_t seconds_ns;    /* of each side of a pair */
	uint64_t limit_ns;      /* of the whole run */
};

const struct wf_option *wf_self_options(unsigned *count);
