/* SPDX-License-Identifier: Apache-2.0 */
/* names: see names.h. Thread: any. */
#include "saved/names.h"

#include <string.h>

#include "base/assert.h"

static const char digits[] = "0123456789ABCDEF";
static const char manifest[] = "manifest";

/* The value of a digit, or -1. */
static int
value_of(char c)
{
	const char *digit = c == '\0' ? NULL : strchr(digits, c);

	return digit == NULL ? -1 : (int)(digit - digits);
}

static bool
is_escape(const char *at, size_t bytes)
{
	return bytes >= 3 && at[0] == '%' && value_of(at[1]) >= 0 && value_of(at[2]) >= 0;
}

static bool
begins_with(const char *at, size_t bytes, const char *word)
{
	return bytes >= strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

/* Whether byte `i` of the name has to be written as an escape. */
static bool
needs_escape(const char *name, size_t bytes, size_t i)
{
	const char *at = name + i;
	const size_t left = bytes - i;

	if (*at <= 0x20 || *at > 0x7e || *at == '/') {
		return true;
	}
	if (*at == '.') {
		return i == 0 || begins_with(at, left, ".state") || begins_with(at, left, ".rows");
	}
	if (i == 0 && bytes == sizeof(manifest) - 1 && memcmp(name, manifest, bytes) == 0) {
		return true;
	}
	return is_escape(at, left);
}

enum weft_status
wf_saved_name_encode(const char *name, size_t bytes, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < bytes; i++) {
		const bool is_escaped = needs_escape(name, bytes, i);
		if (name[i] == '\0') {
			return wf_fail(WEFT_INVALID, "name %.100s...: has a byte of 0", name);
		}
		if (used + (is_escaped ? 3 : 1) >= WF_SAVED_NAME_BYTES) {
			return wf_fail(WEFT_INVALID,
				       "name %.100s...: has more than %u bytes as the name of a "
				       "file, where each of some counts as 3",
				       name, WF_SAVED_NAME_BYTES - 1);
		}
		if (is_escaped) {
			out[used++] = '%';
			out[used++] = digits[(unsigned char)name[i] >> 4];
			out[used++] = digits[(unsigned char)name[i] & 15];
		} else {
			out[used++] = name[i];
		}
	}
	out[used] = '\0';
	return used > 0 ? WEFT_OK : wf_fail(WEFT_INVALID, "a name is empty");
}

size_t
wf_saved_name_decode(const char *file, char *out)
{
	size_t left = strlen(file);
	size_t used = 0;

	WF_ASSERT(left < WF_SAVED_NAME_BYTES);
	while (left > 0) {
		const size_t step = is_escape(file, left) ? 3 : 1;
		out[used++] =
			step == 1 ? *file : (char)(value_of(file[1]) << 4 | value_of(file[2]));
		file += step;
		left -= step;
	}
	out[used] = '\0';
	return used;
}

enum weft_status
wf_saved_name_settle(const char *name, char *out)
{
	char plain[WF_SAVED_NAME_BYTES];

	if (strlen(name) >= sizeof(plain)) {
		return wf_fail(WEFT_INVALID, "name %.100s...: has more than %u bytes", name,
			       WF_SAVED_NAME_BYTES - 1);
	}
	const size_t bytes = wf_saved_name_decode(name, plain);
	return wf_saved_name_encode(plain, bytes, out);
}

bool
wf_saved_name_is_file(const char *name)
{
	const size_t bytes = strlen(name);

	for (size_t i = 0; i < bytes; i++) {
		if (name[i] != '%' && needs_escape(name, bytes, i)) {
			return false;
		}
	}
	return bytes > 0 && bytes < WF_SAVED_NAME_BYTES;
}

/* The bytes of the character at `at`, of UTF-8 without surrogates and overlong forms (RFC 3629); 0:
 * it is none. */
static size_t
character(const unsigned char *at, size_t left)
{
	const size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	unsigned long code = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);

	if (bytes > left || (at[0] >= 0x80 && at[0] < 0xc2) || at[0] > 0xf4) {
		return 0;
	}
	for (size_t i = 1; i < bytes; i++) {
		if ((at[i] & 0xc0) != 0x80) {
			return 0;
		}
		code = code << 6 | (at[i] & 0x3f);
	}
	const bool is_overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
	const bool is_surrogate = code >= 0xd800 && code < 0xe000;
	return is_overlong || is_surrogate || code > 0x10ffff ? 0 : bytes;
}

bool
wf_saved_name_is_utf8(const char *name, size_t bytes)
{
	for (size_t i = 0; i < bytes;) {
		const size_t step = character((const unsigned char *)name + i, bytes - i);
		if (step == 0) {
			return false;
		}
		i += step;
	}
	return true;
}
