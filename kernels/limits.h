/* SPDX-License-Identifier: Apache-2.0 */
/* limits: what settings may be. They are f64, the kernels compute in f32: limits hold for what an
 * f32 makes of a value, so that an epsilon cannot become 0, nor a beta 1. Private to this folder.
 * Thread: any. */
#pragma once

#include "base/status.h"

/* WEFT_INVALID names field, value and limit. */
enum weft_status wf_check_positive(const char *field, double value) WEFT_MUST_CHECK;
enum weft_status wf_check_not_negative(const char *field, double value) WEFT_MUST_CHECK;
enum weft_status wf_check_below_one(const char *field, double value) WEFT_MUST_CHECK;
