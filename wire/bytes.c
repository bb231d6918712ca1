/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: bounded little-endian writer and reader. Thread: any; state is the caller's. */
#include "wire/bytes.h"

#include <string.h>

#include "base/assert.h"

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

static void
put_little(struct wf_writer *w, uint64_t value, size_t count)
{
	uint8_t *at = writer_take(w, count);
	if (at == NULL) {
		return;
	}
	for (size_t i = 0; i < count; i++) {
		at[i] = (uint8_t)(value >> (8 * i));
	}
}

static uint64_t
get_little(struct wf_reader *r, size_t count)
{
	const uint8_t *at = reader_take(r, count);
	uint64_t value = 0;
	if (at == NULL) {
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		value |= (uint64_t)at[i] << (8 * i);
	}
	return value;
}

void
wf_put_u8(struct wf_writer *w, uint8_t value)
{
	put_little(w, value, 1);
}

void
wf_put_u16(struct wf_writer *w, uint16_t value)
{
	put_little(w, value, 2);
}

void
wf_put_u32(struct wf_writer *w, uint32_t value)
{
	put_little(w, value, 4);
}

void
wf_put_u64(struct wf_writer *w, uint64_t value)
{
	put_little(w, value, 8);
}

void
wf_put_f64(struct wf_writer *w, double value)
{
	uint64_t bits;
	WF_STATIC_ASSERT(sizeof(bits) == sizeof(value), "f64 is IEEE binary64");
	memcpy(&bits, &value, sizeof(bits));
	put_little(w, bits, 8);
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
	return (uint8_t)get_little(r, 1);
}

uint16_t
wf_get_u16(struct wf_reader *r)
{
	return (uint16_t)get_little(r, 2);
}

uint32_t
wf_get_u32(struct wf_reader *r)
{
	return (uint32_t)get_little(r, 4);
}

uint64_t
wf_get_u64(struct wf_reader *r)
{
	return get_little(r, 8);
}

double
wf_get_f64(struct wf_reader *r)
{
	uint64_t bits = get_little(r, 8);
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
