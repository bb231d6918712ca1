/* SPDX-License-Identifier: Apache-2.0 */
/* memory: see memory.h. */
#include "tools/rdma_bench/limits/memory.h"

#include <errno.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

static size_t
whole_pages(size_t bytes)
{
	return (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

void *
wf_limit_map(size_t bytes, bool shared, int fd)
{
	const int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | (fd < 0 ? MAP_ANONYMOUS : 0);
	bytes = whole_pages(bytes);
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (base == MAP_FAILED) {
		return NULL;
	}
	(void)madvise(base, bytes, MADV_HUGEPAGE); /* a wish; EINVAL: none here */
	return base;
}

void
wf_limit_unmap(void *base, size_t bytes)
{
	if (base != NULL) {
		(void)munmap(base, whole_pages(bytes));
	}
}

void
wf_limit_fill(float *array, uint64_t bytes, float value)
{
	for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
		array[i] = value;
	}
}

enum weft_status
wf_limit_floats(uint64_t bytes, float value, float **out)
{
	*out = wf_limit_map(bytes, false, -1);
	if (*out == NULL) {
		return wf_fail_errno(WEFT_NOMEM, errno, "a limit's array of %llu bytes",
				     (unsigned long long)bytes);
	}
	wf_limit_fill(*out, bytes, value);
	return WEFT_OK;
}
