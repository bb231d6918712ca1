/* SPDX-License-Identifier: Apache-2.0 */
/* rounded: what a wire of 16 bits does to gradients and values, for a run without one. Private to
 * trainer/program. Thread: any. */
#pragma once

#include "trainer/program/job.h"

static inline bool
wf_run_rounds(const struct wf_run *job)
{
	return job->terms.dense_wire != WEFT_VALUES_F32;
}

/* One trainer's gradients of step `step`, as lanes widen them. With f32: nothing. */
void wf_run_round_gradients(const struct wf_run *job, uint32_t trainer, uint64_t step,
			    float *const *grad);
/* out: the values of tensor `tensor` as trainers get them. WEFT_DATA: some are too large. */
enum weft_status wf_run_round_values(const struct wf_run *job, unsigned tensor, const float *exact,
				     float *out) WEFT_MUST_CHECK;
