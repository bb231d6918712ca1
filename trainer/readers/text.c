/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in memory, lines, fields, numbers. Thread: the caller's. */
#include "trainer/readers/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/input.h"

#define SHOWN_BYTES 24u /* of a bad value, in an error text */
#define HEADER_SHOWN_BYTES 160u
#define SPARE_BYTES 2u /* a zero byte, and room in which the end of a file shows */

/* Room for twice as much as there is, at most for what a text may have and one byte. */
static enum weft_status
grow(struct wf_env *env, struct wf_text *text)
{
	const size_t most = (size_t)WF_TEXT_BYTES_MAX + SPARE_BYTES;
	const size_t alloc = 2 * text->alloc_bytes < most ? 2 * text->alloc_bytes : most;

	if (text->count > WF_TEXT_BYTES_MAX) {
		return wf_fail(WEFT_DATA,
			       "%s: has more than %u bytes, unpacked; at most these are "
			       "read",
			       text->path, WF_TEXT_BYTES_MAX);
	}
	char *bytes = wf_zalloc(env, alloc);
	if (bytes == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", text->path, alloc);
	}
	memcpy(bytes, text->bytes, text->count);
	wf_free(env, text->bytes, text->alloc_bytes);
	text->bytes = bytes;
	text->alloc_bytes = alloc;
	return WEFT_OK;
}

/* What a plain file has is known; of a packed one four times its size is a first guess. */
static enum weft_status
read_input(struct wf_env *env, struct wf_input *input, struct wf_text *text)
{
	const uint64_t file_bytes = wf_input_file_bytes(input);
	uint64_t guess = wf_input_bytes_max(input);
	size_t got = 1;

	if (file_bytes > WF_TEXT_BYTES_MAX) {
		return wf_fail(WEFT_DATA, "%s: has %llu bytes; at most %u are read", text->path,
			       (unsigned long long)file_bytes, WF_TEXT_BYTES_MAX);
	}
	guess = guess < 4 * file_bytes ? guess : 4 * file_bytes;
	guess = guess < WF_TEXT_BYTES_MAX ? guess : WF_TEXT_BYTES_MAX;
	text->alloc_bytes = (size_t)guess + SPARE_BYTES;
	text->bytes = wf_zalloc(env, text->alloc_bytes);
	if (text->bytes == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", text->path, text->alloc_bytes);
	}
	while (got > 0) {
		enum weft_status st =
			text->count + 1 == text->alloc_bytes ? grow(env, text) : WEFT_OK;
		if (st == WEFT_OK) {
			st = wf_input_read(input, text->bytes + text->count,
					   text->alloc_bytes - 1 - text->count, &got);
		}
		if (st != WEFT_OK) {
			return st;
		}
		text->count += got;
	}
	return WEFT_OK;
}

enum weft_status
wf_text_read(struct wf_env *env, const char *path, struct wf_text *out)
{
	struct wf_text text = {.path = path};
	struct wf_input *input;

	enum weft_status st = wf_input_open(env, path, &input);
	if (st != WEFT_OK) {
		return st;
	}
	st = read_input(env, input, &text);
	wf_input_close(input);
	if (st != WEFT_OK) {
		wf_text_fini(env, &text);
		return st;
	}
	*out = text;
	return WEFT_OK;
}

void
wf_text_fini(struct wf_env *env, struct wf_text *text)
{
	wf_free(env, text->bytes, text->alloc_bytes);
	*text = (struct wf_text){0};
}

size_t
wf_text_line_count(const struct wf_text *text)
{
	const char *end = text->bytes + text->count;
	const char *at = text->bytes;
	size_t lines = 0;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		at = stop == NULL ? end : stop + 1;
		lines++;
	}
	return lines;
}

size_t
wf_text_first_line_count(const struct wf_text *text)
{
	size_t count = text->piece == NULL && text->count > 0;

	for (size_t i = 0; i < text->piece_count; i++) {
		count += text->piece[i].line == 1;
	}
	return count;
}

