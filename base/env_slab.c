/* SPDX-License-Identifier: Apache-2.0 */
/* env_slab: memory behind a memfd, so that it can be passed to another process; its size is sealed,
 * so that no holder of the descriptor can truncate it under a mapping. A guard page follows it. A
 * child of fork gets a private copy (base/forked.h).
 * Thread: any. */
#include "base/env_slab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/forked.h"
#include "base/guard.h"

#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define BLOCK_BYTES 512u /* the unit of st_blocks */

static enum weft_status
fail_open(const char *what, size_t bytes, int err)
{
	enum weft_status status = err == ENOMEM || err == EFBIG ? WEFT_NOMEM : WEFT_IO;
	return wf_fail_errno(status, err, "slab of %zu bytes: %s", bytes, what);
}

enum weft_status
wf_memfd_check_limit(const char *what, size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_IO,
		       "%.200s of %zu bytes: files may have %" PRIu64
		       " bytes here, which limits shared memory, too; raise that limit (ulimit -f)",
		       what, bytes, (uint64_t)limit.rlim_cur);
}

/* ---- at which node ---- */

enum weft_status
wf_env_slabs_init(struct wf_env_slabs *slabs)
{
	*slabs = (struct wf_env_slabs){0};
	int err = pthread_mutex_init(&slabs->lock, NULL);
	return err == 0 ? WEFT_OK : wf_fail_errno(WEFT_NOMEM, err, "slabs: mutex");
}

void
wf_env_slabs_fini(struct wf_env_slabs *slabs)
{
	(void)pthread_mutex_destroy(&slabs->lock);
}

static void
lock(struct wf_env_slabs *slabs)
{
	int err = pthread_mutex_lock(&slabs->lock);
	WF_ASSERT(err == 0);
}

static void
unlock(struct wf_env_slabs *slabs)
{
	int err = pthread_mutex_unlock(&slabs->lock);
	WF_ASSERT(err == 0);
}

/* Bytes of slabs bound to the node whose pages are not touched yet. */
static uint64_t
promised_bytes(const struct wf_env_slabs *slabs, int node)
{
	uint64_t promised = 0;
	for (unsigned i = 0; i < slabs->bound_count; i++) {
		struct stat touched;
		uint64_t bytes = slabs->bound[i].bytes;
		if (slabs->bound[i].node == node && fstat(slabs->bound[i].memfd, &touched) == 0 &&
		    (uint64_t)touched.st_blocks * BLOCK_BYTES < bytes) {
			promised += bytes - (uint64_t)touched.st_blocks * BLOCK_BYTES;
		}
	}
	return promised;
}

static void
log_not_bound(struct wf_env *env, const struct wf_slab *slab, int node, uint64_t promised)
{
	wf_log(env, WF_LOG_INFO,
	       "slab: %zu KiB are preferred on NUMA node %d, but not bound to it: %llu KiB are "
	       "available there, and %llu KiB of them are promised",
	       slab->bytes >> 10, node, (unsigned long long)wf_numa_available_bytes(node) >> 10,
	       (unsigned long long)promised >> 10);
}

static void
place(struct wf_env_slabs *slabs, struct wf_env *env, const struct wf_slab *slab, int node)
{
	lock(slabs);
	uint64_t promised = promised_bytes(slabs, node);
	enum wf_numa_rule wanted = wf_numa_rule(node, promised + slab->bytes);
	if (slabs->bound_count == WF_SLABS_BOUND_MAX && wanted == WF_NUMA_BOUND) {
		wanted = WF_NUMA_PREFERRED;
	}
	enum wf_numa_rule got = wf_numa_place(slab->base, slab->bytes, node, wanted);
	int err = errno;
	if (got == WF_NUMA_BOUND) {
		slabs->bound[slabs->bound_count].memfd = slab->memfd;
		slabs->bound[slabs->bound_count].node = node;
		slabs->bound[slabs->bound_count].bytes = slab->bytes;
		slabs->bound_count++;
	}
	unlock(slabs);
	if (got == WF_NUMA_PREFERRED) {
		log_not_bound(env, slab, node, promised);
	} else if (got == WF_NUMA_ANYWHERE) {
		wf_log(env, WF_LOG_INFO,
		       "slab: numa node %d is neither bound nor preferred, errno %d (EPERM %d: a "
		       "container needs CAP_SYS_NICE for it)",
		       node, err, EPERM);
	}
}

