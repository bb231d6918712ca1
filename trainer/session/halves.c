/* SPDX-License-Identifier: Apache-2.0 */
/* halves: a session whose gradients and values travel in 16 bits. Gradients are rounded slice by
 * slice into their own slab just before they are sent, and are sent from there; values land in
 * another slab, and are widened into the caller's array when they are announced. A gradient that is
 * sent again, on a new path, has the same bits. Thread: the core's; open and close: the owner's. */
#include "kernels/halves.h"

#include "base/assert.h"
#include "exchange/buffers.h"
#include "trainer/session/dense.h"

static void *
at(const struct wf_slab *slab, uint64_t offset)
{
	return (char *)slab->base + offset;
}

static void
count_overflows(struct wf_core *core, const struct wf_dense_slice *slice, const uint16_t *half,
		const float *from)
{
	const struct wf_session_halves *halves = &core->halves;
	size_t lost = wf_halves_overflows(halves->kernels, halves->format, half, from,
					  slice->bytes / sizeof(float));
	struct wf_stats *stats = &core->report.stats;
	if (lost > 0 && wf_stats_get(stats, WF_CORE_GRADIENT_OVERFLOWED_COUNT) == 0) {
		wf_core_log(core, WEFT_LOG_WARN,
			    "trainer %u: %zu values of the gradient of %.60s are too large for the "
			    "wire's 16 bits, and infinite there; from here on they are only "
			    "counted (gradients_overflowed)",
			    core->opts.trainer_id, lost, core->job.tensor[slice->tensor].name);
	}
	wf_stats_add(stats, WF_CORE_GRADIENT_OVERFLOWED_COUNT, lost);
}

static void
round_slice(struct wf_core *core, struct wf_dense_slice *slice)
{
	const struct wf_session_halves *halves = &core->halves;
	uint16_t *to = at(&halves->rounded, slice->offset >> halves->shift);
	const float *from = at(&core->memory.grad, slice->offset);
	const size_t count = slice->bytes / sizeof(float);
	if (slice->is_rounded) {
		return;
	}
	slice->is_rounded = true;
	if (core->job.set.dense_rounding == WEFT_ROUND_STOCHASTIC) {
		const struct wf_halves_draw draw = {
			.form = halves->format,
			.in = from,
			.count = count,
			.seed = core->opts.rounding_seed,
			.trainer = core->opts.trainer_id,
			.tensor = slice->tensor,
			.step = slice->step,
			.first = (slice->offset - core->memory.offset[slice->tensor]) /
				 sizeof(float),
		};
		wf_halves_draw(halves->kernels, &draw, to);
	} else {
		halves->kernels->rows->half[halves->format].narrow(to, from, count);
	}
	count_overflows(core, slice, to, from);
}

static void
copy_out(struct wf_core *core, struct wf_dense_slice *slice, struct wf_op *op)
{
	const struct wf_session_halves *halves = &core->halves;
	round_slice(core, slice);
	op->region = halves->rounded_region;
	op->src = at(&halves->rounded, slice->offset >> halves->shift);
	op->bytes = slice->bytes >> halves->shift;
}

/* Initial values are sent from the array to which they return, which is lent until DONE. */
static void
copy_in(struct wf_core *core, const struct wf_dense_slice *slice)
{
	const struct wf_session_halves *halves = &core->halves;
	const uint16_t *from = at(&halves->answers, slice->offset >> halves->shift);
	if (slice->in_flight && wf_is_initial_push(slice->step)) {
		return;
	}
	halves->kernels->rows->half[halves->format].widen(
		at(&core->memory.section[0], slice->offset), from, slice->bytes / sizeof(float));
}

static const struct wf_link_codec codec = {
	.copy_out = copy_out,
	.copy_in = copy_in,
};

enum weft_status
wf_core_halves_open(struct wf_core *core, uint64_t bytes, int numa_node)
{
	struct wf_session_halves *halves = &core->halves;
	struct wf_env *env = core->end.env;
	halves->format = (enum weft_value_format)core->job.set.dense_wire;
	halves->shift = halves->format == WEFT_VALUES_F32 ? 0 : 1;
	halves->kernels = wf_kernels_best();
	if (halves->format == WEFT_VALUES_F32) {
		return WEFT_OK;
	}
	halves->codec = &codec;
	enum weft_status st =
		env->ops->slab_open(env, bytes >> halves->shift, numa_node, &halves->rounded);
	if (st == WEFT_OK) {
		st = env->ops->slab_open(env, bytes >> halves->shift, numa_node, &halves->answers);
	}
	return st;
}

void
wf_core_halves_close(struct wf_core *core)
{
	struct wf_session_halves *halves = &core->halves;
	wf_slab_release(core->end.env, &halves->rounded, false);
	wf_slab_release(core->end.env, &halves->answers, false);
}

enum weft_status
wf_core_halves_add(struct wf_core *core)
{
	struct wf_session_halves *halves = &core->halves;
	struct wf_transport *transport = core->turn.transport;
	enum weft_status st = wf_buffers_add(transport, &halves->rounded, &halves->rounded_region);
	return st != WEFT_OK ? st
			     : wf_buffers_add(transport, &halves->answers, &halves->answers_region);
}
