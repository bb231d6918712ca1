/* SPDX-License-Identifier: Apache-2.0 */
/* staging: see staging.h. Thread: the lane's. */
#include "exchange/staging.h"

#include <inttypes.h>

uint64_t
wf_staging_table_bytes(uint32_t each)
{
	const struct wf_staging *staging = NULL;
	return sizeof(*staging->first) + each * sizeof(*staging->next);
}

/* The first buffer of each trainer is claimed first. */
static void
free_all(struct wf_staging *staging)
{
	for (uint32_t t = 0; t < staging->trainer_count; t++) {
		staging->first[t] = WF_STAGING_NONE;
		for (uint32_t i = staging->each; i-- > 0;) {
			uint32_t buffer = t * staging->each + i;
			staging->next[buffer] = staging->first[t];
			staging->first[t] = buffer;
		}
	}
}

enum weft_status
wf_staging_open(struct wf_staging *staging, struct wf_env *env, struct wf_transport *transport,
		const struct wf_staging_opts *opts)
{
	uint64_t buffers = (uint64_t)opts->trainer_count * opts->each;
	WF_ASSERT(opts->each > 0 && buffers < WF_STAGING_CLAIMED);
	staging->buffer_bytes = opts->buffer_bytes;
	staging->trainer_count = opts->trainer_count;
	staging->each = opts->each;
	staging->first = wf_zalloc_array(env, opts->trainer_count, sizeof(*staging->first));
	staging->next = wf_zalloc_array(env, buffers, sizeof(*staging->next));
	if (staging->first == NULL || staging->next == NULL) {
		return wf_fail(WEFT_NOMEM, "buffers of answers: %" PRIu64 " bytes for their table",
			       opts->trainer_count * wf_staging_table_bytes(opts->each));
	}
	free_all(staging);
	return wf_buffers_open(&staging->memory, env, transport, buffers * opts->buffer_bytes,
			       opts->numa_node);
}

void
wf_staging_close(struct wf_staging *staging, struct wf_env *env, struct wf_transport *transport)
{
	uint64_t buffers = (uint64_t)staging->trainer_count * staging->each;
	wf_buffers_close(&staging->memory, env, transport);
	wf_free(env, staging->first, staging->trainer_count * sizeof(*staging->first));
	wf_free(env, staging->next, buffers * sizeof(*staging->next));
	*staging = (struct wf_staging){0};
}
