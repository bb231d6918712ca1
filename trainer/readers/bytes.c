/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: see bytes.h. */
#include "trainer/readers/bytes.h"

#include <string.h>

#include "base/status.h"

#define ROOM_BYTES_MIN (64u << 10)

enum weft_status
wf_bytes_reserve(struct wf_env *env, struct wf_bytes *bytes, size_t room)
{
	if (room <= bytes->room) {
		return WEFT_OK;
	}
	/* A little more, so that payloads of about one size do not grow it each time. */
	room += room / 8 + ROOM_BYTES_MIN;
	uint8_t *at = wf_zalloc(env, room);
	if (at == NULL) {
		return wf_fail(WEFT_NOMEM, "%zu bytes for a chunk of records", room);
	}
	if (bytes->count > 0) {
		memcpy(at, bytes->at, bytes->count);
	}
	wf_free(env, bytes->at, bytes->room);
	bytes->at = at;
	bytes->room = room;
	return WEFT_OK;
}

void
wf_bytes_fini(struct wf_env *env, struct wf_bytes *bytes)
{
	wf_free(env, bytes->at, bytes->room);
	*bytes = (struct wf_bytes){0};
}
