/* SPDX-License-Identifier: Apache-2.0 */
/* buffers: see buffers.h. Thread: the end's. */
#include "exchange/buffers.h"

enum weft_status
wf_buffers_add(struct wf_transport *transport, const struct wf_slab *slab, uint32_t *region)
{
	const struct wf_region added = {slab->base, slab->bytes, slab->memfd};
	return slab->base == NULL ? WEFT_OK : wf_transport_region_add(transport, &added, region);
}

enum weft_status
wf_buffers_open(struct wf_buffers *buffers, struct wf_env *env, struct wf_transport *transport,
		uint64_t bytes, int numa_node)
{
	struct wf_slab *slab = &buffers->slab;
	enum weft_status st = env->ops->slab_open(env, bytes, numa_node, slab);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_buffers_add(transport, slab, &buffers->region);
	buffers->added = st == WEFT_OK;
	return st;
}

void
wf_buffers_close(struct wf_buffers *buffers, struct wf_env *env, struct wf_transport *transport)
{
	if (transport != NULL && buffers->added) {
		wf_transport_region_remove(transport, buffers->region);
	}
	if (buffers->slab.base != NULL) {
		env->ops->slab_close(env, &buffers->slab);
	}
	*buffers = (struct wf_buffers){0};
}
