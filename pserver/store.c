/* SPDX-License-Identifier: Apache-2.0 */
/* store: memory of one lane, taken once when the job is known. Thread: the lane's. */
#include "pserver/store.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "wire/layout.h"

/* Slices start at cache lines, so that no two share one. */
#define ELEMENT_ALIGN 16u

static struct wf_optimizer_opts
optimizer_of(const struct wf_job_optimizer *from)
{
	return (struct wf_optimizer_opts){
		.kind = (enum wf_optimizer)from->kind,
		.schedule = (enum wf_schedule)from->schedule,
		.learning_rate = from->learning_rate,
		.momentum = from->momentum,
		.beta1 = from->beta1,
		.beta2 = from->beta2,
		.epsilon = from->epsilon,
		.decay = from->decay,
		.clip = from->clip,
		.schedule_a = from->schedule_a,
		.schedule_b = from->schedule_b,
	};
}

static enum weft_status
lay_out(struct wf_store *store, const struct wf_job *job, const struct wf_placement *placement,
	uint32_t lane)
{
	uint64_t *place = wf_zalloc_array(store->env, job->tensor_count, sizeof(*place));
	store->stored =
		wf_zalloc_array(store->env, store->stored_count + 1u, sizeof(*store->stored));
	if (place == NULL || store->stored == NULL) {
		wf_free(store->env, place, job->tensor_count * sizeof(*place));
		return wf_fail(WEFT_NOMEM, "lane: no memory for %u slices", store->stored_count);
	}
	(void)wf_layout_offsets(job, place);
	const uint32_t *mine = &placement->lane_slice[placement->lane_first[lane]];
	for (uint32_t i = 0; i < store->stored_count; i++) {
		const struct wf_slice *slice = &placement->slice[mine[i]];
		WF_ASSERT(slice->lane == lane && slice->on_lane == i);
		store->stored[i] = (struct wf_stored){
			.tensor = &job->tensor[slice->tensor],
			.slice = mine[i],
			.tensor_idx = slice->tensor,
			.count = slice->count,
			.first = store->elements,
			.place_offset = place[slice->tensor] + slice->first * sizeof(float),
		};
		store->elements +=
			(slice->count + ELEMENT_ALIGN - 1) & ~(uint64_t)(ELEMENT_ALIGN - 1);
		store->pushable_count += job->tensor[slice->tensor].is_static ? 0 : 1;
		uint64_t bytes = wf_layout_bytes(slice->count);
		store->park_bytes = bytes > store->park_bytes ? bytes : store->park_bytes;
	}
	wf_free(store->env, place, job->tensor_count * sizeof(*place));
	return WEFT_OK;
}

static enum weft_status
take_memory(struct wf_store *store, uint32_t trainer_count, uint64_t max_shard_bytes, int numa_node)
{
	uint64_t bytes = store->elements * sizeof(float) * (1 + store->state_count);
	if (bytes > max_shard_bytes) {
		return wf_fail(WEFT_NOMEM,
			       "lane: parameters and state take %" PRIu64
			       " bytes, --max_shard_bytes allows %" PRIu64
			       "; raise it, or use more pservers or ports_num",
			       bytes, max_shard_bytes);
	}
	uint64_t chunks = (uint64_t)trainer_count * store->stored_count;
	if (chunks >= WF_PARK_NONE) {
		return wf_fail(WEFT_NOMEM, "lane: %u trainers x %u slices; raise --slice_bytes",
			       trainer_count, store->stored_count);
	}
	store->park_count = (uint32_t)chunks;
	store->park_free = wf_zalloc_array(store->env, chunks + 1, sizeof(*store->park_free));
	if (store->park_free == NULL) {
		return wf_fail(WEFT_NOMEM, "lane: no memory for a list of %" PRIu64 " chunks",
			       chunks);
	}
	for (uint32_t i = 0; i < store->park_count; i++) {
		store->park_free[i] = store->park_count - 1 - i; /* chunk 0 comes first */
	}
	store->park_free_count = store->park_count;
	if (bytes == 0) {
		return WEFT_OK;
	}
	enum weft_status st =
		store->env->ops->slab_open(store->env, bytes, numa_node, &store->slab);
	if (st != WEFT_OK) {
		return st;
	}
	return store->env->ops->slab_open(store->env, chunks * store->park_bytes, numa_node,
					  &store->park);
}

enum weft_status
wf_store_init(struct wf_env *env, const struct wf_job *job, const struct wf_placement *placement,
	      uint32_t lane, uint64_t max_shard_bytes, int numa_node, struct wf_store *out)
{
	WF_ASSERT(lane < placement->lane_count);
	struct wf_store store = {
		.env = env,
		.kernels = wf_kernels_best(),
		.optimizer = optimizer_of(&job->optimizer),
		.stored_count = placement->lane_first[lane + 1] - placement->lane_first[lane],
	};
	enum weft_status st = wf_optimizer_check(&store.optimizer);
	if (st != WEFT_OK) {
		return st;
	}
	store.state_count = wf_optimizer_state_count(store.optimizer.kind);
	st = lay_out(&store, job, placement, lane);
	if (st == WEFT_OK) {
		st = take_memory(&store, job->trainer_count, max_shard_bytes, numa_node);
	}
	if (st != WEFT_OK) {
		wf_store_fini(&store);
		return st;
	}
	*out = store;
	return WEFT_OK;
}

void
wf_store_fini(struct wf_store *store)
{
	if (store->env == NULL) {
		return;
	}
	if (store->slab.base != NULL) {
		store->env->ops->slab_close(store->env, &store->slab);
	}
	if (store->park.base != NULL) {
		store->env->ops->slab_close(store->env, &store->park);
	}
	wf_free(store->env, store->stored, (store->stored_count + 1u) * sizeof(*store->stored));
	wf_free(store->env, store->park_free, (store->park_count + 1u) * sizeof(*store->park_free));
	*store = (struct wf_store){0};
}

float *
wf_store_param(const struct wf_store *store, const struct wf_stored *stored)
{
	return (float *)store->slab.base + stored->first;
}

float *
wf_store_state(const struct wf_store *store, const struct wf_stored *stored, unsigned idx)
{
	WF_ASSERT(idx < store->state_count);
	return (float *)store->slab.base + store->elements * (1 + idx) + stored->first;
}

uint32_t
wf_store_park(struct wf_store *store, const struct wf_stored *stored, const float *from)
{
	WF_ASSERT(store->park_free_count > 0);
	uint32_t chunk = store->park_free[--store->park_free_count];
	memcpy((char *)store->park.base + (uint64_t)chunk * store->park_bytes, from,
	       stored->count * sizeof(float));
	return chunk;
}

const float *
wf_store_parked(const struct wf_store *store, uint32_t chunk)
{
	WF_ASSERT(chunk < store->park_count);
	return (const float *)((const char *)store->park.base +
			       (uint64_t)chunk * store->park_bytes);
}

void
wf_store_unpark(struct wf_store *store, uint32_t chunk)
{
	WF_ASSERT(chunk < store->park_count && store->park_free_count < store->park_count);
	store->park_free[store->park_free_count++] = chunk;
}

uint64_t
wf_store_parked_bytes(const struct wf_store *store)
{
	return (uint64_t)(store->park_count - store->park_free_count) * store->park_bytes;
}
