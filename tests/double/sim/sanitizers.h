/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizers: which of them is active in this build, and their annotations of memory. Thread:
 * any. */
#pragma once

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WF_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WF_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WF_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WF_TSAN 1
#endif

#if defined(WF_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(WF_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

/* Forbids access to [at, at + bytes) from here on, or allows it again; under AddressSanitizer
 * only. */
static inline void
wf_sanitizer_forbid(const void *at, size_t bytes)
{
#if defined(WF_ASAN)
	ASAN_POISON_MEMORY_REGION(at, bytes);
#else
	(void)at;
	(void)bytes;
#endif
}

static inline void
wf_sanitizer_allow(const void *at, size_t bytes)
{
#if defined(WF_ASAN)
	ASAN_UNPOISON_MEMORY_REGION(at, bytes);
#else
	(void)at;
	(void)bytes;
#endif
}
