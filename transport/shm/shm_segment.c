/* SPDX-License-Identifier: Apache-2.0 */
/* shm_segment: memory that two processes map. A peer's descriptor is mapped only if it is a memfd
 * of ordinary pages whose size is sealed: then no access to the mapping can fault, and an access
 * beyond it reaches only a guard page. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/env_slab.h"
#include "base/guard.h"

static void
set_sides(struct wf_shm_conn *c, void *memory)
{
	unsigned own = c->life.incoming ? 1 : 0;
	c->segment = memory;
	c->own = &c->segment->end[own];
	c->peer_end = &c->segment->end[1 - own];
	c->tx_way = &c->segment->way[own];
	c->rx_way = &c->segment->way[1 - own];
}

static enum weft_status
map_segment(struct wf_shm_conn *c, int fd)
{
	void *memory =
		mmap(NULL, sizeof(*c->segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)0);
	if (memory == MAP_FAILED) {
		return wf_fail_errno(WEFT_NOMEM, errno, "%s: mapping %zu bytes", c->life.peer,
				     sizeof(*c->segment));
	}
	set_sides(c, memory);
	return WEFT_OK;
}

enum weft_status
wf_shm_segment_create(struct wf_shm_conn *c)
{
	enum weft_status st = wf_memfd_check_limit("segment", sizeof(*c->segment));
	if (st != WEFT_OK) {
		return st;
	}
	int fd = memfd_create("weft-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		return wf_fail_errno(WEFT_NOMEM, errno, "%s: memfd_create", c->life.peer);
	}
	c->segment_fd = fd;
	if (ftruncate(fd, (off_t)sizeof(*c->segment)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		return wf_fail_errno(WEFT_NOMEM, errno, "%s: a sealed memfd of %zu bytes",
				     c->life.peer, sizeof(*c->segment));
	}
	return map_segment(c, fd);
}

enum weft_status
wf_shm_memfd_check(int fd, uint64_t bytes)
{
	struct statfs fs = {0};
	struct stat st = {0};
	if (fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0) {
		return wf_fail_errno(WEFT_PROTOCOL, errno, "descriptor of a memfd");
	}
	if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC) {
		return wf_fail(WEFT_PROTOCOL,
			       "its descriptor is no memfd, or has pages that may be missing");
	}
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "a memfd that is not sealed against shrinking (seals %#x)",
			       seals < 0 ? 0u : (unsigned)seals);
	}
	if (st.st_size < 0 || (uint64_t)st.st_size < bytes) {
		return wf_fail(WEFT_PROTOCOL, "a memfd of %lld bytes, and %llu were announced",
			       (long long)st.st_size, (unsigned long long)bytes);
	}
	return WEFT_OK;
}

enum weft_status
wf_shm_segment_adopt(struct wf_shm_conn *c, int fd)
{
	enum weft_status st = wf_shm_memfd_check(fd, sizeof(*c->segment));
	return st == WEFT_OK ? map_segment(c, fd) : st;
}

void
wf_shm_segment_close(struct wf_shm_conn *c)
{
	if (c->segment_fd >= 0) {
		(void)close(c->segment_fd);
		c->segment_fd = -1;
	}
	if (c->segment != NULL) {
		int err = munmap(c->segment, sizeof(*c->segment));
		WF_ASSERT(err == 0);
		c->segment = NULL;
	}
}

static void
foreign_unmap(struct wf_shm_conn *c, struct wf_shm_foreign *f)
{
	if (f->base != NULL) {
		wf_guard_unmap((void *)(uintptr_t)f->base, f->bytes);
		c->rx.foreign_bytes -= f->bytes;
	}
	*f = (struct wf_shm_foreign){0};
}

/* Whether a published PUT is being copied out of it. One that was copied to the end of a region is
 * beyond it, and reads nothing any more. */
static bool
is_copied(const struct wf_shm_conn *c, const struct wf_shm_foreign *f)
{
	return c->rx.put_open && c->rx.put_src != NULL &&
	       (uintptr_t)c->rx.put_src - (uintptr_t)f->base < f->bytes;
}

enum weft_status
wf_shm_foreign_add(struct wf_shm_conn *c, uint32_t id, uint64_t bytes, int fd)
{
	uint32_t number = id & 0xff;
	if (number == 0 || number > WF_REGIONS_MAX || bytes == 0) {
		return wf_fail(WEFT_PROTOCOL, "a region %u of %llu bytes", number,
			       (unsigned long long)bytes);
	}
	enum weft_status st = wf_shm_memfd_check(fd, bytes);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_shm_foreign *f = &c->rx.foreign[number - 1];
	if (f->held > 0 || is_copied(c, f)) {
		return wf_fail(WEFT_PROTOCOL, "region %u again, while it is in use", number);
	}
	foreign_unmap(c, f);
	if (bytes > WF_SHM_PEER_BYTES_MAX - c->rx.foreign_bytes) {
		return wf_fail(WEFT_NOMEM, "region %u of %llu bytes: %llu are the most of a peer",
			       number, (unsigned long long)bytes, WF_SHM_PEER_BYTES_MAX);
	}
	const void *memory = wf_guard_map(fd, bytes, PROT_READ);
	if (memory == NULL) {
		return wf_fail_errno(WEFT_NOMEM, errno, "mapping region %u, %llu bytes", number,
				     (unsigned long long)bytes);
	}
	*f = (struct wf_shm_foreign){.base = memory, .bytes = bytes, .id = id};
	c->rx.foreign_bytes += bytes;
	return WEFT_OK;
}

struct wf_shm_foreign *
wf_shm_foreign_find(struct wf_shm_conn *c, uint32_t id)
{
	uint32_t number = id & 0xff;
	if (number == 0 || number > WF_REGIONS_MAX) {
		return NULL;
	}
	struct wf_shm_foreign *f = &c->rx.foreign[number - 1];
	return f->base != NULL && f->id == id ? f : NULL;
}

void
wf_shm_foreign_close(struct wf_shm_conn *c)
{
	for (unsigned i = 0; i < WF_REGIONS_MAX; i++) {
		foreign_unmap(c, &c->rx.foreign[i]);
	}
}
