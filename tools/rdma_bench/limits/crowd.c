/* SPDX-License-Identifier: Apache-2.0 */
/* crowd: see crowd.h. Thread: the workers' own, where nothing else is said. */
#include "tools/rdma_bench/limits/crowd.h"

#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/meter.h"

#define READY_TIMEOUT_NS (60 * WF_NS_PER_S)
#define END_TIMEOUT_NS (5 * WF_NS_PER_S)

/* Of one worker. The shared memory: parameters, gradients of each trainer, parameters of each, and
 * windows of each. */
struct part {
	const struct wf_crowd_opts *opts;
	float *memory;
	unsigned trainer; /* of a trainer's part */
};

static float *
array_of(const struct part *part, unsigned idx)
{
	return part->memory + idx * (part->opts->bytes / sizeof(float));
}

/* Where the slice at `at` bytes is answered from: as many slots as a lane grants. */
static float *
slot_of(const struct part *part, unsigned trainer, uint64_t at)
{
	const struct wf_crowd_opts *opts = part->opts;
	uint64_t slot = trainer * WF_LIMIT_WINDOW + at / opts->slice_bytes % WF_LIMIT_WINDOW;
	return array_of(part, 1 + 2 * opts->trainer_count) +
	       slot * (opts->slice_bytes / sizeof(float));
}

/* One push of each trainer, slice by slice, as they come in turn. */
static void
apply_all(const struct part *part, const struct wf_kernels *kernels)
{
	const struct wf_crowd_opts *opts = part->opts;
	for (uint64_t at = 0; at < opts->bytes; at += opts->slice_bytes) {
		float *param = array_of(part, 0) + at / sizeof(float);
		for (unsigned t = 0; t < opts->trainer_count; t++) {
			wf_limit_apply(kernels, param, array_of(part, 1 + t) + at / sizeof(float),
				       opts->slice_bytes);
			memcpy(slot_of(part, t, at), param, opts->slice_bytes);
		}
	}
}

static void
copy_once(const struct part *part)
{
	const struct wf_crowd_opts *opts = part->opts;
	float *own = array_of(part, 1 + opts->trainer_count + part->trainer);
	for (uint64_t at = 0; at < opts->bytes; at += opts->slice_bytes) {
		memcpy(own + at / sizeof(float), slot_of(part, part->trainer, at),
		       opts->slice_bytes);
	}
}

static enum weft_status
follow_orders(struct wf_bench_seat *seat, const struct part *part, bool applies)
{
	const struct wf_kernels *kernels = wf_kernels_best();
	struct wf_meter meter;
	struct wf_order order;
	enum weft_status st = wf_meter_init(&meter, seat->env);
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures;
		wf_meter_begin(&meter, 1);
		for (uint64_t i = 0; i < order.count; i++) {
			if (applies) {
				apply_all(part, kernels);
			} else {
				copy_once(part);
			}
			wf_meter_mark(&meter);
		}
		wf_meter_figures(&meter, order.count, &figures);
		wf_seat_report(seat, &figures);
	}
	wf_meter_fini(&meter);
	return st;
}

static enum weft_status
run_pserver(struct wf_bench_seat *seat, const void *arg)
{
	const struct part *part = arg;
	wf_limit_fill(array_of(part, 0), part->opts->bytes, 1);
	return follow_orders(seat, part, true);
}

static enum weft_status
run_trainer(struct wf_bench_seat *seat, const void *arg)
{
	const struct part *part = arg;
	wf_limit_fill(array_of(part, 1 + part->trainer), part->opts->bytes, 0.5f);
	return follow_orders(seat, part, false);
}

enum weft_status
wf_crowd_start(const struct wf_crowd_opts *opts, struct wf_crowd *out)
{
	static const char *const name[1 + WF_CROWD_MAX] = {"bare pserver", "bare trainer 0",
							   "bare trainer 1", "bare trainer 2",
							   "bare trainer 3"};
	unsigned count = 1 + opts->trainer_count;
	WF_ASSERT(opts->trainer_count >= 1 && opts->trainer_count <= WF_CROWD_MAX);
	out->env = opts->env;
	uint64_t windows = opts->trainer_count * WF_LIMIT_WINDOW * opts->slice_bytes;
	uint64_t bytes = opts->bytes * (1 + 2 * opts->trainer_count) + windows;
	enum weft_status st = opts->env->ops->slab_open(opts->env, bytes, -1, &out->memory);
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		const struct part part = {
			.opts = opts, .memory = out->memory.base, .trainer = i > 0 ? i - 1 : 0};
		const struct wf_worker_opts worker = {
			.name = name[i],
			.cpu = WF_CPU_ANY,
			.either = {opts->either[0], opts->either[1]},
			.run = i == 0 ? run_pserver : run_trainer,
			.arg = &part, /* the process has its own copy from the fork on */
		};
		st = wf_worker_start(&worker, &out->worker[i]);
	}
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		struct wf_figures ready;
		st = wf_worker_await(&out->worker[i], READY_TIMEOUT_NS, &ready);
		out->side.worker[i] = &out->worker[i];
	}
	out->side.worker_count = count;
	out->side.bytes = opts->bytes * opts->trainer_count;
	return st;
}

void
wf_crowd_end(struct wf_crowd *crowd)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(crowd->worker); i++) {
		wf_worker_end(&crowd->worker[i], END_TIMEOUT_NS);
	}
	if (crowd->memory.base != NULL) {
		crowd->env->ops->slab_close(crowd->env, &crowd->memory);
	}
	crowd->memory = (struct wf_slab){0};
}
