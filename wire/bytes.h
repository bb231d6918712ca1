/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: bounded little-endian writer and reader. Neither ever leaves its buffer: the first field
 * that does not fit sets `bad`, and every later call is a no-op (a get returns 0), so callers check
 * once at the end. Start with {.base = buffer, .capacity = ...} and {.base = buffer, .bytes = ...}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "wire/little.h"

struct wf_writer {
	uint8_t *base;
	size_t capacity; /* bytes */
	size_t used;     /* bytes */
	bool bad;
};

struct wf_reader {
	const uint8_t *base;
	size_t bytes;
	size_t used;
	bool bad;
};

/* Integers are inline: if a message's fields have constant sizes, their offsets are constants. */

/* Whether there is room for `count` bytes more. If not, the writer is bad from then on. */
static inline bool
wf_writer_has(struct wf_writer *w, size_t count)
{
	WF_ASSERT(w->used <= w->capacity);
	w->bad = w->bad || count > w->capacity - w->used;
	return !w->bad;
}

static inline bool
wf_reader_has(struct wf_reader *r, size_t count)
{
	WF_ASSERT(r->used <= r->bytes);
	r->bad = r->bad || count > r->bytes - r->used;
	return !r->bad;
}

static inline void
wf_put_u8(struct wf_writer *w, uint8_t value)
{
	if (wf_writer_has(w, sizeof(value))) {
		w->base[w->used] = value;
		w->used += sizeof(value);
	}
}

static inline void
wf_put_u16(struct wf_writer *w, uint16_t value)
{
	if (wf_writer_has(w, sizeof(value))) {
		wf_store_u16(w->base + w->used, value);
		w->used += sizeof(value);
	}
}

static inline void
wf_put_u32(struct wf_writer *w, uint32_t value)
{
	if (wf_writer_has(w, sizeof(value))) {
		wf_store_u32(w->base + w->used, value);
		w->used += sizeof(value);
	}
}

static inline void
wf_put_u64(struct wf_writer *w, uint64_t value)
{
	if (wf_writer_has(w, sizeof(value))) {
		wf_store_u64(w->base + w->used, value);
		w->used += sizeof(value);
	}
}

static inline void
wf_put_f64(struct wf_writer *w, double value)
{
	uint64_t bits;
	WF_STATIC_ASSERT(sizeof(bits) == sizeof(value), "f64 is IEEE binary64");
	memcpy(&bits, &value, sizeof(bits));
	wf_put_u64(w, bits);
}

void wf_put_bytes(struct wf_writer *w, const void *bytes, size_t count);
/* u16 length and the characters, without NUL; text longer than 65,535 sets bad. */
void wf_put_string(struct wf_writer *w, const char *text);

static inline uint8_t
wf_get_u8(struct wf_reader *r)
{
	if (!wf_reader_has(r, sizeof(uint8_t))) {
		return 0;
	}
	uint8_t value = r->base[r->used];
	r->used += sizeof(value);
	return value;
}

static inline uint16_t
wf_get_u16(struct wf_reader *r)
{
	if (!wf_reader_has(r, sizeof(uint16_t))) {
		return 0;
	}
	uint16_t value = wf_load_u16(r->base + r->used);
	r->used += sizeof(value);
	return value;
}

static inline uint32_t
wf_get_u32(struct wf_reader *r)
{
	if (!wf_reader_has(r, sizeof(uint32_t))) {
		return 0;
	}
	uint32_t value = wf_load_u32(r->base + r->used);
	r->used += sizeof(value);
	return value;
}

static inline uint64_t
wf_get_u64(struct wf_reader *r)
{
	if (!wf_reader_has(r, sizeof(uint64_t))) {
		return 0;
	}
	uint64_t value = wf_load_u64(r->base + r->used);
	r->used += sizeof(value);
	return value;
}

static inline double
wf_get_f64(struct wf_reader *r)
{
	uint64_t bits = wf_get_u64(r);
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

void wf_get_bytes(struct wf_reader *r, void *out, size_t count);
/* Copies into `out` with NUL. A text of more than capacity - 1 characters, or with a byte that is
 * not printable ASCII (0x20..0x7e), sets bad and leaves "": a peer's texts go to log lines and
 * terminals. */
void wf_get_string(struct wf_reader *r, char *out, size_t capacity);

/* Whether nothing was bad and everything was read. */
static inline bool
wf_reader_done(const struct wf_reader *r)
{
	return !r->bad && r->used == r->bytes;
}
