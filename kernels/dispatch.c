/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch: which forms were built, and which of them this processor runs. Thread: any. */
#include "kernels/kernels.h"

#include <stdbool.h>
#include <string.h>
#if WF_HAVE_AVX512 || WF_HAVE_AVX2
#include <cpuid.h>
#endif

#include "kernels/forms.h"

#if WF_HAVE_AVX2
/* Conversions of 16-bit values. Every processor with AVX2 has it, but a hypervisor may hide it. */
static bool
has_f16c(void)
{
	unsigned a;
	unsigned b;
	unsigned c = 0;
	unsigned d;
	return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & 1u << 29) != 0;
}
#endif

/* NULL: not built, or not supported by the processor or by the kernel, which has to save its
 * registers: the compiler's run time checks both. */
static const struct wf_kernels *
find_avx2(void)
{
#if WF_HAVE_AVX2
	if (__builtin_cpu_supports("avx2") && has_f16c()) {
		return wf_kernels_avx2();
	}
#endif
	return NULL;
}

static const struct wf_kernels *
find_avx512(void)
{
#if WF_HAVE_AVX512
	if (__builtin_cpu_supports("avx512f")) {
		return wf_kernels_avx512();
	}
#endif
	return NULL;
}

/* Whether avx512 was measured to be faster than avx2 on this processor: AMD's family 26 (Zen 5),
 * whose registers and units are as wide. Elsewhere 512-bit vectors may be executed in two halves or
 * at a lower clock; that was not measured, so auto stays with avx2. README.md tells how to add one
 * more. */
static bool
avx512_wins(void)
{
#if WF_HAVE_AVX512
	unsigned signature = 0;
	unsigned b;
	unsigned c;
	unsigned d;
	if (__builtin_cpu_is("amd") && __get_cpuid(1, &signature, &b, &c, &d) != 0) {
		unsigned family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
		return family == 26;
	}
#endif
	return false;
}

const struct wf_kernels *
wf_kernels_best(void)
{
	const struct wf_kernels *avx512 = find_avx512();
	const struct wf_kernels *avx2 = find_avx2();

	if (avx512 != NULL && avx512_wins()) {
		return avx512;
	}
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
	if (strcmp(name, "avx512") == 0) {
		return find_avx512();
	}
	return NULL;
}
