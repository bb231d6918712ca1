/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: bounded little-endian writer and reader. Thread: any; state is the caller's. */
#include "wire/bytes.h"

#include <string.h>

#include "base/assert.h"

void
wf_put_bytes(struct wf_writer *w, const void *bytes, size_t count)
{
	if (wf_writer_has(w, count) && count > 0) {
		memcpy(w->base + w->used, bytes, count);
		w->used += count;
	}
}

void
wf_put_string(struct wf_writer *w, const char *text)
{
	size_t length = strlen(text);
	if (length > UINT16_MAX) {
		w->bad = true;
		return;
	}
	wf_put_u16(w, (uint16_t)length);
	wf_put_bytes(w, text, length);
}

void
wf_get_bytes(struct wf_reader *r, void *out, size_t count)
{
	if (wf_reader_has(r, count) && count > 0) {
		memcpy(out, r->base + r->used, count);
		r->used += count;
	}
}

void
wf_get_string(struct wf_reader *r, char *out, size_t capacity)
{
	WF_ASSERT(capacity > 0);
	size_t length = wf_get_u16(r);
	out[0] = '\0';
	if (length > capacity - 1) {
		r->bad = true;
	}
	if (!wf_reader_has(r, length)) {
		return;
	}
	const uint8_t *at = r->base + r->used;
	r->used += length;
	for (size_t i = 0; i < length; i++) {
		if (at[i] < 0x20 || at[i] > 0x7e) {
			r->bad = true;
			return;
		}
	}
	if (length > 0) {
		memcpy(out, at, length);
	}
	out[length] = '\0';
}
