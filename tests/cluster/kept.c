/* SPDX-License-Identifier: Apache-2.0 */
/* kept: see kept.h. */
#include "tests/cluster/kept.h"

#include <string.h>

#include "pserver/position.h"

void
kept_note(struct kept_lanes *lanes, struct wf_lane *lane)
{
	WF_ASSERT(lanes->count < KEPT_LANES);
	lanes->lane[lanes->count++] = lane;
}

/* Between the arrays of a lane and what is kept. */
static void
copy_slice(struct kept *kept, const struct wf_dense *dense, const struct wf_stored *stored,
	   bool load)
{
	const uint32_t tensor = stored->tensor_idx;
	const uint64_t first = dense->placement.slice[stored->slice].first;
	size_t bytes = stored->count * sizeof(float);
	WF_ASSERT(tensor < KEPT_TENSORS && first + stored->count <= KEPT_ELEMENTS &&
		  dense->store.state_count <= KEPT_ARRAYS);
	float *own = wf_store_param(&dense->store, stored);
	float *to = kept->param[tensor] + first;
	memcpy(load ? own : to, load ? to : own, bytes);
	for (unsigned i = 0; stored->has_state && i < dense->store.state_count; i++) {
		own = wf_store_state(&dense->store, stored, i);
		to = kept->state[tensor][i] + first;
		memcpy(load ? own : to, load ? to : own, bytes);
	}
}

static bool
is_first(const struct wf_lane *lane)
{
	return lane->opts.service_idx == 0 && lane->admission.first.pserver_idx == 0;
}

/* Of each trainer what holds at the last step that it has completed. */
static void
copy_positions(struct kept *kept, const struct wf_lane *lane)
{
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_member *member = &lane->peers.all[t].member;
		uint64_t step = lane->order.own_steps ? member->step_next - 1 : kept->step;
		const uint8_t *bytes = NULL;
		uint32_t count = 0;
		if (wf_position_at(lane, t, step, &bytes, &count)) {
			memcpy(kept->position[t], bytes, count);
			kept->position_bytes[t] = count;
		}
	}
}

static void
copy_lane(struct kept *kept, const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		const struct wf_stored *stored = &dense->store.stored[i];
		if (stored->tensor->is_piece) {
			continue;
		}
		WF_ASSERT(stored->tensor->is_static || lane->order.own_steps ||
			  dense->round[i].next == kept->step + 1);
		copy_slice(kept, dense, stored, false);
		if (dense->store.numbers != NULL) {
			kept->numbers[stored->tensor_idx] =
				dense->store.numbers[stored->tensor_idx];
		}
	}
	kept->samples =
		dense->store.pushable_count > 0 ? lane->order.sum.samples_before : kept->samples;
	if (is_first(lane)) {
		copy_positions(kept, lane);
	}
}

void
kept_copy(struct kept *kept, const struct kept_lanes *lanes, uint64_t step)
{
	kept->step = step;
	for (uint32_t i = 0; i < lanes->count; i++) {
		copy_lane(kept, lanes->lane[i]);
	}
}

enum weft_status
kept_load(struct kept *kept, struct wf_lane *lane, struct wf_msg_init *out)
{
	const struct wf_dense *dense = lane->own;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < dense->store.stored_count && st == WEFT_OK; i++) {
		const struct wf_stored *stored = &dense->store.stored[i];
		if (stored->tensor->is_piece) {
			continue;
		}
		copy_slice(kept, dense, stored, true);
		if (kept->numbers[stored->tensor_idx].given != 0) {
			st = wf_change_load(lane, stored->tensor_idx,
					    &kept->numbers[stored->tensor_idx]);
		}
	}
	for (uint32_t t = 0; t < lane->peers.count && is_first(lane) && st == WEFT_OK; t++) {
		if (kept->position_bytes[t] > 0) {
			st = wf_position_set(lane, t, kept->step, kept->position[t],
					     kept->position_bytes[t]);
		}
	}
	*out = (struct wf_msg_init){.step = kept->step, .samples = kept->samples};
	return st;
}
