/* SPDX-License-Identifier: Apache-2.0 */
/* Strict: known lines in a known order, numbers without sign, blank or leading zero. Thread: the
 * caller's. */
#include "saved/manifest_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum weft_status
wf_line_bad(const struct wf_line_cursor *cursor, const char *what)
{
	return wf_fail(WEFT_DATA, "line %u, \"%.80s\": %s", cursor->number, cursor->line, what);
}

enum weft_status
wf_line_parse(struct wf_line_cursor *cursor, const char *key)
{
	const char *from = cursor->text + cursor->at;
	const char *end = memchr(from, '\n', cursor->bytes - cursor->at);
	const size_t key_bytes = strlen(key);

	cursor->number++;
	if (end == NULL || (size_t)(end - from) >= WF_LINE_BYTES) {
		return wf_fail(WEFT_DATA, "line %u: is not a line of fewer than %u bytes",
			       cursor->number, WF_LINE_BYTES);
	}
	const size_t bytes = (size_t)(end - from);
	memcpy(cursor->line, from, bytes);
	cursor->line[bytes] = '\0';
	cursor->at += bytes + 1;
	for (size_t i = 0; i < bytes; i++) {
		if (from[i] < 0x20 || from[i] > 0x7e) {
			return wf_fail(WEFT_DATA, "line %u, byte %zu: is not printable",
				       cursor->number, i + 1);
		}
	}
	if (strncmp(cursor->line, key, key_bytes) != 0 || cursor->line[key_bytes] != ' ') {
		return wf_fail(WEFT_DATA, "line %u, \"%.80s\": must be \"%s ...\"", cursor->number,
			       cursor->line, key);
	}
	cursor->word = cursor->line + key_bytes + 1;
	return WEFT_OK;
}

const char *
wf_line_parse_word(struct wf_line_cursor *cursor, char *out, size_t room)
{
	const char *word = cursor->word;
	size_t bytes = strcspn(word, " ");

	if (bytes == 0 || bytes >= room) {
		return NULL;
	}
	memcpy(out, word, bytes);
	out[bytes] = '\0';
	/* A blank at the end of the line is an empty word that is left over. */
	cursor->word += bytes + (word[bytes] == ' ' && word[bytes + 1] != '\0');
	return out;
}

bool
wf_line_parse_u64(struct wf_line_cursor *cursor, uint64_t *out)
{
	char word[24];
	uint64_t value = 0;

	if (wf_line_parse_word(cursor, word, sizeof(word)) == NULL ||
	    (word[0] == '0' && word[1] != '\0')) {
		return false;
	}
	for (const char *at = word; *at != '\0'; at++) {
		if (*at < '0' || *at > '9') {
			return false;
		}
		uint64_t digit = (uint64_t)(*at - '0');
		if (value > (UINT64_MAX - digit) / 10) {
			return false;
		}
		value = value * 10 + digit;
	}
	*out = value;
	return true;
}

bool
wf_line_parse_crc(struct wf_line_cursor *cursor, uint32_t *out)
{
	char word[9];
	uint32_t value = 0;

	if (wf_line_parse_word(cursor, word, sizeof(word)) == NULL || strlen(word) != 8) {
		return false;
	}
	for (const char *at = word; *at != '\0'; at++) {
		const char *digits = "0123456789abcdef";
		const char *digit = strchr(digits, *at);
		if (digit == NULL) {
			return false;
		}
		value = value << 4 | (uint32_t)(digit - digits);
	}
	*out = value;
	return true;
}

bool
wf_line_at_end(const struct wf_line_cursor *cursor)
{
	return *cursor->word == '\0';
}

enum weft_status
wf_line_parse_number(struct wf_line_cursor *cursor, const char *key, uint64_t *out)
{
	enum weft_status st = wf_line_parse(cursor, key);

	if (st == WEFT_OK && (!wf_line_parse_u64(cursor, out) || !wf_line_at_end(cursor))) {
		return wf_line_bad(cursor, "must have one whole number");
	}
	return st;
}

enum weft_status
wf_line_parse_one_word(struct wf_line_cursor *cursor, const char *key, char *out, size_t room)
{
	enum weft_status st = wf_line_parse(cursor, key);

	if (st == WEFT_OK &&
	    (wf_line_parse_word(cursor, out, room) == NULL || !wf_line_at_end(cursor))) {
		return wf_line_bad(cursor, "must have one short word");
	}
	return st;
}

bool
wf_line_is_next(const struct wf_line_cursor *cursor, const char *words)
{
	const size_t bytes = strlen(words);

	return cursor->bytes - cursor->at >= bytes &&
	       memcmp(cursor->text + cursor->at, words, bytes) == 0;
}

enum weft_status
wf_line_parse_count(struct wf_line_cursor *cursor, const char *key, size_t text_bytes_min,
		    uint32_t *out)
{
	uint64_t count = 0;
	enum weft_status st = wf_line_parse_number(cursor, key, &count);

	if (st == WEFT_OK && count > (cursor->bytes - cursor->at) / text_bytes_min) {
		return wf_line_bad(cursor, "counts more than the rest of the manifest can hold");
	}
	*out = (uint32_t)count;
	return st;
}

void
wf_line_add(struct wf_line_text *text, const char *format, ...)
{
	va_list args;
	size_t room = text->bytes < text->room ? text->room - text->bytes : 0;

	va_start(args, format);
	int bytes = vsnprintf(room > 0 ? text->out + text->bytes : NULL, room, format, args);
	va_end(args);
	WF_ASSERT(bytes >= 0);
	text->bytes += (size_t)bytes;
}
