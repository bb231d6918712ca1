/* SPDX-License-Identifier: Apache-2.0 */
/* guard: the page behind a mapping is first a part of the same mapping, so that the kernel aligns
 * the whole as it would without it (huge pages), and is then made inaccessible. */
#include "base/guard.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

static size_t
page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t
whole_pages(size_t bytes)
{
	return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

void *
wf_guard_map(int fd, size_t bytes, int protection)
{
	if (bytes > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	size_t pages = whole_pages(bytes);
	size_t mapped = pages + page_bytes();
	char *base = mmap(NULL, mapped, protection, MAP_SHARED, fd, (off_t)0);
	if (base == MAP_FAILED) {
		return NULL;
	}
	void *guard = mmap(base + pages, page_bytes(), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, (off_t)0);
	if (guard == MAP_FAILED) {
		int err = errno;
		(void)munmap(base, mapped);
		errno = err;
		return NULL;
	}
	return base;
}

void
wf_guard_unmap(void *base, size_t bytes)
{
	int err = munmap(base, whole_pages(bytes) + page_bytes());
	WF_ASSERT(err == 0);
}
