/* SPDX-License-Identifier: Apache-2.0 */
/* heap_env: an env that has memory only: it counts allocations, and fails when configured to.
 * Thread: the caller's. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/env.h"

struct heap_env {
	struct wf_env env;
	size_t out_bytes;   /* allocated and not freed */
	size_t asked_bytes; /* of all allocations so far */
	unsigned calls;     /* allocations so far */
	unsigned fail_at;   /* which allocation fails, from 1; 0: none */
	size_t bytes_max;   /* larger allocations fail; 0: no limit */
};

static inline void *
heap_env_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct heap_env *h = (struct heap_env *)env;
	h->calls++;
	if (h->calls == h->fail_at || (h->bytes_max != 0 && bytes > h->bytes_max)) {
		return NULL;
	}
	void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);
	if (memory == NULL) {
		return NULL;
	}
	memset(memory, 0, bytes);
	h->out_bytes += bytes;
	h->asked_bytes += bytes;
	return memory;
}

static inline void
heap_env_free(struct wf_env *env, void *memory, size_t bytes)
{
	struct heap_env *h = (struct heap_env *)env;
	if (memory == NULL) {
		return;
	}
	h->out_bytes -= bytes;
	free(memory);
}

static inline struct heap_env
heap_env_make(void)
{
	static const struct wf_env_ops ops = {.alloc = heap_env_alloc, .free = heap_env_free};
	return (struct heap_env){.env = {.ops = &ops}};
}
