/* SPDX-License-Identifier: Apache-2.0 */
/* initial: values that a run begins with, out of any file that has them. Private to
 * trainer/program. Thread: the run's. */
#pragma once

#include "saved/saved.h"
#include "trainer/program/job.h"

/* Checks load_missing_parameter_strategy. WEFT_INVALID: the option, its value, the remedy. */
enum weft_status wf_run_check_initial(const struct wf_run *job) WEFT_MUST_CHECK;
/* Fills the model's tensors, which already have their default initial values, from the source that
 * --init_model_path names. WEFT_DATA, WEFT_IO: file, tensor and reason. */
enum weft_status wf_run_load_initial(const struct wf_run *job, const struct wf_saved_tensor *tensor,
				     uint32_t tensor_count) WEFT_MUST_CHECK;
