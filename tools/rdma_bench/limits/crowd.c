/* SPDX-License-Identifier: Apache-2.0 */
/* crowd: the work of asynchronous pushes of a few trainers, in as many processes: see limit.h.
 * Thread: the workers' own, unless a comment says otherwise. */
#include <string.h>

#include "base/status.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/loop.h"
#include "tools/rdma_bench/limits/memory.h"

#define PSERVER WF_LIMIT_TRAINERS /* the part that is no trainer's */

/* The shared memory: gradients of each trainer, then windows of each. Parameters are each
 * process's own. */
struct part {
	const struct wf_limit_opts *opts;
	float *shared;
	unsigned number; /* which trainer's; PSERVER */
	const struct wf_limit_form *form;
	float *param;
};

static float *
grad_of(const struct part *part, unsigned trainer)
{
	return part->shared + trainer * (part->opts->bytes / sizeof(float));
}

/* Where slice `idx` is answered from: as many slots as a lane grants. */
static float *
slot_of(const struct part *part, unsigned trainer, uint64_t idx)
{
	uint64_t slot = trainer * WF_LIMIT_WINDOW + idx % WF_LIMIT_WINDOW;
	return grad_of(part, WF_LIMIT_TRAINERS) + slot * (part->opts->slice_bytes / sizeof(float));
}

/* One slice of each trainer in turn, as they arrive. */
static void
apply(const struct part *part, uint64_t idx)
{
	const uint64_t floats = part->opts->slice_bytes / sizeof(float);
	float *param = part->param + idx * floats;
	for (unsigned t = 0; t < WF_LIMIT_TRAINERS; t++) {
		part->form->sgd(param, grad_of(part, t) + idx * floats, floats, WF_LIMIT_RATE);
		memcpy(slot_of(part, t, idx), param, part->opts->slice_bytes);
	}
}

static enum weft_status
steps(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	const struct part *part = work;
	const struct wf_limit_opts *opts = part->opts;
	const uint64_t floats = opts->slice_bytes / sizeof(float);
	for (uint64_t i = 0; i < order->count; i++) {
		for (uint64_t idx = 0; idx < opts->bytes / opts->slice_bytes; idx++) {
			if (part->number == PSERVER) {
				apply(part, idx);
			} else {
				memcpy(part->param + idx * floats, slot_of(part, part->number, idx),
				       opts->slice_bytes);
			}
		}
		wf_meter_mark(meter);
	}
	return WEFT_OK;
}

static enum weft_status
run(struct wf_bench_seat *seat, const void *arg)
{
	struct part part = *(const struct part *)arg;
	const struct wf_duty duty = {.run = steps, .work = &part, .batch = 1};
	part.form = wf_limit_form_best();
	enum weft_status st = wf_limit_floats(part.opts->bytes, 1, &part.param);
	if (part.number != PSERVER) {
		wf_limit_fill(grad_of(&part, part.number), part.opts->bytes, 0.5f);
	}
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

enum weft_status
wf_limit_crowd_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	static const char *const name[] = {"bare trainer 0", "bare trainer 1", "bare trainer 2",
					   "bare trainer 3", "bare pserver"};
	struct wf_limit_part parts[WF_LIMIT_TRAINERS + 1];
	struct part part[WF_LIMIT_TRAINERS + 1];
	enum weft_status st = wf_limit_share(
		out, WF_LIMIT_TRAINERS * (opts->bytes + WF_LIMIT_WINDOW * opts->slice_bytes));
	if (st != WEFT_OK) {
		return st;
	}
	for (unsigned i = 0; i <= WF_LIMIT_TRAINERS; i++) {
		part[i] = (struct part){.opts = opts, .shared = out->shared, .number = i};
		parts[i] = (struct wf_limit_part){name[i], WF_CPU_ANY, run, &part[i]};
	}
	st = wf_limit_start(opts, parts, WF_LIMIT_TRAINERS + 1, out);
	out->side.bytes = opts->bytes * WF_LIMIT_TRAINERS;
	return st;
}
