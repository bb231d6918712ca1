/* SPDX-License-Identifier: Apache-2.0 */
/* halves: jobs whose gradients and values travel in 16 bits. Parameters and state stay f32 here;
 * pushes are widened as they are summed, and each apply rounds the values from which its slice is
 * answered. Thread: the lane's. */
#include "kernels/halves.h"

#include <inttypes.h>

#include "base/assert.h"
#include "pserver/dense.h"

/* A value that is finite here must be finite at the trainers too, or the job ends: nothing that is
 * computed with an infinite parameter is of use. */
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

/* Its state: room for gradients of an apply, by trainer. */
static uint64_t
halves_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	return dense->store.wire == WEFT_VALUES_F32 ? 0
						    : lane->peers.count * sizeof(const uint16_t *);
}

static enum weft_status
open_halves(struct wf_feature *self, struct wf_lane *lane)
{
	self->state = wf_zalloc(lane->env, halves_bytes(lane));
	return self->state != NULL ? WEFT_OK
				   : wf_fail(WEFT_NOMEM, "lane %u: no memory for %u gradients",
					     lane->opts.idx, lane->peers.count);
}

static void
close_halves(struct wf_feature *self, struct wf_lane *lane)
{
	wf_free(lane->env, self->state, halves_bytes(lane));
}

/* The gradients in dense->gradient, as they are. */
static struct wf_halves
view_halves(const struct wf_feature *self, const struct wf_dense *dense, unsigned count)
{
	const uint16_t **half = self->state;
	for (unsigned i = 0; i < count; i++) {
		half[i] = (const uint16_t *)(const void *)dense->gradient[i];
	}
	return (struct wf_halves){.form = dense->store.wire, .grad = half, .grad_count = count};
}

static size_t
apply_halves(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal,
	     const struct wf_apply *apply, uint64_t step)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	struct wf_halves halves = view_halves(self, dense, apply->grad_count);
	halves.value = wf_store_halves(store, &store->stored[ordinal]);
	size_t bad = wf_halves_apply(store->kernels, store->optimizer.method.kind, apply, &halves);
	check_values(lane, ordinal, step);
	return bad;
}

static double
squares(const struct wf_feature *self, const struct wf_dense *dense, unsigned count,
	size_t elements)
{
	const struct wf_halves halves = view_halves(self, dense, count);
	return wf_halves_squares(dense->store.kernels, &halves, elements);
}

static size_t
count_nonfinite(const struct wf_dense *dense, const void *gradient, size_t count)
{
	return wf_halves_count_nonfinite(dense->store.wire, gradient, count);
}

static const char *
remedy(const struct wf_dense *dense)
{
	return dense->store.wire == WEFT_VALUES_F16
		       ? "; f16 on the wire ends at 65,504, bf16 does not"
		       : "";
}

static void
begin(struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	store->kernels->rows->half[store->wire].narrow(
		wf_store_halves(store, stored), wf_store_param(store, stored), stored->count);
	check_values(lane, ordinal, dense->init.step);
}

static const struct wf_codec codec = {
	.apply = apply_halves,
	.squares = squares,
	.count_nonfinite = count_nonfinite,
	.remedy = remedy,
	.begin = begin,
};

const struct wf_feature_hooks wf_halves_hooks = {
	.name = "wire of 16 bits",
	.bytes = halves_bytes,
	.open = open_halves,
	.close = close_halves,
	.codec = &codec,
};
