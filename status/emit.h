/* SPDX-License-Identifier: Apache-2.0 */
/* emit: writes JSON (RFC 8259) to a stream, a value at a time. `key`: NULL within an array. Thread:
 * the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct wf_emit {
	FILE *out;
	bool has_value; /* the next one needs a comma before it */
};

void wf_emit_open(struct wf_emit *emit, const char *key, char mark); /* '{' or '[' */
void wf_emit_close(struct wf_emit *emit, char mark);                 /* '}' or ']' */
/* Bytes that are not printable ASCII are written as \u00XX. */
void wf_emit_text(struct wf_emit *emit, const char *key, const char *text);
/* The same; "" is null. */
void wf_emit_words(struct wf_emit *emit, const char *key, const char *text);
void wf_emit_u64(struct wf_emit *emit, const char *key, uint64_t value);
/* In quotes, for numbers that a double does not hold. */
void wf_emit_key(struct wf_emit *emit, const char *key, uint64_t value);
/* Six digits; null if it is not finite. */
void wf_emit_f64(struct wf_emit *emit, const char *key, double value);
void wf_emit_bool(struct wf_emit *emit, const char *key, bool value);
void wf_emit_null(struct wf_emit *emit, const char *key);
