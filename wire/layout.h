/* SPDX-License-Identifier: Apache-2.0 */
/* layout: the offsets of a job's tensors in a trainer's slab, and so of answers within the VALUES
 * and STATE grants: in declaration order, each at a multiple of 64 bytes. */
#pragma once

#include "wire/job.h"

#define WF_LAYOUT_ALIGN 64u

/* Bytes that a tensor of `count` f32 takes in the slab. */
static inline uint64_t
wf_layout_bytes(uint64_t count)
{
	return (count * sizeof(float) + WF_LAYOUT_ALIGN - 1) & ~(uint64_t)(WF_LAYOUT_ALIGN - 1);
}

/* Fill `offset` [tensor_count] in bytes; returns the bytes of the whole slab. */
static inline uint64_t
wf_layout_offsets(const struct wf_job *job, uint64_t *offset)
{
	uint64_t at = 0;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		offset[i] = at;
		at += wf_layout_bytes(job->tensor[i].count);
	}
	return at;
}