size_t
wf_text_show(const char *at, size_t count, char *out, size_t room)
{
	const size_t shown = count < room - 1 ? count : room - 1;

	WF_ASSERT(room > 0);
	for (size_t i = 0; i < shown; i++) {
		out[i] = (at[i] >= ' ' && at[i] <= '~') ? at[i] : '?';
	}
	out[shown] = '\0';
	return shown;
}

enum weft_status
wf_field_refuse(const struct wf_field *field, const char *why)
{
	char value[SHOWN_BYTES + 1];
	const size_t shown = wf_text_show(field->at, field->count, value, sizeof(value));
	return wf_fail(WEFT_DATA, "%s: line %zu, column %u: \"%s%s\" %s", field->path, field->line,
		       field->column, value, shown < field->count ? "..." : "", why);
}

enum weft_status
wf_text_add_remedy(enum weft_status st, const char *remedy)
{
	const struct wf_error why = *wf_error_record();

	return st == WEFT_DATA ? wf_fail(st, "%s; %s", why.text, remedy) : st;
}

bool
wf_field_is(const struct wf_field *field, const char *text)
{
	return strlen(text) == field->count && memcmp(text, field->at, field->count) == 0;
}

/* Digits, with sign, point and exponent: what strtod accepts beyond that (blanks, hexadecimal, inf,
 * nan) is not a number here. */
