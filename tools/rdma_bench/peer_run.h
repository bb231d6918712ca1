/* SPDX-License-Identifier: Apache-2.0 */
/* peer_run: what a client has measured. Thread: main. */
#pragma once

#include <stdio.h>

#include "tools/rdma_bench/peer.h"
#include "tools/rdma_bench/result.h"

#define WF_PEER_FIGURES_MAX 64u
#define WF_PEER_PAIRS_MAX 64u

/* One figure beside its limit; medians over the pairs. */
struct wf_peer_figure {
	const char *name;       /* "put_latency" */
	const char *mode;       /* "to and fro", "one way", "both ways", "plain", "coalesced" */
	const char *unit;       /* "us", "GB/s", "M/s" */
	const char *limited_by; /* the raw loop */
	uint64_t bytes;         /* of a message, or of an update */
	uint64_t count;         /* operations of each side of a pair */
	bool lower_is_better;
	double value, limit, fraction;
	double fraction_min, fraction_max; /* over the pairs */
	/* Latencies: of single operations, microseconds; 0: it has none. */
	double p50_us, p99_us, p999_us;
	double limit_p50_us, limit_p99_us, limit_p999_us;
	struct wf_samples samples;
};

struct wf_peer_run {
	const struct wf_peer_end *end;
	const char *transport;
	struct wf_peer_figure figure[WF_PEER_FIGURES_MAX];
	unsigned figure_count;
	struct wf_peer_report verified; /* both ends */
};

/* peer_report.c */
void wf_peer_report_table(const struct wf_peer_run *run, FILE *out);
void wf_peer_report_json(const struct wf_peer_run *run, FILE *out);
