/* SPDX-License-Identifier: Apache-2.0 */
/* kept: the state of a whole job in memory, copied out of its lanes and loaded by those of another
 * one, whatever their numbers. Thread: the one of the simulated world. */
#pragma once

#include "pserver/dense.h"

#define KEPT_TENSORS 4u
#define KEPT_ELEMENTS 4096u /* of a tensor */
#define KEPT_ARRAYS 5u      /* of state */
#define KEPT_TRAINERS 4u
#define KEPT_LANES 16u

struct kept {
	uint64_t step, samples;
	float param[KEPT_TENSORS][KEPT_ELEMENTS];
	float state[KEPT_TENSORS][KEPT_ARRAYS][KEPT_ELEMENTS];
	struct wf_numbers numbers[KEPT_TENSORS];
	uint8_t position[KEPT_TRAINERS][WF_POSITION_BYTES_MAX];
	uint32_t position_bytes[KEPT_TRAINERS];
};

/* The lanes of a job: kept_note is called by each that asks for a state. Zeroed at first. */
struct kept_lanes {
	struct wf_lane *lane[KEPT_LANES];
	uint32_t count;
};

void kept_note(struct kept_lanes *lanes, struct wf_lane *lane);
/* Copies what all lanes have once step `step` is applied and nothing after it. */
void kept_copy(struct kept *kept, const struct kept_lanes *lanes, uint64_t step);
/* As struct wf_lane_source has it. */
enum weft_status kept_load(struct kept *kept, struct wf_lane *lane, struct wf_msg_init *out);
