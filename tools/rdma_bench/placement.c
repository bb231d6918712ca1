/* SPDX-License-Identifier: Apache-2.0 */
/* placement: see placement.h. */
#include "tools/rdma_bench/placement.h"

#include "base/env.h"

#define TIMEOUT_NS (30 * WF_NS_PER_S)
/* Round trips within one cache are 50 to 120 ns on today's servers, and 250 to 600 ns between two.
 */
#define NEAR_BELOW_NS 200.0
/* Two spinners in one placement have phases of their own: 0.055 and 0.09 us were seen. */
#define AGREE_FACTOR 2.0

const char *
wf_placement_name(enum wf_placement placement)
{
	switch (placement) {
	case WF_PLACEMENT_NEAR:
		return "near";
	case WF_PLACEMENT_FAR:
		return "far";
	case WF_PLACEMENT_MIXED:
		return "mixed";
	case WF_PLACEMENT_BUSY:
		return "busy";
	case WF_PLACEMENT_ONE:
	case WF_PLACEMENT_COUNT:
		break;
	}
	return "one";
}

enum weft_status
wf_probe_start(const struct wf_limit_opts *opts, uint64_t duration_ns, struct wf_probe *out)
{
	out->duration_ns = duration_ns;
	return wf_limit_line_start(opts, &out->line);
}

void
wf_probe_end(struct wf_probe *probe)
{
	wf_limit_end(&probe->line);
}

enum weft_status
wf_probe_run(struct wf_probe *probe, double *out)
{
	struct wf_figures figures;
	enum weft_status st =
		wf_side_run(&probe->line.side, probe->duration_ns, TIMEOUT_NS, &figures);
	if (st == WEFT_OK) {
		*out = figures.p50_ns;
	}
	return st;
}

enum wf_placement
wf_placement_of(double before_ns, double after_ns)
{
	bool near_before = before_ns < NEAR_BELOW_NS;
	bool near_after = after_ns < NEAR_BELOW_NS;
	if (near_before != near_after || before_ns > after_ns * AGREE_FACTOR ||
	    after_ns > before_ns * AGREE_FACTOR) {
		return WF_PLACEMENT_MIXED;
	}
	return near_before ? WF_PLACEMENT_NEAR : WF_PLACEMENT_FAR;
}
