/* SPDX-License-Identifier: Apache-2.0 */
/* store: memory of one lane, allocated once when the job is known. Thread: the lane's. */
#include "pserver/store.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "wire/layout.h"

/* Slices start at cache lines, so that no two share one. */
#define ELEMENT_ALIGN 16u
/* Gradients come from another core's cache or from memory; in slices of this size on it pays to
 * prefetch them. */
#define FAR_SLICE_BYTES (16u << 10)

/* Features of whole steps need the synchronous mode of all tensors. */
static enum weft_status
check_whole(const struct wf_job *job)
{
	const struct wf_job_tensor *lagging = wf_job_first_lagging(job);
	enum weft_status st = wf_step_rules_check(&job->values);
	return st == WEFT_OK && lagging != NULL ? wf_job_check_steps(job, lagging) : st;
}

/* In a difference the tensor's settings are already. */
static void
settle(const struct wf_store *store, const struct wf_job *job, struct wf_stored *stored)
{
	const struct wf_job_tensor *tensor = stored->tensor;
	const struct wf_optimizer_opts *all = &store->optimizer;
	stored->rate_multiplier = 1;
	if (!wf_session_has_local_steps(&job->set)) {
		stored->rate_multiplier = tensor->rate_multiplier;
		stored->decay = (float)(tensor->decay < 0 ? all->set.decay : tensor->decay);
		stored->clip = (float)(tensor->clip < 0 ? all->set.clip : tensor->clip);
		stored->l1 = (float)(tensor->l1 < 0 ? all->set.l1 : tensor->l1);
	}
}

/* Where slices lie in the store: those with state, then those without. */
static void
line_up(struct wf_store *store, bool with_state)
{
	for (uint32_t i = 0; i < store->stored_count; i++) {
		struct wf_stored *stored = &store->stored[i];
		if (stored->has_state == with_state) {
			stored->first = store->elements;
			store->elements += (stored->count + ELEMENT_ALIGN - 1) &
					   ~(uint64_t)(ELEMENT_ALIGN - 1);
		}
	}
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
	uint64_t longest = 0;
	for (uint32_t i = 0; i < store->stored_count; i++) {
		const struct wf_slice *slice = &placement->slice[mine[i]];
		WF_ASSERT(slice->lane == lane && slice->on_lane == i);
		store->stored[i] = (struct wf_stored){
			.tensor = &job->tensor[slice->tensor],
			.slice = mine[i],
			.tensor_idx = slice->tensor,
			.count = slice->count,
			.has_state = wf_job_has_state(&job->tensor[slice->tensor]),
			.place_offset = place[slice->tensor] + slice->first * sizeof(float),
		};
		settle(store, job, &store->stored[i]);
		store->pushable_count += job->tensor[slice->tensor].is_static ? 0 : 1;
		store->piece_count += job->tensor[slice->tensor].is_piece ? 1 : 0;
		longest = slice->count > longest ? slice->count : longest;
	}
	line_up(store, true);
	store->state_elements = store->elements;
	line_up(store, false);
	store->slot_bytes = wf_layout_bytes(longest);
	store->park.bytes = wf_layout_bytes((longest + store->wire_shift) >> store->wire_shift);
	wf_free(store->env, place, job->tensor_count * sizeof(*place));
	return WEFT_OK;
}

/* Of the memory that answers are sent from, which comes last. */
static uint64_t
halves_bytes(const struct wf_store *store)
{
	return store->wire == WEFT_VALUES_F32 ? 0 : store->elements * sizeof(uint16_t);
}

uint64_t
wf_store_bytes(const struct wf_store *store)
{
	uint64_t state = store->state_elements * store->state_count;
	return (store->elements + state) * sizeof(float) + halves_bytes(store);
}

static enum weft_status
alloc_slab(struct wf_store *store, uint64_t bytes, int numa_node)
{
	enum weft_status st =
		store->env->ops->slab_open(store->env, bytes, numa_node, &store->slab);
	if (st == WEFT_OK) {
		bool halves = store->wire != WEFT_VALUES_F32;
		store->values =
			(const char *)store->slab.base + (halves ? bytes - halves_bytes(store) : 0);
	}
	return st;
}

static uint32_t
hold_max(const struct wf_store *store, uint32_t trainer_count, uint64_t inbox_bytes)
{
	uint32_t most = store->stored_count - store->piece_count;
	uint64_t each = trainer_count * store->park.bytes;
	uint64_t room = each > 0 && inbox_bytes > 0 ? inbox_bytes / each : most;
	return room < most ? (uint32_t)room : most;
}

