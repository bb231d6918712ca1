/* SPDX-License-Identifier: Apache-2.0 */
/* buffers: memory that an end takes for what travels: a slab that its transport reads from, or that
 * peers PUT into. Thread: the end's. */
#pragma once

#include "base/env.h"
#include "transport/transport.h"

/* Zero: none. */
struct wf_buffers {
	struct wf_slab slab;
	uint32_t region; /* of the transport */
	bool added;      /* there */
};

/* Makes a slab that the end has allocated itself known to the transport, as `*region`. Does nothing
 * for one without memory. */
enum weft_status wf_buffers_add(struct wf_transport *transport, const struct wf_slab *slab,
				uint32_t *region) WEFT_MUST_CHECK;

/* Of `bytes`, on `numa_node` (-1: any). A failure leaves what close gives back. */
enum weft_status wf_buffers_open(struct wf_buffers *buffers, struct wf_env *env,
				 struct wf_transport *transport, uint64_t bytes,
				 int numa_node) WEFT_MUST_CHECK;
/* `transport` NULL: it is closed. Accepts what is half taken, and none. */
void wf_buffers_close(struct wf_buffers *buffers, struct wf_env *env,
		      struct wf_transport *transport);
