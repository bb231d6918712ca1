/* SPDX-License-Identifier: Apache-2.0 */
/* store: what one lane keeps: the parameters and the optimizer's state of its slices, and the room
 * for parked gradients. Thread: the lane's. */
#pragma once

#include "base/env.h"
#include "kernels/halves.h"
#include "kernels/kernels.h"
#include "kernels/numbers.h"
#include "wire/job.h"
#include "wire/placement.h"

#define WF_PARK_NONE UINT32_MAX

/* One slice as the lane sees it. */
struct wf_stored {
	const struct wf_job_tensor *tensor;
	uint32_t slice; /* number in the job */
	uint32_t tensor_idx;
	uint64_t count;        /* elements */
	uint64_t first;        /* element of the store's arrays */
	uint64_t place_offset; /* bytes, in the trainers' grants of what travels as f32 */
	double rate_multiplier;
	float decay, clip, l1; /* the tensor's own, or the job's */
	bool has_state;
};

/* Room for gradients that are copied aside. */
struct wf_park {
	struct wf_slab slab; /* chunks, touched only when used */
	uint64_t bytes;      /* of one chunk: a gradient of the longest slice */
	uint32_t count;
	uint32_t *free; /* [count] stack, last used first */
	uint32_t free_count;
};

/* What applies have in common: the constants, and these with the rates of the last apply, which
 * most others have, too: all slices of a step whose tensors have the same rate, or all steps. */
struct wf_rated {
	struct wf_apply constants; /* what of an apply no step changes */
	struct wf_apply apply;
	double rate;      /* of the tensor */
	uint64_t updates; /* that count; 0: none yet */
};

struct wf_store {
	struct wf_env *env;
	const struct wf_kernels *kernels;
	struct wf_optimizer_opts optimizer;
	struct wf_rated rated;
	/* [tensor_count] what trainers have changed of these; NULL: nothing. change.c's. */
	const struct wf_numbers *numbers;
	bool mean;            /* gradients are divided by the samples of their step */
	unsigned state_count; /* averages included */

	struct wf_slab slab;         /* parameters, then each array of state, then halves */
	enum weft_value_format wire; /* what gradients and values travel as */
	unsigned wire_shift;         /* bits by which their bytes are fewer than f32's: 0 or 1 */
	const char *values;          /* the source of answers: parameters, or halves */
	uint64_t elements;           /* of all slices, padding included */
	uint64_t state_elements;     /* of those with state, which come first: of one array of it */
	struct wf_stored *stored;    /* [stored_count] */
	uint32_t stored_count;
	uint32_t pushable_count; /* slices that are not static */
	uint32_t piece_count;    /* of those that are: pieces of weft_all_reduce */

	uint64_t slot_bytes; /* of the longest slice as f32, which initial values are */

	/* Number of slices with a chunk for every trainer: as many as inbox_bytes allow. */
	uint32_t hold_max;
	struct wf_park park;
};

struct wf_store_room {
	uint64_t max_shard_bytes; /* of parameters and state */
	uint64_t inbox_bytes;     /* of parked gradients; 0: a chunk for each slice and trainer */
	int numa_node;
};

/* Memory for lane `lane` (global number) of the job. WEFT_NOMEM names the sizes and the limit. */
enum weft_status wf_store_init(struct wf_env *env, const struct wf_job *job,
			       const struct wf_placement *placement, uint32_t lane,
			       const struct wf_store_room *room,
			       struct wf_store *out) WEFT_MUST_CHECK;
void wf_store_fini(struct wf_store *store); /* accepts zeroed */

static inline float *
wf_store_param(const struct wf_store *store, const struct wf_stored *stored)
{
	return (float *)store->slab.base + stored->first;
}
/* Of a slice whose tensor has state. */
float *wf_store_state(const struct wf_store *store, const struct wf_stored *stored, unsigned idx);

/* Bytes on the wire of gradients or values that take `bytes` as f32. */
static inline uint64_t
wf_store_on_wire(const struct wf_store *store, uint64_t bytes)
{
	return bytes >> store->wire_shift;
}
/* What a slice's values travel as. */
static inline const void *
wf_store_values(const struct wf_store *store, const struct wf_stored *stored)
{
	return store->values + wf_store_on_wire(store, stored->first * sizeof(float));
}
/* With a wire of 16 bits: they are written here. */
uint16_t *wf_store_halves(const struct wf_store *store, const struct wf_stored *stored);
/* Arrays that a STATE pull may ask for: with a wire of 16 bits the last is the parameters as f32.
 */
static inline unsigned
wf_store_pullable(const struct wf_store *store)
{
	return store->state_count + store->wire_shift;
}
/* Parameters, state and halves. */
uint64_t wf_store_bytes(const struct wf_store *store);

/* Copies a slice's gradient aside, as it travels. There is a chunk for each trainer and slice, or
 * for all that may be here at once (announce.c), so this cannot fail. */
uint32_t wf_store_park(struct wf_store *store, const void *from, uint64_t bytes);
const void *wf_store_parked(const struct wf_store *store, uint32_t chunk);
void wf_store_unpark(struct wf_store *store, uint32_t chunk);
/* Bytes of parked gradients now. */
uint64_t wf_store_parked_bytes(const struct wf_store *store);
