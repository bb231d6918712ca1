/* SPDX-License-Identifier: Apache-2.0 */
/* json: reads and writes the parts of JSON (RFC 8259) that weft has a use for. The reader walks
 * over a text token by token, without memory of its own and without recursion. The first token that
 * is not the requested one sets `is_bad`; every later call is then a no-op, so callers check once
 * at the end. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WF_JSON_DEPTH_MAX 32u

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
/* A number of any form, finite; "1e400" and what is no number of JSON are bad. */
double wf_json_real(struct wf_json *json);
/* Consumes the word "true", "false" or "null" if it comes next, after blanks. */
bool wf_json_accept_word(struct wf_json *json, const char *word);
/* Consumes a value of any kind. One that is nested deeper than WF_JSON_DEPTH_MAX is bad. */
void wf_json_skip(struct wf_json *json);
/* Nothing bad, and nothing but blanks left. */
bool wf_json_is_done(struct wf_json *json);
/* How far it has come, in bytes. */
size_t wf_json_at(const struct wf_json *json);

/* Writes a text between quotes. Each byte that is not printable ASCII becomes \u00XX, so that
 * whatever the text holds, the result is JSON and no terminal obeys it. */
void wf_json_print_text(FILE *out, const char *text);
/* Writes "key": "text", with null where there is no text, and ", " behind it. */
void wf_json_print_member(FILE *out, const char *key, const char *text);
