/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: bounded little-endian writer and reader. Neither ever leaves its buffer: the first field
 * that does not fit sets `bad`, and every later call is a no-op (a get returns 0), so callers check
 * once at the end. Start with {.base = buffer, .capacity = ...} and {.base = buffer, .bytes = ...}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

void wf_put_u8(struct wf_writer *w, uint8_t value);
void wf_put_u16(struct wf_writer *w, uint16_t value);
void wf_put_u32(struct wf_writer *w, uint32_t value);
void wf_put_u64(struct wf_writer *w, uint64_t value);
void wf_put_f64(struct wf_writer *w, double value);
void wf_put_bytes(struct wf_writer *w, const void *bytes, size_t count);
/* u16 length and the characters, without NUL; text longer than 65,535 sets bad. */
void wf_put_string(struct wf_writer *w, const char *text);

uint8_t wf_get_u8(struct wf_reader *r);
uint16_t wf_get_u16(struct wf_reader *r);
uint32_t wf_get_u32(struct wf_reader *r);
uint64_t wf_get_u64(struct wf_reader *r);
double wf_get_f64(struct wf_reader *r);
void wf_get_bytes(struct wf_reader *r, void *out, size_t count);
/* Into `out` with NUL. A text of more than capacity - 1 characters, or with a byte that is not
 * printable ASCII (0x20..0x7e), sets bad and leaves "" behind: what a peer says goes into log lines
 * and onto terminals. */
void wf_get_string(struct wf_reader *r, char *out, size_t capacity);
/* Nothing bad, and everything read. */
bool wf_reader_done(const struct wf_reader *r);
