/* SPDX-License-Identifier: Apache-2.0 */
/* picture: see picture.h. */
#include "status/picture.h"

#include <string.h>

#define CAPACITY_MIN 16u

enum weft_status
wf_picture_add(struct wf_picture *picture, const struct wf_watch_record *record)
{
	struct wf_env *env = wf_env_memory();
	if (picture->count == picture->capacity) {
		uint32_t capacity = picture->capacity > 0 ? 2 * picture->capacity : CAPACITY_MIN;
		struct wf_watch_record *more = wf_zalloc_array(env, capacity, sizeof(*more));
		if (more == NULL) {
			return wf_fail(WEFT_NOMEM, "status: no memory for %u records", capacity);
		}
		if (picture->count > 0) {
			memcpy(more, picture->record, picture->count * sizeof(*more));
		}
		wf_free(env, picture->record, picture->capacity * sizeof(*more));
		picture->record = more;
		picture->capacity = capacity;
	}
	picture->record[picture->count++] = *record;
	return WEFT_OK;
}

void
wf_picture_clear(struct wf_picture *picture)
{
	picture->count = 0;
}

void
wf_picture_fini(struct wf_picture *picture)
{
	wf_free(wf_env_memory(), picture->record, picture->capacity * sizeof(*picture->record));
	*picture = (struct wf_picture){0};
}

const struct wf_watch_record *
wf_picture_find(const struct wf_picture *picture, enum wf_watch_kind kind, uint64_t lane,
		uint64_t idx)
{
	for (uint32_t i = 0; i < picture->count; i++) {
		const struct wf_watch_record *record = &picture->record[i];
		if (record->kind == kind && record->lane == lane && record->idx == idx) {
			return record;
		}
	}
	return NULL;
}
