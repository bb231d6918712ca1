/* SPDX-License-Identifier: Apache-2.0 */
/* result: one figure beside its limit. Thread: the benchmark's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How near the two CPUs of a pair were, by the probes before and after it, and what was wrong with
 * it. */
enum wf_placement {
	WF_PLACEMENT_NEAR,  /* one cache between them */
	WF_PLACEMENT_FAR,   /* none */
	WF_PLACEMENT_MIXED, /* the probes disagree: it changed on the way */
	WF_PLACEMENT_BUSY,  /* others used the machine meanwhile, wherever the two were */
	WF_PLACEMENT_ONE,   /* one CPU: there is nothing to probe */
	WF_PLACEMENT_COUNT,
};

#define WF_SAMPLES_MAX 192u /* three times as many as --pairs can be */

/* The pairs behind a figure, one by one, in no order. */
struct wf_samples {
	unsigned count; /* 0: it was not measured in pairs */
	double value[WF_SAMPLES_MAX], fraction[WF_SAMPLES_MAX];
};

struct wf_result {
	const char *name;       /* "exchange_latency" */
	const char *transport;  /* "tcp", "shm"; "memory": none */
	const char *mode;       /* how both waited, and where they were */
	const char *unit;       /* "us", "GB/s", "%" */
	const char *limited_by; /* what the limit is */
	uint64_t bytes;
	bool lower_is_better;
	double value, limit; /* in `unit`, medians over the pairs that count */
	double fraction;     /* of the limit that is reached: median of the pairs' ratios */
	double target;       /* the least fraction that is wanted */

	/* Microseconds of the operation from which `value` is computed; 0 without one. */
	double p50_us, p99_us, limit_p50_us, limit_p99_us;

	enum wf_placement placement; /* of the pairs that count */
	unsigned pairs[WF_PLACEMENT_COUNT];
	double probe_ns;           /* round trip of a cache line beside those pairs; 0: none */
	double foreign_cores;      /* CPU use of others meanwhile; below 0: not known */
	struct wf_samples samples; /* the pairs that count */
};

const char *wf_placement_name(enum wf_placement placement);
