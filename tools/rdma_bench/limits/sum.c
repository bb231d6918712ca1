/* SPDX-License-Identifier: Apache-2.0 */
/* sum: see sum.h. Built once for each form, with the flags of that form, under the name
 * that WF_LIMIT_SUM is. Thread: any. */
#include "tools/rdma_bench/limits/sum.h"

void
WF_LIMIT_SUM(float *param, const float *const *grad, size_t count, float rate)
{
	const float *a = grad[0], *b = grad[1], *c = grad[2], *d = grad[3];
	for (size_t i = 0; i < count; i++) {
		param[i] -= rate * (((a[i] + b[i]) + c[i]) + d[i]);
	}
}
