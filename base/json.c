/* SPDX-License-Identifier: Apache-2.0 */
/* json: see json.h. Thread: the caller's. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define REAL_BYTES 64u /* of a number, with its NUL; nobody writes a longer one */

/* A string on its way. */
struct sink {
	char *out;
	size_t room, bytes;
};

static void
skip_blanks(struct wf_json *json)
{
	while (json->at < json->end &&
	       (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r')) {
		json->at++;
	}
}

bool
wf_json_accept(struct wf_json *json, char mark)
{
	skip_blanks(json);
	if (json->is_bad || json->at == json->end || *json->at != mark) {
		return false;
	}
	json->at++;
	return true;
}

void
wf_json_need(struct wf_json *json, char mark)
{
	if (!wf_json_accept(json, mark)) {
		json->is_bad = true;
	}
}

static void
put(struct sink *sink, uint32_t byte)
{
	if (sink->bytes + 1 < sink->room) {
		sink->out[sink->bytes] = (char)byte;
	}
	sink->bytes++;
}

static void
put_code_point(struct sink *sink, uint32_t code)
{
	if (code < 0x80) {
		put(sink, code);
	} else if (code < 0x800) {
		put(sink, 0xc0 | code >> 6);
		put(sink, 0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		put(sink, 0xe0 | code >> 12);
		put(sink, 0x80 | (code >> 6 & 0x3f));
		put(sink, 0x80 | (code & 0x3f));
	} else {
		put(sink, 0xf0 | code >> 18);
		put(sink, 0x80 | (code >> 12 & 0x3f));
		put(sink, 0x80 | (code >> 6 & 0x3f));
		put(sink, 0x80 | (code & 0x3f));
	}
}

/* Four hexadecimal digits. */
static uint32_t
parse_hex(struct wf_json *json)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t value = 0;

	for (unsigned i = 0; i < 4; i++) {
		char c = json->at < json->end ? *json->at++ : '\0';
		c = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
		const char *digit = c == '\0' ? NULL : strchr(digits, c);
		if (digit == NULL) {
			json->is_bad = true;
			return 0;
		}
		value = value << 4 | (uint32_t)(digit - digits);
	}
	return value;
}

/* After "\\u": a character, or the two halves of a surrogate pair. A half alone is no character,
 * and becomes bytes that are no UTF-8. */
static uint32_t
parse_code_point(struct wf_json *json)
{
	const uint32_t first = parse_hex(json);

	if (first < 0xd800 || first >= 0xdc00 || json->end - json->at < 6 || json->at[0] != '\\' ||
	    json->at[1] != 'u') {
		return first;
	}
	struct wf_json ahead = *json;
	ahead.at += 2;
	const uint32_t second = parse_hex(&ahead);
	if (ahead.is_bad || second < 0xdc00 || second >= 0xe000) {
		return first;
	}
	*json = ahead;
	return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/* After a backslash. */
static void
parse_escape(struct wf_json *json, struct sink *sink)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char letter = json->at < json->end ? *json->at++ : '\0';
	const char *at = letter == '\0' ? NULL : strchr(from, letter);

	if (letter == 'u') {
		put_code_point(sink, parse_code_point(json));
	} else if (at != NULL) {
		put(sink, (uint8_t)to[at - from]);
	} else {
		json->is_bad = true;
	}
}

size_t
wf_json_string(struct wf_json *json, char *out, size_t room)
{
	struct sink sink = {.out = out, .room = room};

	WF_ASSERT(room > 0);
	wf_json_need(json, '"');
	while (!json->is_bad) {
		if (json->at == json->end || (uint8_t)*json->at < ' ') {
			json->is_bad = true;
			break;
		}
		const char c = *json->at++;
		if (c == '"') {
			break;
		}
		if (c == '\\') {
			parse_escape(json, &sink);
		} else {
			put(&sink, (uint8_t)c);
		}
	}
	out[sink.bytes < room ? sink.bytes : room - 1] = '\0';
	return sink.bytes;
}

uint64_t
wf_json_number(struct wf_json *json)
{
	uint64_t value = 0;

	skip_blanks(json);
	const char *from = json->at;
	while (!json->is_bad && json->at < json->end && *json->at >= '0' && *json->at <= '9') {
		const uint64_t digit = (uint64_t)(*json->at++ - '0');
		json->is_bad =
			value > (UINT64_MAX - digit) / 10 || (value == 0 && json->at > from + 1);
		value = value * 10 + digit;
	}
	json->is_bad = json->is_bad || json->at == from;
	return json->is_bad ? 0 : value;
}

static bool
is_digit(const struct wf_json *json)
{
	return json->at < json->end && *json->at >= '0' && *json->at <= '9';
}

static void
skip_digits(struct wf_json *json)
{
	json->is_bad = json->is_bad || !is_digit(json);
	while (!json->is_bad && is_digit(json)) {
		json->at++;
	}
}

/* Consumes the character if it comes next, without blanks in front of it. */
static bool
accept_one_of(struct wf_json *json, char a, char b)
{
	if (json->at == json->end || (*json->at != a && *json->at != b)) {
		return false;
	}
	json->at++;
	return true;
}

/* Consumes -12.5e+3 and the like. */
static void
skip_real(struct wf_json *json)
{
	(void)accept_one_of(json, '-', '-');
	if (accept_one_of(json, '0', '0')) {
		json->is_bad = json->is_bad || is_digit(json); /* 01 */
	} else {
		skip_digits(json);
	}
	if (!json->is_bad && accept_one_of(json, '.', '.')) {
		skip_digits(json);
	}
	if (!json->is_bad && accept_one_of(json, 'e', 'E')) {
		(void)accept_one_of(json, '+', '-');
		skip_digits(json);
	}
}

double
wf_json_real(struct wf_json *json)
{
	char text[REAL_BYTES];
	double value = 0;

	skip_blanks(json);
	const char *from = json->at;
	skip_real(json);
	const size_t bytes = (size_t)(json->at - from);
	if (json->is_bad || bytes >= sizeof(text)) {
		json->is_bad = true;
		return 0;
	}
	memcpy(text, from, bytes);
	text[bytes] = '\0';
	value = strtod(text, NULL);
	json->is_bad = !isfinite(value);
	return json->is_bad ? 0 : value;
}

bool
wf_json_accept_word(struct wf_json *json, const char *word)
{
	const size_t bytes = strlen(word);

	skip_blanks(json);
	if (json->is_bad || (size_t)(json->end - json->at) < bytes ||
	    memcmp(json->at, word, bytes) != 0) {
		return false;
	}
	json->at += bytes;
	return true;
}

/* Consumes a value that holds no other. */
static void
skip_plain(struct wf_json *json)
{
	char text[2];

	if (wf_json_accept_word(json, "true") || wf_json_accept_word(json, "false") ||
	    wf_json_accept_word(json, "null")) {
		return;
	}
	if (json->at < json->end && *json->at == '"') {
		(void)wf_json_string(json, text, sizeof(text));
	} else {
		(void)wf_json_real(json);
	}
}

static void
skip_key(struct wf_json *json)
{
	char text[2];

	(void)wf_json_string(json, text, sizeof(text));
	wf_json_need(json, ':');
}

/* The arrays and objects around the current place. */
struct nest {
	unsigned depth;
	bool is_object[WF_JSON_DEPTH_MAX];
};

/* Consumes the begin of a value, up to the next value in it; false: it has ended. */
static bool
skip_begin(struct wf_json *json, struct nest *nest)
{
	const bool is_object = wf_json_accept(json, '{');

	if (!is_object && !wf_json_accept(json, '[')) {
		skip_plain(json);
		return false;
	}
	if (nest->depth == WF_JSON_DEPTH_MAX) {
		json->is_bad = true;
		return false;
	}
	if (wf_json_accept(json, is_object ? '}' : ']')) {
		return false;
	}
	nest->is_object[nest->depth++] = is_object;
	if (is_object) {
		skip_key(json);
	}
	return true;
}

void
wf_json_skip(struct wf_json *json)
{
	struct nest nest = {0};
	bool inside = skip_begin(json, &nest);

	while (!json->is_bad && (inside || nest.depth > 0)) {
		if (inside) {
			inside = skip_begin(json, &nest);
		} else if (wf_json_accept(json, ',')) {
			if (nest.is_object[nest.depth - 1]) {
				skip_key(json);
			}
			inside = true;
		} else {
			nest.depth--;
			wf_json_need(json, nest.is_object[nest.depth] ? '}' : ']');
		}
	}
}

bool
wf_json_is_done(struct wf_json *json)
{
	skip_blanks(json);
	return !json->is_bad && json->at == json->end;
}

void
wf_json_print_text(FILE *out, const char *text)
{
	(void)putc('"', out);
	for (const char *at = text; *at != '\0'; at++) {
		const unsigned char c = (unsigned char)*at;
		if (c == '"' || c == '\\') {
			(void)fprintf(out, "\\%c", c);
		} else if (c < 0x20 || c > 0x7e) {
			(void)fprintf(out, "\\u%04x", c);
		} else {
			(void)putc(c, out);
		}
	}
	(void)putc('"', out);
}

void
wf_json_print_member(FILE *out, const char *key, const char *text)
{
	wf_json_print_text(out, key);
	(void)fputs(": ", out);
	if (text != NULL) {
		wf_json_print_text(out, text);
	} else {
		(void)fputs("null", out);
	}
	(void)fputs(", ", out);
}

size_t
wf_json_at(const struct wf_json *json)
{
	return (size_t)(json->at - json->from);
}
