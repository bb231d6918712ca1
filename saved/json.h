/* SPDX-License-Identifier: Apache-2.0 */
/* json: the part of JSON (RFC 8259) that the header of a safetensors file needs: marks, strings,
 * whole numbers. The first token that is not the requested one sets `is_bad`; every later call is
 * then a no-op, so callers check once at the end. Private to this folder. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_json {
	const char *from, *at, *end;
	bool is_bad;
};

/* Consumes the mark if it comes next, after blanks. */
bool wf_json_accept(struct wf_json *json, char mark);
void wf_json_need(struct wf_json *json, char mark);
/* Into out[room] with NUL, as UTF-8. Returns its bytes; what does not fit is counted and not
 * written. */
size_t wf_json_string(struct wf_json *json, char *out, size_t room);
/* Digits, without sign, fraction or leading zeros. */
uint64_t wf_json_number(struct wf_json *json);
/* Nothing bad, and nothing but blanks left. */
bool wf_json_is_done(struct wf_json *json);
/* How far it has come, in bytes. */
size_t wf_json_at(const struct wf_json *json);
