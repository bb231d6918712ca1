/* SPDX-License-Identifier: Apache-2.0 */
/* sum: the least that a fused sum and SGD can be: one plain loop over the same memory, by the
 * compiler, for one processor each. Thread: any. */
#pragma once

#include <stddef.h>

#define WF_LIMIT_SUM_GRADS 4

/* param -= rate * (grad[0] + grad[1] + grad[2] + grad[3]); nothing is looked at. */
void wf_limit_sum_plain(float *param, const float *const *grad, size_t count, float rate);
void wf_limit_sum_avx2(float *param, const float *const *grad, size_t count, float rate);
void wf_limit_sum_avx512(float *param, const float *const *grad, size_t count, float rate);
