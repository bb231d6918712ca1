/* SPDX-License-Identifier: Apache-2.0 */
/* form_best: which form this processor gets. Thread: any. */
#include "tools/rdma_bench/limits/form.h"

const struct wf_limit_form *
wf_limit_form_best(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f")) {
		return &wf_limit_form_avx512;
	}
	if (__builtin_cpu_supports("avx2")) {
		return &wf_limit_form_avx2;
	}
#endif
	return &wf_limit_form_plain;
}
