/* SPDX-License-Identifier: Apache-2.0 */
/* fresh: see fresh.h. Thread: the lane's. */
#include "pserver/fresh.h"

#include <inttypes.h>

static uint64_t
places_of(const struct wf_staging *staging)
{
	return (uint64_t)staging->trainer_count * staging->each;
}

static struct wf_fresh_copy *
place_of(const struct wf_fresh *fresh, uint32_t trainer, uint32_t ordinal)
{
	const uint32_t each = fresh->staging->each;
	WF_ASSERT(trainer < fresh->staging->trainer_count);
	return &fresh->copy[(uint64_t)trainer * each + ordinal % each];
}

enum weft_status
wf_fresh_open(struct wf_fresh *fresh, struct wf_env *env, struct wf_staging *staging)
{
	fresh->staging = staging;
	fresh->copy = wf_zalloc_array(env, places_of(staging), sizeof(*fresh->copy));
	if (fresh->copy == NULL) {
		return wf_fail(WEFT_NOMEM, "fresh copies: %" PRIu64 " bytes for their table",
			       places_of(staging) * sizeof(*fresh->copy));
	}
	for (uint64_t i = 0; i < places_of(staging); i++) {
		fresh->copy[i].buffer = WF_STAGING_NONE;
	}
	return WEFT_OK;
}

void
wf_fresh_close(struct wf_fresh *fresh, struct wf_env *env)
{
	if (fresh->copy != NULL) {
		wf_free(env, fresh->copy, places_of(fresh->staging) * sizeof(*fresh->copy));
	}
	*fresh = (struct wf_fresh){0};
}

/* Another one remains when the trainer's next free buffer is claimed. */
static bool
has_two_free(const struct wf_staging *staging, uint32_t trainer)
{
	const uint32_t first = staging->first[trainer];
	return first != WF_STAGING_NONE && staging->next[first] != WF_STAGING_NONE;
}

void *
wf_fresh_begin(struct wf_fresh *fresh, uint32_t trainer, uint32_t ordinal, uint64_t version)
{
	struct wf_staging *staging = fresh->staging;
	struct wf_fresh_copy *place = place_of(fresh, trainer, ordinal);
	const bool is_taken = place->buffer != WF_STAGING_NONE;
	if (is_taken ? place->ordinal != ordinal : !has_two_free(staging, trainer)) {
		return NULL;
	}
	place->buffer = is_taken ? place->buffer : wf_staging_claim(staging, trainer);
	place->ordinal = ordinal;
	place->version = version;
	return wf_staging_at(staging, place->buffer);
}

uint32_t
wf_fresh_pop(struct wf_fresh *fresh, uint32_t trainer, uint32_t ordinal, uint64_t version,
	     bool *is_current)
{
	struct wf_fresh_copy *place = place_of(fresh, trainer, ordinal);
	const uint32_t buffer = place->buffer;
	if (buffer == WF_STAGING_NONE || place->ordinal != ordinal) {
		return WF_STAGING_NONE;
	}
	*is_current = place->version == version;
	place->buffer = WF_STAGING_NONE;
	return buffer;
}

void
wf_fresh_forget(struct wf_fresh *fresh, uint32_t trainer)
{
	if (fresh->copy == NULL) {
		return;
	}
	const uint32_t each = fresh->staging->each;
	for (uint32_t i = 0; i < each; i++) {
		struct wf_fresh_copy *place = place_of(fresh, trainer, i);
		if (place->buffer != WF_STAGING_NONE) {
			(void)wf_staging_release(fresh->staging, place->buffer);
			place->buffer = WF_STAGING_NONE;
		}
	}
}
