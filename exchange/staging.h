/* SPDX-License-Identifier: Apache-2.0 */
/* staging: buffers from which a lane PUTs answers that are not to change on their way: as many for
 * each trainer as its window has slots. A buffer is claimed before it is filled and released when
 * the transport reports its PUT as DONE, or if it is not posted after all. Thread: the lane's. */
#pragma once

#include "base/assert.h"
#include "exchange/buffers.h"

#define WF_STAGING_NONE UINT32_MAX
#define WF_STAGING_CLAIMED (UINT32_MAX - 1)

/* Zero: none. Buffers are numbered through all trainers. */
struct wf_staging {
	struct wf_buffers memory;
	uint64_t buffer_bytes;
	uint32_t trainer_count;
	uint32_t each;    /* buffers of one trainer */
	uint32_t used_up; /* trainers that have no free buffer */
	uint32_t *first;  /* [trainer_count] a free buffer of the trainer, or NONE */
	uint32_t *next; /* [trainer_count * each] the one that is free after it, NONE, or CLAIMED */
};

struct wf_staging_opts {
	uint32_t trainer_count;
	uint32_t each;
	uint64_t buffer_bytes;
	int numa_node; /* -1: any */
};

/* Allocates buffers that are all free, and adds their memory to the transport. `staging` is zeroed;
 * after a failure close frees what is left. */
enum weft_status wf_staging_open(struct wf_staging *staging, struct wf_env *env,
				 struct wf_transport *transport,
				 const struct wf_staging_opts *opts) WEFT_MUST_CHECK;
/* `transport` is NULL if it has been closed already. Accepts what is half open, or zero. */
void wf_staging_close(struct wf_staging *staging, struct wf_env *env,
		      struct wf_transport *transport);
/* The bytes that open allocates for one trainer beside its buffers. */
uint64_t wf_staging_table_bytes(uint32_t each);

static inline bool
wf_staging_has_free(const struct wf_staging *staging, uint32_t trainer)
{
	return staging->first[trainer] != WF_STAGING_NONE;
}

/* A buffer of the trainer, which has a free one. */
static inline uint32_t
wf_staging_claim(struct wf_staging *staging, uint32_t trainer)
{
	uint32_t buffer = staging->first[trainer];
	WF_ASSERT(buffer != WF_STAGING_NONE);
	staging->first[trainer] = staging->next[buffer];
	staging->used_up += staging->first[trainer] == WF_STAGING_NONE ? 1 : 0;
	staging->next[buffer] = WF_STAGING_CLAIMED;
	return buffer;
}

/* Returns the trainer whose buffer it is. */
static inline uint32_t
wf_staging_release(struct wf_staging *staging, uint32_t buffer)
{
	uint32_t trainer = buffer / staging->each;
	WF_ASSERT(trainer < staging->trainer_count);
	WF_ASSERT(staging->next[buffer] == WF_STAGING_CLAIMED);
	staging->used_up -= staging->first[trainer] == WF_STAGING_NONE ? 1 : 0;
	staging->next[buffer] = staging->first[trainer];
	staging->first[trainer] = buffer;
	return trainer;
}

static inline void *
wf_staging_at(const struct wf_staging *staging, uint32_t buffer)
{
	return (char *)staging->memory.slab.base + buffer * staging->buffer_bytes;
}
