/* SPDX-License-Identifier: Apache-2.0 */
/* buffers: memory that an end allocates for data in transit: a slab from which its transport reads,
 * or into which peers PUT. Thread: the end's. */
#pragma once

#include "base/env.h"
#include "transport/transport.h"

/* Zero: none. */
struct wf_buffers {
	struct wf_slab slab;
	uint32_t region; /* its number at the transport */
	bool added;      /* the transport knows the region */
};

/* Adds a slab that the end has allocated itself to the transport, as `*region`. Does nothing for a
 * slab without memory. */
enum weft_status wf_buffers_add(struct wf_transport *transport, const struct wf_slab *slab,
				uint32_t *region) WEFT_MUST_CHECK;

/* Allocates `bytes` on `numa_node` (-1: any) and adds them to the transport. After a failure close
 * frees what is left. */
enum weft_status wf_buffers_open(struct wf_buffers *buffers, struct wf_env *env,
				 struct wf_transport *transport, uint64_t bytes,
				 int numa_node) WEFT_MUST_CHECK;
/* `transport` is NULL if it has been closed already. Accepts buffers that are half open, or zero.
 */
void wf_buffers_close(struct wf_buffers *buffers, struct wf_env *env,
		      struct wf_transport *transport);
