/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_memory: registering memory with devices. Registered memory is locked; the limit is checked
 * first, because the kernel only reports ENOMEM. Thread: the transport's owner, or the helper for
 * big regions: only constant fields of a device are used here. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locked.h"
#include "transport/verbs/verbs_internal.h"

/* Low bits of an address that are kept, as huge pages up to 1 GiB require. */
#define IOVA_KEPT_BITS 30u
#define KIB 1024u

enum weft_status
wf_verbs_memlock_check(uint64_t bytes, uint64_t locked_bytes, uint64_t limit_bytes)
{
	if (locked_bytes <= limit_bytes && bytes <= limit_bytes - locked_bytes) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_NOMEM,
		       "%llu KiB of memory cannot be locked for RDMA: the limit is %llu KiB, and "
		       "%llu KiB are locked; " WF_LOCKED_RAISE,
		       (unsigned long long)(bytes / KIB), (unsigned long long)(limit_bytes / KIB),
		       (unsigned long long)(locked_bytes / KIB));
}

/* siw applies the limit to privileged processes too. */
static bool
is_limited(const struct wf_verbs_device *dev, const struct wf_locked *locked)
{
	return locked->limit_bytes != UINT64_MAX && (!locked->privileged || dev->caps.iwarp);
}

enum weft_status
wf_verbs_memlock_room(const struct wf_verbs_device *dev, uint64_t bytes)
{
	struct wf_locked locked = wf_locked_read();
	if (!is_limited(dev, &locked)) {
		return WEFT_OK;
	}
	return wf_verbs_memlock_check(bytes, locked.bytes, locked.limit_bytes);
}

enum weft_status
wf_verbs_fail_made(const struct wf_verbs_device *dev, int err, const char *format, ...)
{
	char what[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	struct wf_locked locked = wf_locked_read();
	/* Providers pass on the kernel's error, or none. */
	bool is_memory = err == ENOMEM || err == EAGAIN || err == 0;
	if (!is_memory || !is_limited(dev, &locked)) {
		return wf_fail_errno(WEFT_NOMEM, err == 0 ? ENOMEM : err, "%s: %s", dev->name,
				     what);
	}
	return wf_fail(WEFT_NOMEM,
		       "%s: %s cannot be locked for RDMA: the limit is %llu KiB, %llu KiB are "
		       "locked; " WF_LOCKED_RAISE,
		       dev->name, what, (unsigned long long)(locked.limit_bytes / KIB),
		       (unsigned long long)(locked.bytes / KIB));
}

uint64_t
wf_verbs_iova(const struct wf_verbs_caps *caps, const void *region_base, const void *at)
{
	if (!caps->own_addresses) {
		return (uintptr_t)at;
	}
	uint64_t low = (uintptr_t)region_base & ((1ull << IOVA_KEPT_BITS) - 1);
	return low + ((uintptr_t)at - (uintptr_t)region_base);
}

enum weft_status
wf_verbs_register(struct wf_verbs_device *dev, struct ibv_pd *pd,
		  const struct wf_verbs_range *range, struct ibv_mr **out)
{
	enum weft_status st = wf_verbs_memlock_room(dev, range->bytes);
	if (st != WEFT_OK) {
		return st;
	}
	struct ibv_mr *mr = dev->t->lib->reg_mr_iova2(pd, range->base, range->bytes, range->iova,
						      range->access);
	if (mr == NULL) {
		return wf_verbs_fail_made(dev, errno, "a registration of %zu bytes of memory",
					  range->bytes);
	}
	*out = mr;
	return WEFT_OK;
}

enum weft_status
wf_verbs_register_own(struct wf_verbs_device *dev, struct ibv_pd *pd, void *base, size_t bytes,
		      struct ibv_mr **out)
{
	struct wf_verbs_range range = {
		.base = base,
		.bytes = bytes,
		.iova = (uintptr_t)base,
		.access = IBV_ACCESS_LOCAL_WRITE,
	};
	return wf_verbs_register(dev, pd, &range, out);
}

void
wf_verbs_deregister(const struct wf_verbs_device *dev, struct ibv_mr **mr)
{
	if (*mr != NULL) {
		(void)dev->t->lib->dereg_mr(*mr);
		*mr = NULL;
	}
}
