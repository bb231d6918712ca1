/* SPDX-License-Identifier: Apache-2.0 */
/* prefetch: prefetches the cache lines of a row. Thread: any. */
#pragma once

#include <stddef.h>

#define WF_LINE_BYTES 64u
/* The rest is left to the hardware prefetcher, which has detected a stream by then. */
#define WF_PREFETCH_LINES_MAX 12u

static inline unsigned
wf_prefetch_lines(size_t bytes)
{
	size_t lines = (bytes + WF_LINE_BYTES - 1) / WF_LINE_BYTES;
	return lines < WF_PREFETCH_LINES_MAX ? (unsigned)lines : WF_PREFETCH_LINES_MAX;
}

/* The same where the first byte may be at any multiple of 8 in its line. */
static inline unsigned
wf_prefetch_lines_anywhere(size_t bytes)
{
	return wf_prefetch_lines(bytes + WF_LINE_BYTES - sizeof(unsigned long long));
}

/* `lines`: as above, at least 1. It is the same for many calls, so one well predicted jump replaces
 * a loop. always_inline, because gcc considers a function that only prefetches to have no effect,
 * and drops the calls. */
static inline __attribute__((always_inline)) void
wf_prefetch(const void *at, unsigned lines)
{
	const char *end = (const char *)at + (size_t)lines * WF_LINE_BYTES;

#define WF_PREFETCH_CASE(n)                                                                        \
	case (n):                                                                                  \
		__builtin_prefetch(end - (n) * (ptrdiff_t)WF_LINE_BYTES);                          \
		__attribute__((fallthrough))
	switch (lines) {
		WF_PREFETCH_CASE(12);
		WF_PREFETCH_CASE(11);
		WF_PREFETCH_CASE(10);
		WF_PREFETCH_CASE(9);
		WF_PREFETCH_CASE(8);
		WF_PREFETCH_CASE(7);
		WF_PREFETCH_CASE(6);
		WF_PREFETCH_CASE(5);
		WF_PREFETCH_CASE(4);
		WF_PREFETCH_CASE(3);
		WF_PREFETCH_CASE(2);
	case 1:
		__builtin_prefetch(end - (ptrdiff_t)WF_LINE_BYTES);
		break;
	default:
		__builtin_unreachable();
	}
#undef WF_PREFETCH_CASE
}
