/* SPDX-License-Identifier: Apache-2.0 */
/* env_slab: memory behind a memfd, so that another process can be given it; its size is sealed, so
 * that nobody who holds the descriptor can cut it short under a mapping. Thread: any. */
#include "base/env_slab.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define NODE_MAX 1024 /* NUMA nodes a mask can name; Linux's own limit */
#define MASK_BITS (8 * sizeof(unsigned long))

static enum weft_status
fail_open(const char *what, size_t bytes, int err)
{
	enum weft_status status = err == ENOMEM || err == EFBIG ? WEFT_NOMEM : WEFT_IO;
	return wf_fail_errno(status, err, "slab of %zu bytes: %s", bytes, what);
}

/* Preferred, not bound: a full node costs speed, not the process. */
static void
prefer_node(struct wf_env *env, const struct wf_slab *slab, int numa_node)
{
	unsigned long mask[NODE_MAX / MASK_BITS] = {0};
	WF_ASSERT(numa_node < NODE_MAX);
	mask[(size_t)numa_node / MASK_BITS] |= 1ul << ((size_t)numa_node % MASK_BITS);
	/* The kernel reads maxnode - 1 bits. */
	if (syscall(SYS_mbind, slab->base, slab->bytes, MPOL_PREFERRED, mask, NODE_MAX + 1ul, 0u) !=
	    0) {
		wf_log(env, WF_LOG_INFO, "slab: numa node %d not preferred, errno %d", numa_node,
		       errno);
	}
}

static enum weft_status
map(struct wf_slab *slab)
{
	WF_ASSERT(slab->bytes > 0);
	slab->memfd = memfd_create("weft-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (slab->memfd < 0) {
		return fail_open("memfd_create", slab->bytes, errno);
	}
	if (ftruncate(slab->memfd, (off_t)slab->bytes) != 0) {
		return fail_open("ftruncate", slab->bytes, errno);
	}
	if (fcntl(slab->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		return fail_open("sealing its size", slab->bytes, errno);
	}
	void *base =
		mmap(NULL, slab->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, slab->memfd, (off_t)0);
	if (base == MAP_FAILED) {
		return fail_open("mmap", slab->bytes, errno);
	}
	slab->base = base;
	return WEFT_OK;
}

/* "always within_size [advise] never": the word in brackets. */
static void
read_choice(const char *path, char *out, size_t bytes)
{
	char text[128] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0) {
		(void)close(fd);
	}
	const char *from = n > 0 ? strchr(text, '[') : NULL;
	const char *to = from != NULL ? strchr(from, ']') : NULL;
	(void)snprintf(out, bytes, "%.*s", to != NULL ? (int)(to - from - 1) : 0,
		       to != NULL ? from + 1 : "");
}

bool
wf_env_slab_is_huge(char *word, size_t bytes)
{
	static const char *const good[] = {"always", "within_size", "advise", "force"};
	read_choice(SHMEM_ENABLED, word, bytes);
	for (size_t i = 0; i < WF_ARRAY_COUNT(good); i++) {
		if (strcmp(word, good[i]) == 0) {
			return true;
		}
	}
	return false;
}

enum weft_status
wf_env_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (bytes == 0) {
		return wf_fail(WEFT_INVALID, "slab: 0 bytes asked for");
	}
	if (bytes > (size_t)INT64_MAX - page) {
		return wf_fail(WEFT_NOMEM, "slab: %zu bytes are more than any address space",
			       bytes);
	}
	if (numa_node >= NODE_MAX) {
		return wf_fail(WEFT_INVALID, "slab: numa node %d, at most %d", numa_node,
			       NODE_MAX - 1);
	}
	struct wf_slab slab = {.bytes = (bytes + page - 1) / page * page, .memfd = -1};
	enum weft_status st = map(&slab);
	if (st != WEFT_OK) {
		if (slab.memfd >= 0) {
			(void)close(slab.memfd);
		}
		return st;
	}
	if (slab.bytes >= WF_SLAB_HUGE_BYTES) {
		(void)madvise(slab.base, slab.bytes, MADV_HUGEPAGE); /* a wish; EINVAL: none here */
	}
	if (numa_node >= 0) {
		prefer_node(env, &slab, numa_node);
	}
	*out = slab;
	return WEFT_OK;
}

void
wf_env_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	if (slab->base != NULL) {
		int err = munmap(slab->base, slab->bytes);
		WF_ASSERT(err == 0);
		(void)close(slab->memfd);
	}
	*slab = (struct wf_slab){.memfd = -1};
}