static enum weft_status
alloc_memory(struct wf_store *store, uint32_t trainer_count, const struct wf_store_room *room)
{
	uint64_t bytes = wf_store_bytes(store);
	if (bytes > room->max_shard_bytes) {
		return wf_fail(WEFT_NOMEM,
			       "lane: parameters and state take %" PRIu64
			       " bytes, --max_shard_bytes allows %" PRIu64
			       "; raise it, or use more pservers or ports_num",
			       bytes, room->max_shard_bytes);
	}
	store->hold_max = hold_max(store, trainer_count, room->inbox_bytes);
	/* Pieces are not announced: they have room beside what may be. */
	uint64_t chunks = (uint64_t)trainer_count * (store->hold_max + store->piece_count);
	if (chunks >= WF_PARK_NONE) {
		return wf_fail(WEFT_NOMEM, "lane: %u trainers x %u slices; raise --slice_bytes",
			       trainer_count, store->stored_count);
	}
	if (chunks * sizeof(*store->park.free) > room->max_shard_bytes) {
		return wf_fail(WEFT_NOMEM,
			       "lane: a list of %u trainers x %u slices, --max_shard_bytes allows "
			       "%" PRIu64 " bytes; raise it or --slice_bytes",
			       trainer_count, store->hold_max, room->max_shard_bytes);
	}
	store->park.count = (uint32_t)chunks;
	store->park.free = wf_zalloc_array(store->env, chunks + 1, sizeof(*store->park.free));
	if (store->park.free == NULL) {
		return wf_fail(WEFT_NOMEM, "lane: no memory for a list of %" PRIu64 " chunks",
			       chunks);
	}
	for (uint32_t i = 0; i < store->park.count; i++) {
		store->park.free[i] = store->park.count - 1 - i; /* chunk 0 comes first */
	}
	store->park.free_count = store->park.count;
	if (bytes == 0) {
		return WEFT_OK;
	}
	enum weft_status st = alloc_slab(store, bytes, room->numa_node);
	if (st != WEFT_OK || chunks == 0) {
		return st; /* without any, the lane refuses the job (announce.c) */
	}
	return store->env->ops->slab_open(store->env, chunks * store->park.bytes, room->numa_node,
					  &store->park.slab);
}

enum weft_status
wf_store_init(struct wf_env *env, const struct wf_job *job, const struct wf_placement *placement,
	      uint32_t lane, const struct wf_store_room *room, struct wf_store *out)
{
	WF_ASSERT(lane < placement->lane_count);
	struct wf_store store = {
		.env = env,
		.kernels = wf_kernels_best(),
		.stored_count = placement->lane_first[lane + 1] - placement->lane_first[lane],
	};
	store.optimizer = wf_job_optimizer(job);
	enum weft_status st = wf_optimizer_check(&store.optimizer);
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_session_has_local_steps(&job->set)) {
		/* What trainers push are steps already made, and differences: param - push. */
		store.optimizer = wf_optimizer_defaults();
		store.optimizer.method.kind = WF_SGD;
		store.optimizer.set.learning_rate = 1;
	}
	st = check_whole(job);
	if (st != WEFT_OK) {
		return st;
	}
	store.wire = (enum weft_value_format)job->set.dense_wire;
	store.wire_shift = job->set.dense_wire == WEFT_WIRE_F32 ? 0 : 1;
	store.mean = wf_job_is_mean(job) && job->set.dense_mode != WEFT_DENSE_ELASTIC;
	wf_apply_constants(&store.optimizer, &store.rated.constants);
	store.state_count = wf_state_count(&store.optimizer);
	st = lay_out(&store, job, placement, lane);
	if (st == WEFT_OK) {
		st = alloc_memory(&store, job->set.num_gradient_servers, room);
		store.rated.constants.is_far = store.slot_bytes >= FAR_SLICE_BYTES;
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
	if (store->park.slab.base != NULL) {
		store->env->ops->slab_close(store->env, &store->park.slab);
	}
	wf_free(store->env, store->stored, (store->stored_count + 1u) * sizeof(*store->stored));
	wf_free(store->env, store->park.free, (store->park.count + 1u) * sizeof(*store->park.free));
	*store = (struct wf_store){0};
}

float *
wf_store_state(const struct wf_store *store, const struct wf_stored *stored, unsigned idx)
{
	WF_ASSERT(idx < store->state_count && stored->has_state);
	return (float *)store->slab.base + store->elements + store->state_elements * idx +
	       stored->first;
}

uint16_t *
wf_store_halves(const struct wf_store *store, const struct wf_stored *stored)
{
	WF_ASSERT(store->wire != WEFT_VALUES_F32);
	char *halves = (char *)store->slab.base + (wf_store_bytes(store) - halves_bytes(store));
	return (uint16_t *)(void *)halves + stored->first;
}

uint32_t
wf_store_park(struct wf_store *store, const void *from, uint64_t bytes)
{
	WF_ASSERT(store->park.free_count > 0 && bytes <= store->park.bytes);
	uint32_t chunk = store->park.free[--store->park.free_count];
	memcpy((char *)store->park.slab.base + (uint64_t)chunk * store->park.bytes, from, bytes);
	return chunk;
}

const void *
wf_store_parked(const struct wf_store *store, uint32_t chunk)
{
	WF_ASSERT(chunk < store->park.count);
	return (const char *)store->park.slab.base + (uint64_t)chunk * store->park.bytes;
}

void
wf_store_unpark(struct wf_store *store, uint32_t chunk)
{
	WF_ASSERT(chunk < store->park.count && store->park.free_count < store->park.count);
	store->park.free[store->park.free_count++] = chunk;
}

uint64_t
wf_store_parked_bytes(const struct wf_store *store)
{
	return (uint64_t)(store->park.count - store->park.free_count) * store->park.bytes;
}
