/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: bounded little-endian writer and reader. Thread: any; state is the caller's. */
#include "wire/bytes.h"

#include <string.h>

#include "base/assert.h"
#include "wire/little.h"

/* The next `count` bytes of the buffer, or NULL, and bad from then on. */
static uint8_t *
writer_take(struct wf_writer *w, size_t count)
{
	WF_ASSERT(w->used <= w->capacity);
	if (w->bad || count > w->capacity - w->used) {
		w->bad = true;
		return NULL;
	}
	uint8_t *at = w->base + w->used;
	w->used += count;
	return at;
}

static const uint8_t *
reader_take(struct wf_reader *r, size_t count)
{
	WF_ASSERT(r->used <= r->bytes);
	if (r->bad || count > r->bytes - r->used) {
		r->bad = true;
		return NULL;
	}
	const uint8_t *at = r->base + r->used;
	r->used += count;
	return at;
}

void
wf_put_u8(struct wf_writer *w, uint8_t value)
{
	uint8_t *at = writer_take(w, sizeof(value));
	if (at != NULL) {
		*at = value;
	}
}

void
wf_put_u16(struct wf_writer *w, uint16_t value)
{
	uint8_t *at = writer_take(w, sizeof(value));
	if (at != NULL) {
		wf_store_u16(at, value);
	}
}

void
wf_put_u32(struct wf_writer *w, uint32_t value)
{
	uint8_t *at = writer_take(w, sizeof(value));
	if (at != NULL) {
		wf_store_u32(at, value);
	}
}

void
wf_put_u64(struct wf_writer *w, uint64_t value)
{
	uint8_t *at = writer_take(w, sizeof(value));
	if (at != NULL) {
		wf_store_u64(at, value);
	}
}

void
wf_put_f64(struct wf_writer *w, double value)
{
	uint64_t bits;
	WF_STATIC_ASSERT(sizeof(bits) == sizeof(value), "f64 is IEEE binary64");
	memcpy(&bits, &value, sizeof(bits));
	wf_put_u64(w, bits);
}

void
wf_put_bytes(struct wf_writer *w, const void *bytes, size_t count)
{
	uint8_t *at = writer_take(w, count);
	if (at != NULL && count > 0) {
		memcpy(at, bytes, count);
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

uint8_t
wf_get_u8(struct wf_reader *r)
{
	const uint8_t *at = reader_take(r, 1);
	return at == NULL ? 0 : *at;
}

uint16_t
wf_get_u16(struct wf_reader *r)
{
	const uint8_t *at = reader_take(r, sizeof(uint16_t));
	return at == NULL ? 0 : wf_load_u16(at);
}

uint32_t
wf_get_u32(struct wf_reader *r)
{
	const uint8_t *at = reader_take(r, sizeof(uint32_t));
	return at == NULL ? 0 : wf_load_u32(at);
}

uint64_t
wf_get_u64(struct wf_reader *r)
{
	const uint8_t *at = reader_take(r, sizeof(uint64_t));
	return at == NULL ? 0 : wf_load_u64(at);
}

double
wf_get_f64(struct wf_reader *r)
{
	uint64_t bits = wf_get_u64(r);
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

void
wf_get_bytes(struct wf_reader *r, void *out, size_t count)
{
	const uint8_t *at = reader_take(r, count);
	if (at != NULL && count > 0) {
		memcpy(out, at, count);
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
	const uint8_t *at = reader_take(r, length);
	if (at == NULL) {
		return;
	}
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

bool
wf_reader_done(const struct wf_reader *r)
{
	return !r->bad && r->used == r->bytes;
}
