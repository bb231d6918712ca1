/* SPDX-License-Identifier: Apache-2.0 */
/* numbers: what a trainer may change of a tensor's optimizer in the middle of a job, and what comes
 * of it. Thread: any; everything here is pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/optimizer.h"

/* As they travel (CHANGE of wire/protocol.md). Changes of one tensor are made in this order. */
enum wf_number {
	WF_NUMBER_LEARNING_RATE = 0, /* before the schedule and the tensor's multiplier */
	WF_NUMBER_MOMENTUM = 1,
	WF_NUMBER_DAMPENING = 2,
	WF_NUMBER_NESTEROV = 3, /* 0 or 1 */
	WF_NUMBER_BETA1 = 4,
	WF_NUMBER_BETA2 = 5,
	WF_NUMBER_RHO = 6,
	WF_NUMBER_EPSILON = 7,
	WF_NUMBER_DECAY = 8,
	WF_NUMBER_CLIP = 9,
	WF_NUMBER_L1 = 10,
	WF_NUMBER_UPDATES = 11, /* steps that the optimizer had applied before */
	/* 0: the values, 1 + i: array i of state: in this step what the first trainer pushes takes
	 * the place of the array, and nothing is applied. */
	WF_NUMBER_ASSIGNED = 12,
	WF_NUMBER_COUNT = 13,
};

/* Those of one tensor. Zeroed: nothing was changed. */
struct wf_numbers {
	double value[WF_NUMBER_COUNT];
	uint32_t given;         /* bits 1 << enum wf_number: replace what the job has */
	uint64_t updates_step;  /* the step before which the optimizer had applied `updates` */
	uint64_t assigned_step; /* 0: none */
};

const char *wf_number_name(enum wf_number number);
/* Every name but that of ASSIGNED, which has no value of its own. WEFT_INVALID: the text lists all
 * names. */
enum weft_status wf_number_parse(const char *name, enum wf_number *out) WEFT_MUST_CHECK;
/* WEFT_INVALID: the job's optimizer has no such number, or not this value; the text has both. */
enum weft_status wf_number_check(const struct wf_optimizer_opts *opts, enum wf_number number,
				 double value) WEFT_MUST_CHECK;

/* The number has this value, which was checked, from step `step` on. */
void wf_numbers_set(struct wf_numbers *numbers, enum wf_number number, double value, uint64_t step);
/* The job's settings with these numbers in their places. */
struct wf_optimizer_opts wf_numbers_apply(const struct wf_numbers *numbers,
					  const struct wf_optimizer_opts *opts);
/* The steps that the optimizer has applied after step `step`, in which it applies one. */
uint64_t wf_numbers_updates(const struct wf_numbers *numbers, uint64_t step);

static inline bool
wf_numbers_have(const struct wf_numbers *numbers, enum wf_number number)
{
	return (numbers->given >> number & 1) != 0;
}
