/* SPDX-License-Identifier: Apache-2.0 */
/* side: see side.h. */
#include "tools/rdma_bench/side.h"

#include "base/assert.h"
#include "tools/rdma_bench/meter.h"

#define GROWTH_MAX 8u /* from one run to the next */
#define WARM_RUNS_MAX 24u

static enum weft_status
run_count(struct wf_side *side, uint64_t timeout_ns, struct wf_figures *out)
{
	const struct wf_work_order order = {
		.mode = side->mode, .slow = side->slow, .count = side->count};
	enum weft_status st = WEFT_OK;
	WF_ASSERT(side->worker_count > 0 && side->worker_count <= WF_SIDE_WORKERS_MAX);
	for (unsigned i = 0; i < side->worker_count && st == WEFT_OK; i++) {
		st = wf_worker_order(side->worker[i], &order);
	}
	for (unsigned i = 0; i < side->worker_count && st == WEFT_OK; i++) {
		struct wf_figures one;
		st = wf_worker_await(side->worker[i], timeout_ns, &one);
		if (st == WEFT_OK && (i == 0 || one.p50_ns > out->p50_ns)) {
			*out = one;
		}
	}
	return st;
}

/* As many as take `duration_ns`, estimated from the last run. */
static uint64_t
next_count(const struct wf_side *side, const struct wf_figures *last, uint64_t duration_ns)
{
	uint64_t most = side->count * GROWTH_MAX;
	uint64_t elapsed_ns = last->elapsed_ns > 0 ? last->elapsed_ns : 1;
	double scaled = (double)side->count * (double)duration_ns / (double)elapsed_ns;
	uint64_t count = scaled < (double)most ? (uint64_t)scaled : most;
	uint64_t samples = (uint64_t)WF_METER_SAMPLES * side->multiple;
	count = count < samples ? count : samples;
	count -= count % side->multiple;
	return count > 0 ? count : side->multiple;
}

/* The first runs touch memory, open windows, and measure how long an operation takes. */
static enum weft_status
warm_up(struct wf_side *side, uint64_t duration_ns, uint64_t timeout_ns)
{
	struct wf_figures figures;
	side->multiple = side->multiple > 0 ? side->multiple : 1;
	side->count = side->multiple;
	for (unsigned i = 0; i < WARM_RUNS_MAX; i++) {
		enum weft_status st = run_count(side, timeout_ns, &figures);
		if (st != WEFT_OK) {
			return st;
		}
		uint64_t before = side->count;
		side->count = next_count(side, &figures, duration_ns);
		if (i > 0 && side->count < before * 2) {
			break;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_side_run(struct wf_side *side, uint64_t duration_ns, uint64_t timeout_ns, struct wf_figures *out)
{
	enum weft_status st = WEFT_OK;
	if (side->count == 0) {
		st = warm_up(side, duration_ns, timeout_ns);
	}
	if (st == WEFT_OK) {
		st = run_count(side, timeout_ns, out);
	}
	if (st == WEFT_OK) {
		side->count = next_count(side, out, duration_ns);
	}
	return st;
}
