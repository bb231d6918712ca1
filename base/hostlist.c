/* SPDX-License-Identifier: Apache-2.0 */
/* hostlist: see hostlist.h. A name with brackets is expanded by counting: name k of n has in each
 * bracket the number at that digit of k in mixed radix. */
#include "base/hostlist.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define BRACKETS_MAX 4u
#define DIGITS_MAX 9u
#define QUOTE 80

struct output {
	char *text;
	size_t bytes, used;
	uint32_t most; /* names that are written */
	uint32_t count;
};

static enum weft_status
refuse(const char *list, const char *why)
{
	return wf_fail(WEFT_INVALID, "the list of hosts \"%.*s\" %s", QUOTE, list, why);
}

/* Moves *at behind it. */
static bool
parse_number(const char **at, uint32_t *value, unsigned *digits)
{
	*digits = (unsigned)strspn(*at, "0123456789");
	*value = 0;
	for (unsigned d = 0; d < *digits && *digits <= DIGITS_MAX; d++) {
		*value = *value * 10 + (uint32_t)((*at)[d] - '0');
	}
	*at += *digits;
	return *digits > 0 && *digits <= DIGITS_MAX;
}

/* Parses "007" or "007-012": the range, and the least number of digits. Advances *at. */
static bool
parse_range(const char **at, uint32_t *first, uint32_t *last, unsigned *width)
{
	unsigned last_width;

	if (!parse_number(at, first, width)) {
		return false;
	}
	*last = *first;
	if (**at != '-') {
		return true;
	}
	(*at)++;
	return parse_number(at, last, &last_width) && *first <= *last;
}

/* The number of numbers in a bracket; `at` is behind the '['. 0: it is malformed. */
static uint32_t
count_bracket(const char *at, const char **end)
{
	uint64_t count = 0;
	for (;;) {
		uint32_t first, last;
		unsigned width;
		if (!parse_range(&at, &first, &last, &width)) {
			return 0;
		}
		count += (uint64_t)last - first + 1;
		if (count > WF_HOSTLIST_MAX || (*at != ',' && *at != ']')) {
			return 0;
		}
		if (*at++ == ']') {
			*end = at;
			return (uint32_t)count;
		}
	}
}

/* Formats number `idx` of such a bracket. */
static int
format_number(const char *at, uint32_t idx, char *out, size_t bytes)
{
	for (;;) {
		uint32_t first, last;
		unsigned width;
		bool good = parse_range(&at, &first, &last, &width);
		WF_ASSERT(good); /* count_bracket has checked it */
		if (idx <= last - first) {
			return snprintf(out, bytes, "%0*u", (int)width, first + idx);
		}
		idx -= last - first + 1;
		at++;
	}
}

/* The entry's end, a comma outside of brackets or the NUL; NULL: a bracket is not closed. */
static const char *
end_of_entry(const char *at)
{
	bool inside = false;
	for (; *at != '\0' && (inside || *at != ','); at++) {
		if (*at == '[' || *at == ']') {
			if (inside == (*at == '[')) {
				return NULL;
			}
			inside = *at == '[';
		}
	}
	return inside ? NULL : at;
}

static bool
append(struct output *out, const char *text, size_t bytes)
{
	if (bytes >= out->bytes - out->used) {
		return false;
	}
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
	out->text[out->used] = '\0';
	return true;
}

/* Name `idx` of an entry whose brackets have these numbers of numbers. */
static bool
append_name(struct output *out, const char *entry, const char *end, const uint32_t *sizes,
	    unsigned brackets, uint32_t idx)
{
	uint32_t digit[BRACKETS_MAX];
	for (unsigned b = brackets; b-- > 0;) {
		digit[b] = idx % sizes[b];
		idx /= sizes[b];
	}
	bool fits = out->count == 0 || append(out, ",", 1);
	unsigned b = 0;
	for (const char *at = entry; at < end && fits;) {
		size_t plain = strcspn(at, "[");
		if (plain > (size_t)(end - at)) {
			plain = (size_t)(end - at);
		}
		fits = append(out, at, plain);
		at += plain;
		if (at < end && fits) {
			char number[DIGITS_MAX + 1];
			int bytes = format_number(at + 1, digit[b++], number, sizeof(number));
			fits = append(out, number, (size_t)bytes);
			at = strchr(at, ']') + 1;
		}
	}
	out->count++;
	return fits;
}

static enum weft_status
expand_entry(const char *list, const char *entry, const char *end, struct output *out)
{
	uint32_t sizes[BRACKETS_MAX];
	unsigned brackets = 0;
	uint64_t names = 1;

	if (entry == end) {
		return refuse(list, "has an empty entry");
	}
	for (const char *at = entry; at < end;) {
		if (*at++ != '[') {
			continue;
		}
		if (brackets == BRACKETS_MAX) {
			return refuse(list, "has a name with more than four brackets");
		}
		sizes[brackets] = count_bracket(at, &at);
		if (sizes[brackets] == 0) {
			return refuse(list, "has a bracket that is no list of numbers and ranges");
		}
		names *= sizes[brackets++];
		if (names + out->count > WF_HOSTLIST_MAX) {
			return refuse(list, "names more than 65,536 hosts");
		}
	}
	const uint32_t count = out->count + (uint32_t)names;
	for (uint32_t i = 0; i < names && out->count < out->most; i++) {
		if (!append_name(out, entry, end, sizes, brackets, i)) {
			return refuse(list, "is too long");
		}
	}
	out->count = count;
	return WEFT_OK;
}

enum weft_status
wf_hostlist_expand(const char *list, uint32_t most, char *out, size_t bytes, uint32_t *count)
{
	struct output output = {.text = out, .bytes = bytes, .most = most};

	WF_ASSERT(bytes > 0);
	out[0] = '\0';
	for (const char *entry = list;;) {
		const char *end = end_of_entry(entry);
		if (end == NULL) {
			return refuse(list, "has a bracket that is not closed");
		}
		enum weft_status st = expand_entry(list, entry, end, &output);
		if (st != WEFT_OK) {
			return st;
		}
		if (*end == '\0') {
			*count = output.count;
			return WEFT_OK;
		}
		entry = end + 1;
	}
}