static bool
looks_like_number(const struct wf_field *field)
{
	for (size_t i = 0; i < field->count; i++) {
		char c = field->at[i];
		if (!(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '+' && c != 'e' &&
		    c != 'E') {
			return false;
		}
	}
	return field->count > 0 && field->count <= WF_NUMBER_BYTES_MAX;
}

/* Most numbers are short: their digits and the power of ten are exact as f64, so that one division
 * rounds as strtod does. false: this one is not, or it is no number. */
static bool
parse_short(const struct wf_field *field, double *out)
{
	static const double tenth[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
				       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	const char *end = field->at + field->count;
	const char *at = field->at;
	uint64_t digits = 0;
	size_t count = 0;
	size_t fraction = 0;

	const bool has_sign = at < end && (*at == '-' || *at == '+');
	at += has_sign;
	if (end - at > (ptrdiff_t)WF_ARRAY_COUNT(tenth)) { /* 15 digits and a point */
		return false;
	}
	for (; at < end && *at >= '0' && *at <= '9'; at++, count++) {
		digits = 10 * digits + (uint64_t)(*at - '0');
	}
	if (at < end && *at == '.') {
		for (at++; at < end && *at >= '0' && *at <= '9'; at++, count++, fraction++) {
			digits = 10 * digits + (uint64_t)(*at - '0');
		}
	}
	if (at < end || count == 0 || count >= WF_ARRAY_COUNT(tenth)) {
		return false;
	}
	const double value = (double)digits / tenth[fraction];
	*out = has_sign && field->at[0] == '-' ? -value : value;
	return true;
}

static enum weft_status
refuse_number(const struct wf_field *field, const struct wf_number_rule *rule, const char *why)
{
	char text[192];
	snprintf(text, sizeof(text), "%s%.120s", why, rule->remedy == NULL ? "" : rule->remedy);
	return wf_field_refuse(field, text);
}

/* false: it is no number. */
static bool
parse_long(const struct wf_field *field, double *out)
{
	char copy[WF_NUMBER_BYTES_MAX + 1];
	char *end = NULL;

	if (!looks_like_number(field)) {
		return false;
	}
	memcpy(copy, field->at, field->count);
	copy[field->count] = '\0';
	*out = strtod(copy, &end);
	return end == copy + field->count;
}

enum weft_status
wf_field_number(const struct wf_field *field, const struct wf_number_rule *rule, double *out)
{
	double value = 0.0;

	if (!parse_short(field, &value) && !parse_long(field, &value)) {
		return refuse_number(field, rule, "is not a decimal number");
	}
	if (!(value >= rule->min && value <= rule->max)) {
		char why[64];
		snprintf(why, sizeof(why), "is not within %g..%g", rule->min, rule->max);
		return refuse_number(field, rule, why);
	}
	if (rule->is_whole && (double)(long long)value != value) {
		return refuse_number(field, rule, "is not a whole number");
	}
	*out = value;
	return WEFT_OK;
}

bool
wf_cut_line(struct wf_cut *cut)
{
	const char *start = cut->text->bytes + cut->next;
	const char *end = cut->text->bytes + cut->text->count;

	WF_ASSERT(cut->next <= cut->text->count);
	if (start == end) {
		return false;
	}
	const char *stop = memchr(start, '\n', (size_t)(end - start));
	cut->next = stop == NULL ? cut->text->count : (size_t)(stop + 1 - cut->text->bytes);
	stop = stop == NULL ? end : stop;
	if (cut->line == 0) {
		cut->path = cut->text->path;
	}
	if (cut->piece < cut->text->piece_count &&
	    cut->text->piece[cut->piece].at == (size_t)(start - cut->text->bytes)) {
		cut->path = cut->text->piece[cut->piece].path;
		cut->line = cut->text->piece[cut->piece].line - 1;
		cut->piece++;
	}
	cut->at = start;
	cut->end = stop > start && stop[-1] == '\r' ? stop - 1 : stop;
	cut->line++;
	cut->column = 0;
	return true;
}

enum weft_status
wf_cut_field(struct wf_cut *cut, unsigned columns, struct wf_field *out)
{
	WF_ASSERT(cut->line > 0 && cut->column < columns);
	const char *stop = memchr(cut->at, cut->separator, (size_t)(cut->end - cut->at));
	struct wf_field field = {
		.at = cut->at,
		.count = (size_t)((stop == NULL ? cut->end : stop) - cut->at),
		.path = cut->path,
		.line = cut->line,
		.column = ++cut->column,
	};
	if (cut->column < columns && stop == NULL) {
		return wf_fail(WEFT_DATA, "%s: line %zu: has %u of %u columns", field.path,
			       field.line, field.column, columns);
	}
	if (cut->column == columns && stop != NULL) {
		field.at = stop + 1;
		field.count = (size_t)(cut->end - field.at);
		field.column++;
		return wf_field_refuse(&field, "is one column too many");
	}
	cut->at = stop == NULL ? cut->end : stop + 1;
	*out = field;
	return WEFT_OK;
}

void
wf_cut_skip_mark(struct wf_cut *cut)
{
	static const char mark[] = "\xef\xbb\xbf";

	if ((size_t)(cut->end - cut->at) >= sizeof(mark) - 1 &&
	    memcmp(cut->at, mark, sizeof(mark) - 1) == 0) {
		cut->at += sizeof(mark) - 1;
	}
}

enum weft_status
wf_cut_header(struct wf_cut *cut, const char *header)
{
	wf_cut_skip_mark(cut);
	struct wf_field field = {
		.at = cut->at,
		.count = (size_t)(cut->end - cut->at),
		.path = cut->path,
		.line = cut->line,
		.column = 1,
	};
	if (wf_field_is(&field, header)) {
		return WEFT_OK;
	}
	const char *want = header;
	for (const char *at = cut->at; at < cut->end && *want != '\0' && *at == *want;
	     at++, want++) {
		if (*at == cut->separator) {
			field.column++;
			field.at = at + 1;
		}
	}
	const char *stop = memchr(field.at, cut->separator, (size_t)(cut->end - field.at));
	field.count = (size_t)((stop == NULL ? cut->end : stop) - field.at);
	char shown[HEADER_SHOWN_BYTES + 1];
	char why[sizeof(shown) + 64];
	wf_text_show(header, strlen(header), shown, sizeof(shown));
	snprintf(why, sizeof(why), "is not what the header must have there, which is \"%s\"",
		 shown);
	return wf_field_refuse(&field, why);
}
