/* SPDX-License-Identifier: Apache-2.0 */
/* placement: how far apart the two CPUs are at the moment. A virtual machine's host moves them
 * between sharing a cache and not, within seconds; figures of two processes change with it by up to
 * twelve times. Thread: the benchmark's. */
#pragma once

#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/result.h"

struct wf_probe {
	struct wf_limit line;
	uint64_t duration_ns; /* of one probe */
};

enum weft_status wf_probe_start(const struct wf_limit_opts *opts, uint64_t duration_ns,
				struct wf_probe *out) WEFT_MUST_CHECK;
void wf_probe_end(struct wf_probe *probe);
/* Round trip of a cache line, nanoseconds. */
enum weft_status wf_probe_run(struct wf_probe *probe, double *out) WEFT_MUST_CHECK;
/* The verdict of two probes, before and after. */
enum wf_placement wf_placement_of(double before_ns, double after_ns);
