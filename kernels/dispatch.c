/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch: which forms were built, and which of them this processor runs. Thread: any. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/forms.h"

/* NULL: not built, or not offered by the processor (or by the kernel, which has to save its
 * registers: the compiler's run time asks both). */
static const struct wf_kernels *
find_avx2(void)
{
#if WF_HAVE_AVX2
	if (__builtin_cpu_supports("avx2")) {
		return wf_kernels_avx2();
	}
#endif
	return NULL;
}

const struct wf_kernels *
wf_kernels_best(void)
{
	const struct wf_kernels *avx2 = find_avx2();
	return avx2 != NULL ? avx2 : wf_kernels_ref();
}

const struct wf_kernels *
wf_kernels_by_name(const char *name)
{
	if (strcmp(name, "auto") == 0) {
		return wf_kernels_best();
	}
	if (strcmp(name, "ref") == 0) {
		return wf_kernels_ref();
	}
	if (strcmp(name, "avx2") == 0) {
		return find_avx2();
	}
	return NULL;
}
