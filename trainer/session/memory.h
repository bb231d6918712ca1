/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the arrays of a session's tensors. memory.c is the only writer; the slabs of 16 bits
 * (halves.c) have the same offsets, halved. Thread: as each function states. */
#pragma once

#include "base/env.h"
#include "exchange/places.h"
#include "kernels/optimizer.h"

#define WF_SECTIONS (2 + WF_STATE_MAX) /* that lanes may write to: places, by their index */

struct wf_core;

struct wf_memory {
	uint64_t *offset; /* [tensor_count] bytes, in each slab */
	struct wf_slab grad;
	uint32_t grad_region;
	/* Parameters; state, if it is kept; then, with a wire of 16 bits, the pservers' f32
	 * parameters. */
	struct wf_slab section[WF_SECTIONS];
	uint32_t section_region[WF_SECTIONS];
	/* Where lanes put them: sections, or 16 bits of the first. */
	struct wf_answer_place place[WF_SECTIONS];
	unsigned section_count; /* 1; more if the state is kept */
	unsigned place_count;   /* with the pservers' parameters: what lanes may write to */
};

/* Slabs for all tensors, and `state_count` arrays of state. A failure leaves what close gives back.
 * Thread: the owner's. */
enum weft_status wf_memory_open(struct wf_core *core, uint32_t state_count,
				int numa_node) WEFT_MUST_CHECK;
/* `keep`: the arrays stay mapped. Accepts one that was never opened. Thread: the owner's. */
void wf_memory_close(struct wf_core *core, bool keep);
/* To the transport. Thread: the owner's, before the core starts. */
enum weft_status wf_memory_add(struct wf_core *core) WEFT_MUST_CHECK;
