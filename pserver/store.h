/* SPDX-License-Identifier: Apache-2.0 */
/* store: what one lane keeps: the parameters and the optimizer's state of its slices, and the room
 * for parked gradients. Thread: the lane's. */
#pragma once

#include "base/env.h"
#include "kernels/kernels.h"
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
	uint64_t place_offset; /* bytes, in the trainers' VALUES and STATE grants */
};

struct wf_store {
	struct wf_env *env;
	const struct wf_kernels *kernels;
	struct wf_optimizer_opts optimizer;
	unsigned state_count;

	struct wf_slab slab;      /* parameters, then each array of state */
	uint64_t elements;        /* of one array, padding included */
	struct wf_stored *stored; /* [stored_count] */
	uint32_t stored_count;
	uint32_t pushable_count; /* slices that are not static */

	struct wf_slab park; /* chunks of park_bytes, touched only when used */
	uint64_t park_bytes; /* of one chunk: the longest slice */
	uint32_t park_count;
	uint32_t *park_free; /* [park_count] stack, last used first */
	uint32_t park_free_count;
};

/* Memory for lane `lane` (global number) of the job. WEFT_NOMEM names the sizes and the limit. */
enum weft_status wf_store_init(struct wf_env *env, const struct wf_job *job,
			       const struct wf_placement *placement, uint32_t lane,
			       uint64_t max_shard_bytes, int numa_node,
			       struct wf_store *out) WEFT_MUST_CHECK;
void wf_store_fini(struct wf_store *store); /* accepts zeroed */

float *wf_store_param(const struct wf_store *store, const struct wf_stored *stored);
float *wf_store_state(const struct wf_store *store, const struct wf_stored *stored, unsigned idx);

/* Copy a slice's gradient aside. There is a chunk for each trainer and slice, so this cannot fail.
 */
uint32_t wf_store_park(struct wf_store *store, const struct wf_stored *stored, const float *from);
const float *wf_store_parked(const struct wf_store *store, uint32_t chunk);
void wf_store_unpark(struct wf_store *store, uint32_t chunk);
/* Bytes of parked gradients now. */
uint64_t wf_store_parked_bytes(const struct wf_store *store);
