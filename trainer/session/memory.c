/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the arrays of a session's tensors: the caller's gradients and parameters, the optimizer's
 * state, and what of them the lanes read from or write to. Thread: the owner's, but for
 * wf_memory_add. */
#include "trainer/session/memory.h"

#include "base/assert.h"
#include "exchange/buffers.h"
#include "trainer/session/core.h"
#include "wire/layout.h"

WF_STATIC_ASSERT(WF_SECTIONS <= WF_ANSWER_PLACES_MAX, "each section can be granted");

static enum weft_status
open_slabs(struct wf_core *core, uint64_t bytes, int numa_node)
{
	struct wf_memory *memory = &core->memory;
	struct wf_env *env = core->end.env;
	enum weft_status st = env->ops->slab_open(env, bytes, numa_node, &memory->grad);
	for (unsigned i = 0; i < memory->place_count && st == WEFT_OK; i++) {
		st = env->ops->slab_open(env, bytes, numa_node, &memory->section[i]);
	}
	return st == WEFT_OK ? wf_core_halves_open(core, bytes, numa_node) : st;
}

enum weft_status
wf_memory_open(struct wf_core *core, uint32_t state_count, int numa_node)
{
	struct wf_memory *memory = &core->memory;
	const struct weft_session_opts *set = &core->job.set;
	const uint32_t tensors = core->job.tensor_count;
	memory->offset = wf_zalloc_array(core->end.env, tensors + 1u, sizeof(*memory->offset));
	if (memory->offset == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for %u tensors", tensors);
	}
	const uint64_t bytes = wf_layout_offsets(&core->job, memory->offset);
	const bool exact = set->dense_wire != WEFT_WIRE_F32 && core->opts.keep_state != 0;
	memory->section_count = 1 + (bytes > 0 ? state_count : 0);
	memory->place_count = memory->section_count + (bytes > 0 && exact ? 1 : 0);
	return bytes > 0 ? open_slabs(core, bytes, numa_node) : WEFT_OK;
}

void
wf_memory_close(struct wf_core *core, bool keep)
{
	struct wf_memory *memory = &core->memory;
	struct wf_env *env = core->end.env;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(memory->section); i++) {
		wf_slab_release(env, &memory->section[i], keep);
	}
	wf_slab_release(env, &memory->grad, keep);
	wf_core_halves_close(core);
	wf_free(env, memory->offset, (core->job.tensor_count + 1u) * sizeof(*memory->offset));
	memory->offset = NULL;
}

enum weft_status
wf_memory_add(struct wf_core *core)
{
	struct wf_memory *memory = &core->memory;
	struct wf_transport *transport = core->turn.transport;
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < memory->place_count && st == WEFT_OK; i++) {
		st = wf_buffers_add(transport, &memory->section[i], &memory->section_region[i]);
	}
	if (st == WEFT_OK) {
		st = wf_core_halves_add(core);
	}
	if (st == WEFT_OK) {
		st = wf_buffers_add(transport, &memory->grad, &memory->grad_region);
	}
	for (unsigned i = 0; i < memory->place_count && st == WEFT_OK; i++) {
		bool halves = i == 0 && core->halves.codec != NULL;
		memory->place[i] = (struct wf_answer_place){
			.region = halves ? core->halves.answers_region : memory->section_region[i],
			.bytes = halves ? core->halves.answers.bytes : memory->section[i].bytes,
		};
	}
	return st;
}
