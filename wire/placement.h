/* SPDX-License-Identifier: Apache-2.0 */
/* placement: which slice of which tensor belongs to which lane: a pure function of the job.
 *
 * Each tensor is cut into slices of slice_bytes / 4 elements, the last one shorter; slices are
 * numbered over tensors in declaration order, and the cuts do not depend on the number of lanes.
 * Slices are then dealt to lanes largest first (ties: lower slice number first), each to the lane
 * with the fewest bytes so far (ties: lower lane number). Global lane number = pserver_idx *
 * lane_count + lane_idx. Complexity O(slices * log(slices * lanes)). */
#pragma once

#include "wire/job.h"

struct wf_slice {
	uint32_t tensor;  /* index in the job */
	uint32_t lane;    /* global lane number */
	uint32_t on_lane; /* ordinal among the lane's slices, by slice number */
	uint64_t first;   /* first element within the tensor */
	uint64_t count;   /* elements */
};

struct wf_placement {
	struct wf_slice *slice; /* [slice_count] */
	uint32_t slice_count;
	uint32_t *tensor_first; /* [tensor_count + 1]: slices of tensor t are first[t]..first[t+1] -
				   1 */
	uint32_t lane_count;    /* global */
	uint32_t *lane_first;   /* [lane_count + 1] into lane_slice */
	uint32_t *lane_slice;   /* [slice_count] slice numbers grouped by lane, ascending */
	uint64_t *lane_elements; /* [lane_count] */
	uint32_t tensor_count;
};

/* The job has passed wf_job_check. WEFT_NOMEM; WEFT_INVALID: more than WF_SLICE_COUNT_MAX slices on
 * a lane or WF_JOB_SLICE_COUNT_MAX in all (found before memory is allocated); the text has a
 * slice_bytes that would do. Static tensors are placed like all others. */
enum weft_status wf_placement_init(struct wf_env *env, const struct wf_job *job,
				   struct wf_placement *out) WEFT_MUST_CHECK;
void wf_placement_fini(struct wf_env *env, struct wf_placement *placement); /* accepts zeroed */
/* The digest of the counts and of every slice's tensor, lane, ordinal and cut. */
uint64_t wf_placement_digest(const struct wf_placement *placement);