static void
forget(struct wf_env_slabs *slabs, int memfd)
{
	lock(slabs);
	for (unsigned i = 0; i < slabs->bound_count; i++) {
		if (slabs->bound[i].memfd == memfd) {
			slabs->bound[i] = slabs->bound[--slabs->bound_count];
			break;
		}
	}
	unlock(slabs);
}

/* ---- memory ---- */

/* Of the slabs of all envs. Relaxed: it is read as a number alone. */
static _Atomic uint64_t open_bytes;

static enum weft_status
list_for_forks(struct wf_env *env, struct wf_slab *slab)
{
	slab->forked = wf_zalloc(env, sizeof(*slab->forked));
	if (slab->forked == NULL) {
		return wf_fail(WEFT_NOMEM, "slab: %zu bytes", sizeof(*slab->forked));
	}
	slab->forked->base = slab->base;
	slab->forked->bytes = slab->bytes;
	slab->forked->memfd = slab->memfd;
	return wf_forked_add(slab->forked);
}

static enum weft_status
map(struct wf_env *env, struct wf_slab *slab)
{
	WF_ASSERT(slab->bytes > 0);
	enum weft_status st = wf_memfd_check_limit("slab", slab->bytes);
	if (st != WEFT_OK) {
		return st;
	}
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
	slab->base = wf_guard_map(slab->memfd, slab->bytes, PROT_READ | PROT_WRITE);
	return slab->base != NULL ? list_for_forks(env, slab)
				  : fail_open("mmap", slab->bytes, errno);
}

static void
undo_map(struct wf_env *env, struct wf_slab *slab)
{
	wf_free(env, slab->forked, sizeof(*slab->forked));
	if (slab->base != NULL) {
		wf_guard_unmap(slab->base, slab->bytes);
	}
	if (slab->memfd >= 0) {
		(void)close(slab->memfd);
	}
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
wf_env_slab_open(struct wf_env_slabs *slabs, struct wf_env *env, size_t bytes, int numa_node,
		 struct wf_slab *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (bytes == 0) {
		return wf_fail(WEFT_INVALID, "slab: 0 bytes asked for");
	}
	if (bytes > (size_t)INT64_MAX - page) {
		return wf_fail(WEFT_NOMEM, "slab: %zu bytes are more than any address space",
			       bytes);
	}
	if (numa_node >= WF_NUMA_NODE_MAX) {
		return wf_fail(WEFT_INVALID, "slab: numa node %d, at most %d", numa_node,
			       WF_NUMA_NODE_MAX - 1);
	}
	struct wf_slab slab = {.bytes = (bytes + page - 1) / page * page, .memfd = -1};
	enum weft_status st = map(env, &slab);
	if (st != WEFT_OK) {
		undo_map(env, &slab);
		return st;
	}
	if (slab.bytes >= WF_SLAB_HUGE_BYTES) {
		/* optional; EINVAL: the kernel has no huge pages. */
		(void)madvise(slab.base, slab.bytes, MADV_HUGEPAGE);
	}
	if (numa_node >= 0) {
		place(slabs, env, &slab, numa_node);
	}
	(void)atomic_fetch_add_explicit(&open_bytes, slab.bytes, memory_order_relaxed);
	*out = slab;
	return WEFT_OK;
}

uint64_t
wf_env_slab_bytes(void)
{
	return atomic_load_explicit(&open_bytes, memory_order_relaxed);
}

static void
let_go(struct wf_env_slabs *slabs, struct wf_env *env, struct wf_slab *slab)
{
	(void)atomic_fetch_sub_explicit(&open_bytes, slab->bytes, memory_order_relaxed);
	forget(slabs, slab->memfd);
	(void)close(slab->memfd);
	wf_free(env, slab->forked, sizeof(*slab->forked));
	*slab = (struct wf_slab){.memfd = -1};
}

void
wf_env_slab_keep(struct wf_env_slabs *slabs, struct wf_env *env, struct wf_slab *slab)
{
	if (slab->base != NULL) {
		wf_forked_keep(slab->forked);
		let_go(slabs, env, slab);
	}
}

void
wf_env_slab_close(struct wf_env_slabs *slabs, struct wf_env *env, struct wf_slab *slab)
{
	if (slab->base != NULL) {
		wf_forked_remove(slab->forked);
		wf_guard_unmap(slab->base, slab->bytes);
		let_go(slabs, env, slab);
	}
}
