/* SPDX-License-Identifier: Apache-2.0 */
/* limits: the limits of settings. Settings are f64 and the kernels compute in f32, so limits apply
 * to the value rounded to f32: an epsilon cannot become 0, nor a beta 1. Private to this folder.
 * Thread: any. */
#pragma once

#include "base/status.h"

/* WEFT_INVALID: the text names field, value and limit. */
enum weft_status wf_check_positive(const char *field, double value) WEFT_MUST_CHECK;
enum weft_status wf_check_not_negative(const char *field, double value) WEFT_MUST_CHECK;
enum weft_status wf_check_below_one(const char *field, double value) WEFT_MUST_CHECK;
