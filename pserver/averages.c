/* SPDX-License-Identifier: Apache-2.0 */
/* averages: sums of each parameter's values over the last steps (kernels/average.h), which the
 * store keeps after the optimizer's own state. All slices are in one step, so the state of the sums
 * is the same for all. Thread: the lane's. */
#include "kernels/average.h"

#include "base/assert.h"
#include "pserver/dense.h"

struct averages {
	bool begun;
	struct wf_average stand; /* from the first slice applied on */
};

static uint64_t
averages_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	return wf_optimizer_averages(&dense->store.optimizer.set) ? sizeof(struct averages) : 0;
}

static enum weft_status
open_averages(struct wf_feature *self, struct wf_lane *lane)
{
	self->state = wf_zalloc(lane->env, sizeof(struct averages));
	return self->state != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "lane %u: no memory for averages", lane->opts.idx);
}

static void
close_averages(struct wf_feature *self, struct wf_lane *lane)
{
	wf_free(lane->env, self->state, sizeof(struct averages));
}

static void
after_apply(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	struct averages *averages = self->state;
	float *sum[WF_AVERAGE_SUMS];
	if (!stored->has_state) {
		return;
	}
	if (!averages->begun) {
		wf_average_begin(&store->optimizer, dense->init.step, &averages->stand);
		averages->begun = true;
	}
	if (averages->stand.step < lane->order.sum.step) {
		wf_average_next(&averages->stand);
	}
	WF_ASSERT(averages->stand.step == lane->order.sum.step);
	unsigned first = wf_optimizer_state_count(store->optimizer.method.kind);
	for (unsigned i = 0; i < WF_AVERAGE_SUMS; i++) {
		sum[i] = wf_store_state(store, stored, first + i);
	}
	wf_average_add(store->kernels, &averages->stand, wf_store_param(store, stored), sum,
		       stored->count);
}

const struct wf_feature_hooks wf_averages_hooks = {
	.name = "averages",
	.bytes = averages_bytes,
	.open = open_averages,
	.close = close_averages,
	.after_apply = after_apply,
};
