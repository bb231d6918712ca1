/* SPDX-License-Identifier: Apache-2.0 */
/* halves: jobs whose gradients and values travel in 16 bits. Parameters and state stay f32 here;
 * pushes are widened as they are summed, and each apply leaves what its slice's answers are made
 * of. Thread: the lane's. */
#include <inttypes.h>

#include "base/assert.h"
#include "pserver/dense.h"

/* What was a number here is one at the trainers too, or the job ends: nothing that is computed with
 * an infinite parameter is of use. */
static void
check_values(struct wf_lane *lane, uint32_t ordinal, uint64_t step)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	size_t lost =
		wf_halves_overflows(store->kernels, store->wire, wf_store_halves(store, stored),
				    wf_store_param(store, stored), stored->count);
	if (lost > 0) {
		bool is_f16 = store->wire == WEFT_VALUES_F16;
		wf_lane_fail(lane, WEFT_DATA, step,
			     "%zu values of %.60s are too large for %s on the wire after step "
			     "%" PRIu64 "; lower the learning rate, or run with --dense_wire=%s",
			     lost, stored->tensor->name, is_f16 ? "f16" : "bf16", step,
			     is_f16 ? "bf16" : "f32");
	}
}

/* The gradients in dense->gradient, as they are. */
static struct wf_halves
open_halves(struct wf_dense *dense, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		dense->half[i] = (const uint16_t *)(const void *)dense->gradient[i];
	}
	return (struct wf_halves){
		.form = dense->store.wire, .grad = dense->half, .grad_count = count};
}

size_t
wf_dense_apply_halves(struct wf_lane *lane, uint32_t ordinal, const struct wf_apply *apply,
		      uint64_t step)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	struct wf_halves halves = open_halves(dense, apply->grad_count);
	halves.value = wf_store_halves(store, &store->stored[ordinal]);
	size_t bad = wf_halves_apply(store->kernels, store->optimizer.method.kind, apply, &halves);
	check_values(lane, ordinal, step);
	return bad;
}

double
wf_dense_squares(struct wf_dense *dense, unsigned count, uint32_t ordinal)
{
	const struct wf_store *store = &dense->store;
	const size_t elements = store->stored[ordinal].count;
	if (store->wire == WEFT_VALUES_F32) {
		return wf_norm_squares(dense->gradient, count, elements);
	}
	const struct wf_halves halves = open_halves(dense, count);
	return wf_halves_squares(store->kernels, &halves, elements);
}

size_t
wf_dense_count_nonfinite(const struct wf_dense *dense, const void *gradient, size_t count)
{
	const struct wf_store *store = &dense->store;
	if (store->wire == WEFT_VALUES_F32) {
		return store->kernels->count_nonfinite(gradient, count);
	}
	return wf_halves_count_nonfinite(store->wire, gradient, count);
}

void
wf_dense_initial_halves(struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	store->kernels->rows->half[store->wire].narrow(
		wf_store_halves(store, stored), wf_store_param(store, stored), stored->count);
	check_values(lane, ordinal, dense->init.step);
}
